/**
 * What a model asked for, as it asked.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { ToolKind } from "./Policy.ts"

export const CallId = Schema.String.pipe(Schema.pattern(/^[\x21-\x7e]{1,200}$/), Schema.brand("portcullis/CallId"))
export type CallId = typeof CallId.Type

const exact = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/**
 * One call. `arguments` is untrusted: an object, or the JSON text of one as the provider delivered it; it is decoded in
 * step 7. `claimedKind` may only tighten the tool's own kind. `truncated` says that the response which carried the call
 * was cut off: such a call is never executed.
 */
export const ToolCall = Schema.Struct({
  callId: CallId,
  toolName: Schema.String,
  arguments: Schema.Unknown,
  claimedKind: exact(ToolKind),
  providerId: exact(Schema.String),
  truncated: exact(Schema.Boolean)
})
export type ToolCall = typeof ToolCall.Type

/** A call with its defaults filled in: a random call id, no arguments. Throws on a malformed `callId`. */
export const make = (call: {
  readonly toolName: string
  readonly callId?: string | undefined
  readonly arguments?: unknown
  readonly claimedKind?: ToolKind | undefined
  readonly providerId?: string | undefined
  readonly truncated?: boolean | undefined
}): ToolCall => ({
  callId: call.callId === undefined
    ? CallId.make(`call_${globalThis.crypto.randomUUID()}`, { disableValidation: true })
    : CallId.make(call.callId),
  toolName: call.toolName,
  arguments: call.arguments ?? {},
  ...(call.claimedKind === undefined ? {} : { claimedKind: call.claimedKind }),
  ...(call.providerId === undefined ? {} : { providerId: call.providerId }),
  ...(call.truncated === undefined ? {} : { truncated: call.truncated })
})
