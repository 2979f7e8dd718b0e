/**
 * Recognises that the other side asked us to slow down (step 17).
 *
 * Only typed failures are looked at: an HTTP status, or the error of a tool whose provider speaks to a network. A
 * success, a file's text or a command's log never becomes a rate limit, whatever it says.
 *
 * @since 0.1.0
 */
import { isObject, type Json } from "../contract/Json.ts"
import type { ProviderKind } from "../contract/Provider.ts"
import type { RawOutcome } from "../contract/RawOutcome.ts"
import { RateLimited } from "../contract/ToolFailure.ts"

/** The longest delay believed: 24 hours, in milliseconds. */
export const maxDelayMs = 24 * 60 * 60 * 1000

const cap = (ms: number): number => Math.min(Math.ceil(ms), maxDelayMs)

const unitMs: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 }

/** `6m0s`, `20ms`, `1h2m3s`: units in falling order, each at most once. */
const compound = (text: string): number | undefined => {
  const match = /^(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9}(?:\.\d{1,9})?)s)?(?:(\d{1,9})ms)?$/.exec(text)
  if (match === null || text === "") return undefined
  const [, hours = "0", minutes = "0", seconds = "0", millis = "0"] = match
  return Number(hours) * 3_600_000 + Number(minutes) * 60_000 + Number(seconds) * 1000 + Number(millis)
}

const httpDate =
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d{2}:\d{2}:\d{2} GMT$/

/**
 * A Retry-After value in milliseconds from `now` (epoch milliseconds): seconds, a duration or an HTTP date. `undefined`
 * when it names no delay; never negative, never NaN, never earlier than asked, at most `maxDelayMs`. Several values are
 * no value.
 */
export const parseRetryAfter = (value: unknown, now: number): number | undefined => {
  if (typeof value === "number") return Number.isFinite(value) && value >= 0 ? cap(value * 1000) : undefined
  if (typeof value !== "string" || value.length > 64) return undefined
  const text = value.trim()
  if (/^\d{1,12}(?:\.\d{1,9})?$/.test(text)) return cap(Number(text) * 1000)
  if (httpDate.test(text)) {
    const at = Date.parse(text)
    return Number.isNaN(at) ? undefined : cap(Math.max(0, at - now))
  }
  const duration = compound(text)
  return duration === undefined ? undefined : cap(duration)
}

/** A delay that is in milliseconds by its name, as in `retry-after-ms`. */
export const parseMillis = (value: unknown): number | undefined => {
  const ms = typeof value === "string" && /^\s*\d{1,12}(?:\.\d{1,9})?\s*$/.test(value) ? Number(value) : value
  return typeof ms === "number" && Number.isFinite(ms) && ms >= 0 ? cap(ms) : undefined
}

const folded = (key: string): string => key.toLowerCase().replaceAll(/[-_]/g, "")

const delayIn = (fields: { readonly [key: string]: unknown }, now: number): number | undefined => {
  let delay: number | undefined
  for (const [key, value] of Object.entries(fields)) {
    switch (folded(key)) {
      case "retryafterms":
        return parseMillis(value)
      case "retryafter":
      case "retryafterseconds":
        delay = parseRetryAfter(value, now)
    }
  }
  return delay
}

const phrases = /rate[ -]limit|too many requests|quota exceeded|request limit|(?:http|status:?) 429/i
const delayPhrase =
  /(?:retry[ _-]after|try again in|wait)[ :]{1,3}(\d{1,9}(?:\.\d{1,9})?) ?(ms|milliseconds?|seconds?|minutes?|s|m)?\b/i

const delayFromProse = (text: string): number | undefined => {
  const match = delayPhrase.exec(text)
  if (match === null) return undefined
  const [, amount = "0", unit = "s"] = match
  const name = unit.toLowerCase()
  const per = name.startsWith("ms") || name.startsWith("milli")
    ? unitMs["ms"]
    : name.startsWith("m")
    ? unitMs["m"]
    : unitMs["s"]
  return cap(Number(amount) * (per ?? 1000))
}

/** What the plane or a hook says of a tool that ran, and what is one already. */
const notTheTools: ReadonlySet<string> = new Set(["hook_denied", "hook_failed", "state_unavailable", "rate_limited"])

/** Providers whose errors are another machine's words. */
const remote: ReadonlySet<ProviderKind> = new Set<ProviderKind>(["mcp", "web", "image", "audio", "video"])

/** The outcome as a rate limit, or `undefined` when it is none. `now` in epoch milliseconds. */
export const recognise = (outcome: RawOutcome, kind: ProviderKind, now: number): RateLimited | undefined => {
  if (!outcome.isError || notTheTools.has(outcome.code ?? "")) return undefined
  const output = isObject(outcome.output) ? outcome.output : {}
  const details: { readonly [key: string]: unknown } = isObject(output["details"]) ? output["details"] : {}
  const headers = isObject(details["headers"]) ? details["headers"] : {}
  const prose = proseOf(output, outcome.output)
  const limited = details["status"] === 429 || (remote.has(kind) && phrases.test(prose))
  if (!limited) return undefined
  const delay = delayIn(headers, now) ?? delayIn(details, now) ?? (remote.has(kind) ? delayFromProse(prose) : undefined)
  return new RateLimited({
    reason: prose.slice(0, 360).toWellFormed(),
    retryAfterMs: delay ?? null,
    original: outcome.output
  })
}

const proseOf = (output: { readonly [key: string]: unknown }, whole: Json): string => {
  const error = output["error"]
  return (typeof error === "string" ? error : typeof whole === "string" ? whole : "the other side is limiting requests")
    .slice(0, 4000)
}
