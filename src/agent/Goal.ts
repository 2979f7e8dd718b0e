/**
 * What a thread is after: one goal at a time, kept beside its history (spec: Kun 7.16).
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type CodedError, toolError } from "../contract/ToolFailure.ts"
import type { ThreadId } from "../contract/Turn.ts"
import { document, type DocumentError, type ThreadStore } from "./ThreadStore.ts"

/** Text with something in it. */
const said = (maxLength: number) => Schema.String.pipe(Schema.maxLength(maxLength), Schema.pattern(/\S/))

export const Objective = said(4000)
export const Reason = said(2000)

export const Goal = Schema.Struct({
  objective: Objective,
  status: Schema.Literal("active", "blocked", "complete"),
  /** Why it is blocked, or what was said when it was completed. */
  reason: Schema.NullOr(Reason),
  createdAt: Schema.Number,
  updatedAt: Schema.Number
})
export type Goal = typeof Goal.Type

const goal = document("goal", Goal)

/** The goal of a thread, active or over; `undefined` when there never was one. */
export const read: (threadId: ThreadId) => Effect.Effect<Goal | undefined, DocumentError, ThreadStore> = goal.read

/**
 * Sets a goal where none is active: one that is complete or blocked is over, and gives way. Else it fails with `goal_exists`.
 * Blanks around the objective go.
 */
export const create = (
  threadId: ThreadId,
  objective: string
): Effect.Effect<Goal, CodedError<"goal_exists"> | DocumentError, ThreadStore> =>
  Effect.flatMap(Clock.currentTimeMillis, (at) =>
    goal.modify(threadId, (before) =>
      before?.status === "active"
        ? Effect.fail(
          toolError("goal_exists", "There is an active goal already: finish it, or call update_goal.", { goal: before })
        )
        : Effect.succeed<Goal>({
          objective: objective.trim(),
          status: "active",
          reason: null,
          createdAt: at,
          updatedAt: at
        })))

/** Says that the goal is complete or blocked, and why. Fails with `goal_missing` when there is none. */
export const update = (
  threadId: ThreadId,
  status: "complete" | "blocked",
  reason?: string
): Effect.Effect<Goal, CodedError<"goal_missing"> | DocumentError, ThreadStore> =>
  Effect.flatMap(Clock.currentTimeMillis, (at) =>
    goal.modify(threadId, (before) =>
      before === undefined
        ? Effect.fail(toolError("goal_missing", "There is no goal: call create_goal first."))
        : Effect.succeed<Goal>({ ...before, status, reason: reason?.trim() || null, updatedAt: at })))
