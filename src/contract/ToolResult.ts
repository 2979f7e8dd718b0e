/**
 * What comes back from a call: plain, frozen JSON for programs, and content parts for the model.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { isObject, Json, JsonObject } from "./Json.ts"
import { ToolKind } from "./Policy.ts"
import { CallId } from "./ToolCall.ts"

export const TextPart = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String })
export const ImagePart = Schema.Struct({
  type: Schema.Literal("image"),
  mediaType: Schema.String,
  /** Base64. */
  data: Schema.String
})
export const ResourcePart = Schema.Struct({
  type: Schema.Literal("resource"),
  uri: Schema.String,
  mediaType: Schema.optionalWith(Schema.String, { exact: true }),
  text: Schema.optionalWith(Schema.String, { exact: true })
})
export const ContentPart = Schema.Union(TextPart, ImagePart, ResourcePart)
export type ContentPart = typeof ContentPart.Type

export const text = (value: string): ContentPart => ({ type: "text", text: value })

/** Characters of all parts of one result. */
const maxContent = 48 * 1024 * 1024

const wellFormed = (value: unknown): string | undefined => typeof value === "string" ? value.toWellFormed() : undefined

const partOf = (part: unknown): ContentPart | undefined => {
  if (!isObject(part)) return undefined
  const { data, mediaType, text: words, type, uri } = part
  switch (type) {
    case "text":
      return typeof words === "string" ? Object.freeze({ type, text: words.toWellFormed() }) : undefined
    case "image":
      return typeof mediaType === "string" && typeof data === "string"
        ? Object.freeze({ type, mediaType: mediaType.toWellFormed(), data: data.toWellFormed() })
        : undefined
    case "resource": {
      const named = wellFormed(uri)
      if (named === undefined) return undefined
      const media = wellFormed(mediaType)
      const body = wellFormed(words)
      return Object.freeze({
        type,
        uri: named,
        ...(media === undefined ? {} : { mediaType: media }),
        ...(body === undefined ? {} : { text: body })
      })
    }
    default:
      return undefined
  }
}

const sizeOf = (part: ContentPart): number =>
  part.type === "text" ? part.text.length : part.type === "image" ? part.data.length : (part.text ?? "").length

/**
 * Content that somebody's code handed over, as a frozen copy of its own with well-formed text; `undefined` when it is no
 * list of parts, or more than a thousand, or larger than 48 Mi characters.
 */
export const contentOf = (parts: unknown): ReadonlyArray<ContentPart> | undefined => {
  if (!Array.isArray(parts) || parts.length > 1000) return undefined
  const copies: Array<ContentPart> = []
  let size = 0
  for (const part of parts) {
    const copy = partOf(part)
    if (copy === undefined || (size += sizeOf(copy)) > maxContent) return undefined
    copies.push(copy)
  }
  return Object.freeze(copies)
}

/** How approval came about, when somebody or something was asked. */
export const ApprovalOutcome = Schema.Struct({
  id: Schema.String,
  decision: Schema.Literal("allow", "deny", "expired", "superseded", "unavailable"),
  principal: Schema.String
})
export type ApprovalOutcome = typeof ApprovalOutcome.Type

export const ToolResult = Schema.Struct({
  /** `item_<threadId>_<turnId>_<callId>`. */
  id: Schema.String,
  callId: CallId,
  toolName: Schema.String,
  /** The stricter of the declared and the claimed kind; the claimed one (or `tool_call`) for an unknown tool. */
  toolKind: ToolKind,
  isError: Schema.Boolean,
  /** One of `failureCodes`, a code the tool declares, or one of a path that cannot be followed; `null` on success. */
  code: Schema.NullOr(Schema.String),
  /** On success what the tool's `success` schema encodes to; on failure `{ code, error, details? }`. */
  output: Json,
  content: Schema.Array(ContentPart),
  /** Whether the tool's handler was started. */
  executed: Schema.Boolean,
  /** Whether this is the recorded result of an earlier, identical call. */
  replayed: Schema.Boolean,
  approval: Schema.NullOr(ApprovalOutcome),
  /** The arguments the tool ran with, when the call got that far. */
  effectiveArguments: Schema.NullOr(JsonObject),
  /** Epoch milliseconds. */
  startedAt: Schema.Number,
  finishedAt: Schema.Number
})
export type ToolResult = typeof ToolResult.Type
