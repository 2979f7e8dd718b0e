/**
 * What every `Model` does.
 *
 * `script` is what the service behind the port is to answer, for a harness that plays answers instead of asking.
 *
 * @since 0.1.0
 */
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { Model, type ModelError, type ModelPart, type ModelRequest } from "../../agent/Model.ts"
import type { ScriptedTurn } from "../ScriptedModel.ts"
import { expect, type Law, law } from "./Law.ts"

export interface ModelLaw extends Law<Model> {
  readonly script: ReadonlyArray<ScriptedTurn>
}

const check = (holds: boolean, seen: unknown) => expect(holds, `seen: ${JSON.stringify(seen)}`)

const given = (
  name: string,
  script: ReadonlyArray<ScriptedTurn>,
  body: Effect.Effect<void, unknown, Model>
): ModelLaw => ({ ...law(name, body), script })

const request: ModelRequest = {
  system: "Be brief.",
  messages: [{ role: "user", content: [{ type: "text", text: "Hello" }] }],
  tools: [{
    name: "read",
    description: "Reads a file.",
    parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] }
  }]
}

const parts: Effect.Effect<ReadonlyArray<ModelPart>, ModelError, Model> = Effect.flatMap(
  Model,
  (model) => Effect.map(Stream.runCollect(model.respond(request)), Chunk.toReadonlyArray)
)

const calls = (all: ReadonlyArray<ModelPart>) => all.flatMap((part) => part.type === "tool_call" ? [part.call] : [])
const spoken = (all: ReadonlyArray<ModelPart>) =>
  all.flatMap((part) => part.type === "text" ? [part.delta] : []).join("")

const endsOnce = (all: ReadonlyArray<ModelPart>): boolean =>
  all.findIndex((part) => part.type === "finish") === all.length - 1 && all.length > 0

export const laws: ReadonlyArray<ModelLaw> = [
  given(
    "ends with one finish, after all else",
    [{ text: "Hi.", usage: { inputTokens: 3, outputTokens: 2 } }],
    Effect.flatMap(parts, (all) => {
      const last = all.at(-1)
      return check(
        endsOnce(all) && spoken(all) === "Hi." && last?.type === "finish" && last.reason === "stop" &&
          last.usage.inputTokens === 3 && last.usage.outputTokens === 2,
        all
      )
    })
  ),
  given(
    "tells calls whole and in order, each with its id",
    [{
      text: "Reading.",
      calls: [
        { toolName: "read", arguments: { path: "a" }, callId: "call_a" },
        { toolName: "read", arguments: { path: "b" }, callId: "call_b" }
      ]
    }],
    Effect.flatMap(parts, (all) =>
      check(
        endsOnce(all) && JSON.stringify(calls(all)) === JSON.stringify([
              { callId: "call_a", toolName: "read", arguments: { path: "a" } },
              { callId: "call_b", toolName: "read", arguments: { path: "b" } }
            ]),
        all
      ))
  ),
  given(
    "passes on a call of a tool that it was not told of",
    [{ text: "One moment.", calls: [{ toolName: "raed", arguments: { path: "a" }, callId: "call_a" }] }],
    Effect.flatMap(parts, (all) => check(endsOnce(all) && calls(all)[0]?.toolName === "raed", all))
  ),
  given(
    "passes on arguments that do not fit the tool's schema",
    [{ calls: [{ toolName: "read", arguments: { path: 1, extra: true }, callId: "call_a" }] }],
    Effect.flatMap(
      parts,
      (all) => check(endsOnce(all) && JSON.stringify(calls(all)[0]?.arguments) === "{\"path\":1,\"extra\":true}", all)
    )
  ),
  given(
    "says that a response was cut",
    [{ text: "And then", finish: "length" }],
    Effect.flatMap(parts, (all) => {
      const last = all.at(-1)
      return check(last?.type === "finish" && last.reason === "length", all)
    })
  ),
  given(
    "fails with a code",
    [{ error: { code: "model_unavailable" } }],
    Effect.flatMap(
      Effect.either(parts),
      (outcome) => check(outcome._tag === "Left" && outcome.left.code === "model_unavailable", outcome)
    )
  )
]
