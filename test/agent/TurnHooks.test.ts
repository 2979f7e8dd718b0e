import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/TestClock"
import { Model } from "../../src/agent/Model.ts"
import * as TurnHooks from "../../src/agent/TurnHooks.ts"
import * as TurnLoop from "../../src/agent/TurnLoop.ts"
import { EventJournal } from "../../src/journal/EventJournal.ts"
import * as ScriptedModel from "../../src/testing/ScriptedModel.ts"
import { fakeSession, type MemoryJournal, memoryJournal } from "../support/session.ts"

const warnings = ({ events }: MemoryJournal) =>
  events.flatMap((event) => event._tag === "warning" ? [event.message] : [])

/** A turn of one response under hooks. */
const turn = Effect.fnUntraced(function*(
  hooks: ReadonlyArray<TurnHooks.TurnHook>,
  memory: MemoryJournal,
  options: Partial<TurnLoop.Options> & { readonly script?: ScriptedModel.Script } = {}
) {
  const { script = [{ text: "Done.", usage: { inputTokens: 3, outputTokens: 2 } }], ...rest } = options
  const { model, scripted } = yield* ScriptedModel.make(script)
  const exit = yield* TurnLoop.run(
    { session: fakeSession({ memory, tools: {} }), prompt: "Go", ...rest } as TurnLoop.Options
  ).pipe(
    Effect.provideService(Model, model),
    Effect.provideService(EventJournal, memory.journal),
    Effect.provideService(TurnHooks.TurnHooks, hooks),
    Effect.exit
  )
  return { exit, requests: yield* scripted.requests }
})

