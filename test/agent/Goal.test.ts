import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/TestClock"
import * as Goal from "../../src/agent/Goal.ts"
import { ThreadStore } from "../../src/agent/ThreadStore.ts"
import { createGoal, getGoal, updateGoal } from "../../src/agent/tools/goal.ts"
import { ThreadId } from "../../src/contract/Turn.ts"
import { callIn, planeWith } from "./support.ts"

const thread = ThreadId.make("thread")
const call = (toolName: string, args = {}) => callIn("thread", toolName, args)
const plane = planeWith([getGoal, createGoal, updateGoal])

describe("the tools of a goal", () => {
  it("are for the main agent, ask nobody, and only get_goal is read-only", () => {
    for (const tool of [getGoal, createGoal, updateGoal]) {
      assert.deepInclude(tool, { kind: "tool_call", policy: "auto", reach: "main", readOnly: tool === getGoal })
    }
  })

  it.effect("set a goal, tell how it stands, and end it", () =>
    Effect.gen(function*() {
      assert.deepInclude(yield* call("get_goal"), { output: { goal: null }, shown: "There is no goal." })
      yield* TestClock.setTime(1000)
      const goal = { objective: "All tests pass", status: "active", reason: null, createdAt: 1000, updatedAt: 1000 }
      const created = yield* call("create_goal", { objective: " All tests pass\n" })
      assert.deepStrictEqual(created, { code: null, output: { goal }, shown: "The goal is active: All tests pass" })
      assert.deepStrictEqual(yield* call("get_goal"), created)
      yield* TestClock.setTime(2000)
      const blocked = yield* call("update_goal", { status: "blocked", reason: "no key" })
      assert.deepStrictEqual(blocked.output.goal, { ...goal, status: "blocked", reason: "no key", updatedAt: 2000 })
      const complete = yield* call("update_goal", { status: "complete" })
      assert.deepStrictEqual(complete.output.goal, { ...goal, status: "complete", updatedAt: 2000 })
      assert.strictEqual(complete.shown, "The goal is complete: All tests pass\nTell the user what was done.")
      assert.deepStrictEqual(yield* Goal.read(thread), complete.output.goal)
    }).pipe(Effect.provide(plane)))

  it.effect("refuse a second goal while one is active, and no longer", () =>
    Effect.gen(function*() {
      for (const status of ["complete", "blocked"]) {
        yield* call("create_goal", { objective: `until ${status}` })
        const refused = yield* call("create_goal", { objective: "another" })
        assert.strictEqual(refused.code, "goal_exists")
        assert.strictEqual(refused.output.details.goal.objective, `until ${status}`)
        yield* call("update_goal", { status })
      }
      assert.strictEqual((yield* call("create_goal", { objective: "the last" })).code, null)
    }).pipe(Effect.provide(plane)))

  it.effect("of many that are set at once, one is", () =>
    Effect.gen(function*() {
      const calls = Array.from({ length: 10 }, (_, index) => call("create_goal", { objective: `goal ${index}` }))
      const codes = (yield* Effect.all(calls, { concurrency: "unbounded" })).map(({ code }) => code)
      assert.deepStrictEqual(codes.filter((code) => code === null).length, 1)
      assert.deepStrictEqual(codes.filter((code) => code === "goal_exists").length, 9)
    }).pipe(Effect.provide(plane)))

  it.effect("refuse to end a goal that there is not, and arguments that do not fit", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* call("update_goal", { status: "complete" })).code, "goal_missing")
      for (const objective of ["", " \n", "x".repeat(4001)]) {
        assert.strictEqual((yield* call("create_goal", { objective })).code, "arguments_invalid")
      }
      yield* call("create_goal", { objective: "x".repeat(4000) })
      for (const args of [{ status: "active" }, { status: "complete", objective: "other" }, {}]) {
        assert.strictEqual((yield* call("update_goal", args)).code, "arguments_invalid")
      }
      assert.strictEqual((yield* Goal.read(thread))?.status, "active")
    }).pipe(Effect.provide(plane)))

  it.effect("belong to one thread each", () =>
    Effect.gen(function*() {
      yield* call("create_goal", { objective: "mine" })
      assert.deepStrictEqual((yield* callIn("other", "get_goal")).output, { goal: null })
    }).pipe(Effect.provide(plane)))

  it.effect("a damaged goal is a coded failure of each of them", () =>
    Effect.gen(function*() {
      yield* (yield* ThreadStore).put(thread, "goal", { objective: "x", status: "paused" }, 0)
      for (
        const [name, args] of [
          ["get_goal", {}],
          ["create_goal", { objective: "new" }],
          ["update_goal", { status: "complete" }]
        ] as const
      ) assert.strictEqual((yield* call(name, args)).code, "document_damaged")
    }).pipe(Effect.provide(plane)))
})
