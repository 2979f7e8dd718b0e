import { assert, describe, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { Model, type ModelRequest } from "../../src/agent/Model.ts"
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
