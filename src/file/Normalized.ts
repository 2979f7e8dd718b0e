/**
 * A text under the five normalisations of edit matching, with the way back to the characters they came from: NFKC, no
 * trailing blanks, straight quotes, plain dashes, plain spaces (seed 4.4).
 *
 * @since 0.1.0
 */
import { countBelow, lineStart } from "../internal/lines.ts"

export interface Normalized {
  readonly text: string
  /**
   * The span of the original that a span of `text` stands for; `undefined` when it begins or ends inside one folded
   * character. `toLineEnd`: it must end where its line does, blanks apart, and then takes those in.
   */
  readonly span: (
    start: number,
    end: number,
    toLineEnd: boolean
  ) => { readonly start: number; readonly end: number } | undefined
}

/** Where the pieces of a line that NFKC changes begin, before and after. */
interface Pieces {
  readonly original: ReadonlyArray<number>
  readonly folded: ReadonlyArray<number>
}

const foldCharacters = (text: string): string =>
  text
    .replace(/[\u2018-\u201b]/g, "'")
    .replace(/[\u201c-\u201f]/g, "\"")
    .replace(/[\u2010-\u2015\u2212]/g, "-")
    .replace(/[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]/g, " ")

const isBlank = (code: number): boolean => code === 32 || code === 9 || code === 11 || code === 12

const trimBlanks = (line: string): string => {
  let end = line.length
  while (end > 0 && isBlank(line.charCodeAt(end - 1))) end--
  return end === line.length ? line : line.slice(0, end)
}

/** Beyond these NFKC and the folding of characters leave a line as it is. */
const hasOthers = /[^\t-\r -~]/

/** More marks in a row than any writing needs; to order them takes time that grows with the square of their number. */
const heaped = /\p{M}{32}/u

const compose = (line: string): string => heaped.test(line) ? line : line.normalize("NFKC")

/** A character and all that may combine with it: marks, and the letters of Hangul and half-width kana that compose. */
const cluster = /[^](?:\p{M}|[\u1160-\u11ff\u3131-\u318e\uff9e-\uffdc])*/gu

const piecesOf = (line: string, composed: string): Pieces => {
  const original: Array<number> = []
  const folded: Array<number> = []
  let from = 0
  let to = 0
  let joined = ""
  for (const [piece] of line.matchAll(cluster)) {
    const normal = piece.normalize("NFKC")
    original.push(from)
    folded.push(to)
    joined += normal
    from += piece.length
    to += normal.length
  }
  // Where pieces interact after all, the line is one piece.
  return joined === composed
    ? { original: [...original, from], folded: [...folded, to] }
    : { original: [0, line.length], folded: [0, composed.length] }
}

/** `breaks` are the offsets of the newlines of `text`, in which CRLF is folded already. */
export const normalize = (text: string, breaks: ReadonlyArray<number>): Normalized => {
  const starts: Array<number> = []
  const changed = new Map<number, Pieces>()
  const lines: Array<string> = []
  let at = 0
  for (let line = 0; line <= breaks.length; line++) {
    const raw = text.slice(lineStart(breaks, line), breaks[line] ?? text.length)
    let normal = raw
    if (hasOthers.test(raw)) {
      const composed = compose(raw)
      if (composed !== raw) changed.set(line, piecesOf(raw, composed))
      normal = foldCharacters(composed)
    }
    normal = trimBlanks(normal)
    starts.push(at)
    lines.push(normal)
    at += normal.length + 1
  }
  const normalized = lines.join("\n")

  const lineAt = (offset: number): number => countBelow(starts, offset + 1) - 1

  const original = (offset: number): number | undefined => {
    const line = lineAt(offset)
    const within = offset - (starts[line] ?? 0)
    const pieces = changed.get(line)
    if (pieces === undefined) return lineStart(breaks, line) + within
    const index = countBelow(pieces.folded, within)
    return pieces.folded[index] === within ? lineStart(breaks, line) + (pieces.original[index] ?? 0) : undefined
  }

  return {
    text: normalized,
    span: (start, end, toLineEnd) => {
      const atNewline = normalized.charCodeAt(start) === 10
      const first = atNewline ? breaks[lineAt(start)] : original(start)
      const atEnd = end === normalized.length || normalized.charCodeAt(end) === 10
      const last = !toLineEnd ? original(end) : atEnd ? breaks[lineAt(end)] ?? text.length : undefined
      return first === undefined || last === undefined ? undefined : { start: first, end: last }
    }
  }
}

/** A text to look for. `toLineEnd`: blanks at its very end were dropped, so it only matches at the end of a line. */
export const pattern = (text: string): { readonly text: string; readonly toLineEnd: boolean } => {
  const lines = text.split("\n").map((line) => foldCharacters(compose(line)))
  return {
    text: lines.map(trimBlanks).join("\n"),
    toLineEnd: isBlank(lines[lines.length - 1]?.at(-1)?.charCodeAt(0) ?? 0)
  }
}
