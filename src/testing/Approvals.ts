/**
 * A gate whose answers are scripted, and which keeps what it was asked.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ApprovalQuestion, Approver, Decision, Options } from "../gate/ApprovalGate.ts"
import { type ApprovalGate, layerMemory } from "../gate/ApprovalGate.ts"
import type { EventJournal } from "../journal/EventJournal.ts"

/** `wait` leaves the question open, for `decide`, a deadline or an interruption. */
export type Answer = "allow" | "deny" | "wait" | Decision

export class Approvals extends Context.Tag("portcullis/testing/Approvals")<Approvals, {
  /** What was asked, oldest first; a reused answer asks nothing. */
  readonly asked: Effect.Effect<ReadonlyArray<ApprovalQuestion>>
  /** Adds answers behind those that are left. */
  readonly script: (...answers: ReadonlyArray<Answer>) => Effect.Effect<void>
}>() {}

const decisionOf = (answer: Answer): Decision | undefined => {
  switch (answer) {
    case "wait":
      return undefined
    case "allow":
    case "deny":
      return { decision: answer, principal: "script" }
    default:
      return answer
  }
}

/** The gate in memory with an approver that answers in order. When no answer is left, questions are `approval_unavailable`. */
export const layer = (
  answers: ReadonlyArray<Answer> = [],
  options?: Omit<Options, "approver">
): Layer.Layer<ApprovalGate | Approvals, never, EventJournal> =>
  Layer.unwrapEffect(Effect.sync(() => {
    const left = [...answers]
    const asked: Array<ApprovalQuestion> = []
    const approver: Approver = {
      name: "script",
      review: (record) =>
        Effect.suspend(() => {
          asked.push(record.question)
          const answer = left.shift()
          return answer === undefined ? Effect.dieMessage("no answer is left") : Effect.succeed(decisionOf(answer))
        })
    }
    return Layer.merge(
      layerMemory({ ...options, approver }),
      Layer.succeed(Approvals, {
        asked: Effect.sync(() => [...asked]),
        script: (...more) => Effect.sync(() => void left.push(...more))
      })
    )
  }))
