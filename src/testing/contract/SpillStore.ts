/**
 * What every `SpillStore` does.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { ThreadId } from "../../contract/Turn.ts"
import { SpillStore } from "../../spill/SpillStore.ts"
import { equal, expect, type Law, law } from "./Law.ts"

const thread = ThreadId.make("thread")
const other = ThreadId.make("other")

/** Names that lead out of a folder, are none, or are too long for one. */
const names = [
  "",
  ".",
  "..",
  "../../out",
  "/etc/out",
  "C:\\out",
  "a/b\\c",
  "a\0b",
  "con.txt",
  "stream:x",
  "结果",
  "\ud800",
  "x".repeat(5000)
]

/** `find` reads back what a locator names: `undefined` when it is not there. */
export const laws = <E, R>(
  find: (locator: string) => Effect.Effect<string | undefined, E, R>
): ReadonlyArray<Law<SpillStore | R>> => [
  law(
    "gives back what was saved, and says how many bytes it is",
    Effect.gen(function*() {
      const store = yield* SpillStore
      for (const text of ["", "one\ntwo\n", "\r\n\ttab", "ä 结果 🜁"]) {
        const spilled = yield* store.save(thread, "output.txt", text)
        yield* equal(yield* find(spilled.locator), text, "the text")
        yield* equal(spilled.bytes, new TextEncoder().encode(text).length, "its bytes")
      }
    })
  ),
  law(
    "keeps two texts of one name apart, in one thread and in two",
    Effect.gen(function*() {
      const store = yield* SpillStore
      const saved = [
        yield* store.save(thread, "log", "first"),
        yield* store.save(thread, "log", "second"),
        yield* store.save(other, "log", "third")
      ]
      const texts = yield* Effect.forEach(saved, ({ locator }) => find(locator))
      yield* equal(texts, ["first", "second", "third"], "the texts")
    })
  ),
  law(
    "takes any name",
    Effect.gen(function*() {
      const store = yield* SpillStore
      for (const name of names) {
        const { locator } = yield* store.save(thread, name, name.toWellFormed())
        yield* equal(yield* find(locator), name.toWellFormed(), "the text")
        yield* expect(!/(?:^|[\\/])\.\.(?:[\\/]|$)|[\0\r\n]/.test(locator), `a locator to show, not ${locator}`)
      }
    })
  ),
  law(
    "keeps apart what is saved at once",
    Effect.gen(function*() {
      const store = yield* SpillStore
      const texts = Array.from({ length: 50 }, (_, index) => `text ${index}\n`)
      const save = (text: string, index: number) => store.save(index % 2 === 0 ? thread : other, "log", text)
      const saved = yield* Effect.forEach(texts, save, { concurrency: "unbounded" })
      yield* equal(yield* Effect.forEach(saved, ({ locator }) => find(locator)), texts, "the texts")
    })
  )
]
