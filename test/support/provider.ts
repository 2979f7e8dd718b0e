/** A provider of `@effect/ai` that answers with given parts, and keeps what it was asked. */
import type * as AiError from "@effect/ai/AiError"
import * as LanguageModel from "@effect/ai/LanguageModel"
import type * as Response from "@effect/ai/Response"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { ScriptedTurn } from "../../src/testing/ScriptedModel.ts"

export type Raw = Response.StreamPartEncoded | Response.PartEncoded

export interface Answer {
  /** One inner array a chunk of the stream. */
  readonly chunks: ReadonlyArray<ReadonlyArray<Raw>>
  readonly error?: AiError.AiError
}

export const finish = (reason: Response.FinishReason, inputTokens = 0, outputTokens = 0): Raw => ({
  type: "finish",
  reason,
  usage: { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens }
})

export const call = (id: string, name: string, params: unknown): Raw => ({ type: "tool-call", id, name, params })

/** A response text, as a stream tells it or as a whole. */
export const said = (text: string): ReadonlyArray<Raw> => [
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta: text },
  { type: "text-end", id: "t" }
]

export const layer = (
  answers: ReadonlyArray<Answer>,
  asked: Array<LanguageModel.ProviderOptions> = []
): Layer.Layer<LanguageModel.LanguageModel> => {
  const next = (options: LanguageModel.ProviderOptions): Answer => {
    asked.push(options)
    return answers[asked.length - 1] ?? { chunks: [[finish("stop")]] }
  }
  const whole = (raw: Raw): ReadonlyArray<Response.PartEncoded> => {
    switch (raw.type) {
      case "text-delta":
        return [{ type: "text", text: raw.delta }]
      case "text":
      case "tool-call":
      case "finish":
        return [raw]
      default:
        return []
    }
  }
  return Layer.effect(
    LanguageModel.LanguageModel,
    LanguageModel.make({
      generateText: (options) =>
        Effect.suspend(() => {
          const { chunks, error } = next(options)
          return error === undefined ? Effect.succeed(chunks.flat().flatMap(whole)) : Effect.fail(error)
        }),
      streamText: (options) =>
        Stream.suspend(() => {
          const { chunks, error } = next(options)
          const parts = Stream.flatMap(Stream.fromIterable(chunks), (chunk) =>
            Stream.fromIterable(chunk as ReadonlyArray<Response.StreamPartEncoded>))
          return error === undefined ? parts : Stream.concat(parts, Stream.fail(error))
        })
    })
  )
}

const reasons = {
  stop: "stop",
  tool_calls: "tool-calls",
  length: "length",
  content_filter: "content-filter",
  other: "other"
} as const

/** A scripted response as a provider gives it. */
export const scripted = (turn: ScriptedTurn, error: AiError.AiError): Answer => ({
  chunks: [
    turn.text === undefined ? [] : said(turn.text),
    (turn.calls ?? []).map(({ arguments: args = {}, callId = "call_x", toolName }) => call(callId, toolName, args)),
    turn.error !== undefined ? [] : [finish(
      reasons[turn.finish ?? ((turn.calls ?? []).length > 0 ? "tool_calls" : "stop")],
      turn.usage?.inputTokens,
      turn.usage?.outputTokens
    )]
  ].filter((chunk) => chunk.length > 0),
  ...turn.error === undefined ? {} : { error }
})
