/**
 * A conversation as a model sees it: plain data, the same in memory, in the journal and in a request.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { defaultLimits, Json, snapshot } from "./Json.ts"
import { CallId, type ToolCall } from "./ToolCall.ts"
import { ContentPart, text, ToolResult } from "./ToolResult.ts"

/** A call as the conversation keeps it: under the id it has in the turn, with its arguments as they were received. */
export const MessageCall = Schema.Struct({ callId: CallId, toolName: Schema.String, arguments: Json })
export type MessageCall = typeof MessageCall.Type

/** What a model is told of an outcome. */
export const MessageResult = ToolResult.pick("callId", "toolName", "isError", "content")
export type MessageResult = typeof MessageResult.Type

export const Message = Schema.Union(
  Schema.Struct({ role: Schema.Literal("user"), content: Schema.Array(ContentPart) }),
  Schema.Struct({ role: Schema.Literal("assistant"), text: Schema.String, calls: Schema.Array(MessageCall) }),
  Schema.Struct({ role: Schema.Literal("tool"), results: Schema.Array(MessageResult) })
)
export type Message = typeof Message.Type

/**
 * A call to keep. The name is cut to 200 characters; text of arguments to 8 Mi characters, which leaves no JSON; arguments
 * that are no JSON, or larger or deeper than a call may have them, are `null`: no such call is ever executed.
 */
export const callOf = ({ arguments: received, callId, toolName }: ToolCall): MessageCall => {
  const kept = typeof received === "string"
    ? received.slice(0, defaultLimits.maxSize).toWellFormed()
    : snapshot(received)
  return {
    callId,
    toolName: toolName.slice(0, 200).toWellFormed(),
    arguments: typeof kept === "string" ? kept : kept.ok ? kept.value : null
  }
}

export const resultOf = ({ callId, content, isError, toolName }: ToolResult): MessageResult => ({
  callId,
  toolName,
  isError,
  content
})

/** The result of a call that nobody answered before its turn was cut off. */
export const interruptedResult = ({ callId, toolName }: MessageCall): MessageResult => ({
  callId,
  toolName,
  isError: true,
  content: [text(interruptedReason)]
})

/** Says that the call may have taken effect: who reads the journal later cannot know how far it came. */
export const interruptedReason =
  "The turn was cut off before this call had an outcome: it may have taken effect, in whole or in part. Look before you repeat it."
