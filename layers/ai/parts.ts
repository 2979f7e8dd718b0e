/**
 * Parts of a response of `@effect/ai` as ours, decoded and raw alike.
 *
 * What comes is read leniently, by a schema of the few fields that we use: parts that `@effect/ai` refused to decode are
 * read by the same schema. Parts of another shape are passed over.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { FinishReason, ModelPart, Usage } from "../../src/agent/Model.ts"
import { CallId, type ToolCall } from "../../src/contract/ToolCall.ts"

const Count = Schema.optional(Schema.NullOr(Schema.Number))

const Part = Schema.Union(
  Schema.Struct({ type: Schema.Literal("text-delta", "reasoning-delta"), delta: Schema.String }),
  Schema.Struct({ type: Schema.Literal("text", "reasoning"), text: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("tool-call"),
    id: Schema.String,
    name: Schema.String,
    params: Schema.Unknown,
    providerExecuted: Schema.optional(Schema.Boolean)
  }),
  Schema.Struct({
    type: Schema.Literal("tool-params-start"),
    id: Schema.String,
    name: Schema.String,
    providerExecuted: Schema.optional(Schema.Boolean)
  }),
  Schema.Struct({ type: Schema.Literal("tool-params-delta"), id: Schema.String, delta: Schema.String }),
  Schema.Struct({ type: Schema.Literal("tool-params-end"), id: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("finish"),
    reason: Schema.String,
    usage: Schema.Struct({ inputTokens: Count, outputTokens: Count })
  }),
  Schema.Struct({ type: Schema.Literal("error"), error: Schema.Unknown })
)
export type Part = typeof Part.Type

export const readPart: (raw: unknown) => Option.Option<Part> = Schema.decodeUnknownOption(Part)

const finishReasons: Readonly<Record<string, FinishReason>> = {
  stop: "stop",
  length: "length",
  "content-filter": "content_filter",
  "tool-calls": "tool_calls"
}

const tokens = (count: number | null | undefined): number =>
  count !== undefined && count !== null && Number.isFinite(count) && count > 0 ? count : 0

const toUsage = (
  usage: { readonly inputTokens?: number | null | undefined; readonly outputTokens?: number | null | undefined }
): Usage => ({
  inputTokens: tokens(usage.inputTokens),
  outputTokens: tokens(usage.outputTokens)
})

/** An id that is not one of ours is replaced; the conversation that is sent back uses the new one. */
const toCall = (id: string, toolName: string, args: unknown): ToolCall => ({
  callId: isCallId(id) ? id : CallId.make(`call_${globalThis.crypto.randomUUID().replaceAll("-", "")}`),
  toolName,
  arguments: args
})

const isCallId = Schema.is(CallId)

/** Turns parts into ours, one response long. */
export interface Reader {
  /** What a part amounts to. Parts after `finish`, and `error` parts, are the caller's. */
  readonly read: (part: Exclude<Part, { readonly type: "error" }>) => ReadonlyArray<ModelPart>
  /** The end of a response whose rest is lost: calls still open, marked as cut, and a finish. */
  readonly giveUp: () => ReadonlyArray<ModelPart>
  readonly calls: () => number
}

/** Beyond this many characters the arguments of calls that are still open are not kept. */
const openLimit = 8 * 1024 * 1024

/**
 * Arguments arrive as deltas, then as one call. A call whose response is cut before that is told with the text that
 * arrived, marked `truncated`: the channel answers it, so that the model learns of it.
 */
export const makeReader = (): Reader => {
  const open = new Map<string, { readonly name: string; text: string; ended: boolean }>()
  let size = 0
  let calls = 0

  const call = (id: string, name: string, args: unknown): ModelPart => {
    calls++
    return { type: "tool_call", call: toCall(id, name, args) }
  }

  const flush = (ended: boolean): ReadonlyArray<ModelPart> => {
    const left = Array.from(open).filter(([, item]) => ended || !item.ended)
    open.clear()
    return left.map(([id, { name, text }]) => {
      calls++
      return { type: "tool_call", call: { ...toCall(id, name, text), truncated: true } }
    })
  }

  const read: Reader["read"] = (part) => {
    switch (part.type) {
      case "text-delta":
        return [{ type: "text", delta: part.delta }]
      case "text":
        return [{ type: "text", delta: part.text }]
      case "reasoning-delta":
        return [{ type: "reasoning", delta: part.delta }]
      case "reasoning":
        return [{ type: "reasoning", delta: part.text }]
      case "tool-params-start":
        if (part.providerExecuted !== true && open.size < 1000) {
          open.set(part.id, { name: part.name, text: "", ended: false })
        }
        return []
      case "tool-params-delta": {
        const item = open.get(part.id)
        size += part.delta.length
        if (item !== undefined && size <= openLimit) item.text += part.delta
        return []
      }
      case "tool-params-end": {
        const item = open.get(part.id)
        if (item !== undefined) item.ended = true
        return []
      }
      case "tool-call":
        open.delete(part.id)
        return part.providerExecuted === true ? [] : [call(part.id, part.name, part.params)]
      case "finish": {
        const reason = finishReasons[part.reason] ?? "other"
        const cut = reason === "length" || reason === "content_filter" ? flush(false) : []
        return [...cut, { type: "finish", reason, usage: toUsage(part.usage) }]
      }
    }
  }

  return {
    read,
    giveUp:
      () => [...flush(true), { type: "finish", reason: "tool_calls", usage: { inputTokens: 0, outputTokens: 0 } }],
    calls: () => calls
  }
}
