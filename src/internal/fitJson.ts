/** A value made to fit a number of characters, by cutting its longest strings first. */
import type { Json } from "../contract/Json.ts"
import { cut } from "./lines.ts"

const shortest = 16

/**
 * `value` with its strings cut, all to the same length, until its JSON text has at most `limit` characters; a cut string
 * says how much is missing. A value that has too many parts for that becomes the start of its JSON text.
 */
export const fitJson = (value: Json, limit: number): { readonly value: Json; readonly truncated: boolean } => {
  const whole = JSON.stringify(value)
  if (whole.length <= limit) return { value, truncated: false }
  for (let length = limit; length >= shortest; length = Math.floor(length / 2)) {
    const shortened = cutStrings(value, length)
    if (JSON.stringify(shortened).length <= limit) return { value: shortened, truncated: true }
  }
  // Every character of it may take two when it is JSON text itself.
  return { value: shorten(whole, Math.floor(limit / 2) - 50), truncated: true }
}

const shorten = (text: string, length: number): string => {
  const kept = cut(text, length)
  return kept.length === text.length ? text : `${kept}…[+${text.length - kept.length} characters]`
}

const isArray = (value: Json): value is ReadonlyArray<Json> => Array.isArray(value)

const cutStrings = (value: Json, length: number): Json =>
  typeof value === "string"
    ? shorten(value, length)
    : typeof value !== "object" || value === null
    ? value
    : isArray(value)
    ? value.map((item) => cutStrings(item, length))
    : Object.fromEntries(Object.entries(value).map(([key, item]) => [key, cutStrings(item, length)]))
