import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import { layerMemory, ThreadStore } from "../../src/agent/ThreadStore.ts"
import * as Todo from "../../src/agent/Todo.ts"
import { todoList, todoWrite } from "../../src/agent/tools/todo.ts"
import { ThreadId } from "../../src/contract/Turn.ts"
import { count } from "../support/counts.ts"
import { callIn, planeWith } from "./support.ts"

const thread = ThreadId.make("thread")
const write = (...todos: ReadonlyArray<object>) =>
  callIn("thread", "todo_write", { todos: todos.map((todo) => ({ ...todo })) })
const plane = planeWith([todoList, todoWrite])
const pending = (content: string) => ({ content, status: "pending" as const })

describe("todo_list and todo_write", () => {
  it("are for the main agent, ask nobody, and only todo_list is read-only", () => {
    for (const tool of [todoList, todoWrite]) {
      assert.deepInclude(tool, { kind: "tool_call", policy: "auto", reach: "main", readOnly: tool === todoList })
    }
  })

  it.effect("replace the list and tell it", () =>
    Effect.gen(function*() {
      const empty = yield* callIn("thread", "todo_list")
      assert.deepStrictEqual(empty, { code: null, output: { todos: [] }, shown: "The to-do list is empty." })
      const written = yield* write(
        { content: " read ", status: "completed" },
        { content: "think", status: "in_progress" },
        pending("write")
      )
      assert.strictEqual(written.shown, "1 of 3 done. In progress: think")
      const listed = yield* callIn("thread", "todo_list")
      assert.deepStrictEqual(listed.output, written.output)
      assert.strictEqual(listed.shown, "1 of 3 done.\n[x] read\n[>] think\n[ ] write")
      assert.deepStrictEqual((yield* callIn("other", "todo_list")).output, { todos: [] })
      assert.deepStrictEqual((yield* write()).output, { todos: [] })
      assert.deepStrictEqual(yield* Todo.read(thread), [])
    }).pipe(Effect.provide(plane)))

  it.effect("one item at a time is in progress, the first; the others are pending again", () =>
    Effect.gen(function*() {
      const { output, shown } = yield* write(
        pending("a"),
        { content: "b", status: "in_progress" },
        { content: "c", status: "in_progress" },
        { content: "d", status: "completed" },
        { content: "e", status: "in_progress" }
      )
      assert.deepStrictEqual(
        output.todos.map(({ status }: Todo.Todo) => status),
        ["pending", "in_progress", "pending", "completed", "pending"]
      )
      assert.include(shown, "2 are pending again")
    }).pipe(Effect.provide(plane)))

  it.effect("refuse what does not fit, and leave the list as it was", () =>
    Effect.gen(function*() {
      yield* write(pending("stays"))
      const refused: ReadonlyArray<ReadonlyArray<object>> = [
        [pending("")],
        [pending(" \n")],
        [pending("x".repeat(1001))],
        [{ content: "x" }],
        [{ content: "x", status: "done" }],
        [{ ...pending("x"), source: "plan" }],
        [{ ...pending("x"), id: "i".repeat(101) }],
        Array.from({ length: 201 }, (_, index) => pending(String(index)))
      ]
      for (const todos of refused) assert.strictEqual((yield* write(...todos)).code, "arguments_invalid")
      assert.strictEqual((yield* write(pending("a"), pending(" a"))).code, "todo_duplicate")
      assert.deepStrictEqual((yield* Todo.read(thread)).map(({ content }) => content), ["stays"])
      const most = yield* write(...Array.from({ length: 200 }, (_, index) => pending(String(index).padEnd(1000, "x"))))
      assert.strictEqual(most.code, null)
    }).pipe(Effect.provide(plane)))

  it.effect("a damaged list is a coded failure of both", () =>
    Effect.gen(function*() {
      yield* (yield* ThreadStore).put(thread, "todo", { todos: [{ content: "x" }] }, 0)
      assert.strictEqual((yield* callIn("thread", "todo_list")).code, "document_damaged")
      assert.strictEqual((yield* write(pending("x"))).code, "document_damaged")
    }).pipe(Effect.provide(plane)))
})

const ids = (...todos: ReadonlyArray<Todo.NewTodo>) =>
  Effect.map(Todo.write(thread, todos), (written) => written.map(({ id }) => id))

describe("the id of an item", () => {
  it.effect("stays as long as the content does, wherever the item goes and whatever id is sent with it", () =>
    Effect.gen(function*() {
      const [a, b] = yield* ids(pending("a"), pending("b"))
      assert.deepStrictEqual(yield* ids({ content: " b", status: "completed" }, { ...pending("a"), id: "x" }), [b, a])
      const [made, , again] = yield* ids(pending("c"), pending("a"), { ...pending("b"), id: a ?? "" })
      assert.deepStrictEqual([again], [b])
      assert.notInclude([a, b], made)
    }).pipe(Effect.provide(layerMemory)))

  it.effect("is the one asked for when it is free, and of a changed content a new one, the same each time", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* ids({ ...pending("a"), id: "first" }), ["first"])
      assert.deepStrictEqual(yield* ids(pending("a")), ["first"])
      const [changed] = yield* ids({ ...pending("A"), id: "first" })
      assert.match(changed ?? "", /^todo_[0-9a-f]{8}$/)
      yield* ids()
      assert.deepStrictEqual(yield* ids({ ...pending("A"), id: " " }), [changed])
      const [taken] = yield* ids({ ...pending("b"), id: changed ?? "" })
      assert.notStrictEqual(taken, changed)
    }).pipe(Effect.provide(layerMemory)))

  const sent = FastCheck.uniqueArray(
    FastCheck.record({
      content: FastCheck.constantFrom("a", "b", "c", "d", "e"),
      id: FastCheck.constantFrom("", "1", "2", "todo_ca978112"),
      status: FastCheck.constantFrom("pending" as const, "in_progress" as const)
    }),
    { selector: ({ content }) => content }
  )
  it.effect.prop(
    "is unique in every list, and never passes to another content in the next",
    [FastCheck.array(sent, { maxLength: 6 })],
    ([lists]) =>
      Effect.gen(function*() {
        let before: ReadonlyArray<Todo.Todo> = []
        for (const list of lists) {
          const after = yield* Todo.write(thread, list)
          assert.strictEqual(new Set(after.map(({ id }) => id)).size, list.length)
          for (const { content, id } of before) {
            for (const item of after) assert.strictEqual(item.id === id, item.content === content)
          }
          before = after
        }
      }).pipe(Effect.provide(layerMemory)),
    { fastCheck: { numRuns: count({ quick: 100, soak: 1500 }) } }
  )
})
