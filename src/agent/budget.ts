/**
 * What one tree of agents has used of its budget (decisions: nesting; the seed's 7.2 ④).
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import type { AgentUsage } from "./AgentReport.ts"
import type { Budget } from "./AgentSystem.ts"

/** The account of one root and all below it. */
export interface Account {
  /** Why an agent cannot be spawned by one at this depth (a root's is 0), or `undefined`; a spawned one is counted. */
  readonly admit: (
    depth: number
  ) => { readonly code: "depth_exceeded" | "delegation_limit"; readonly reason: string } | undefined
  readonly use: (usage: AgentUsage) => void
  /** Why no more may be asked of a model, or `undefined`. */
  readonly spent: () => string | undefined
}

export const open = (budget: Budget): Account => {
  const depth = Math.max(0, budget.depth ?? 1)
  let children = 0
  let tokens = 0
  const spent = () =>
    budget.tokens !== undefined && tokens >= budget.tokens
      ? `The budget of ${budget.tokens} tokens for this tree of agents is used up (${tokens}).`
      : undefined
  return {
    admit: (parent) => {
      if (parent >= depth) {
        return {
          code: "depth_exceeded",
          reason: depth === 0
            ? "Agents may not be spawned here."
            : `Agents may nest ${depth} deep; this one may not spawn others. Do the work yourself.`
        }
      }
      if (budget.children !== undefined && children >= budget.children) {
        return { code: "delegation_limit", reason: `This tree of agents may spawn ${budget.children} and has.` }
      }
      const reason = spent()
      if (reason !== undefined) return { code: "delegation_limit", reason }
      children++
      return undefined
    },
    use: ({ inputTokens, outputTokens }) => {
      tokens += inputTokens + outputTokens
    },
    spent
  }
}

/** When what is spawned now is over its time, in epoch milliseconds; a child never outlives its parent's deadline. */
export const deadline = (budget: Budget, now: number, parent: number | undefined): number | undefined =>
  parent ?? (budget.time === undefined ? undefined : now + Duration.toMillis(budget.time))
