/**
 * Search in a text under the five normalisations of edit matching: NFKC, no trailing blanks, straight quotes, plain
 * dashes, plain spaces (seed 4.4).
 *
 * The normal form of the text is never built: line by line, its units go through a Knuth-Morris-Pratt automaton. A line in
 * which nothing folds is looked at only where a place can begin or go on, and only a line with a character that NFKC may
 * change, or combine with its neighbour, is normalised as a string. So every place counts for uniqueness, and time is
 * linear whatever the text and the pattern are. Where a run of the pattern must be in the text as it is, only the lines
 * around its places go through that.
 *
 * @since 0.1.0
 */
import { countBelow } from "../internal/lines.ts"

export interface Span {
  readonly start: number
  readonly end: number
}

export interface Found {
  /** Ascending, without overlap. */
  readonly spans: ReadonlyArray<Span>
  /** There is more than one place, be it that two overlap. */
  readonly ambiguous: boolean
}

/** A text to look for. */
export interface Pattern {
  readonly text: string
  /** Whether anything but line endings is folded in the text that is searched. */
  readonly folds: boolean
  /** Blanks at its very end were dropped, so it only matches at the end of a line. */
  readonly toLineEnd: boolean
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

/**
 * More marks in a row than any writing needs, half-width kana marks among them, which NFKC makes marks of; to order them
 * takes time that grows with the square of their number.
 */
const heaped = /[\p{M}\uff9e\uff9f]{32}/u

const compose = (line: string): string => heaped.test(line) ? line : line.normalize("NFKC")

/** A text as it is. CRLF must be folded already. */
export const verbatim = (text: string): Pattern => ({ text, folds: false, toLineEnd: false })

/** A text under the five normalisations. CRLF must be folded already. */
export const normalized = (text: string): Pattern => {
  const lines = text.split("\n").map((line) => foldCharacters(compose(line)))
  return {
    text: lines.map(trimBlanks).join("\n"),
    folds: true,
    toLineEnd: isBlank(lines[lines.length - 1]?.at(-1)?.charCodeAt(0) ?? 0)
  }
}

/** Kinds of a code unit; any greater number is the ASCII character that it folds to. */
const unknown = 0
const stable = 1
const complex = 2

/** What can combine with a unit before it, and halves of surrogate pairs. */
const combining = /[\p{M}\u1160-\u11ff\ud800-\udfff]/u

/** `stable` stays as it is in any company of stable and folding units, because none of them combines with another. */
const kindOf = (unit: number): number => {
  const character = String.fromCharCode(unit)
  const folded = foldCharacters(character)
  if (folded !== character) return folded.charCodeAt(0)
  return combining.test(character) || character.normalize("NFKC") !== character ? complex : stable
}

/** The kinds that a search has met, so that each is found out once. */
const kindIn = (kinds: Uint8Array, unit: number): number => {
  if (unit < 127) return stable
  if (kinds[unit] === unknown) kinds[unit] = kindOf(unit)
  return kinds[unit] ?? stable
}

const foldIn = (kinds: Uint8Array, unit: number): number => {
  const kind = kindIn(kinds, unit)
  return kind > complex ? kind : unit
}

/** A line that a place begins or ends in. */
interface Line {
  readonly start: number
  /** Where its content ends, before its LF or CRLF. */
  readonly end: number
  /** Of its normal form. */
  readonly length: number
  readonly pieces: Pieces | undefined
}

/** Where the pieces of a line that NFKC changes begin, before and after. */
interface Pieces {
  readonly original: ReadonlyArray<number>
  readonly folded: ReadonlyArray<number>
  /** Whether a piece is ASCII, of characters that each stay where they are. */
  readonly plain: ReadonlyArray<boolean>
}

/**
 * ASCII that nothing combines with, or a character and all that may combine with it: marks, and the letters of Hangul and
 * half-width kana that compose.
 */
const cluster = /([ -~\t]+)(?=[\0-~]|$)|[^](?:\p{M}|[\u1160-\u11ff\u3131-\u318e\uff9e-\uffdc])*/gu

const piecesOf = (line: string, composed: string): Pieces => {
  const original: Array<number> = []
  const folded: Array<number> = []
  const plain: Array<boolean> = []
  let from = 0
  let to = 0
  let joined = ""
  for (const [piece, ascii] of line.matchAll(cluster)) {
    const normal = piece.normalize("NFKC")
    original.push(from)
    folded.push(to)
    plain.push(ascii !== undefined)
    joined += normal
    from += piece.length
    to += normal.length
  }
  // Where pieces interact after all, the line is one piece.
  return joined === composed
    ? { original: [...original, from], folded: [...folded, to], plain }
    : { original: [0, line.length], folded: [0, composed.length], plain: [] }
}

const contentEnd = (text: string, start: number, newline: number): number =>
  newline === -1 ? text.length : newline > start && text.charCodeAt(newline - 1) === 13 ? newline - 1 : newline

const lineAt = (text: string, start: number, folds: boolean): Line => {
  const end = contentEnd(text, start, text.indexOf("\n", start))
  if (!folds) return { start, end, length: end - start, pieces: undefined }
  const raw = text.slice(start, end)
  const composed = compose(raw)
  const pieces = composed === raw ? undefined : piecesOf(raw, composed)
  return { start, end, length: trimBlanks(foldCharacters(composed)).length, pieces }
}

/** Where a place in a normal form comes from; `undefined` inside of what one character became. */
const toOriginal = (line: Line, offset: number): number | undefined => {
  if (line.pieces === undefined) return line.start + offset
  const { folded, original, plain } = line.pieces
  const index = countBelow(folded, offset)
  if (folded[index] === offset) return line.start + (original[index] ?? 0)
  return plain[index - 1] === true
    ? line.start + (original[index - 1] ?? 0) + offset - (folded[index - 1] ?? 0)
    : undefined
}

/** For each beginning of the pattern, the length of the longest shorter one that it ends with. */
const failuresOf = (wanted: Uint16Array): Int32Array => {
  const failures = new Int32Array(wanted.length)
  for (let at = 1, length = 0; at < wanted.length; at++) {
    while (length > 0 && wanted[at] !== wanted[length]) length = failures[length - 1] ?? 0
    if (wanted[at] === wanted[length]) length++
    failures[at] = length
  }
  return failures
}

/**
 * All places of a pattern that is not empty, in offsets of `text`; it stops after `limit` and one more.
 *
 * A place that begins or ends inside one folded character is none. With `toLineEnd` it must end where its line does,
 * blanks apart, and then takes those in. A place that begins with a newline leaves the blanks before that alone.
 */
export const search = (text: string, pattern: Pattern, limit: number): Found =>
  searchWith(text, pattern, automatonOf(pattern), limit)

interface Automaton {
  readonly wanted: Uint16Array
  readonly failures: Int32Array
  readonly kinds: Uint8Array
}

const automatonOf = ({ folds, text }: Pattern): Automaton => {
  const wanted = Uint16Array.from({ length: text.length }, (_, index) => text.charCodeAt(index))
  return { wanted, failures: failuresOf(wanted), kinds: new Uint8Array(0x10000).fill(folds ? unknown : stable) }
}

const searchWith = (
  text: string,
  { folds, text: sought, toLineEnd }: Pattern,
  { failures, kinds, wanted }: Automaton,
  limit: number
): Found => {
  const breaks = sought.split("\n").length - 1
  const firstLength = breaks === 0 ? sought.length : sought.indexOf("\n")
  /** Where the last lines start, as many as a place may reach back. */
  const starts = new Int32Array(breaks + 1)
  const ends: Ends = { text, folds, toLineEnd, breaks, firstLength, first: undefined, last: undefined }
  const spans: Array<Span> = []
  let ambiguous = false
  let state = 0
  /** Offsets in the normal form: of the line, and of the end of the last span. */
  let offset = 0
  let taken = 0
  let newline = -1
  /** The next unit that is not ASCII, and the next place of a pattern of one line where nothing folds. */
  const notAscii = /[^\0-~]/g
  let other = folds ? -1 : text.length
  let asItIs = -1
  for (let number = 0, start = 0; number === 0 || newline !== -1; number++, start = newline + 1) {
    newline = text.indexOf("\n", start)
    const end = contentEnd(text, start, newline)
    starts[number % starts.length] = start
    if (other < start) {
      notAscii.lastIndex = start
      other = notAscii.test(text) ? notAscii.lastIndex - 1 : text.length
    }
    let changes = false
    let line = text
    let from = start
    let to = end
    for (let at = other; at < end; at++) {
      const kind = kindIn(kinds, text.charCodeAt(at))
      if (kind === stable) continue
      changes = true
      if (kind !== complex) continue
      line = compose(text.slice(start, end))
      from = 0
      to = line.length
      break
    }
    while (folds && to > from && isBlank(foldIn(kinds, line.charCodeAt(to - 1)))) to--

    let at = from
    if (breaks === 0 && !changes) {
      if (asItIs < start) asItIs = indexOrEnd(text, sought, start)
      if (asItIs >= end) at = to
    } else if (breaks > 0 && state === 0) {
      // What is alive at the end of this line can only be the whole of the first line sought.
      state = endsWith(kinds, wanted, firstLength, line, from, to) ? firstLength : 0
      at = to
    }
    for (; at < to || at === to && newline !== -1; at++) {
      const unit = at === to ? 10 : foldIn(kinds, line.charCodeAt(at))
      while (state > 0 && wanted[state] !== unit) state = failures[state - 1] ?? 0
      if (wanted[state] === unit) state++
      if (state < wanted.length) continue
      state = failures[state - 1] ?? 0
      const reached = offset + at - from + 1
      const free = reached - wanted.length >= taken
      if (!free && ambiguous) continue
      const reachedLine = at === to ? number + 1 : number
      const origin = breaks === 0 ? start : starts[(reachedLine - breaks) % starts.length] ?? 0
      const place = at === to ? placeOf(ends, origin, newline + 1, 0) : placeOf(ends, origin, start, at - from + 1)
      if (place === undefined) continue
      ambiguous ||= spans.length > 0
      if (!free) continue
      spans.push(place)
      taken = reached
      if (spans.length > limit) return { spans, ambiguous }
    }
    offset += to - from + 1
  }
  return { spans, ambiguous }
}

/** What turns a match into a place. Lines are kept, because places come in order and a line may hold many. */
interface Ends {
  readonly text: string
  readonly folds: boolean
  readonly toLineEnd: boolean
  readonly breaks: number
  readonly firstLength: number
  first: Line | undefined
  last: Line | undefined
}

const placeOf = (ends: Ends, firstStart: number, lastStart: number, within: number): Span | undefined => {
  const { breaks, firstLength, folds, text, toLineEnd } = ends
  if (ends.last?.start !== lastStart) ends.last = lineAt(text, lastStart, folds)
  if (breaks === 0) ends.first = ends.last
  else if (ends.first?.start !== firstStart) ends.first = lineAt(text, firstStart, folds)
  const { first, last } = ends
  const start = firstLength === 0
    ? first.end
    : toOriginal(first, (breaks === 0 ? within : first.length) - firstLength)
  const end = !toLineEnd ? toOriginal(last, within) : within === last.length ? last.end : undefined
  return start === undefined || end === undefined ? undefined : { start, end }
}

const endsWith = (
  kinds: Uint8Array,
  wanted: Uint16Array,
  length: number,
  line: string,
  from: number,
  to: number
): boolean => {
  if (to - from < length) return false
  for (let back = 1; back <= length; back++) {
    if (foldIn(kinds, line.charCodeAt(to - back)) !== wanted[length - back]) return false
  }
  return true
}

const indexOrEnd = (text: string, sought: string, from: number): number => {
  const at = text.indexOf(sought, from)
  return at === -1 ? text.length : at
}

/** A text that is searched several times. */
export interface Subject {
  readonly text: string
  /** A place in each line that NFKC may change; `undefined` when those are many. Found out when first asked. */
  readonly complexLines: () => ReadonlyArray<number> | undefined
}

/** Lines that a search looks at around the places of a run; when there are more, it looks at all of the text. */
const maxLines = 4096
/** Shorter runs are too common to look for. */
const minRun = 4

export const subject = (text: string): Subject => {
  let known: { readonly lines: ReadonlyArray<number> | undefined } | undefined
  return { text, complexLines: () => (known ??= { lines: complexLinesOf(text) }).lines }
}

const complexLinesOf = (text: string): ReadonlyArray<number> | undefined => {
  const kinds = new Uint8Array(0x10000)
  const lines: Array<number> = []
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit < 127 || kindIn(kinds, unit) !== complex) continue
    lines.push(at)
    if (lines.length > maxLines) return undefined
    at = indexOrEnd(text, "\n", at)
  }
  return lines
}

