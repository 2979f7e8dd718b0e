/**
 * Pages of a text: by lines and by bytes, so that the pages together are the text.
 *
 * A page is of whole lines, but a first line that is too long for it: that is cut between two code points, and the next
 * page goes on inside it. A source is read from its start to the place where the page begins, a piece at a time, and from
 * there a page far; nothing after the page is read.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { foldCrlf } from "../internal/lines.ts"
import { decode } from "./TextFile.ts"

/** How much one page may hold; the smallest of these counts. */
export interface Budget {
  readonly lines: number
  readonly bytes: number
  /** Taken for three bytes each. `null`: no limit of its own. */
  readonly tokens: number | null
}

/** What one call of `read` shows at most. Default 2000 lines and 50 KB (decisions, Files: truncation). */
export class ReadBudget extends Context.Reference<ReadBudget>()("portcullis/ReadBudget", {
  defaultValue: (): Budget => ({ lines: 2000, bytes: 50 * 1024, tokens: null })
}) {}

const bytesPerToken = 3
/** However small a budget is, a page holds this many bytes: paging must come to an end. */
const minBytes = 512

/** A budget as plain limits, narrowed by what a caller asks for. */
export const limitsOf = (budget: Budget, lines?: number, tokens?: number): Limits => ({
  lines: Math.max(1, Math.min(budget.lines, lines ?? budget.lines)),
  bytes: Math.max(
    minBytes,
    Math.floor(Math.min(budget.bytes, Math.min(budget.tokens ?? Infinity, tokens ?? Infinity) * bytesPerToken))
  )
})

export interface Limits {
  readonly lines: number
  /** At least 512. */
  readonly bytes: number
}

/** UTF-8 that is reached by position. */
export interface Source<E> {
  /** Where its first line begins: after a byte order mark. */
  readonly start: number
  /** Fewer bytes than `length` only where the source ends. */
  readonly read: (offset: number, length: number) => Effect.Effect<Uint8Array, E>
}

export const ofBytes = (bytes: Uint8Array, start: number): Source<never> => ({
  start,
  read: (offset, length) => Effect.succeed(bytes.subarray(offset, offset + length))
})

/** A place in a text; both count from 1, columns in code points. */
export interface Place {
  readonly line: number
  readonly column: number
}

export interface Page {
  /** CRLF as LF. */
  readonly content: string
  /** The last line of which something is shown; one less than the first asked for when the text is empty. */
  readonly endLine: number
  /** Where the next page begins; `null` when this is the last one. */
  readonly next: Place | null
  /** Of the source: its first byte, and the first after it. */
  readonly begin: number
  readonly end: number
}

/** Why there is no page. */
export type NoPage =
  | { readonly _tag: "PastEnd"; readonly totalLines: number }
  | { readonly _tag: "PastLine"; readonly columns: number }
  | { readonly _tag: "IllFormed"; readonly byteOffset: number }

const piece = 64 * 1024

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

/** The last place at or before `at` where UTF-8 may be cut. */
export const boundary = (bytes: Uint8Array, at: number): number => {
  let cut = at
  while (cut > at - 3 && isContinuation(bytes[cut])) cut--
  return Math.max(cut, 0)
}

/** Code points of well-formed UTF-8. */
export const characters = (bytes: Uint8Array): number => {
  let count = 0
  for (const byte of bytes) if ((byte & 0xc0) !== 0x80) count++
  return count
}

/** Where a line begins; a source without a byte has a first line, too. */
const lineAt = Effect.fnUntraced(function*<E>({ read, start }: Source<E>, wanted: number) {
  let at = start
  let line = 1
  let begin = start
  while (line < wanted) {
    const bytes = yield* read(at, piece)
    if (bytes.length === 0) return Either.left(pastEnd(begin < at ? line : line - 1))
    for (let found = bytes.indexOf(0x0a); found !== -1; found = bytes.indexOf(0x0a, found + 1)) {
      line++
      begin = at + found + 1
      if (line === wanted) break
    }
    at += bytes.length
  }
  const ends = wanted > 1 && (yield* read(begin, 1)).length === 0
  return ends ? Either.left(pastEnd(wanted - 1)) : Either.right(begin)
})

const pastEnd = (totalLines: number): NoPage => ({ _tag: "PastEnd", totalLines })

/** Where a column of the line that begins at `start` is. The end of a line is no column. */
const columnAt = Effect.fnUntraced(function*<E>({ read }: Source<E>, start: number, wanted: number) {
  if (wanted === 1) return Either.right(start)
  let column = 0
  for (let at = start;; at += piece) {
    const bytes = yield* read(at, piece)
    for (let index = 0; index < bytes.length; index++) {
      const byte = bytes[index]
      if (byte === 0x0a) return Either.left(pastLine(column))
      if (isContinuation(byte)) continue
      column++
      if (column === wanted) return Either.right(at + index)
    }
    if (bytes.length < piece) return Either.left(pastLine(column))
  }
})

const pastLine = (columns: number): NoPage => ({ _tag: "PastLine", columns })

/** How many of the bytes make the page, and how many lines are complete in it. `bytes` is one byte more than may be shown. */
const fit = (bytes: Uint8Array, limits: Limits): { readonly length: number; readonly lines: number } => {
  const ended = bytes.length <= limits.bytes
  let length = 0
  let lines = 0
  while (lines < limits.lines && length < bytes.length) {
    const found = bytes.indexOf(0x0a, length)
    const end = found !== -1 ? found + 1 : ended ? bytes.length : Infinity
    if (end > limits.bytes) break
    length = end
    lines++
  }
  if (lines > 0 || bytes.length === 0) return { length, lines }
  let cut = boundary(bytes, limits.bytes)
  // CRLF is one newline: it is never split.
  if (bytes[cut] === 0x0a && bytes[cut - 1] === 0x0d) cut--
  return { length: cut, lines }
}

/** The page that begins at a place, or why there is none. Fails only as the source does. */
export const page = Effect.fnUntraced(function*<E>(
  source: Source<E>,
  place: Place,
  limits: Limits
): Effect.fn.Return<Either.Either<Page, NoPage>, E> {
  const line = yield* lineAt(source, place.line)
  if (Either.isLeft(line)) return Either.left(line.left)
  const begin = yield* columnAt(source, line.right, place.column)
  if (Either.isLeft(begin)) return Either.left(begin.left)
  const bytes = yield* source.read(begin.right, limits.bytes + 1)
  const { length, lines } = fit(bytes, limits)
  const shown = bytes.subarray(0, length)
  const content = textOf(shown)
  if (Either.isLeft(content)) {
    return Either.left<NoPage>({ _tag: "IllFormed", byteOffset: begin.right + content.left })
  }
  const inside = lines === 0 && length > 0
  return Either.right({
    content: foldCrlf(content.right),
    endLine: place.line + (inside ? 1 : lines) - 1,
    next: length === bytes.length
      ? null
      : inside
      ? { line: place.line, column: place.column + characters(shown) }
      : { line: place.line + lines, column: 1 },
    begin: begin.right,
    end: begin.right + length
  })
})

/** Bytes inside a text as UTF-8, where what looks like a byte order mark is none; or the offset of what does not fit. */
const textOf = (bytes: Uint8Array): Either.Either<string, number> =>
  (bytes[0] ?? 0) >= 0xfe
    ? Either.left(0)
    : Either.map(decode(bytes), ({ encoding, text }) => encoding.bom ? `\ufeff${text}` : text)
