/**
 * What every `ThreadStore` does.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { RevisionConflict, ThreadStore } from "../../agent/ThreadStore.ts"
import type { Json } from "../../contract/Json.ts"
import { ThreadId } from "../../contract/Turn.ts"
import { byCodeUnit } from "../../internal/byCodeUnit.ts"
import { equal, expect, type Law, law } from "./Law.ts"

const thread = ThreadId.make("thread")
const other = ThreadId.make("thread_2")

/** The revision that was found, or 0 when nothing was in the way. */
const conflict = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.match(effect, {
    onSuccess: () => 0,
    onFailure: (error) => error instanceof RevisionConflict ? error.found : -1
  })

const keysOf = (documents: ReadonlyArray<{ readonly key: string }>) => documents.map(({ key }) => key)

const nested = (depth: number): Json => depth === 0 ? 0 : [nested(depth - 1)]

export const laws: ReadonlyArray<Law<ThreadStore>> = [
  law(
    "a document is read as it was written, and counts its revisions from 1",
    Effect.gen(function*() {
      const store = yield* ThreadStore
      const value = { text: "\u{1F600}\u0000\"", list: [1.5, null, true, { "%": "" }], empty: {} }
      yield* equal(yield* store.get(thread, "goal"), undefined, "before")
      yield* equal(yield* store.put(thread, "goal", value, 0), { key: "goal", value, revision: 1 }, "put")
      yield* equal(yield* store.get(thread, "goal"), { key: "goal", value, revision: 1 }, "get")
      yield* equal(yield* store.put(thread, "goal", null, 1), { key: "goal", value: null, revision: 2 }, "put again")
      yield* equal(yield* store.get(thread, "goal"), { key: "goal", value: null, revision: 2 }, "get again")
    })
  ),
  law(
    "a document is what it was when it was written, whatever its owner does to it later",
    Effect.gen(function*() {
      const store = yield* ThreadStore
      const value: Record<string, Json> = { step: 1 }
      yield* store.put(thread, "put", value, 0)
      yield* store.note(thread, "note", value)
      value["step"] = 2
      yield* equal((yield* store.get(thread, "put"))?.value, { step: 1 }, "put")
      yield* equal((yield* store.get(thread, "note"))?.value, { step: 1 }, "note")
    })
  ),
  law(
    "a write at another revision than the one found is refused, names both, and changes nothing",
    Effect.gen(function*() {
      const store = yield* ThreadStore
      const early = yield* Effect.flip(store.put(thread, "a", "early", 1))
      yield* expect(early instanceof RevisionConflict, "it is no conflict")
      yield* equal([early.code, early.message], ["revision_conflict", "a is at revision 0, not 1."], "early")
      yield* equal(yield* store.get(thread, "a"), undefined, "nothing")
      yield* store.put(thread, "a", "one", 0)
      yield* store.put(thread, "a", "two", 1)
      for (const expected of [0, 1, 3, -1, 1.5, Number.NaN]) {
        yield* equal(yield* conflict(store.put(thread, "a", "x", expected)), 2, `expected ${expected}`)
      }
      yield* equal(yield* store.get(thread, "a"), { key: "a", value: "two", revision: 2 }, "unchanged")
    })
  ),
  law(
    "of fifty that write the same revision at once exactly one wins, and its value is there",
    Effect.gen(function*() {
      const store = yield* ThreadStore
      for (let revision = 0; revision < 4; revision++) {
        const writers = Array.from(
          { length: 50 },
          (_, index) => Effect.as(store.put(thread, "a", index, revision), index)
        )
        const exits = yield* Effect.all(writers.map(Effect.either), { concurrency: "unbounded" })
        const winners = exits.flatMap((exit) => exit._tag === "Right" ? [exit.right] : [])
        yield* equal(winners.length, 1, "winners")
        yield* equal(yield* store.get(thread, "a"), { key: "a", value: winners[0], revision: revision + 1 }, "value")
      }
    })
  ),
  law(
    "notes are written in their order and among the puts, are seen at once, and count as revisions",
    Effect.gen(function*() {
      const store = yield* ThreadStore
      for (let index = 0; index < 20; index++) yield* store.note(thread, "a", index)
      yield* equal(yield* store.get(thread, "a"), { key: "a", value: 19, revision: 20 }, "notes")
      yield* store.note(thread, "a", "note")
      yield* equal(yield* conflict(store.put(thread, "a", "stale", 20)), 21, "stale")
      yield* store.put(thread, "a", "put", 21)
      yield* store.note(thread, "a", "after")
      yield* store.note(thread, "b", "listed")
      yield* equal(
        yield* store.list(thread, ""),
        [{ key: "a", value: "after", revision: 23 }, { key: "b", value: "listed", revision: 1 }],
        "list"
      )
    })
  ),
  law(
    "threads do not see each other's documents",
    Effect.gen(function*() {
      const store = yield* ThreadStore
      yield* store.put(thread, "a", 1, 0)
      yield* equal(yield* store.get(other, "a"), undefined, "get")
      yield* equal(yield* store.list(other, ""), [], "list")
      yield* store.put(other, "a", 2, 0)
      yield* store.note(other, "b", 3)
      yield* equal(yield* store.get(thread, "a"), { key: "a", value: 1, revision: 1 }, "first")
      yield* equal(keysOf(yield* store.list(thread, "")), ["a"], "keys")
    })
  ),
  law(
    "a list holds the keys with a prefix, by code unit, whatever characters they are of",
    Effect.gen(function*() {
      const store = yield* ThreadStore
      const keys = [
        "a",
        "a_b",
        "a%b",
        "aXb",
        "A",
        "a/1",
        "a/10",
        "a/2",
        "a/",
        "a/~",
        "a/ ",
        "b",
        "~~",
        " ",
        "a'\"\\",
        "a*"
      ]
      for (const key of keys) yield* store.put(thread, key, key, 0)
      for (
        const prefix of [
          "",
          "a",
          "a_",
          "a%",
          "a/",
          "a/1",
          "A",
          "~",
          " ",
          "_",
          "%",
          "*",
          "a*",
          "x",
          "a\u007f",
          "\u00e9",
          "\u0000"
        ]
      ) {
        const expected = keys.filter((key) => key.startsWith(prefix)).sort(byCodeUnit)
        yield* equal(keysOf(yield* store.list(thread, prefix)), expected, `prefix ${JSON.stringify(prefix)}`)
      }
    })
  ),
  law(
    "a list goes on after a key, in pages",
    Effect.gen(function*() {
      const store = yield* ThreadStore
      const keys = Array.from({ length: 25 }, (_, index) => `agent/${String(index).padStart(2, "0")}`)
      for (const key of keys) yield* store.note(thread, key, {})
      yield* store.note(thread, "zzz", {})
      const seen: Array<string> = []
      while (seen.length < 100) {
        const after = seen.at(-1)
        const page = yield* store.list(thread, "agent/", { limit: 10, ...after === undefined ? {} : { after } })
        yield* expect(page.length <= 10, "a page is too long")
        if (page.length === 0) break
        seen.push(...keysOf(page))
      }
      yield* equal(seen, keys, "pages")
      yield* equal(keysOf(yield* store.list(thread, "agent/", { after: "a" })), keys, "after what is before all")
      yield* equal(yield* store.list(thread, "agent/", { after: "b" }), [], "after what is behind all")
      yield* equal(yield* store.list(thread, "agent/", { limit: 0 }), [], "none")
      yield* equal(yield* store.list(thread, "agent/", { limit: -1 }), [], "fewer than none")
    })
  ),
  law(
    "a list has at most a thousand documents unless it is told otherwise",
    Effect.gen(function*() {
      const store = yield* ThreadStore
      for (let index = 0; index < 1001; index++) yield* store.note(thread, `k${index}`, index)
      yield* equal((yield* store.list(thread, "k")).length, 1000, "default")
      yield* equal((yield* store.list(thread, "k", { limit: 2000 })).length, 1001, "limit")
    })
  ),
  law(
    "a key or a value that no store can keep is refused, as a note dropped, and the largest are kept",
    Effect.gen(function*() {
      const store = yield* ThreadStore
      const refused: ReadonlyArray<readonly [string, unknown]> = [
        ["", 1],
        ["k".repeat(201), 1],
        ["k\n", 1],
        ["\u00e9", 1],
        ["k", "x".repeat(1024 * 1024 - 1)],
        ["k", "\u0001".repeat(200_000)],
        ["k", nested(65)],
        ["k", "\ud800"],
        ["k", Number.NaN],
        ["k", undefined],
        ["k", () => 1]
      ]
      for (const [key, value] of refused) {
        const error = yield* Effect.flip(store.put(thread, key, value as Json, 0))
        yield* equal(error.code, "state_unavailable", JSON.stringify(key).slice(0, 20))
        yield* store.note(thread, key, value as Json)
        yield* equal(yield* store.get(thread, key), undefined, "get")
      }
      yield* equal(yield* store.list(thread, ""), [], "list")
      for (const value of ["x".repeat(1024 * 1024 - 2), Array.from({ length: 500_000 }, () => 1), nested(64)]) {
        const key = "k".repeat(200)
        const before = yield* store.get(thread, key)
        yield* store.put(thread, key, value, before?.revision ?? 0)
        yield* equal((yield* store.get(thread, key))?.value, value, "value")
      }
    })
  )
]