/** The longest run of a pattern that is in every place of it as it is, in lines that NFKC leaves alone. */
const runOf = ({ folds, text }: Pattern): { readonly run: string; readonly line: number } => {
  let run = ""
  let line = 0
  for (const [index, each] of text.split("\n").entries()) {
    for (const part of folds ? each.split(/['"\-\s]/) : [each]) {
      if (part.length > run.length) [run, line] = [part, index]
    }
  }
  return { run, line }
}

/** The same as `search`, and faster where the pattern has a run of some length that is not everywhere. */
export const find = ({ complexLines, text }: Subject, pattern: Pattern, limit: number): Found => {
  const { line, run } = runOf(pattern)
  const others = run.length < minRun ? undefined : pattern.folds ? complexLines() : []
  if (others === undefined) return search(text, pattern, limit)
  const automaton = automatonOf(pattern)
  const breaks = pattern.text.split("\n").length - 1
  const spans: Array<Span> = []
  let ambiguous = false
  let looked = 0
  let other = 0
  let place = indexOrEnd(text, run, 0)
  const nextLine = (): number => Math.min(place, others[other] ?? text.length)
  for (let at = nextLine(); at < text.length && spans.length <= limit;) {
    const from = linesBack(text, at, line)
    let to = from
    // Together with the lines around every place that comes before those end.
    while (at < text.length && (to === from || linesBack(text, at, line) <= to)) {
      looked += breaks + 1
      if (looked > maxLines) return searchWith(text, pattern, automaton, limit)
      to = linesForth(text, at, breaks - line)
      const end = indexOrEnd(text, "\n", at)
      while ((others[other] ?? text.length) < end) other++
      if (place < end) place = indexOrEnd(text, run, end)
      at = nextLine()
    }
    const found = searchWith(text.slice(from, to), pattern, automaton, limit)
    ambiguous ||= found.ambiguous || found.spans.length > 0 && spans.length > 0
    for (const { end, start } of found.spans) spans.push({ start: from + start, end: from + end })
  }
  return { spans: spans.slice(0, limit + 1), ambiguous }
}

/** Where the line starts that is `count` lines before that of `at`. */
const linesBack = (text: string, at: number, count: number): number => {
  let start = at === 0 ? 0 : text.lastIndexOf("\n", at - 1) + 1
  for (let line = 0; line < count && start > 0; line++) start = start === 1 ? 0 : text.lastIndexOf("\n", start - 2) + 1
  return start
}

/** Where the content of the line ends that is `count` lines after that of `at`. */
const linesForth = (text: string, at: number, count: number): number => {
  let newline = text.indexOf("\n", at)
  for (let line = 0; line < count && newline !== -1; line++) newline = text.indexOf("\n", newline + 1)
  return newline > 0 && text.charCodeAt(newline - 1) === 13 ? newline - 1 : newline === -1 ? text.length : newline
}
