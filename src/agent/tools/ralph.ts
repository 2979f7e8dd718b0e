/**
 * `ralph`: works on one objective in rounds, each by a fresh agent.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { toolError } from "../../contract/ToolFailure.ts"
import * as Tool from "../../tool/Tool.ts"
import { ToolInvocation } from "../../tool/ToolInvocation.ts"
import { addUsage, AgentUsage, noUsage } from "../AgentReport.ts"
import { AgentSystem } from "../AgentSystem.ts"
import { type Ask, childCodes, failure, toolCodeOf, withChild, wordsOf } from "../childTurn.ts"
import { ProfileName } from "../Profile.ts"
import { correctionOf, promptOf, Report, reportIn } from "../Ralph.ts"

const defaultRounds = 8

export const Parameters = Schema.Struct({
  objective: Schema.String.pipe(Schema.pattern(/\S/), Schema.maxLength(32_768)).annotations({
    description: "What is to be reached, with all that an agent needs to know: it sees nothing of this conversation."
  }),
  maxRounds: Schema.optionalWith(Schema.Int.pipe(Schema.between(1, 64)), { exact: true }).annotations({
    description: `Rounds at most, 1 to 64; default ${defaultRounds}.`
  }),
  profile: Schema.optionalWith(ProfileName, { exact: true }).annotations({
    description: "The profile that every agent runs under."
  })
})

export const Success = Schema.Struct({
  /** `budget_limited`: the last round would have gone on. */
  status: Schema.Literal("complete", "blocked", "budget_limited"),
  roundsStarted: Schema.Number,
  report: Report,
  /** Of all rounds. */
  usage: AgentUsage
})

/** Failure codes of its own; each has `roundsStarted`, the last good `report`, or `null`, and `usage` in `details`. */
export const codes = [...childCodes, "report_invalid"] as const

const rounds = Effect.fnUntraced(function*(
  { maxRounds = defaultRounds, objective, profile }: typeof Parameters.Type,
  system: AgentSystem["Type"],
  { progress, turn }: ToolInvocation["Type"]
) {
  let usage = noUsage
  let last: Report | undefined

  /** Asks for a report; one that is none is asked for once more. */
  const roundOf = (round: number) =>
    Effect.fnUntraced(function*(ask: Ask) {
      const wordsFor = Effect.fnUntraced(function*(prompt: string) {
        const answer = yield* ask(prompt)
        usage = addUsage(usage, answer.usage)
        return yield* wordsOf(answer)
      })
      const first = reportIn(yield* wordsFor(promptOf({ objective, round, maxRounds, last })))
      if (Either.isRight(first)) return first.right
      const second = reportIn(yield* wordsFor(correctionOf(first.left)))
      return Either.isRight(second) ? second.right : yield* Effect.fail(failure("report_invalid", second.left))
    })

  for (let round = 1;; round++) {
    yield* progress({
      round,
      maxRounds,
      status: "running",
      summary: last === undefined ? null : last.summary.slice(0, 500).toWellFormed()
    })
    const spawn = { label: `ralph ${round}/${maxRounds}`, ...profile === undefined ? {} : { profile } }
    const report: Report = yield* withChild(system, turn, spawn, roundOf(round)).pipe(
      Effect.mapError((why) =>
        toolError(
          why.code === "report_invalid" ? why.code : toolCodeOf(why),
          `Round ${round} failed (${why.code}): ${why.error}`,
          { roundsStarted: round, report: last ?? null, usage }
        )
      )
    )
    last = report
    if (report.status !== "continue") return { status: report.status, roundsStarted: round, report, usage }
    if (round === maxRounds) return { status: "budget_limited" as const, roundsStarted: round, report, usage }
  }
})

/**
 * The tool. Succeeds when a round reports `complete` or `blocked`, or when the rounds are used up. `complete` is the word of
 * the agent that worked on it.
 *
 * Fails with `report_invalid` when an agent gives no report even when asked again, with `delegation_limit`,
 * `depth_exceeded` or `profile_unknown` when one is not started, and with `agent_failed` for what happens inside one. Each
 * agent is stopped when its round is over, and interruption stops it before it completes. The caller's slot is lent for as
 * long as it runs.
 */
export const ralph = Tool.make("ralph", {
  description:
    "Work on one objective in rounds. Each round is a fresh agent that sees the objective and the report of the round " +
    "before, and reports continue, complete or blocked. For long work with a clear end that can be checked.",
  kind: "tool_call",
  policy: "auto",
  codes,
  parameters: Parameters,
  success: Success,
  handler: (args) =>
    Effect.gen(function*() {
      const invocation = yield* ToolInvocation
      const system = yield* AgentSystem
      return yield* system.waiting(invocation.turn, rounds(args, system, invocation))
    })
})
