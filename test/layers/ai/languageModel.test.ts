import * as AiError from "@effect/ai/AiError"
import type * as LanguageModel from "@effect/ai/LanguageModel"
import * as AiTool from "@effect/ai/Tool"
import { assert, describe, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import * as EffectAi from "../../../layers/ai/EffectAi.ts"
import { Model, type ModelPart, type ModelRequest } from "../../../src/agent/Model.ts"
import * as TurnLoop from "../../../src/agent/TurnLoop.ts"
import * as ToolCall from "../../../src/contract/ToolCall.ts"
import { EventJournal } from "../../../src/journal/EventJournal.ts"
import { laws } from "../../../src/testing/contract/Model.ts"
import * as Provider from "../../support/provider.ts"
import { fakeSession, memoryJournal } from "../../support/session.ts"

const unavailable = new AiError.UnknownError({ module: "fake", method: "streamText", description: "gone" })

const read = {
  name: "read",
  description: "Reads a file.",
  parameters: {
    type: "object",
    properties: { path: { type: "string", minLength: 1 }, "x-odd": { oneOf: [{ type: "null" }, { const: 3 }] } },
    required: ["path"],
    additionalProperties: false
  }
} as const

const request: ModelRequest = {
  system: undefined,
  messages: [{ role: "user", content: [{ type: "text", text: "Go" }] }],
  tools: [read]
}

const ask = (
  answers: ReadonlyArray<Provider.Answer>,
  options: EffectAi.ModelOptions = {},
  asked: Array<LanguageModel.ProviderOptions> = [],
  sent: ModelRequest = request
) =>
  Effect.flatMap(Model, (model) => Effect.map(Stream.runCollect(model.respond(sent)), Chunk.toReadonlyArray)).pipe(
    Effect.provide(Layer.provide(EffectAi.layerModel(options), Provider.layer(answers, asked)))
  )

const calls = (parts: ReadonlyArray<ModelPart>) => parts.flatMap((part) => part.type === "tool_call" ? [part.call] : [])

const paramsOf = (id: string, name: string, text: string): ReadonlyArray<Provider.Raw> => [
  { type: "tool-params-start", id, name, providerExecuted: false },
  { type: "tool-params-delta", id, delta: text.slice(0, 5) },
  { type: "tool-params-delta", id, delta: text.slice(5) }
]

describe("EffectAi.layerModel", () => {
  for (const streaming of [true, false]) {
    describe(streaming ? "streaming" : "whole responses", () => {
      for (const { law, name, script } of laws) {
        it.effect(name, () =>
          Effect.provide(
            law,
            Layer.provide(
              EffectAi.layerModel({ streaming }),
              Provider.layer(script.map((turn) => Provider.scripted(turn, unavailable)))
            )
          ))
      }

      it.effect("tells parameters that are not an object as a call", () =>
        Effect.gen(function*() {
          for (const params of [[1], "text", null, 3]) {
            const parts = yield* ask([{
              chunks: [[Provider.call("c1", "read", params)], [Provider.finish("tool-calls")]]
            }], { streaming })
            assert.deepStrictEqual(calls(parts).map(({ arguments: args }) => args), [params])
            assert.strictEqual(parts.at(-1)?.type, "finish")
          }
        }))
    })
  }

  it.effect("shows the provider the exact JSON Schema, and runs nothing", () =>
    Effect.gen(function*() {
      const asked: Array<LanguageModel.ProviderOptions> = []
      yield* ask(
        [{ chunks: [[Provider.call("c1", "read", { path: "a" })], [Provider.finish("tool-calls")]] }],
        {},
        asked
      )
      const tool = asked[0]?.tools[0]
      assert.isDefined(tool)
      if (tool === undefined) return
      assert.strictEqual(tool.name, "read")
      assert.strictEqual(tool.description, "Reads a file.")
      assert.deepStrictEqual(AiTool.getJsonSchemaFromSchemaAst(tool.parametersSchema.ast) as unknown, read.parameters)
    }))

  it.effect("converts a tool once for as long as the catalog keeps it", () =>
    Effect.gen(function*() {
      const asked: Array<LanguageModel.ProviderOptions> = []
      const model = yield* Model.pipe(Effect.provide(Layer.provide(EffectAi.layerModel(), Provider.layer([], asked))))
      yield* Stream.runDrain(model.respond(request))
      yield* Stream.runDrain(model.respond({ ...request, tools: [read] }))
      assert.strictEqual(asked[0]?.tools[0], asked[1]?.tools[0])
    }))

  it.effect("keeps what came before an unknown tool in a stream, and finishes in place of what was lost", () =>
    Effect.gen(function*() {
      const parts = yield* ask([{
        chunks: [
          Provider.said("Hm."),
          [Provider.call("c1", "read", { path: "a" })],
          [Provider.call("c2", "raed", { path: "a" }), Provider.call("c3", "read", { path: "b" })],
          [Provider.finish("tool-calls", 7, 7)]
        ]
      }])
      assert.deepStrictEqual(calls(parts).map(({ callId, truncated }) => [callId as string, truncated]), [
        ["c1", undefined],
        ["c2", undefined],
        ["c3", true]
      ])
      assert.deepStrictEqual(parts.at(-1), {
        type: "finish",
        reason: "tool_calls",
        usage: { inputTokens: 0, outputTokens: 0 }
      })
    }))

  it.effect("loses nothing to an unknown tool in a whole response", () =>
    Effect.gen(function*() {
      const parts = yield* ask(
        [{
          chunks: [
            Provider.said("Hm."),
            [Provider.call("c1", "raed", {}), Provider.call("c2", "read", { path: "a" })],
            [Provider.finish("length", 7, 8)]
          ]
        }],
        { streaming: false }
      )
      assert.deepStrictEqual(parts.map(({ type }) => type), ["text", "tool_call", "tool_call", "finish"])
      assert.deepStrictEqual(parts.at(-1), {
        type: "finish",
        reason: "length",
        usage: { inputTokens: 7, outputTokens: 8 }
      })
    }))

  it.effect("tells a call that was cut in the middle of its arguments as truncated", () =>
    Effect.gen(function*() {
      const cutOff = yield* ask([{ chunks: [paramsOf("c1", "read", "{\"path\":\"he"), [Provider.finish("length")]] }])
      assert.deepStrictEqual(calls(cutOff), [{
        callId: ToolCall.CallId.make("c1"),
        toolName: "read",
        arguments: "{\"path\":\"he",
        truncated: true
      }])
      const failed = yield* ask([{
        chunks: [paramsOf("c1", "read", "{\"path\":\"he"), [{ type: "tool-params-end", id: "c1" }]],
        error: new AiError.MalformedOutput({ module: "fake", method: "streamText", description: "Not JSON" })
      }])
      assert.deepStrictEqual(calls(failed).map(({ truncated }) => truncated), [true])
      assert.strictEqual(failed.at(-1)?.type, "finish")
    }))

  it.effect("leaves alone what the provider runs itself", () =>
    Effect.gen(function*() {
      const parts = yield* ask([{
        chunks: [[
          { type: "tool-params-start", id: "c1", name: "read", providerExecuted: true },
          { type: "tool-call", id: "c1", name: "read", params: { path: "a" }, providerExecuted: true },
          Provider.finish("length")
        ]]
      }])
      assert.deepStrictEqual(calls(parts), [])
    }))

  it.effect("replaces an id that cannot be one of ours", () =>
    Effect.gen(function*() {
      const parts = yield* ask([{
        chunks: [[Provider.call("", "read", {}), Provider.call("a b", "read", {})], [Provider.finish("tool-calls")]]
      }])
      const ids = calls(parts).map(({ callId }) => callId as string)
      assert.strictEqual(new Set(ids).size, 2)
      assert.isTrue(ids.every((id) => /^call_[0-9a-f]{32}$/.test(id)))
    }))

  it.effect("says in a code what went wrong, and how long to wait when it is known", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(Date.parse("2026-07-25T12:00:00.250Z"))
      const http = (
        status: number,
        headers: Record<string, string> = {},
        reason: "StatusCode" | "Decode" = "StatusCode"
      ) =>
        new AiError.HttpResponseError({
          module: "fake",
          method: "streamText",
          reason,
          request: {
            method: "POST",
            url: "https://example.com/?key=secret",
            urlParams: [["key", "secret"]],
            hash: Option.none(),
            headers: { authorization: "secret" }
          },
          response: { status, headers }
        })
      const cases: ReadonlyArray<readonly [AiError.AiError, string, number | null]> = [
        [http(429), "model_rate_limited", null],
        [http(429, { "retry-after": "120" }), "model_rate_limited", 120_000],
        [http(429, { "retry-after": "Sat, 25 Jul 2026 12:05:00 GMT" }), "model_rate_limited", 299_750],
        [http(429, { "retry-after": "Sat, 25 Jul 2026 11:00:00 GMT" }), "model_rate_limited", 0],
        [http(429, { "retry-after-ms": "1500" }), "model_rate_limited", 1500],
        [http(429, { "retry-after": "-5" }), "model_rate_limited", null],
        [http(429, { "retry-after": "999999999" }), "model_rate_limited", 86_400_000],
        [http(503, { "retry-after": "2" }), "model_unavailable", 2000],
        [http(400), "model_refused", null],
        [http(401), "model_refused", null],
        [http(408), "model_unavailable", null],
        [http(500), "model_unavailable", null],
        [http(200, {}, "Decode"), "model_output_malformed", null],
        [new AiError.MalformedInput({ module: "fake", method: "m" }), "model_refused", null],
        [new AiError.MalformedOutput({ module: "fake", method: "m" }), "model_output_malformed", null],
        [unavailable, "model_unavailable", null]
      ]
      for (const [error, code, wait] of cases) {
        const failed = yield* Effect.flip(ask([{ chunks: [], error }]))
        assert.deepStrictEqual([failed.code, failed.retryAfterMs], [code, wait])
        assert.notInclude(failed.reason, "secret")
      }
      const part = yield* Effect.flip(ask([{ chunks: [[{ type: "error", error: { message: "overloaded" } }]] }]))
      assert.strictEqual(part.code, "model_unavailable")
      assert.include(part.reason, "overloaded")
    }))

  it.effect("fails when a stream ends without a finish", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* Effect.flip(ask([{ chunks: [Provider.said("Hm.")] }]))).code, "model_output_malformed")
    }))

  it.effect("sends a conversation that every provider takes", () =>
    Effect.gen(function*() {
      const asked: Array<LanguageModel.ProviderOptions> = []
      const callId = ToolCall.CallId.make("c1")
      yield* ask([], {}, asked, {
        system: "Be brief.",
        tools: [],
        messages: [
          {
            role: "assistant",
            text: "",
            calls: [{ callId, toolName: "re ad\n", arguments: "{\"path\":" }]
          },
          {
            role: "tool",
            results: [{
              callId,
              toolName: "re ad\n",
              isError: true,
              content: [{ type: "text", text: "No." }, { type: "image", mediaType: "image/png", data: "AAAA" }]
            }]
          }
        ]
      })
      const content = asked[0]?.prompt.content ?? []
      assert.deepStrictEqual(content.map(({ role }) => role), ["system", "assistant", "tool", "user"])
      assert.deepInclude(content[1]?.content[0], { type: "tool-call", name: "re_ad_", params: {} })
      assert.deepInclude(content[2]?.content[0], {
        type: "tool-result",
        id: "c1",
        name: "re_ad_",
        isFailure: true,
        result: "No.\n[image image/png]"
      })
      assert.deepInclude(content[3]?.content[1], { type: "file", mediaType: "image/png", data: "AAAA" })
    }))

  it.effect("lets a turn go on after a tool that does not exist", () =>
    Effect.gen(function*() {
      const memory = memoryJournal()
      const asked: Array<LanguageModel.ProviderOptions> = []
      const outcome = yield* TurnLoop.run({
        session: fakeSession({ memory, tools: { read: { run: (args) => Effect.succeed(args) } } }),
        prompt: "Go"
      }).pipe(
        Effect.provideService(EventJournal, memory.journal),
        Effect.provide(Layer.provide(
          EffectAi.layerModel(),
          Provider.layer([
            { chunks: [[Provider.call("c1", "raed", { path: "a" })], [Provider.finish("tool-calls")]] },
            { chunks: [[Provider.call("c2", "read", { path: "a" })], [Provider.finish("tool-calls")]] },
            { chunks: [Provider.said("Done."), [Provider.finish("stop")]] }
          ], asked)
        ))
      )
      assert.deepStrictEqual(outcome.calls.map(({ code }) => code), ["tool_unknown", null])
      assert.strictEqual(outcome.text, "Done.")
      assert.strictEqual(asked.length, 3)
    }))
})
