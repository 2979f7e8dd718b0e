import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "effect/FastCheck"
import { StateUnavailable } from "../../src/contract/ToolFailure.ts"
import { ThreadId } from "../../src/contract/Turn.ts"
import { bounded, layerMemory, makeMemory, SpillStore } from "../../src/spill/SpillStore.ts"
import { laws } from "../../src/testing/contract/SpillStore.ts"
import { count } from "../support/counts.ts"

const thread = ThreadId.make("thread")
const bytesOf = (text: string) => new TextEncoder().encode(text).length
const linesOf = (text: string) => text === "" ? 0 : text.replace(/\n$/, "").split("\n").length

/** A store that is broken. */
const broken: SpillStore["Type"] = {
  save: () => Effect.fail(new StateUnavailable({ reason: "the disk is full", executed: true }))
}

describe("SpillStore in memory", () => {
  laws(() => Effect.succeed(undefined)).forEach(({ name }, index) => {
    it.effect(name, () =>
      Effect.gen(function*() {
        const { find, store } = yield* makeMemory()
        const law = laws(find)[index]
        yield* Effect.provideService(law?.law ?? Effect.dieMessage("no such law"), SpillStore, store)
      }))
  })

  it.effect("lets the oldest texts go when it is full, and refuses what never fits", () =>
    Effect.gen(function*() {
      const { find, store } = yield* makeMemory({ maxBytes: 10_000 })
      const save = (letter: string, size: number) => store.save(thread, letter, letter.repeat(size))
      const [a, b, c] = [yield* save("a", 4000), yield* save("b", 4000), yield* save("c", 4000)]
      assert.deepStrictEqual(
        (yield* Effect.forEach([a, b, c], ({ locator }) => find(locator))).map((text) => text?.[0]),
        [undefined, "b", "c"]
      )
      const refused = yield* Effect.flip(save("d", 10_001))
      assert.strictEqual(refused.code, "state_unavailable")
      assert.strictEqual((yield* find(c.locator))?.length, 4000)
    }))

  it.effect("bounds the number of texts too", () =>
    Effect.gen(function*() {
      const { find, store } = yield* makeMemory({ maxBytes: 10 * 1024 })
      const first = yield* store.save(thread, "", "")
      for (let index = 0; index < 10; index++) yield* store.save(thread, "", "")
      assert.isUndefined(yield* find(first.locator))
    }))

  it.effect("is a layer", () =>
    Effect.gen(function*() {
      assert.match((yield* (yield* SpillStore).save(thread, "n", "t")).locator, /^spill:/)
    }).pipe(Effect.provide(layerMemory())))
})

describe("a text within bounds", () => {
  it.effect("is shown whole when it fits both caps, and nothing is saved", () =>
    Effect.gen(function*() {
      const text = "line\n".repeat(2000)
      assert.deepStrictEqual(yield* bounded(broken, thread, "n", text), { text, truncated: false, spilled: undefined })
      const wide = "x".repeat(50 * 1024)
      assert.isFalse((yield* bounded(broken, thread, "n", wide)).truncated)
      assert.isTrue((yield* bounded(broken, thread, "n", `${wide}x`)).truncated)
      assert.isTrue((yield* bounded(broken, thread, "n", `${text}x`)).truncated)
    }))

  it.effect("shows head and tail with a gap that counts what is missing and says where all of it is", () =>
    Effect.gen(function*() {
      const { find, store } = yield* makeMemory()
      const text = Array.from({ length: 3000 }, (_, index) => `${index}\n`).join("")
      const shown = yield* bounded(store, thread, "log", text, { maxLines: 11 })
      const locator = shown.spilled?.locator ?? ""
      const missing = Array.from({ length: 2990 }, (_, index) => `${index + 5}\n`).join("")
      assert.strictEqual(
        shown.text,
        "0\n1\n2\n3\n4\n" +
          `[… 2990 lines, ${missing.length} bytes left out; the whole is at ${locator}: read it with read or grep …]\n` +
          "2995\n2996\n2997\n2998\n2999\n"
      )
      assert.deepStrictEqual(shown.spilled, { locator, bytes: text.length })
      assert.strictEqual(yield* find(locator), text)
    }))

  it.effect("keeps head and tail when it cannot be saved, and names no place", () =>
    Effect.gen(function*() {
      const shown = yield* bounded(broken, thread, "log", "a\nb\nc\nd\ne\n", { maxLines: 3 })
      assert.deepStrictEqual(shown, {
        text: "a\n[… 3 lines, 6 bytes left out …]\ne\n",
        truncated: true,
        spilled: undefined
      })
    }))

  it.effect("cuts one long line on both sides instead of showing nothing of it", () =>
    Effect.gen(function*() {
      const { text } = yield* bounded(broken, thread, "log", `start\n${"🜁".repeat(9999)}end`, { maxBytes: 200 })
      assert.match(text, /^start\n🜁+\n\[… 1 line, \d+ bytes left out …\]\n🜁+end$/u)
      assert.isAbove(bytesOf(text), 190)
    }))

  const piece = fc.oneof(
    fc.constantFrom("\n", "\r\n", "🜁", "é", "\ud800", "\udc00", "结", "[… 1 line left out …]"),
    fc.string({ maxLength: 12 })
  )
  it.effect.prop(
    "never exceeds a cap, never splits a character, and counts exactly what is missing",
    {
      pieces: fc.array(piece, { maxLength: 60 }),
      maxLines: fc.integer({ min: 1, max: 30 }),
      maxBytes: fc.integer({ min: 0, max: 400 }),
      saved: fc.boolean()
    },
    ({ maxBytes, maxLines, pieces, saved }) =>
      Effect.gen(function*() {
        const { find, store } = yield* makeMemory()
        const text = pieces.join("")
        const whole = text.toWellFormed()
        const shown = yield* bounded(saved ? store : broken, thread, "n", text, { maxBytes, maxLines })
        assert.isTrue(shown.text.isWellFormed())
        assert.isAtMost(bytesOf(shown.text), maxBytes)
        assert.isAtMost(linesOf(shown.text), maxLines)
        assert.strictEqual(shown.truncated, bytesOf(whole) > maxBytes || linesOf(whole) > maxLines)
        if (!shown.truncated) return assert.strictEqual(shown.text, whole)
        if (saved) assert.strictEqual(yield* find(shown.spilled?.locator ?? ""), whole)
        const told = /(?:^|\n)\[… (\d+) lines?, (\d+) bytes? left out[^\n]*…\](?:\n|$)/gu
        const gap = [...shown.text.matchAll(told)].at(-1)
        if (gap === undefined) return assert.isBelow(maxBytes, 140)
        const head = shown.text.slice(0, gap.index)
        const tail = shown.text.slice(gap.index + gap[0].length)
        const missing = [head, `${head}\n`].filter((start) => whole.startsWith(start)).map((start) =>
          whole.slice(start.length, whole.length - tail.length)
        )
        assert.isTrue(
          missing.some((middle) => linesOf(middle) === Number(gap[1]) && bytesOf(middle) === Number(gap[2])) &&
            whole.endsWith(tail)
        )
      }),
    { fastCheck: { numRuns: count({ quick: 200, soak: 2000 }) } }
  )
})
