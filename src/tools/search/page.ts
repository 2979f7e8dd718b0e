/** Pages of results in one fixed order, whatever order they come in. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Encoding from "effect/Encoding"
import * as Schema from "effect/Schema"
import { Digest, short } from "../../contract/Digest.ts"
import { toolError } from "../../contract/ToolFailure.ts"
import { byCodeUnit } from "../../internal/byCodeUnit.ts"
import { parseJson } from "../../internal/parseJson.ts"

/** How much of one page a model gets, in bytes of text. */
export const pageBytes = 50 * 1024

/** A path with one character for each of its bytes: compared so, and not by UTF-16, by those who know no encoding. */
export const byteText = (path: string | Uint8Array): string => {
  if (typeof path === "string" && /^[\x01-\x7f]*$/.test(path)) return path
  let out = ""
  for (const byte of typeof path === "string" ? new TextEncoder().encode(path) : path) out += String.fromCharCode(byte)
  return out
}

/**
 * What paths are ordered by: compared as text it compares the names on the way one after another, each by its bytes.
 * This is the order of ripgrep's `--sort path`.
 */
export const keyOf = (path: string | Uint8Array): string => byteText(path).replaceAll("/", "\0")

/** How the key of a path compares with another one; NaN: that is not known. */
export type Against = (key: string) => number

/** Compares a path by its bytes. A backslash leaves it open: it may begin an escape. */
export const against = (bytes: Uint8Array, start: number, end: number): Against => (key) => {
  for (let index = 0; index < key.length; index++) {
    const byte = start + index < end ? bytes[start + index] ?? -1 : -1
    if (byte === 0x5c) return NaN
    const difference = (byte === 0x2f ? 0 : byte) - key.charCodeAt(index)
    if (difference !== 0) return difference
  }
  return end - start - key.length
}

/** Where a path lies that has no place on a page. */
export type Side = "before" | "beyond"

/** Bytes of a text. */
export const lengthOf = (text: string): number =>
  /^[\0-\x7f]*$/.test(text) ? text.length : new TextEncoder().encode(text).length

/** Of one result. A path has one result, or one a line. */
export interface Position {
  readonly key: string
  readonly line: number
}

export const compare = (left: Position, right: Position): number =>
  byCodeUnit(left.key, right.key) || left.line - right.line

const Mark = Schema.Struct({ query: Schema.String, key: Schema.String, line: Schema.NonNegativeInt })
const isMark = Schema.is(Mark)

export const Cursor = Schema.optionalWith(Schema.String.pipe(Schema.maxLength(32 * 1024)), { exact: true }).annotations(
  {
    description: "nextCursor of the page before, with all else unchanged but limit."
  }
)

/** Names a query; a cursor is good for its own alone. */
export const queryId = (parts: ReadonlyArray<unknown>): Effect.Effect<string> =>
  Effect.map(Digest, (sha256) => short(sha256(JSON.stringify(parts))))

export const encodeCursor = (query: string, { key, line }: Position): string =>
  Encoding.encodeBase64Url(JSON.stringify({ query, key, line }))

/** Where the page before ended. */
export const decodeCursor = (query: string, cursor: string | undefined) => {
  if (cursor === undefined) return Effect.succeed(undefined)
  const mark = Either.match(Encoding.decodeBase64UrlString(cursor), { onLeft: () => undefined, onRight: parseJson })
  return isMark(mark) && mark.query === query
    ? Effect.succeed<Position>(mark)
    : toolError("cursor_invalid", "This cursor is not of this search. Search again without it.")
}

/** Keeps what may be on the page after `after`: at most `limit` items and, but for the first, `pageBytes`. */
export const collect = <A extends Position>(options: {
  readonly limit: number
  readonly after: Position | undefined
  readonly size: (item: A) => number
}) => {
  const { after, limit, size } = options
  let kept: Array<A> = []
  let bytes = 0
  let seen = 0
  /** Items on a page, as far as that is known. */
  let room = limit
  /** Nothing behind this one can be on the page. */
  let last: A | undefined
  const fitting = (): number => {
    let total = 0
    return kept.findIndex((item, index) => {
      total += size(item)
      return index >= limit || (index > 0 && total > pageBytes)
    })
  }
  const trim = () => {
    kept.sort(compare)
    const end = fitting()
    if (end === -1) return
    kept = kept.slice(0, end + 1)
    last = kept[end]
    room = end
    bytes = kept.reduce((total, item) => total + size(item), 0)
  }
  return {
    add: (item: A): void => {
      if (after !== undefined && compare(item, after) <= 0) return
      seen++
      if (last !== undefined && compare(item, last) > 0) return
      kept.push(item)
      bytes += size(item)
      if (kept.length > limit * 2 + 100 || bytes > 4 * pageBytes) trim()
    },
    /** Tells that there is something beyond the page which is not added. */
    passed: (): void => {
      seen++
    },
    /** Whether it is certain that there is another page. */
    isFull: (): boolean => last !== undefined,
    /** `undefined` for a path of which something can be on the page. */
    side: (against: Against): Side | undefined =>
      after !== undefined && against(after.key) < 0
        ? "before"
        : last !== undefined && against(last.key) > 0
        ? "beyond"
        : undefined,
    /** How many pages at least there are, whatever the order. */
    pages: (): number => seen / room,
    /** How much of the page items that come in order have filled; from 1 on one is there that is behind it. */
    progress: (): number => Math.max(kept.length / (limit + 1), kept.length > 1 ? bytes / (pageBytes + 1) : 0),
    result: (): { readonly items: ReadonlyArray<A>; readonly next: Position | undefined } => {
      trim()
      const end = fitting()
      const items = end === -1 ? kept : kept.slice(0, end)
      return { items, next: end === -1 ? undefined : items.at(-1) }
    }
  }
}
