import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Conversation from "../../src/agent/Conversation.ts"
import { type Message, Model } from "../../src/agent/Model.ts"
import * as TurnHooks from "../../src/agent/TurnHooks.ts"
import * as TurnLoop from "../../src/agent/TurnLoop.ts"
import { Event } from "../../src/contract/Event.ts"
import * as ToolCall from "../../src/contract/ToolCall.ts"
import { type ContentPart, text } from "../../src/contract/ToolResult.ts"
import { EventJournal } from "../../src/journal/EventJournal.ts"
import * as ScriptedModel from "../../src/testing/ScriptedModel.ts"
import { count } from "../support/counts.ts"
import { fakeSession, type FakeTool, fakeTurn, type MemoryJournal, memoryJournal } from "../support/session.ts"

const { threadId, turnId } = fakeTurn("auto")
const at = 0

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
const decodeEvent = Schema.decodeUnknownSync(Event, { onExcessProperty: "error" })

const over = <A, E>({ journal }: MemoryJournal, effect: Effect.Effect<A, E, EventJournal>): Effect.Effect<A, E> =>
  Effect.provideService(effect, EventJournal, journal)

const journalOf = (events: ReadonlyArray<Event>): MemoryJournal => {
  const memory = memoryJournal()
  memory.events.push(...events)
  return memory
}

/** Every call has one result, right behind it, in the order of the calls; nothing else is a result. */
const assertWellFormed = (messages: ReadonlyArray<Message>) => {
  const ids = new Set<string>()
  for (const [index, message] of messages.entries()) {
    const before = messages[index - 1]
    const next = messages[index + 1]
    if (message.role === "tool") assert.isTrue(before?.role === "assistant" && before.calls.length > 0)
    if (message.role !== "assistant") continue
    assert.isTrue(message.text !== "" || message.calls.length > 0)
    for (const { callId } of message.calls) {
      assert.isFalse(ids.has(callId))
      ids.add(callId)
    }
    assert.deepStrictEqual(
      next?.role === "tool" ? next.results.map(({ callId }) => callId) : [],
      message.calls.map(({ callId }) => callId)
    )
  }
}

/** Each call that the journal holds has one outcome there, and nothing else has. */
const assertOneOutcomeEach = (events: ReadonlyArray<Event>) => {
  const asked = events.flatMap((event) =>
    event._tag === "model_message" ? (event.calls ?? []).map(({ callId }) => `${event.turnId} ${callId}`) : []
  )
  const settled = events.flatMap((event) =>
    event._tag === "call_settled" ? [`${event.turnId} ${event.result.callId}`] : []
  )
  assert.deepStrictEqual(settled.sort(), asked.sort())
}

interface Plan {
  readonly script: ReadonlyArray<ScriptedModel.ScriptedTurn>
  readonly prompt: string | ReadonlyArray<ContentPart> | undefined
  readonly notices: ReadonlyArray<string>
  readonly context: string | undefined
  readonly compactAt: number
  readonly together: boolean
  readonly drift: boolean
}

const texts = fc.constantFrom("One.", "Two.", "half \ud99c", "{}")
const calls = fc.array(
  fc.record({
    toolName: fc.constantFrom("echo", "slow", "fail", "nothing", "bad\ud800"),
    arguments: fc.constantFrom<unknown>({ n: 1 }, { n: 2 }, "{\"n\": 1}", "{\"n\":", "", null, { text: "\ud800" }, 7n),
    callId: fc.constantFrom("a", "b", "a_2")
  }),
  { maxLength: 5 }
)
const response: fc.Arbitrary<ScriptedModel.ScriptedTurn> = fc.record({
  text: texts,
  calls,
  finish: fc.constantFrom("stop", "tool_calls", "length", "content_filter")
}, { requiredKeys: [] }) as fc.Arbitrary<ScriptedModel.ScriptedTurn>
const plan: fc.Arbitrary<Plan> = fc.record({
  script: fc.array(response, { maxLength: 6 }),
  prompt: fc.constantFrom<Plan["prompt"]>("Go", "half \ud99c", undefined, [], [text("a"), text("b")], [
    { type: "image", mediaType: "image/png", data: "AAAA" },
    text("Look.")
  ]),
  notices: fc.array(texts, { maxLength: 2 }),
  context: fc.option(texts, { nil: undefined }),
  compactAt: fc.integer({ min: 4, max: 30 }),
  together: fc.boolean(),
  drift: fc.boolean()
})

const slow: FakeTool = { run: () => Effect.as(Effect.repeatN(Effect.yieldNow(), 2), "slow") }
const tools: Readonly<Record<string, FakeTool>> = {
  echo: { run: () => Effect.succeed("echo") },
  slow,
  fail: { run: () => Effect.fail({ code: "tool_execution_failed", message: "No." }) }
}

