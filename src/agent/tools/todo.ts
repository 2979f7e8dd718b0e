/**
 * `todo_list` and `todo_write`: the to-do list of the thread (spec: Kun 7.16, DSH 5.7). Children hold neither.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { text } from "../../contract/ToolResult.ts"
import * as Tool from "../../tool/Tool.ts"
import { ToolInvocation } from "../../tool/ToolInvocation.ts"
import { documentCodes } from "../ThreadStore.ts"
import * as Todo from "../Todo.ts"

const Success = Schema.Struct({ todos: Schema.Array(Todo.Todo) })

const marks = { completed: "[x]", in_progress: "[>]", pending: "[ ]" } as const

const count = (todos: ReadonlyArray<Todo.Todo>, status: Todo.Todo["status"]) =>
  todos.filter((todo) => todo.status === status).length

const summary = (todos: ReadonlyArray<Todo.Todo>): string =>
  todos.length === 0 ? "The to-do list is empty." : `${count(todos, "completed")} of ${todos.length} done.`

/** Succeeds with the list, empty when none was written. */
export const todoList = Tool.make("todo_list", {
  description: "The to-do list of this thread.",
  policy: "auto",
  reach: "main",
  readOnly: true,
  codes: documentCodes,
  parameters: Schema.Struct({}),
  success: Success,
  handler: Effect.fnUntraced(function*() {
    const { turn } = yield* ToolInvocation
    return { todos: yield* Todo.read(turn.threadId) }
  }),
  render: ({ todos }) => [
    text([summary(todos), ...todos.map(({ content, status }) => `${marks[status]} ${content}`)].join("\n"))
  ]
})

/** Fails with `todo_duplicate` when two items have one content. */
export const todoWrite = Tool.make("todo_write", {
  description:
    "Replaces the whole to-do list of this thread: send every item, also those that did not change. One item at a time is " +
    "in progress. Keep a list for work of several steps, and mark each step as soon as it is done.",
  policy: "auto",
  reach: "main",
  codes: ["todo_duplicate", ...documentCodes],
  parameters: Schema.Struct({ todos: Schema.Array(Todo.NewTodo).pipe(Schema.maxItems(Todo.maxTodos)) }),
  success: Success,
  handler: Effect.fnUntraced(function*({ todos }) {
    const { turn } = yield* ToolInvocation
    return { todos: yield* Todo.write(turn.threadId, todos) }
  }),
  render: ({ todos }, asked) => {
    const current = todos.find(({ status }) => status === "in_progress")
    const demoted = asked.todos.filter(({ status }) => status === "in_progress").length - 1
    return [text(
      summary(todos) +
        (current === undefined ? "" : ` In progress: ${current.content}`) +
        (demoted > 0 ? `\nOnly one item can be in progress: ${demoted} are pending again.` : "")
    )]
  }
})
