/**
 * Notices when a model goes round in circles within a turn (field case D08).
 *
 * A call whose same arguments gave the same result three times, with nothing new in between, is not run a fourth time. New is
 * any pair of a call and a result that the turn has not seen: so a test repeated between edits and a poll whose answer moves
 * are never held back, and two calls in turn that change nothing are. Nor is a poll with pauses in between: a storm is fast, so
 * repeats count when they follow each other within a minute.
 *
 * @since 0.1.0
 */
import type { Sha256 } from "../contract/Digest.ts"
import { canonical, isObject, snapshot } from "../contract/Json.ts"
import type { ToolCall } from "../contract/ToolCall.ts"
import type { ToolResult } from "../contract/ToolResult.ts"
import { display } from "../internal/display.ts"
import { parseJson } from "../internal/parseJson.ts"

/** Runs with the same result before a call is held back, and questions to the user in a turn. */
const limit = 3
/** Milliseconds between repeats of one storm. */
const pause = 60_000
/** Pairs remembered; the oldest go first, and then count as new again. */
const pairsKept = 4096

/** What one turn remembers. Not to be shared between turns. */
export interface StormBreaker {
  /** Why a call is not to be run; `undefined` lets it run, and counts it when it asks the user something. */
  readonly refusal: (call: ToolCall, request: string, interactive: boolean) => string | undefined
  /** How a call that ran came out. */
  readonly observe: (request: string, result: Pick<ToolResult, "isError" | "code" | "output">) => void
}

/** The same text for calls of the same tool with the same arguments, however they are written. */
export const requestOf = ({ arguments: received, toolName }: ToolCall): string => {
  const parsed = typeof received === "string" ? parseJson(received) : undefined
  const kept = snapshot(isObject(parsed) ? parsed : received)
  return `${JSON.stringify(toolName)} ${kept.ok ? canonical(kept.value) : `${kept.problem} ${kept.path}`}`
}

/** `now` tells the time in milliseconds. */
export const make = (sha256: Sha256, now: () => number): StormBreaker => {
  const seen = new Set<string>()
  // Cleared by everything new, so it never holds more than `seen`.
  const repeats = new Map<
    string,
    { readonly pair: string; readonly count: number; readonly code: string | null; readonly at: number }
  >()
  let questions = 0

  return {
    refusal: ({ toolName }, request, interactive) => {
      const repeated = repeats.get(sha256(request))
      if (repeated !== undefined && repeated.count >= limit && now() - repeated.at <= pause) {
        return `${
          display(toolName, { max: 64 })
        } was called ${repeated.count} times with these arguments and gave the ` +
          `same ${
            repeated.code === null ? "result" : `error (${display(repeated.code, { max: 64 })})`
          } each time, with ` +
          "nothing new in between. It was not run again: do something else, or answer with what you have."
      }
      if (!interactive) return undefined
      return ++questions > limit
        ? `The user was asked ${limit} times in this turn already. Go on without asking, and say what you assumed.`
        : undefined
    },
    observe: (request, { code, isError, output }) => {
      const call = sha256(request)
      const pair = sha256(`${call} ${canonical([isError, code, output])}`)
      if (!seen.has(pair)) {
        repeats.clear()
        seen.add(pair)
        const [oldest] = seen
        if (seen.size > pairsKept && oldest !== undefined) seen.delete(oldest)
      }
      const last = repeats.get(call)
      const again = last !== undefined && last.pair === pair && now() - last.at <= pause
      repeats.set(call, { pair, code, count: again ? last.count + 1 : 1, at: now() })
    }
  }
}
