import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { layerMemory, makeMemory } from "../../src/file/FileHistory.ts"
import { change, laws } from "../../src/testing/contract/FileHistory.ts"

describe("FileHistory in memory", () => {
  for (const { law, name } of laws) it.effect(name, () => Effect.provide(law, layerMemory()))

  it.effect("lets whole turns go, the one whose last change is oldest first", () =>
    Effect.gen(function*() {
      const history = yield* makeMemory({ maxBytes: 115_000 })
      const record = (turn: string, letter: string) =>
        Effect.tap(change(`/${letter}`, null, letter.repeat(20_000), { turn }), history.record)
      const a = yield* record("long", "a")
      const b = yield* record("short", "b")
      yield* record("long", "c")
      yield* record("new", "d")
      yield* record("new", "e")
      yield* record("new", "f")
      assert.deepStrictEqual((yield* history.list()).map(({ path }) => path), ["/a", "/c", "/d", "/e", "/f"])
      assert.isUndefined(yield* history.bytes(b.after?.hash ?? ""))
      assert.isDefined(yield* history.bytes(a.after?.hash ?? ""))
    }))

  it.effect("keeps the newest turn with what it found and what it left, even where it alone takes more", () =>
    Effect.gen(function*() {
      const history = yield* makeMemory({ maxBytes: 10_000 })
      const contents = ["a", "b", "c", "d"].map((letter) => letter.repeat(9000))
      yield* Effect.flatMap(change("/old", null, "old", { turn: "old" }), history.record)
      for (const [index, content] of contents.entries()) {
        yield* Effect.flatMap(change("/f", contents[index - 1] ?? "first", content), history.record)
      }
      const listed = yield* history.list()
      assert.deepStrictEqual(listed.map(({ path }) => path), ["/f", "/f", "/f", "/f"])
      const kept = yield* Effect.forEach(listed, ({ after }) => history.bytes(after?.hash ?? ""))
      assert.deepStrictEqual(kept.map((bytes) => bytes?.length), [undefined, undefined, undefined, 9000])
      assert.isDefined(yield* history.bytes(listed[0]?.before?.hash ?? ""))
    }))

  it.effect("bounds the number of changes too", () =>
    Effect.gen(function*() {
      const history = yield* makeMemory({ maxChanges: 20 })
      for (let index = 0; index < 100; index++) {
        yield* Effect.flatMap(change("/f", null, `${index}`, { turn: `${index}` }), history.record)
      }
      const listed = yield* history.list()
      assert.isAtMost(listed.length, 20)
      assert.strictEqual(listed.at(-1)?.turnId, "99")
    }))
})