describe("TurnHooks", () => {
  it.effect("asks each hook about the text of the prompt, and adds what they say as parts of it", () =>
    Effect.gen(function*() {
      const memory = memoryJournal()
      const asked: Array<string> = []
      const hook = (name: string): TurnHooks.TurnHook => ({
        name,
        userPromptSubmit: (prompt) => Effect.sync(() => (asked.push(prompt), { context: `From ${name}.` }))
      })
      const { requests } = yield* turn([hook("a"), { name: "silent" }, hook("b")], memory)
      assert.deepStrictEqual(asked, ["Go", "Go"])
      const content = [
        { type: "text", text: "Go" },
        { type: "text", text: "Note from the host: From a." },
        { type: "text", text: "Note from the host: From b." }
      ] as const
      assert.deepStrictEqual(requests[0]?.messages, [{ role: "user", content }])
      const said = memory.events.find((event) => event._tag === "user_message")
      assert.deepInclude(said, { text: "Go", content })
    }))

  it.effect("ends the turn before anything is asked of the model when a hook denies", () =>
    Effect.gen(function*() {
      const memory = memoryJournal()
      const told: Array<string> = []
      const { exit, requests } = yield* turn([
        { name: "policy", userPromptSubmit: () => Effect.succeed({ deny: "Not here." }) },
        {
          name: "later",
          userPromptSubmit: () => Effect.sync(() => void told.push("asked")),
          turnStart: () => Effect.sync(() => void told.push("start")),
          turnEnd: () => Effect.sync(() => void told.push("end"))
        }
      ], memory)
      const error = yield* Effect.flip(exit)
      assert.instanceOf(error, TurnLoop.TurnDenied)
      assert.deepStrictEqual([error.code, error.reason], ["turn_denied", "Not here."])
      assert.strictEqual(requests.length, 0)
      assert.deepStrictEqual(told, [])
      // A prompt that was denied is no part of the conversation.
      assert.deepStrictEqual(memory.events.map(({ _tag }) => _tag), ["warning"])
      assert.deepStrictEqual(warnings(memory), ["policy denied the prompt: Not here."])
    }))

  it.effect("warns of a hook that fails, dies, throws, answers nonsense or interrupts itself, and goes on", () =>
    Effect.gen(function*() {
      const memory = memoryJournal()
      const bad = (name: string, userPromptSubmit: () => unknown): TurnHooks.TurnHook =>
        ({ name, userPromptSubmit }) as TurnHooks.TurnHook
      const { exit, requests } = yield* turn([
        bad("fails", () => Effect.fail("no network")),
        bad("dies", () => Effect.die(new Error("a bug"))),
        bad("throws", () => {
          throw new Error("thrown")
        }),
        bad("nonsense", () => Effect.succeed("deny")),
        bad("gone", () => Effect.interrupt),
        { name: "fine", userPromptSubmit: () => Effect.succeed({ context: "x" }) }
      ], memory)
      assert.isTrue(Exit.isSuccess(exit))
      assert.strictEqual(requests.length, 1)
      assert.deepStrictEqual(warnings(memory).map((message) => message.split(":")[0]), [
        "fails",
        "dies",
        "throws",
        "nonsense",
        "gone"
      ])
      assert.isTrue(requests[0]?.messages[0]?.role === "user" && requests[0].messages[0].content.length === 2)
    }))

  it.effect("gives every hook a time limit", () =>
    Effect.gen(function*() {
      const memory = memoryJournal()
      const fiber = yield* Effect.fork(turn([
        { name: "slow", timeout: "2 seconds", userPromptSubmit: () => Effect.never },
        { name: "asleep", turnStart: () => Effect.never, turnEnd: () => Effect.never }
      ], memory))
      for (const seconds of [2, 10, 10]) yield* TestClock.adjust(`${seconds} seconds`)
      assert.isTrue(Exit.isSuccess((yield* Fiber.join(fiber)).exit))
      assert.deepStrictEqual(warnings(memory), [
        "slow: no answer within 2s",
        "asleep: no answer within 10s",
        "asleep: no answer within 10s"
      ])
    }))

  it.effect("lets a turn be interrupted in the middle of a hook, and the hook with it", () =>
    Effect.gen(function*() {
      for (const phase of ["userPromptSubmit", "turnStart"] as const) {
        const entered = yield* Deferred.make<void>()
        let released = false
        const waits = () =>
          Effect.zipRight(Deferred.succeed(entered, undefined), Effect.never).pipe(
            Effect.onInterrupt(() => Effect.sync(() => void (released = true)))
          )
        const fiber = yield* Effect.fork(turn([{ name: "waits", [phase]: waits }], memoryJournal()))
        yield* Deferred.await(entered)
        yield* Fiber.interrupt(fiber)
        assert.isTrue(released)
      }
    }))

  it.effect("tells once how each turn ended: completed, failed, or interrupted", () =>
    Effect.gen(function*() {
      const endings: Array<TurnHooks.TurnEnding> = []
      const watcher: TurnHooks.TurnHook = {
        name: "watcher",
        // It takes a while: it has to be let finish also where the turn is interrupted.
        turnEnd: (_, ending) => Effect.zipRight(Effect.yieldNow(), Effect.sync(() => void endings.push(ending)))
      }
      yield* turn([watcher], memoryJournal())
      yield* turn([watcher], memoryJournal(), { script: [{ error: { code: "model_unavailable" } }] })
      const entered = yield* Deferred.make<void>()
      const fiber = yield* Effect.fork(turn([watcher], memoryJournal(), {
        onEvent: (event) =>
          event.type === "part" && event.part.type === "finish"
            ? Effect.zipRight(Deferred.succeed(entered, undefined), Effect.never)
            : Effect.void
      }))
      yield* Deferred.await(entered)
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(endings.map(({ reason, status, steps }) => [status, reason, steps]), [
        ["completed", "done", 1],
        ["failed", "model_unavailable", 1],
        ["interrupted", null, 1]
      ])
      assert.deepStrictEqual(endings[0]?.usage, { inputTokens: 3, outputTokens: 2 })
    }))

  it.effect("holds up an interruption by a second at most, however many hooks hang, and lets each quick one finish", () =>
    Effect.gen(function*() {
      const memory = memoryJournal()
      const entered = yield* Deferred.make<void>()
      const told: Array<string> = []
      const hanging = (name: string): TurnHooks.TurnHook => ({ name, turnEnd: () => Effect.never })
      const quick: TurnHooks.TurnHook = {
        name: "quick",
        turnEnd: (_, { status }) => Effect.delay(Effect.sync(() => void told.push(status)), "200 millis")
      }
      const silent: TurnHooks.TurnHook = { name: "silent" }
      const fiber = yield* Effect.fork(turn(
        [hanging("a"), silent, hanging("b"), silent, hanging("c"), quick],
        memory,
        {
          onEvent: (event) =>
            event.type === "request"
              ? Effect.zipRight(Deferred.succeed(entered, undefined), Effect.never)
              : Effect.void
        }
      ))
      yield* Deferred.await(entered)
      const interrupting = yield* Effect.fork(Fiber.interrupt(fiber))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(interrupting)
      assert.deepStrictEqual(told, ["interrupted"])
      assert.deepStrictEqual(warnings(memory), ["a", "b", "c"].map((name) => `${name}: no answer within 250ms`))
    }))

  it.effect("never lets a hook that looks on end the turn", () =>
    Effect.gen(function*() {
      const memory = memoryJournal()
      const { exit } = yield* turn([{
        name: "broken",
        turnStart: () => Effect.fail("start"),
        turnEnd: () => Effect.die("end")
      }], memory)
      assert.isTrue(Exit.isSuccess(exit))
      assert.deepStrictEqual(warnings(memory), ["broken: start", "broken: end"])
    }))

  it.effect("takes what its hooks need from the environment, once", () =>
    Effect.gen(function*() {
      class Motto extends Context.Tag("Motto")<Motto, string>() {}
      const hooks = yield* Effect.provide(
        TurnHooks.TurnHooks,
        Layer.provide(
          TurnHooks.layer([{
            name: "motto",
            userPromptSubmit: () => Effect.map(Motto, (context) => ({ context }))
          }]),
          Layer.succeed(Motto, "Be kind.")
        )
      )
      const { requests } = yield* turn(hooks, memoryJournal())
      assert.include(JSON.stringify(requests[0]?.messages), "Be kind.")
    }))
})
