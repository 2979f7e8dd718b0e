/** The one place where the end of a tool's effect becomes data. Whatever it is given, it answers: nothing here throws. */
import * as Cause from "effect/Cause"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import { isObject, type Json, outputLimits, snapshot } from "../contract/Json.ts"
import type { RawOutcome } from "../contract/RawOutcome.ts"
import { ExecutionFailed, failureCodes, type ToolFailure } from "../contract/ToolFailure.ts"
import { text } from "../contract/ToolResult.ts"

const closed: ReadonlySet<string> = new Set(failureCodes)
const noCodes: ReadonlySet<string> = new Set<never>([])
const speechless = "it failed without saying why"

/** What looks at a foreign value may run its getters and proxies, which may throw. */
const looking = <A>(look: () => A, otherwise: A): A => Either.getOrElse(Either.try(look), () => otherwise)

/** Bounded, well-formed, never empty. */
const prose = (value: string): string => value.slice(0, 8000).toWellFormed() || speechless

const messageOf = (error: unknown): string => {
  if (typeof error === "string") return prose(error)
  if (typeof error === "object" && error !== null && "message" in error && typeof error.message === "string") {
    return prose(error.message)
  }
  const plain = snapshot(error)
  return prose(plain.ok ? JSON.stringify(plain.value) : typeof error)
}

/** One of our own failures, whose fields were made to be told. */
const isOurs = (error: object): boolean =>
  "_tag" in error && "code" in error && typeof error.code === "string" && closed.has(error.code) &&
  error instanceof Error

const hidden: ReadonlySet<string> = new Set(["_tag", "code", "message", "name", "stack", "details", "cause"])

/**
 * What a failure tells beside its code and message: its `details`, the fields of our own failures, and of a response of
 * HTTP its status and when to come back. Other fields of other errors may hold anything, credentials too, and stay here.
 */
const detailsOf = (error: unknown, message: string): Json | undefined => {
  if (typeof error !== "object" || error === null) return undefined
  const fields: Record<string, unknown> = {}
  if ("details" in error && error.details !== undefined) {
    if (!isObject(error.details)) return plainOrNothing(error.details)
    Object.assign(fields, error.details)
  }
  if (isOurs(error)) {
    for (const [key, value] of Object.entries(error)) {
      const plain = hidden.has(key) || value === message ? undefined : plainOrNothing(value)
      if (plain !== undefined) fields[key] = plain
    }
    if ("cause" in error && typeof error.cause === "string") fields["cause"] = error.cause
  }
  Object.assign(fields, responseOf(error))
  if ("response" in error && typeof error.response === "object" && error.response !== null) {
    Object.assign(fields, responseOf(error.response))
  }
  return Object.keys(fields).length === 0 ? undefined : plainOrNothing(fields)
}

const responseOf = (response: object): { readonly [key: string]: unknown } => ({
  ..."status" in response && typeof response.status === "number" ? { status: response.status } : {},
  ..."headers" in response && isObject(response.headers) ? { headers: retryHeaders(response.headers) } : {}
})

const retryHeaders = (headers: { readonly [key: string]: unknown }): Json =>
  plainOrNothing(
    Object.fromEntries(Object.entries(headers).filter(([key]) => key.toLowerCase().startsWith("retry-after")))
  ) ?? {}

/** Room for a whole output inside a failure that keeps it. */
const detailLimits = { maxSize: outputLimits.maxSize + 64 * 1024, maxDepth: outputLimits.maxDepth + 8 }

const plainOrNothing = (value: unknown): Json | undefined => {
  const plain = snapshot(value, detailLimits)
  return plain.ok ? plain.value : undefined
}

/** What a failure says: its message and its details. */
export const describeFailure = (error: unknown): { readonly message: string; readonly details: Json | undefined } => {
  const message = looking(() => messageOf(error), speechless)
  return { message, details: looking(() => detailsOf(error, message), undefined) }
}

/** The outcome of a failed call: `code` and `error` are always in its output and no detail overrides them. */
export const failureOutcome = (code: string, error: unknown): RawOutcome => {
  const { details, message } = describeFailure(error)
  return {
    isError: true,
    code,
    output: Object.freeze(details === undefined ? { code, error: message } : { code, error: message, details }),
    content: [text(`${code}: ${message}${details === undefined ? "" : `\n${bounded(details)}`}`)]
  }
}

const bounded = (details: Json): string => {
  const json = JSON.stringify(details)
  return json.length <= 4000
    ? json
    : `${json.slice(0, 4000).toWellFormed()}… (${json.length - 4000} more characters in the output)`
}

/**
 * The code of something a tool failed with, if it is one of `allowed` (default: the closed table) or one the tool
 * declares, else `tool_execution_failed`.
 */
export const codeOf = (error: unknown, declared: ReadonlySet<string> = noCodes, allowed = closed): string =>
  looking(
    () =>
      typeof error === "object" && error !== null && "code" in error && typeof error.code === "string" &&
        (allowed.has(error.code) || declared.has(error.code))
        ? error.code
        : "tool_execution_failed",
    "tool_execution_failed"
  )

/** A cause that is no outside interruption, as the failure it stands for. Defects and inner interruptions are failures. */
export const failureOf = (cause: Cause.Cause<unknown>): unknown => {
  const failure = Cause.failureOption(cause)
  if (Option.isSome(failure)) return failure.value
  return new ExecutionFailed({
    reason: Cause.isInterruptedOnly(cause)
      ? "The tool interrupted itself before it was done."
      : `The tool failed unexpectedly: ${looking(() => messageOf(Cause.squash(cause)), speechless)}`
  })
}

export const toOutcome = (failure: ToolFailure): RawOutcome => failureOutcome(failure.code, failure)
