import { assert, describe, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { Model, type ModelRequest } from "../../src/agent/Model.ts"
import { text } from "../../src/contract/ToolResult.ts"
import { laws } from "../../src/testing/contract/Model.ts"
import * as ScriptedModel from "../../src/testing/ScriptedModel.ts"

const request: ModelRequest = { system: undefined, messages: [], tools: [] }
const ask = Effect.flatMap(
  Model,
  (model) => Effect.map(Stream.runCollect(model.respond(request)), Chunk.toReadonlyArray)
)

describe("ScriptedModel", () => {
  for (const { law, name, script } of laws) it.effect(name, () => Effect.provide(law, ScriptedModel.layer(script)))

  it.effect("says nothing more when the script is over, and keeps what it was asked", () =>
    Effect.gen(function*() {
      yield* ask
      const parts = yield* ask
      assert.deepStrictEqual(parts, [{ type: "finish", reason: "stop", usage: { inputTokens: 0, outputTokens: 0 } }])
      assert.strictEqual((yield* Effect.flatMap(ScriptedModel.ScriptedModel, ({ requests }) => requests)).length, 2)
    }).pipe(Effect.provide(ScriptedModel.layer([{ text: "One." }]))))

  it.effect("answers by a function of the request", () =>
    Effect.gen(function*() {
      const parts = yield* ask
      assert.deepStrictEqual(parts[0], { type: "text", delta: "0 tools, request 0" })
    }).pipe(
      Effect.provide(ScriptedModel.layer(({ tools }, index) => ({ text: `${tools.length} tools, request ${index}` })))
    ))

  it.effect("reads a script file, with raw arguments left as they are", () =>
    Effect.gen(function*() {
      const turns = yield* ScriptedModel.decode(
        `{"turns":[{"text":"Hi","calls":[{"toolName":"write","arguments":"{\\"path\\":"},{"toolName":"ls"}]}]}`
      )
      const parts = yield* Effect.provide(ask, ScriptedModel.layer(turns))
      assert.deepStrictEqual(
        parts.flatMap((part) => part.type === "tool_call" ? [part.call.arguments] : []),
        ["{\"path\":", {}]
      )
    }))

  it.effect("gives a conversation that a script names turns of its own, whoever else speaks meanwhile", () =>
    Effect.gen(function*() {
      const script = yield* ScriptedModel.decode(
        `{"turns":[{"text":"main 1"},{"text":"main 2"}],"conversations":[{"when":"review","turns":[{"text":"a 1"},{"text":"a 2"}]}]}`
      )
      const said = (first: string, before: number) =>
        Effect.gen(function*() {
          const assistant = Array.from({ length: before }, () => ({ role: "assistant", text: "…", calls: [] }) as const)
          const messages = [{ role: "user", content: [text(first)] } as const, ...assistant]
          const parts = yield* Stream.runCollect((yield* Model).respond({ system: undefined, messages, tools: [] }))
          return [...parts].flatMap((part) => part.type === "text" ? [part.delta] : []).join("")
        })
      const order = [["go", 0], ["please review x", 0], ["go", 1], ["please review x", 1], [
        "please review y",
        0
      ]] as const
      const answers = yield* Effect.provide(
        Effect.forEach(order, ([first, before]) => said(first, before)),
        ScriptedModel.layer(script)
      )
      assert.deepStrictEqual(answers, ["main 1", "a 1", "main 2", "a 2", "a 1"])
    }))

  it.effect("refuses a script file that is not one", () =>
    Effect.gen(function*() {
      for (
        const json of [
          "",
          "[]",
          "{\"turns\":[{\"calls\":[{}]}]}",
          "{\"turns\":[{\"txt\":\"a\"}]}",
          "{\"turns\":[{\"calls\":[{\"toolName\":\"a\",\"callId\":\"a b\"}]}]}"
        ]
      ) {
        assert.strictEqual((yield* Effect.flip(ScriptedModel.decode(json))).code, "script_invalid")
      }
    }))
})
