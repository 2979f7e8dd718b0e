/**
 * Step 7's intake: what a model sent as arguments, as a bounded plain object or a coded refusal.
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import { isObject, type Json, type JsonObject, type Limits, snapshot } from "../contract/Json.ts"
import type { ToolCall } from "../contract/ToolCall.ts"
import { ArgumentsRefused } from "../contract/ToolFailure.ts"
import { parseJson } from "../internal/parseJson.ts"

/** Size and depth budget of one call's arguments; default 8 MiB of characters, 64 levels. */
export type ArgumentLimits = Limits

const refuse = (
  code: ArgumentsRefused["code"],
  reason: string,
  extra: { readonly path?: string; readonly received?: number; readonly limit?: number } = {}
): Either.Either<never, ArgumentsRefused> => Either.left(new ArgumentsRefused({ code, reason, ...extra }))

const cutOff = (received: number | undefined): Either.Either<never, ArgumentsRefused> =>
  refuse(
    "arguments_truncated",
    `The arguments were cut off${
      received === undefined ? "" : ` after ${received} characters`
    }, most likely by the output ` +
      "limit of the model, so nothing was run. Send less at once: write a small skeleton first, then fill it in with " +
      "several small edits.",
    received === undefined ? {} : { received }
  )

/** Whether a text ends inside a string, an array or an object: the mark of a response that was cut. */
const endsOpen = (text: string): boolean => {
  let depth = 0
  let inString = false
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (inString) {
      if (unit === 0x5c) index++
      else if (unit === 0x22) inString = false
    } else if (unit === 0x22) inString = true
    else if (unit === 0x7b || unit === 0x5b) depth++
    else if (unit === 0x7d || unit === 0x5d) depth--
  }
  return inString || depth > 0
}

const metadata: ReadonlySet<string> = new Set(["__raw", "toolName", "callId", "providerId", "providerKind", "toolKind"])

/** The text inside a raw envelope, which some transports put around arguments they could not parse. */
const rawText = (value: unknown): string | undefined => {
  if (typeof value === "string") return value
  if (!isObject(value) || typeof value["__raw"] !== "string") return undefined
  return Object.keys(value).every((key) => metadata.has(key)) ? value["__raw"] : undefined
}

/**
 * The arguments as a frozen plain object.
 *
 * JSON text and raw envelopes are parsed; an empty text is no arguments. A response that was cut, or a text that does not
 * close, is `arguments_truncated` even where a repair would parse. Size and depth over the budget are
 * `arguments_too_large`; anything else that is not a plain object is `arguments_invalid`.
 */
export const receive = (call: ToolCall, limits: Limits): Either.Either<JsonObject, ArgumentsRefused> => {
  let value = call.arguments
  for (let unwrapped = 0; unwrapped < 3; unwrapped++) {
    const text = rawText(value)
    if (text === undefined) break
    if (call.truncated === true) return cutOff(text.length)
    if (text.length > limits.maxSize) return tooLarge(text.length, limits)
    if (text.trim() === "") {
      value = {}
      break
    }
    const parsed = parseJson(text)
    if (parsed === undefined) {
      return endsOpen(text)
        ? cutOff(text.length)
        : refuse("arguments_invalid", `The arguments are not JSON; ${text.length} characters arrived.`)
    }
    value = parsed
  }
  const plain = snapshot(value, limits)
  if (call.truncated === true) return cutOff(plain.ok ? JSON.stringify(plain.value).length : undefined)
  if (!plain.ok) {
    switch (plain.problem) {
      case "too_large":
        return tooLarge(undefined, limits)
      case "too_deep":
        return refuse("arguments_too_large", `The arguments are nested more than ${limits.maxDepth} levels deep.`, {
          limit: limits.maxDepth
        })
      case "malformed_text":
        return refuse("arguments_invalid", `Not well-formed Unicode text at ${plain.path}.`, { path: plain.path })
      case "forbidden_key":
        return refuse("arguments_invalid", `The property ${plain.path} is not allowed.`, { path: plain.path })
      case "not_json":
        return refuse("arguments_invalid", `Not plain JSON at ${plain.path || "/"}.`, { path: plain.path })
    }
  }
  return asObject(plain.value)
}

/** Arguments after hooks: plain already, and an object they must stay. */
export const asObject = (value: Json): Either.Either<JsonObject, ArgumentsRefused> =>
  isJsonObject(value) ? Either.right(value) : refuse("arguments_invalid", "The arguments must be a JSON object.")

const isJsonObject = (value: Json): value is JsonObject => isObject(value)

const tooLarge = (received: number | undefined, limits: Limits): Either.Either<never, ArgumentsRefused> =>
  refuse("arguments_too_large", `The arguments are larger than ${limits.maxSize} characters.`, {
    limit: limits.maxSize,
    ...(received === undefined ? {} : { received })
  })