/** One turn as it is planned, on a conversation. */
const play = Effect.fnUntraced(
  function*(memory: MemoryJournal, turnId: string, plan: Plan, messages: ReadonlyArray<Message>) {
    const { model } = yield* ScriptedModel.make(plan.script)
    let drifts = plan.drift ? 1 : 0
    const options = {
      session: fakeSession({
        memory,
        tools,
        turnId,
        lane: () => plan.together ? "read_only" : "serial",
        drift: () =>
          drifts-- > 0
            ? {
              _tag: "tool_catalog_changed",
              threadId,
              turnId: fakeTurn("auto", turnId).turnId,
              at,
              grade: "additive",
              deferred: true,
              fingerprint: "0123456789abcdef",
              toolCount: 1,
              toolNames: ["echo"]
            }
            : undefined
      }),
      messages,
      prompt: plan.prompt,
      limits: { steps: 5, callsPerResponse: 4, calls: 12 },
      notices: Effect.succeed(plan.notices),
      compaction: {
        due: ({ messages }) => messages.length >= plan.compactAt,
        // What is left begins in the middle of things.
        compact: (messages) => Effect.succeed([{ role: "user", content: [text("Summary.")] }, ...messages.slice(-3)])
      }
    } as TurnLoop.Options
    return yield* TurnLoop.run(options).pipe(
      Effect.provideService(Model, model),
      Effect.provideService(EventJournal, memory.journal),
      Effect.provideService(TurnHooks.TurnHooks, [{
        name: "context",
        userPromptSubmit: () => Effect.succeed(plan.context === undefined ? undefined : { context: plan.context })
      }])
    )
  }
)

const plans = fc.array(plan, { minLength: 1, maxLength: 3 })

const always = <A>(arbitrary: fc.Arbitrary<A>, runs: number, law: (value: A) => Effect.Effect<void, unknown>) =>
  Effect.promise(() =>
    fc.assert(fc.asyncProperty(arbitrary, (value) => Effect.runPromise(law(value))), { numRuns: runs })
  )

