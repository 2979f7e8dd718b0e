/**
 * `get_goal`, `create_goal` and `update_goal`: what the thread is after (spec: Kun 7.16). Children hold none of them.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { text } from "../../contract/ToolResult.ts"
import * as Tool from "../../tool/Tool.ts"
import { ToolInvocation } from "../../tool/ToolInvocation.ts"
import * as Goal from "../Goal.ts"
import { documentCodes } from "../ThreadStore.ts"

const Success = Schema.Struct({ goal: Goal.Goal })

const line = ({ objective, reason, status }: Goal.Goal): string =>
  `The goal is ${status}${reason === null ? "" : ` (${reason})`}: ${objective}`

/** Succeeds with the goal, or `null`. */
export const getGoal = Tool.make("get_goal", {
  description: "The goal of this thread and how it stands.",
  policy: "auto",
  reach: "main",
  readOnly: true,
  codes: documentCodes,
  parameters: Schema.Struct({}),
  success: Schema.Struct({ goal: Schema.NullOr(Goal.Goal) }),
  handler: Effect.fnUntraced(function*() {
    const { turn } = yield* ToolInvocation
    return { goal: (yield* Goal.read(turn.threadId)) ?? null }
  }),
  render: ({ goal }) => [text(goal === null ? "There is no goal." : line(goal))]
})

/** Fails with `goal_exists` while another goal is active. */
export const createGoal = Tool.make("create_goal", {
  description: "Sets the goal of this thread, when the user asks for one. There is one active goal at a time.",
  policy: "auto",
  reach: "main",
  codes: ["goal_exists", ...documentCodes],
  parameters: Schema.Struct({
    objective: Goal.Objective.annotations({ description: "What is to be reached, and how one knows that it is." })
  }),
  success: Success,
  handler: Effect.fnUntraced(function*({ objective }) {
    const { turn } = yield* ToolInvocation
    return { goal: yield* Goal.create(turn.threadId, objective) }
  }),
  render: ({ goal }) => [text(line(goal))]
})

/** Fails with `goal_missing` when there is no goal. */
export const updateGoal = Tool.make("update_goal", {
  description: "Says that the goal is complete, all of it, or that it is blocked and only the user can help.",
  policy: "auto",
  reach: "main",
  codes: ["goal_missing", ...documentCodes],
  parameters: Schema.Struct({
    status: Schema.Literal("complete", "blocked"),
    reason: Schema.optionalWith(Goal.Reason.annotations({ description: "What blocks it, or what was reached." }), {
      exact: true
    })
  }),
  success: Success,
  handler: Effect.fnUntraced(function*({ reason, status }) {
    const { turn } = yield* ToolInvocation
    return { goal: yield* Goal.update(turn.threadId, status, reason) }
  }),
  render: ({ goal }) => [
    text(`${line(goal)}\nTell the user ${goal.status === "complete" ? "what was done." : "what you need to go on."}`)
  ]
})
