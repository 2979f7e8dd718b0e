/**
 * A model that says what a script says, and keeps what it was asked.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Model, ModelError, type ModelPart, type ModelRequest } from "../agent/Model.ts"
import { CallId, type ToolCall } from "../contract/ToolCall.ts"

const exact = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

export const ScriptedCall = Schema.Struct({
  toolName: Schema.String,
  /** A string is passed on as the raw text of the arguments. Default `{}`. */
  arguments: exact(Schema.Unknown),
  /** Default `call_<turn>_<call>`, both from 1. */
  callId: exact(CallId)
})
export type ScriptedCall = typeof ScriptedCall.Encoded

export const ScriptedTurn = Schema.Struct({
  reasoning: exact(Schema.String),
  text: exact(Schema.String),
  calls: exact(Schema.Array(ScriptedCall)),
  /** Default `tool_calls` with calls, else `stop`. */
  finish: exact(Schema.Literal("stop", "tool_calls", "length", "content_filter", "other")),
  /** Default: none of either. */
  usage: exact(Schema.Struct({ inputTokens: Schema.Number, outputTokens: Schema.Number })),
  /** Fails with this after the rest, instead of finishing. */
  error: exact(Schema.Struct({
    code: Schema.Literal("model_unavailable", "model_rate_limited", "model_refused", "model_output_malformed"),
    reason: exact(Schema.String),
    retryAfterMs: exact(Schema.Number)
  }))
})
/** One response of the model, as it is written in a script. */
export type ScriptedTurn = typeof ScriptedTurn.Encoded

/**
 * The form of a script in a file. With `conversations`, one whose first message holds `when` has turns of its own, and the next
 * turn of any is counted by what the model has said in it, so that several agents can speak at once.
 */
export const ScriptFile = Schema.Struct({
  turns: Schema.Array(ScriptedTurn),
  conversations: exact(Schema.Array(Schema.Struct({ when: Schema.NonEmptyString, turns: Schema.Array(ScriptedTurn) })))
})

export class ScriptInvalid extends Schema.TaggedError<ScriptInvalid>("portcullis/ScriptInvalid")("ScriptInvalid", {
  code: Schema.Literal("script_invalid"),
  reason: Schema.String
}) {
  override get message() {
    return `Not a script of a model: ${this.reason}`
  }
}

/** The script of a file's JSON text: `{"turns":[{"text":"…","calls":[{"toolName":"…","arguments":{…}}]}]}`. */
export const decode: (json: string) => Effect.Effect<Script, ScriptInvalid> = (json) =>
  Schema.decodeUnknown(Schema.parseJson(ScriptFile), { onExcessProperty: "error" })(json).pipe(
    Effect.mapBoth({
      onFailure: (error) =>
        new ScriptInvalid({ code: "script_invalid", reason: error.message.slice(0, 2000).toWellFormed() }),
      onSuccess: ({ conversations = [], turns }) =>
        conversations.length === 0 ? turns : withConversations(turns, conversations)
    })
  )

/**
 * Turns in order, or a function of the request and of how many requests it has answered before. A script that is over says
 * nothing more.
 */
export type Script =
  | ReadonlyArray<ScriptedTurn>
  | ((request: ModelRequest, index: number) => ScriptedTurn | undefined)

const withConversations = (
  turns: ReadonlyArray<ScriptedTurn>,
  conversations: NonNullable<typeof ScriptFile.Encoded["conversations"]>
): Script =>
(request) => {
  const first = openingOf(request)
  const own = conversations.find(({ when }) => first.includes(when))?.turns ?? turns
  return own[request.messages.filter(({ role }) => role === "assistant").length]
}

/** The text of a conversation's first message. */
export const openingOf = ({ messages: [first] }: ModelRequest): string =>
  first?.role === "user" ? first.content.flatMap((part) => part.type === "text" ? [part.text] : []).join("\n") : ""

export class ScriptedModel extends Context.Tag("portcullis/testing/ScriptedModel")<ScriptedModel, {
  /** The last 1000 requests, oldest first. */
  readonly requests: Effect.Effect<ReadonlyArray<ModelRequest>>
}>() {}

const requestsKept = 1000

/** The model and its record. A turn is taken when its response is read, so a request that is not read costs none. */
export const make = (
  script: Script
): Effect.Effect<{ readonly model: Model["Type"]; readonly scripted: ScriptedModel["Type"] }> =>
  Effect.map(Ref.make({ index: 0, requests: [] as ReadonlyArray<ModelRequest> }), (state) => ({
    model: Model.of({
      name: "scripted",
      respond: (request) =>
        Stream.unwrap(Effect.map(
          Ref.modify(state, ({ index, requests }) => [
            index,
            { index: index + 1, requests: [...requests, request].slice(-requestsKept) }
          ]),
          (index) => play((typeof script === "function" ? script(request, index) : script[index]) ?? {}, index)
        ))
    }),
    scripted: ScriptedModel.of({ requests: Effect.map(Ref.get(state), ({ requests }) => requests) })
  }))

/** See `make`. */
export const layer = (script: Script): Layer.Layer<Model | ScriptedModel> =>
  Layer.effectContext(
    Effect.map(make(script), ({ model, scripted }) =>
      Context.make(Model, model).pipe(Context.add(ScriptedModel, scripted)))
  )

const play = (turn: ScriptedTurn, index: number): Stream.Stream<ModelPart, ModelError> => {
  const calls = turn.calls ?? []
  const parts: Array<ModelPart> = [
    ...turn.reasoning === undefined ? [] : [{ type: "reasoning" as const, delta: turn.reasoning }],
    ...turn.text === undefined ? [] : [{ type: "text" as const, delta: turn.text }],
    ...calls.map((call, position) => ({ type: "tool_call" as const, call: toCall(call, index, position) }))
  ]
  if (turn.error !== undefined) {
    const { code, reason = "The script says so.", retryAfterMs = null } = turn.error
    return Stream.concat(Stream.fromIterable(parts), Stream.fail(new ModelError({ code, reason, retryAfterMs })))
  }
  parts.push({
    type: "finish",
    reason: turn.finish ?? (calls.length > 0 ? "tool_calls" : "stop"),
    usage: turn.usage ?? { inputTokens: 0, outputTokens: 0 }
  })
  return Stream.fromIterable(parts)
}

const toCall = (call: ScriptedCall, index: number, position: number): ToolCall => ({
  callId: CallId.make(call.callId ?? `call_${index + 1}_${position + 1}`),
  toolName: call.toolName,
  arguments: call.arguments ?? {}
})
