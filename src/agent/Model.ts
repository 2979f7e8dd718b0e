/**
 * The port to a language model: one request, a stream of parts.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { Message } from "../contract/Message.ts"
import type { ToolCall } from "../contract/ToolCall.ts"
import type { ToolSpec } from "../tool/Tool.ts"

export type { Message, MessageCall, MessageResult } from "../contract/Message.ts"

export interface ModelRequest {
  readonly system: string | undefined
  readonly messages: ReadonlyArray<Message>
  readonly tools: ReadonlyArray<ToolSpec>
}

export interface Usage {
  readonly inputTokens: number
  readonly outputTokens: number
}

export type FinishReason = "stop" | "tool_calls" | "length" | "content_filter" | "other"

export type ModelPart =
  | { readonly type: "text"; readonly delta: string }
  | { readonly type: "reasoning"; readonly delta: string }
  /** Whole calls only; `arguments` may still be the provider's JSON text. */
  | { readonly type: "tool_call"; readonly call: ToolCall }
  | { readonly type: "finish"; readonly reason: FinishReason; readonly usage: Usage }

export class ModelError extends Schema.TaggedError<ModelError>("portcullis/ModelError")("ModelError", {
  code: Schema.Literal("model_unavailable", "model_rate_limited", "model_refused", "model_output_malformed"),
  reason: Schema.String,
  retryAfterMs: Schema.NullOr(Schema.Number)
}) {
  override get message() {
    return this.reason
  }
}

export class Model extends Context.Tag("portcullis/Model")<Model, {
  readonly name: string
  /** Interrupting the stream cancels the request. The last part is always `finish`. */
  readonly respond: (request: ModelRequest) => Stream.Stream<ModelPart, ModelError>
}>() {}

/** Ends a stream with its first `finish`; one that ends without is `model_output_malformed`. */
export const finished = <R>(parts: Stream.Stream<ModelPart, ModelError, R>): Stream.Stream<ModelPart, ModelError, R> =>
  parts.pipe(
    Stream.concat(Stream.fail(
      new ModelError({
        code: "model_output_malformed",
        reason: "The model's response ended before it was finished.",
        retryAfterMs: null
      })
    )),
    Stream.takeUntil((part) => part.type === "finish")
  )

/** No model: every request is `model_unavailable`. */
export const layerUnavailable: Layer.Layer<Model> = Layer.succeed(Model, {
  name: "none",
  respond: () =>
    Stream.fail(new ModelError({ code: "model_unavailable", reason: "There is no model here.", retryAfterMs: null }))
})
