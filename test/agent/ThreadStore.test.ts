import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import { document, layerMemory, make, maxDocuments, ThreadStore } from "../../src/agent/ThreadStore.ts"
import { StateUnavailable, toolError } from "../../src/contract/ToolFailure.ts"
import { ThreadId } from "../../src/contract/Turn.ts"
import { laws } from "../../src/testing/contract/ThreadStore.ts"

const thread = ThreadId.make("thread")
const other = ThreadId.make("other")

describe("ThreadStore in memory", () => {
  for (const { law, name } of laws) it.effect(name, () => Effect.provide(law, layerMemory))

  it.effect("keeps 65,536 documents of all threads, and lets the one written longest ago go", () =>
    Effect.gen(function*() {
      const store = yield* make
      yield* store.put(thread, "first", 1, 0)
      yield* store.put(thread, "second", 1, 0)
      for (let index = 2; index < maxDocuments; index++) yield* store.note(other, `k${index}`, index)
      yield* store.put(thread, "first", 2, 1)
      yield* store.note(other, "one more", 0)
      assert.deepStrictEqual(yield* store.get(thread, "first"), { key: "first", value: 2, revision: 2 })
      assert.isUndefined(yield* store.get(thread, "second"))
      assert.strictEqual((yield* store.list(other, "", { limit: 100_000 })).length, maxDocuments - 1)
    }))
})

const counter = document("counter", Schema.Struct({ count: Schema.Int }))
const increment = counter.modify(thread, (before) => Effect.succeed({ count: (before?.count ?? 0) + 1 }))

describe("a typed document", () => {
  it.effect("is undefined before it is written, and then what was made of the value before", () =>
    Effect.gen(function*() {
      assert.isUndefined(yield* counter.read(thread))
      assert.deepStrictEqual(yield* increment, { count: 1 })
      assert.deepStrictEqual(yield* increment, { count: 2 })
      assert.deepStrictEqual(yield* counter.read(thread), { count: 2 })
      assert.isUndefined(yield* counter.read(other))
    }).pipe(Effect.provide(layerMemory)))

  it.effect("that is changed by two at once keeps both changes", () =>
    Effect.gen(function*() {
      const slow = counter.modify(thread, (before) => Effect.as(Effect.yieldNow(), { count: (before?.count ?? 0) + 1 }))
      yield* Effect.all([slow, slow, slow], { concurrency: "unbounded" })
      assert.deepStrictEqual(yield* counter.read(thread), { count: 3 })
    }).pipe(Effect.provide(layerMemory)))

  it.effect("that others keep changing is document_conflict after five tries", () =>
    Effect.gen(function*() {
      let tries = 0
      const losing = counter.modify(thread, () => {
        tries++
        return Effect.as(Effect.orDie(increment), { count: -1 })
      })
      assert.strictEqual((yield* Effect.flip(losing)).code, "document_conflict")
      assert.strictEqual(tries, 5)
      assert.deepStrictEqual(yield* counter.read(thread), { count: 5 })
    }).pipe(Effect.provide(layerMemory)))

  it.effect("that is damaged is document_damaged, and stays as it is", () =>
    Effect.gen(function*() {
      const store = yield* ThreadStore
      yield* store.put(thread, "counter", { count: "many" }, 0)
      assert.strictEqual((yield* Effect.flip(counter.read(thread))).code, "document_damaged")
      assert.strictEqual((yield* Effect.flip(increment)).code, "document_damaged")
      assert.deepStrictEqual((yield* store.get(thread, "counter"))?.value, { count: "many" })
    }).pipe(Effect.provide(layerMemory)))

  it.effect("whose store is out of reach is document_unavailable", () =>
    Effect.gen(function*() {
      const gone = Effect.fail(new StateUnavailable({ reason: "the disk is full", executed: false }))
      const store = yield* make
      const writing = Effect.provideService(increment, ThreadStore, { ...store, put: () => gone })
      const reading = Effect.provideService(counter.read(thread), ThreadStore, { ...store, get: () => gone })
      for (const attempt of [Effect.flip(writing), Effect.flip(reading)]) {
        const error = yield* attempt
        assert.strictEqual(error.code, "document_unavailable")
        assert.include(error.message, "the disk is full")
      }
    }))

  it.effect("is not written when its change fails or is interrupted", () =>
    Effect.gen(function*() {
      const refused = yield* Effect.flip(counter.modify(thread, () => Effect.fail(toolError("no", "No."))))
      assert.strictEqual(refused.code, "no")
      yield* Fiber.interrupt(yield* Effect.fork(counter.modify(thread, () => Effect.never)))
      assert.isUndefined(yield* counter.read(thread))
    }).pipe(Effect.provide(layerMemory)))
})
