/** Errors of `@effect/ai` as ours. */
import type * as AiError from "@effect/ai/AiError"
import * as Chunk from "effect/Chunk"
import * as ParseResult from "effect/ParseResult"
import * as Predicate from "effect/Predicate"
import { ModelError } from "../../src/agent/Model.ts"
import { parseMillis, parseRetryAfter } from "../../src/host/RateLimit.ts"

const modelError = (code: ModelError["code"], reason: string, retryAfterMs: number | null = null): ModelError =>
  new ModelError({ code, reason: reason.slice(0, 500).toWellFormed(), retryAfterMs })

/** `now` is in epoch milliseconds. Addresses and headers, which may hold secrets, are left out of the reason. */
export const toModelError = (error: AiError.AiError, now: number): ModelError => {
  switch (error._tag) {
    case "HttpRequestError":
      return error.reason === "Transport"
        ? modelError("model_unavailable", `The provider could not be reached: ${error.description ?? "no connection"}`)
        : modelError(
          "model_refused",
          `The request could not be made (${error.reason}): ${error.description ?? "no reason given"}`
        )
    case "HttpResponseError": {
      const { headers, status } = error.response
      const reason = `The provider answered ${status}: ${error.description ?? error.body ?? "no reason given"}`
      if (error.reason !== "StatusCode") return modelError("model_output_malformed", `${error.reason}: ${reason}`)
      const code = status === 429
        ? "model_rate_limited"
        : status >= 400 && status < 500 && status !== 408
        ? "model_refused"
        : "model_unavailable"
      return modelError(code, reason, retryAfter(headers, now))
    }
    case "MalformedInput":
      return modelError("model_refused", error.description ?? "The provider cannot take this request.")
    case "MalformedOutput":
      return modelError("model_output_malformed", error.description ?? "The model's response could not be read.")
    case "UnknownError":
      return modelError("model_unavailable", error.description ?? "The provider failed without a reason.")
  }
}

export const unreadable = modelError("model_output_malformed", "The model's response could not be read.")

/** An error that a provider sends as a part of its stream. */
export const errorPart = (error: unknown): ModelError =>
  modelError("model_unavailable", `The provider reported an error: ${messageOf(error) ?? "no reason given"}`)

const messageOf = (error: unknown): string | undefined => {
  const message = Predicate.hasProperty(error, "message") ? error.message : error
  return typeof message === "string" ? message : undefined
}

const retryAfter = (headers: { readonly [name: string]: string }, now: number): number | null =>
  parseMillis(headers["retry-after-ms"]) ?? parseRetryAfter(headers["retry-after"], now) ?? null

/** The raw parts that `@effect/ai` could not decode: a whole response, or one chunk of a stream. */
export const undecodedParts = (error: AiError.MalformedOutput): ReadonlyArray<unknown> => {
  if (!ParseResult.isParseError(error.cause)) return []
  const actual = error.cause.issue.actual
  return Chunk.isChunk(actual) ? Chunk.toReadonlyArray(actual) : Array.isArray(actual) ? actual : []
}
