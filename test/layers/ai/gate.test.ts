import type * as AiError from "@effect/ai/AiError"
import * as LanguageModel from "@effect/ai/LanguageModel"
import * as AiTool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import { assert, describe, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { expectTypeOf } from "vitest"
import * as EffectAi from "../../../layers/ai/EffectAi.ts"
import * as Test from "../../../layers/stacks/Test.ts"
import { CapabilityRegistry } from "../../../src/catalog/CapabilityRegistry.ts"
import { ThreadId } from "../../../src/contract/Turn.ts"
import type * as HookGate from "../../../src/gate/HookGate.ts"
import { EventJournal } from "../../../src/journal/EventJournal.ts"
import { recorder } from "../../support/plane.ts"
import * as Provider from "../../support/provider.ts"

class Quota extends Schema.TaggedError<Quota>()("Quota", { left: Schema.Number }) {}

class Clock extends Context.Tag("test/Clock")<Clock, { readonly now: Date }>() {}

const Forecast = AiTool.make("forecast", {
  description: "The weather of a day.",
  parameters: { day: Schema.DateFromString },
  success: Schema.Struct({ day: Schema.DateFromString, degrees: Schema.Number }),
  failure: Quota
})
const Deploy = AiTool.make("deploy", { parameters: { target: Schema.Literal("staging", "production") } })
const Today = AiTool.make("today", { success: Schema.DateFromString, dependencies: [Clock] }).annotate(
  AiTool.Readonly,
  true
)

const MyToolkit = Toolkit.make(Forecast, Deploy, Today)

const deployed: Array<string> = []
const handlers = MyToolkit.toLayer({
  forecast: ({ day }) =>
    day.getUTCFullYear() > 2000 ? Effect.succeed({ day, degrees: 21 }) : Effect.fail(new Quota({ left: 0 })),
  deploy: ({ target }) => Effect.sync(() => void deployed.push(target)),
  today: () => Effect.map(Clock, ({ now }) => now)
})
const clock = Layer.succeed(Clock, { now: new Date(0) })

const turn = { workspace: ".", approvalPolicy: "auto" } as const

const asked = (...calls: ReadonlyArray<readonly [string, unknown]>): ReadonlyArray<Provider.Answer> => [
  {
    chunks: [calls.map(([name, params], index) => Provider.call(`c${index}`, name, params)), [
      Provider.finish("tool-calls")
    ]]
  }
]

const plane = (options: Test.Options = {}) =>
  Layer.mergeAll(Test.layer([], { approvals: { approver: recorder().approver }, ...options }), handlers, clock)

const registered = Effect.flatMap(CapabilityRegistry, (registry) => registry.snapshot)

describe("EffectAi.gate", () => {
  it.scoped("leaves a request unchanged that nothing refuses", () => {
    const { asked: questions, approver } = recorder()
    return Effect.gen(function*() {
      const gated = yield* EffectAi.gate(MyToolkit, {
        turn,
        kind: { deploy: "command_execution" },
        policy: { deploy: "untrusted" }
      })
      const response = yield* LanguageModel.generateText({ prompt: "Go", toolkit: gated }).pipe(
        Effect.provide(
          Provider.layer(
            asked(["forecast", { day: "2026-07-25T00:00:00.000Z" }], ["today", {}], ["deploy", { target: "staging" }])
          )
        )
      )
      const day = new Date("2026-07-25T00:00:00.000Z")
      assert.deepStrictEqual(
        response.toolResults.map(({ encodedResult, isFailure, result }) => [isFailure, result, encodedResult]),
        [
          [false, { day, degrees: 21 }, { day: day.toISOString(), degrees: 21 }],
          [false, new Date(0), "1970-01-01T00:00:00.000Z"],
          [false, undefined, null]
        ]
      )
      assert.deepStrictEqual(response.toolCalls[0]?.params, { day })
      assert.deepStrictEqual(deployed.splice(0), ["staging"])
      assert.deepStrictEqual(questions.map(({ toolName }) => toolName), ["deploy"])
      const { providers, tools } = yield* registered
      assert.strictEqual(providers.get("toolkit")?.kind, "built-in")
      const deploy = tools.get("deploy")?.tool
      assert.deepStrictEqual([deploy?.kind, deploy?.policy, deploy?.runs, deploy?.readOnly], [
        "command_execution",
        "untrusted",
        "host",
        false
      ])
      assert.strictEqual(tools.get("today")?.tool.readOnly, true)
    }).pipe(Effect.provide(plane({ approvals: { approver } })))
  })

  it.scoped("gives a refusal to the model as a value, and runs nothing", () => {
    return Effect.gen(function*() {
      const gated = yield* EffectAi.gate(MyToolkit, { turn: { ...turn, approvalPolicy: "always" } })
      const parts = yield* LanguageModel.streamText({ prompt: "Go", toolkit: gated }).pipe(
        Stream.runCollect,
        Effect.map(Chunk.toReadonlyArray),
        Effect.provide(Provider.layer(asked(["deploy", { target: "production" }])))
      )
      const [result] = parts.flatMap((part) => part.type === "tool-result" ? [part] : [])
      assert.strictEqual(result?.isFailure, true)
      assert.deepInclude(result?.result, { code: "approval_unavailable" })
      assert.deepStrictEqual(result?.encodedResult, result?.result)
      assert.deepStrictEqual(deployed, [])
    }).pipe(Effect.provide(plane({ approvals: { approver: "none" } })))
  })

  it.scoped("gives a tool's own failure back in its own type", () => {
    return Effect.gen(function*() {
      const gated = yield* EffectAi.gate(MyToolkit, { turn })
      const outcome = yield* gated.handle("forecast", { day: "1999-01-01T00:00:00.000Z" } as never)
      assert.isTrue(outcome.isFailure)
      assert.instanceOf(outcome.result, Quota)
      assert.deepStrictEqual(outcome.encodedResult, { _tag: "Quota", left: 0 })
    }).pipe(Effect.provide(plane()))
  })

  it.scoped("refuses arguments by the tool's own schema before the handler", () => {
    return Effect.gen(function*() {
      const gated = yield* EffectAi.gate(MyToolkit, { turn })
      for (const params of [{ target: "moon" }, {}, { target: "staging", force: true }]) {
        const outcome = yield* gated.handle("deploy", params as never)
        assert.deepInclude(outcome.result, { code: "arguments_invalid" })
      }
      assert.deepStrictEqual(deployed, [])
    }).pipe(Effect.provide(plane()))
  })

  it.scoped("says so when the output was changed to something else than the tool declares", () => {
    const redact: HookGate.Hook = {
      phase: "PostToolUse",
      name: "redact",
      run: () => Effect.succeed({ output: "redacted" })
    }
    return Effect.gen(function*() {
      const gated = yield* EffectAi.gate(MyToolkit, { turn })
      const outcome = yield* gated.handle("forecast", { day: "2026-07-25T00:00:00.000Z" } as never)
      assert.isTrue(outcome.isFailure)
      assert.deepInclude(outcome.result, { code: "tool_output_invalid" })
    }).pipe(Effect.provide(plane({ hooks: [redact] })))
  })

  it.scoped("does not show the provider what the turn hides", () => {
    const seen: Array<LanguageModel.ProviderOptions> = []
    return Effect.gen(function*() {
      const gated = yield* EffectAi.gate(MyToolkit, { turn: { ...turn, tools: { deny: ["deploy"] } } })
      yield* Effect.provide(LanguageModel.generateText({ prompt: "Go", toolkit: gated }), Provider.layer([], seen))
      assert.deepStrictEqual(seen[0]?.tools.map(({ name }) => name), ["forecast", "today"])
      assert.strictEqual(gated.tools.deploy.name, "deploy")
      const outcome = yield* gated.handle("deploy", { target: "staging" })
      assert.deepInclude(outcome.result, { code: "tool_not_advertised" })
    }).pipe(Effect.provide(plane()))
  })

  it.scoped("shows the provider the tool's own schema and description", () => {
    return Effect.gen(function*() {
      const gated = yield* EffectAi.gate(MyToolkit, { turn })
      assert.deepStrictEqual(AiTool.getJsonSchema(gated.tools.forecast), AiTool.getJsonSchema(Forecast))
      assert.strictEqual(gated.tools.forecast.description, Forecast.description)
      assert.strictEqual(gated.tools.deploy.failureMode, "return")
    }).pipe(Effect.provide(plane()))
  })

  it.effect("takes its tools away when its scope closes", () => {
    return Effect.gen(function*() {
      const scope = yield* Scope.make()
      yield* Scope.extend(EffectAi.gate(MyToolkit, { turn }), scope)
      assert.strictEqual((yield* registered).tools.size, 3)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* registered).tools.size, 0)
    }).pipe(Effect.provide(plane()))
  })

  it.scoped("refuses a toolkit whose tools are there already", () =>
    Effect.gen(function*() {
      yield* EffectAi.gate(MyToolkit, { turn })
      const id = yield* Effect.flip(EffectAi.gate(MyToolkit, { turn }))
      const name = yield* Effect.flip(EffectAi.gate(MyToolkit, { turn, providerId: "again" }))
      assert.deepStrictEqual([id.code, name.code], ["duplicate_tool_provider", "duplicate_tool_name"])
    }).pipe(Effect.provide(plane())))

  it.scoped("records each call in the journal of its turn", () =>
    Effect.gen(function*() {
      const gated = yield* EffectAi.gate(MyToolkit, { turn: { ...turn, threadId: "thread-1" } })
      yield* gated.handle("today", {})
      yield* gated.handle("deploy", { target: "moon" } as never)
      const journal = yield* EventJournal
      const entries = yield* journal.entries(ThreadId.make("thread-1"))
      assert.deepStrictEqual(
        entries.flatMap(({ event }) => event._tag === "call_settled" ? [event.result.code] : []),
        [null, "arguments_invalid"]
      )
    }).pipe(Effect.provide(plane())))

  it.scoped("leaves tools alone that the provider runs itself", () => {
    const Search = AiTool.providerDefined({
      id: "vendor.search",
      toolkitName: "Search",
      providerName: "search",
      args: {}
    })({})
    return Effect.gen(function*() {
      const gated = yield* EffectAi.gate(Toolkit.make(Search), { turn })
      assert.strictEqual(gated.tools.Search as unknown, Search)
      assert.strictEqual((yield* registered).tools.size, 0)
    }).pipe(Effect.provide(plane()))
  })

  it("keeps parameters and success, and widens failure to the original or a refusal", () => {
    const program = Effect.gen(function*() {
      const gated = yield* EffectAi.gate(MyToolkit, { turn })
      expectTypeOf<AiTool.Parameters<typeof gated.tools.forecast>>().toEqualTypeOf<AiTool.Parameters<typeof Forecast>>()
      expectTypeOf<AiTool.Success<typeof gated.tools.forecast>>().toEqualTypeOf<AiTool.Success<typeof Forecast>>()
      expectTypeOf<AiTool.Failure<typeof gated.tools.forecast>>().toEqualTypeOf<Quota | EffectAi.Refusal>()
      expectTypeOf<AiTool.Failure<typeof gated.tools.deploy>>().toEqualTypeOf<EffectAi.Refusal>()
      expectTypeOf<AiTool.HandlerError<typeof gated.tools.forecast>>().toBeNever()
      return yield* LanguageModel.generateText({ prompt: "Go", toolkit: gated })
    })
    expectTypeOf<Extract<Effect.Effect.Error<typeof program>, Quota>>().toBeNever()
    expectTypeOf<Extract<Effect.Effect.Error<typeof program>, AiError.AiError>>().not.toBeNever()
    expectTypeOf<Extract<Effect.Effect.Context<typeof program>, Clock>>().toEqualTypeOf<Clock>()
    // @ts-expect-error: there is no such tool in the toolkit
    void EffectAi.gate(MyToolkit, { turn, kind: { deplyo: "command_execution" } })
    // @ts-expect-error: the kinds are closed
    void EffectAi.gate(MyToolkit, { turn, kind: { deploy: "dangerous" } })
  })
})
