/**
 * The to-do list of a thread, always replaced as a whole (spec: Kun 7.16, DSH 5.7).
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Digest, type Sha256 } from "../contract/Digest.ts"
import { type CodedError, toolError } from "../contract/ToolFailure.ts"
import type { ThreadId } from "../contract/Turn.ts"
import { document, type DocumentError, type ThreadStore } from "./ThreadStore.ts"

const Content = Schema.String.pipe(Schema.maxLength(1000), Schema.pattern(/\S/))
const Id = Schema.String.pipe(Schema.maxLength(100))
const Status = Schema.Literal("pending", "in_progress", "completed")

export const Todo = Schema.Struct({ id: Id, content: Content, status: Status })
export type Todo = typeof Todo.Type

/** An item as somebody writes it: an id that is missing or blank is given by the list. */
export const NewTodo = Schema.Struct({
  id: Schema.optionalWith(Id, { exact: true }),
  content: Content,
  status: Status
})
export type NewTodo = typeof NewTodo.Type

/** Items of a list. */
export const maxTodos = 200

const list = document("todo", Schema.Struct({ todos: Schema.Array(Todo).pipe(Schema.maxItems(maxTodos)) }))

/** The list of a thread; empty when none was written. */
export const read = (threadId: ThreadId): Effect.Effect<ReadonlyArray<Todo>, DocumentError, ThreadStore> =>
  Effect.map(list.read(threadId), (found) => found?.todos ?? [])

/**
 * The next list: an item whose content was there keeps its id; another one gets the id it asks for when that is free, else
 * one made of its content. Only the first item in progress is; the others are pending again.
 */
const replaced = (before: ReadonlyArray<Todo>, wanted: ReadonlyArray<NewTodo>, sha256: Sha256): ReadonlyArray<Todo> => {
  const known = new Map(before.map(({ content, id }) => [content, id]))
  const taken = new Set(known.values())
  const fresh = (content: string, asked: string) => {
    const made = `todo_${sha256(content).slice(0, 8)}`
    let id = asked === "" || taken.has(asked) ? made : asked
    for (let copy = 2; taken.has(id); copy++) id = `${made}_${copy}`
    taken.add(id)
    return id
  }
  const current = wanted.findIndex(({ status }) => status === "in_progress")
  return wanted.map(({ content, id = "", status }, index) => ({
    id: known.get(content) ?? fresh(content, id.trim()),
    content,
    status: status === "in_progress" && index !== current ? "pending" : status
  }))
}

/** Replaces the list; blanks around a content go. Fails with `todo_duplicate` when two items have one content. */
export const write = (
  threadId: ThreadId,
  todos: ReadonlyArray<NewTodo>
): Effect.Effect<ReadonlyArray<Todo>, CodedError<"todo_duplicate"> | DocumentError, ThreadStore> =>
  Effect.gen(function*() {
    const sha256 = yield* Digest
    const wanted = todos.map((todo) => ({ ...todo, content: todo.content.trim() }))
    const seen = new Set<string>()
    for (const { content } of wanted) {
      if (seen.has(content)) {
        return yield* toolError(
          "todo_duplicate",
          `Two items are alike: ${JSON.stringify(content)}. Nothing was changed.`
        )
      }
      seen.add(content)
    }
    const written = yield* list.modify(
      threadId,
      (before) => Effect.succeed({ todos: replaced(before?.todos ?? [], wanted, sha256) })
    )
    return written.todos
  })