describe("Conversation", () => {
  it.effect("loads exactly the conversation that turns came to", () =>
    always(plans, count({ quick: 60, soak: 1666 }), (plans) =>
      Effect.gen(function*() {
        const memory = memoryJournal()
        let messages: ReadonlyArray<Message> = []
        for (const [index, plan] of plans.entries()) {
          messages = (yield* play(memory, `turn_${index}`, plan, messages)).messages
          const loaded = yield* over(memory, Conversation.load(threadId))
          assert.deepStrictEqual(loaded, messages)
          assert.deepStrictEqual(Conversation.repair(loaded), loaded)
        }
        assertWellFormed(messages)
        assertOneOutcomeEach(memory.events)
        // What the journal holds survives being written and read.
        for (const event of memory.events) assert.deepStrictEqual(decodeEvent(plain(event)), event)
      })))

  it.effect("resumes a turn that was interrupted anywhere, and adds nothing a second time", () =>
    always(
      fc.tuple(plan, fc.integer({ min: 0, max: 80 })),
      count({ quick: 60, soak: 1666 }),
      ([plan, yields]) =>
        Effect.gen(function*() {
          const memory = memoryJournal()
          const fiber = yield* Effect.fork(play(memory, "turn", plan, []))
          yield* Effect.repeatN(Effect.yieldNow(), yields)
          yield* Fiber.interrupt(fiber)
          // The loop itself leaves nothing to settle.
          assertOneOutcomeEach(memory.events)
          const { length } = memory.events
          assertWellFormed(yield* over(memory, Conversation.resume(threadId)))
          assert.strictEqual(memory.events.length, length)
        })
    ))

  it.effect("resumes a journal that ends anywhere, as after a crash, and goes on from there", () =>
    always(plans, count({ quick: 8, soak: 166 }), (plans) =>
      Effect.gen(function*() {
        const whole = memoryJournal()
        let messages: ReadonlyArray<Message> = []
        for (const [index, plan] of plans.entries()) {
          messages = (yield* play(whole, `turn_${index}`, plan, messages)).messages
        }
        for (let end = 0; end <= whole.events.length; end++) {
          const memory = journalOf(whole.events.slice(0, end))
          const resumed = yield* over(memory, Conversation.resume(threadId))
          assertWellFormed(resumed)
          assertOneOutcomeEach(memory.events)
          const { length } = memory.events
          assert.deepStrictEqual(yield* over(memory, Conversation.resume(threadId)), resumed)
          assert.strictEqual(memory.events.length, length)
          if (end % 7 !== 0) continue
          const next = { script: [{ calls: [{ toolName: "echo", callId: "a" }] }], prompt: "On" }
          const { messages } = yield* play(memory, "next", { ...plans[0], ...next, compactAt: 1000 } as Plan, resumed)
          assert.deepStrictEqual(yield* over(memory, Conversation.load(threadId)), messages)
          assertOneOutcomeEach(memory.events)
        }
      })))

  it.effect("settles what was left open in an earlier turn too, though others came after it", () =>
    Effect.gen(function*() {
      const call = { callId: ToolCall.CallId.make("c"), toolName: "write", arguments: {} }
      const memory = journalOf([
        { _tag: "model_message", threadId, turnId, at, text: "", calls: [call] },
        { _tag: "call_started", threadId, turnId, at, callId: call.callId, toolName: "write", arguments: {} },
        { _tag: "user_message", threadId, turnId: fakeTurn("auto", "later").turnId, at, text: "Well?" }
      ])
      const resumed = yield* over(memory, Conversation.resume(threadId))
      assert.deepStrictEqual(resumed.map(({ role }) => role), ["assistant", "tool", "user"])
      const settled = memory.events.at(-1)
      assert.isTrue(settled?._tag === "call_settled" && settled.turnId === turnId)
      if (settled?._tag !== "call_settled") return
      assert.deepInclude(settled.result, { code: "tool_interrupted", executed: true, isError: true })
      assert.include(JSON.stringify(settled.result.content), "may have taken effect")
    }))

  it.effect("reads a journal of before, and leaves out calls that no model asked for", () =>
    Effect.gen(function*() {
      const old = [
        { _tag: "user_message", threadId, turnId, at, text: "Hello" },
        { _tag: "model_message", threadId, turnId, at, text: "Hi." }
      ].map((event) => decodeEvent(event))
      const memory = journalOf(old)
      yield* fakeSession({ memory, tools }).execute(ToolCall.make({ toolName: "echo" }))
      assert.deepStrictEqual(yield* over(memory, Conversation.load(threadId)), [
        { role: "user", content: [text("Hello")] },
        { role: "assistant", text: "Hi.", calls: [] }
      ])
    }))

  it.effect("reads a long journal page by page", () =>
    Effect.gen(function*() {
      const events = Array.from({ length: 1501 }, (_, index): Event => ({
        _tag: "user_message",
        threadId,
        turnId,
        at,
        text: String(index)
      }))
      const loaded = yield* over(journalOf(events), Conversation.load(threadId))
      assert.deepStrictEqual(loaded, events.map((_, index) => ({ role: "user", content: [text(String(index))] })))
    }))

  const id = fc.constantFrom("a", "b", "c").map((value) => ToolCall.CallId.make(value))
  const message: fc.Arbitrary<Message> = fc.oneof(
    fc.record({ role: fc.constant("user" as const), content: fc.constant([text("u")]) }),
    fc.record({
      role: fc.constant("assistant" as const),
      text: fc.constantFrom("", "said"),
      calls: fc.array(
        fc.record({ callId: id, toolName: fc.constant("t"), arguments: fc.constant({}) }),
        { maxLength: 3 }
      )
    }),
    fc.record({
      role: fc.constant("tool" as const),
      results: fc.array(
        fc.record({
          callId: id,
          toolName: fc.constant("t"),
          isError: fc.boolean(),
          content: fc.integer().map((value) => [text(String(value))])
        }),
        { maxLength: 3 }
      )
    })
  )

  it("repairs any list of messages, and what is repaired stays as it is", () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 12 }), (messages) => {
        const repaired = Conversation.repair(messages)
        assertWellFormed(repaired)
        assert.deepStrictEqual(Conversation.repair(repaired), repaired)
        assert.deepStrictEqual(
          repaired.filter(({ role }) => role === "user"),
          messages.filter(({ role }) => role === "user")
        )
        // Nothing is made up but results of interrupted calls.
        const known = new Set(messages.flatMap((one) => one.role === "tool" ? one.results : []))
        for (const result of repaired.flatMap((one) => one.role === "tool" ? one.results : [])) {
          assert.isTrue(known.has(result) || JSON.stringify(result).includes("may have taken effect"))
        }
      }),
      { numRuns: 500 }
    )
  })

  it("never hands the result of a repeated call to the call that was there first", () => {
    const call = { callId: ToolCall.CallId.make("a"), toolName: "t", arguments: {} }
    const repaired = Conversation.repair([
      { role: "assistant", text: "first", calls: [call] },
      { role: "assistant", text: "second", calls: [call] },
      {
        role: "tool",
        results: [{ callId: call.callId, toolName: "t", isError: false, content: [text("Of the second.")] }]
      }
    ])
    assert.notInclude(JSON.stringify(repaired), "Of the second.")
    assertWellFormed(repaired)
  })
})
