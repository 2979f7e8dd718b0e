import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/TestClock"
import * as Path from "node:path"
import * as Database from "../../../layers/sqlite/Database.ts"
import * as SqliteJournal from "../../../layers/sqlite/EventJournal.ts"
import * as SqliteStore from "../../../layers/sqlite/ThreadStore.ts"
import { RevisionConflict, ThreadStore } from "../../../src/agent/ThreadStore.ts"
import { ThreadId } from "../../../src/contract/Turn.ts"
import { EventJournal } from "../../../src/journal/EventJournal.ts"
import { message } from "../../../src/testing/contract/EventJournal.ts"
import { laws } from "../../../src/testing/contract/ThreadStore.ts"
import { bundle, start } from "../../support/childProcess.ts"
import { count } from "../../support/counts.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { temporaryDatabase } from "./support.ts"

const thread = ThreadId.make("thread")
const filenameIn = Effect.map(temporaryFolder, (folder) => Path.join(folder, "state.db"))
const over = (filename: string) =>
  Layer.merge(SqliteStore.layer, SqliteJournal.layer).pipe(Layer.provide(Database.layer({ filename })))

/** Opens the file, and closes it again. */
const inNext = <A, E>(filename: string, body: Effect.Effect<A, E, ThreadStore | EventJournal>) =>
  Effect.provide(body, Layer.fresh(over(filename)))

const put = (threadId: ThreadId, key: string) =>
  Effect.flatMap(ThreadStore, (store) => store.put(threadId, key, key, 0))
const keysOf = (threadId: ThreadId) =>
  Effect.map(Effect.flatMap(ThreadStore, (store) => store.list(threadId, "")), (found) => found.map(({ key }) => key))

describe("ThreadStore in the state file", () => {
  for (const { law, name } of laws) {
    it.effect(name, () => Effect.provide(law, Layer.provide(SqliteStore.layer, temporaryDatabase)))
  }

  it.scopedLive("documents and their revisions are there again after the file was closed, notes too", () =>
    Effect.gen(function*() {
      const filename = yield* filenameIn
      yield* inNext(
        filename,
        Effect.gen(function*() {
          const store = yield* ThreadStore
          yield* store.put(thread, "goal", { text: "\u{1F600}" }, 0)
          yield* store.note(thread, "agent/1", "noted")
        })
      )
      yield* inNext(
        filename,
        Effect.gen(function*() {
          const store = yield* ThreadStore
          const goal = { key: "goal", value: { text: "\u{1F600}" }, revision: 1 }
          assert.deepStrictEqual(yield* store.list(thread, ""), [{ key: "agent/1", value: "noted", revision: 1 }, goal])
          assert.strictEqual((yield* Effect.flip(store.put(thread, "goal", 1, 0))).code, "revision_conflict")
          yield* store.put(thread, "goal", 1, 1)
        })
      )
    }))

  it.scopedLive("of two hosts with one file that write the same revision one wins, and the other sees its value", () =>
    Effect.gen(function*() {
      const filename = yield* filenameIn
      const open = Effect.flatMap(
        Database.make({ filename }),
        (database) => Effect.provideService(SqliteStore.make, Database.Database, database)
      )
      const [one, two] = yield* Effect.all([open, open])
      for (let revision = 0; revision < 20; revision++) {
        const writes = [one, two].map((store, index) => Effect.either(store.put(thread, "a", index, revision)))
        const [first, second] = yield* Effect.all(writes, { concurrency: "unbounded" })
        assert.deepStrictEqual([first?._tag, second?._tag].sort(), ["Left", "Right"])
        const lost = first?._tag === "Left" ? first.left : second?._tag === "Left" ? second.left : undefined
        assert.instanceOf(lost, RevisionConflict)
        const value = first?._tag === "Right" ? 0 : 1
        for (const store of [one, two]) {
          assert.deepStrictEqual(yield* store.get(thread, "a"), { key: "a", value, revision: revision + 1 })
        }
      }
    }))

  it.scoped("documents go when the file is opened, once nothing was written in their thread for the retention time", () =>
    Effect.gen(function*() {
      const filename = yield* filenameIn
      const [silent, writing, talking] = ["silent", "writing", "talking"].map((id) => ThreadId.make(id))
      if (silent === undefined || writing === undefined || talking === undefined) return assert.fail()
      const threads = [silent, writing, talking]
      const left = inNext(filename, Effect.forEach(threads, keysOf))
      yield* TestClock.setTime(1_000_000_000_000)
      yield* inNext(filename, Effect.forEach(threads, (threadId) => put(threadId, "goal")))
      yield* TestClock.adjust("29 days")
      yield* inNext(
        filename,
        Effect.gen(function*() {
          yield* put(writing, "todo")
          const at = yield* TestClock.currentTimeMillis
          yield* (yield* EventJournal).append({ ...message("hello", talking), at })
        })
      )
      assert.deepStrictEqual(yield* left, [["goal"], ["goal", "todo"], ["goal"]])
      yield* TestClock.adjust("2 days")
      assert.deepStrictEqual(yield* left, [[], ["goal", "todo"], ["goal"]])
      yield* inNext(
        filename,
        Effect.flatMap(EventJournal, (journal) => journal.append(message("the last event stays")))
      )
      yield* TestClock.adjust("29 days")
      assert.deepStrictEqual(yield* left, [[], [], []])
    }))

  it.scopedLive("a damaged document is state_unavailable, is left out of lists, and can be written over", () =>
    Effect.gen(function*() {
      const database = yield* Database.Database
      const store = yield* ThreadStore
      for (const key of ["a", "b", "c"]) yield* put(thread, key)
      yield* database.commit((run) => run("UPDATE document SET value = '{' WHERE key = 'b'", []))
      assert.strictEqual((yield* Effect.flip(store.get(thread, "b"))).code, "state_unavailable")
      assert.deepStrictEqual(yield* keysOf(thread), ["a", "c"])
      assert.strictEqual((yield* store.put(thread, "b", "whole", 1)).revision, 2)
      assert.deepStrictEqual(yield* keysOf(thread), ["a", "b", "c"])
    }).pipe(Effect.provide(Layer.provideMerge(SqliteStore.layer, temporaryDatabase))))

  it.scopedLive(
    "a host that is killed loses at most the notes since the last commit, and none before one it kept",
    () =>
      Effect.gen(function*() {
        const script = yield* bundle("noter.ts")
        for (let round = 0; round < count({ quick: 5, soak: 100 }); round++) {
          const filename = yield* filenameIn
          const host = yield* start(script, filename)
          yield* host.line
          for (let index = 0; index < 1 + round % 7; index++) yield* host.line
          yield* host.kill("SIGKILL")
          yield* host.ended
          let acknowledged = -1
          // What it had said before it died.
          yield* host.line.pipe(
            Effect.sandbox,
            Effect.map((line) => void (acknowledged = Number(line))),
            Effect.forever,
            Effect.ignore
          )
          const [notes, puts] = yield* inNext(
            filename,
            Effect.flatMap(
              ThreadStore,
              (store) => Effect.all([store.list(thread, "note/", { limit: 100_000 }), store.list(thread, "put/")])
            )
          )
          const numbers = notes.map(({ value }) => Number(value)).sort((left, right) => left - right)
          assert.deepStrictEqual(numbers, numbers.map((_, index) => index))
          const last = puts.reduce((most, { value }) => Math.max(most, Number(value)), -1)
          assert.isAtLeast(last, acknowledged)
          // Ten notes stand before every put.
          assert.isAtLeast(numbers.length, (last + 1) * 10)
        }
      }),
    300_000
  )
})
