/** What the orchestrating tools share: a child for as long as something uses it, and why it gave no answer. */
import * as Effect from "effect/Effect"
import type { Turn } from "../contract/Turn.ts"
import type { AgentReport } from "./AgentReport.ts"
import type { AgentSystem, SpawnOptions } from "./AgentSystem.ts"

/** Why a child gave no answer, with the code of whoever said so. */
export interface ChildFailure {
  readonly code: string
  readonly error: string
}

/** A child at work: asks it, and waits for the report of that turn, whatever its status. */
export type Ask = (prompt: string) => Effect.Effect<AgentReport, ChildFailure>

export const failure = (code: string, error: string): ChildFailure => ({
  code: code.slice(0, 100).toWellFormed(),
  error: error.slice(0, 500).toWellFormed()
})

/** A child while `use` runs. However that ends, the child is stopped, with all below it, before this returns. */
export const withChild = <A, E>(
  system: AgentSystem["Type"],
  parent: Turn,
  options: SpawnOptions,
  use: (ask: Ask) => Effect.Effect<A, E>
): Effect.Effect<A, E | ChildFailure> =>
  Effect.acquireUseRelease(
    Effect.mapError(system.spawn(parent, options), ({ code, message }) => failure(code, message)),
    (child) => use((prompt) => Effect.mapError(child.ask(prompt), ({ code, message }) => failure(code, message))),
    (child) => child.stop
  )

/** The words of a completed turn; any other end of it is a failure. */
export const wordsOf = ({ error, status, summary }: AgentReport): Effect.Effect<string, ChildFailure> =>
  status === "completed"
    ? Effect.succeed(summary.toWellFormed())
    : Effect.fail(
      failure(error?.code ?? `agent_${status}`, error?.error ?? `The agent's turn was ${status} without a word why.`)
    )

/** What a tool that stands on children may fail with, beside codes of its own. */
export const childCodes = ["agent_failed", "profile_unknown"] as const
const kept = [...childCodes, "delegation_limit", "depth_exceeded"] as const

/** The code that a tool fails with when a child's failure ends it: `agent_failed` for whatever happened inside the child. */
export const toolCodeOf = ({ code }: ChildFailure): typeof kept[number] =>
  kept.find((candidate) => candidate === code) ?? "agent_failed"
