import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import * as StormBreaker from "../../src/agent/StormBreaker.ts"
import type { Json } from "../../src/contract/Json.ts"
import * as ToolCall from "../../src/contract/ToolCall.ts"

/** A digest that loses nothing, so that no test rests on chance. */
const plain = (input: string | Uint8Array) => String(input)

interface Step {
  readonly toolName: string
  readonly arguments?: unknown
  readonly output?: Json
  readonly code?: string
}

/** Which of the steps were let through, by index; those that were not are not run. */
const ran = (steps: ReadonlyArray<Step>, interactive: (toolName: string) => boolean = () => false) => {
  const storms = StormBreaker.make(plain, () => 0)
  return steps.flatMap(({ code = null, output = "same", ...asked }, index) => {
    const call = ToolCall.make(asked)
    const request = StormBreaker.requestOf(call)
    if (storms.refusal(call, request, interactive(call.toolName)) !== undefined) return []
    storms.observe(request, { isError: code !== null, code, output })
    return [index]
  })
}

const times = <A>(count: number, make: (index: number) => A): ReadonlyArray<A> =>
  Array.from({ length: count }, (_, i) => make(i))

describe("StormBreaker", () => {
  it("holds a call back that gave the same result three times", () => {
    assert.deepStrictEqual(ran(times(6, () => ({ toolName: "look" }))), [0, 1, 2])
  })

  it("knows a call by its arguments, however they are written", () => {
    const written = [{ a: 1, b: 2 }, { b: 2, a: 1 }, "{\"b\": 2, \"a\": 1}", "{\"a\":1,\"b\":2}"]
    assert.deepStrictEqual(ran(written.map((args) => ({ toolName: "look", arguments: args }))), [0, 1, 2])
    assert.deepStrictEqual(ran(times(6, (n) => ({ toolName: "look", arguments: { n } }))), [0, 1, 2, 3, 4, 5])
  })

  it("holds failures back like results, and arguments that are no JSON", () => {
    const refused = { toolName: "look", arguments: { text: "\ud800" }, code: "arguments_invalid" }
    assert.deepStrictEqual(ran(times(5, () => refused)), [0, 1, 2])
  })

  it("never flags polling whose result moves, not even between two values", () => {
    const steps = times(40, (n) => ({ toolName: "poll", output: n }))
    assert.strictEqual(ran(steps).length, 40)
    assert.strictEqual(ran(times(40, (n) => ({ toolName: "poll", output: n % 2 }))).length, 40)
  })

  it("never flags polling with pauses, though its result stands still", () => {
    let now = 0
    const storms = StormBreaker.make(plain, () => now)
    const call = ToolCall.make({ toolName: "poll" })
    const request = StormBreaker.requestOf(call)
    for (let poll = 0; poll < 40; poll++) {
      assert.isUndefined(storms.refusal(call, request, false))
      storms.observe(request, { isError: false, code: null, output: "running" })
      now += 90_000
    }
  })

  it("never flags a test that is repeated between edits", () => {
    const steps = times(40, (n) =>
      n % 2 === 0
        ? { toolName: "bash", arguments: { command: "npm test" }, code: "failed" }
        : { toolName: "edit", arguments: { text: n } })
    assert.strictEqual(ran(steps).length, 40)
  })

  it("flags two calls in turn that change nothing", () => {
    const steps = times(20, (n) => ({ toolName: n % 2 === 0 ? "a" : "b" }))
    assert.deepStrictEqual(ran(steps), [0, 1, 2, 3, 4, 5, 6])
  })

  it("lets a call through again when something new has happened", () => {
    const steps = [
      ...times(4, () => ({ toolName: "look" })),
      { toolName: "edit" },
      ...times(4, () => ({ toolName: "look" }))
    ]
    assert.deepStrictEqual(ran(steps), [0, 1, 2, 4, 5, 6, 7])
  })

  it("lets the user be asked three times in a turn, whatever the tool and the question", () => {
    const steps = times(8, (n) => ({
      toolName: n % 2 === 0 ? "user_input" : "request_user_input",
      arguments: { n },
      output: n
    }))
    assert.deepStrictEqual(ran([...steps, { toolName: "read" }], (name) => name !== "read"), [0, 1, 2, 8])
  })

  it("says what repeats, and quotes it", () => {
    const storms = StormBreaker.make(plain, () => 0)
    const call = ToolCall.make({ toolName: "look\u202e" })
    for (let n = 0; n < 3; n++) {
      storms.observe(StormBreaker.requestOf(call), { isError: true, code: "gone", output: null })
    }
    const reason = storms.refusal(call, StormBreaker.requestOf(call), false) ?? ""
    assert.include(reason, "look\\u{202e} was called 3 times")
    assert.include(reason, "the same error (gone)")
  })

  it("remembers a bounded number of pairs, and goes on", () => {
    const steps = times(10_000, (n) => ({ toolName: "poll", output: n }))
    assert.deepStrictEqual(ran([...steps, ...times(4, () => ({ toolName: "look" }))]).slice(-3), [
      10_000,
      10_001,
      10_002
    ])
  })

  it("only ever holds back a call that it has seen come out alike three times", () => {
    const step = fc.record({ toolName: fc.constantFrom("a", "b", "c"), output: fc.integer({ min: 0, max: 1 }) })
    fc.assert(fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const allowed = new Set(ran(steps))
      for (const [index, { toolName }] of steps.entries()) {
        if (allowed.has(index)) continue
        const before = steps.filter((other, at) => at < index && allowed.has(at) && other.toolName === toolName).slice(
          -3
        )
        assert.strictEqual(before.length, 3)
        assert.strictEqual(new Set(before.map(({ output }) => output)).size, 1)
      }
    }))
  })
})
