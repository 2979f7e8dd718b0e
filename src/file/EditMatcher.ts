/**
 * Where the old text of an edit is, and what the file is after all edits (seed 4.4; decisions, Files).
 *
 * Exact first, line endings folded on both sides; else five normalisations: NFKC, trailing blanks, quotes, dashes,
 * spaces. Whatever matched, only the matched span is replaced: everything outside the reported ranges stays as it was.
 * All edits are located on the original text, and either all of them apply or none. Pure; linear in the text for each
 * edit.
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import { countBelow, foldCrlf, newlines } from "../internal/lines.ts"
import { type EditCode, type FileError, fileError } from "./FileError.ts"
import { normalize, type Normalized, pattern } from "./Normalized.ts"

export interface Edit {
  /** Where it is; a leading byte order mark is not part of it. */
  readonly oldText: string
  /** Written literally, line endings apart. */
  readonly newText: string
  /** Every occurrence. Default `false`: exactly one must be there. */
  readonly replaceAll?: boolean
}

export type Strategy = "exact" | "normalized"

/** One replaced span: offsets are UTF-16 units of the original text, lines count from 1 in the edited text. */
export interface Range {
  readonly start: number
  readonly end: number
  /** What is there now. */
  readonly text: string
  readonly startLine: number
  readonly endLine: number
}

export interface Edited {
  readonly text: string
  /** `normalized` as soon as one edit needed it. */
  readonly strategy: Strategy
  /** Ascending, without overlap. */
  readonly ranges: ReadonlyArray<Range>
  readonly firstChangedLine: number
}

export interface Options {
  /** No normalisations. Default `false`. */
  readonly exactOnly?: boolean
}

/** Occurrences that one edit may replace; more are refused. */
const maxMatches = 10_000
/** UTF-16 units that all replacements together may bring. */
const maxReplaced = 16 * 1024 * 1024
/** Longer texts, in UTF-16 units, are matched exactly only. */
const maxNormalizedLength = 2_000_000

interface Span {
  readonly start: number
  readonly end: number
}

interface Located {
  readonly strategy: Strategy
  /** In the text with CRLF folded; ascending, without overlap. */
  readonly spans: ReadonlyArray<Span>
  /** There is more than one place, be it that two overlap. */
  readonly ambiguous: boolean
}

/** The text as edits see it: CRLF folded, with the way back. */
interface Source {
  readonly text: string
  readonly folded: string
  /** Offsets of the newlines in `folded`. */
  readonly breaks: ReadonlyArray<number>
  /** How many of the first `i` newlines were CRLF; `undefined` when none is. */
  readonly crlfs: ReadonlyArray<number> | undefined
  normalized: Normalized | undefined
}

const sourceOf = (text: string): Source => {
  const breaks = newlines(text)
  if (!text.includes("\r\n")) return { text, folded: text, breaks, crlfs: undefined, normalized: undefined }
  const crlfs = [0]
  let count = 0
  const moved = breaks.map((at) => {
    if (text.charCodeAt(at - 1) === 13) count++
    crlfs.push(count)
    return at - count
  })
  return { text, folded: foldCrlf(text), breaks: moved, crlfs, normalized: undefined }
}

const toOriginal = (source: Source, offset: number): number =>
  source.crlfs === undefined ? offset : offset + (source.crlfs[countBelow(source.breaks, offset)] ?? 0)

const lineOf = (source: Source, offset: number): number => countBelow(source.breaks, offset) + 1

export const withoutBom = (text: string): string => text.replace(/^\ufeff+/, "")

/** All places of `needle` that `accept` lets pass. */
const occurrences = (
  haystack: string,
  needle: string,
  accept: (start: number) => Span | undefined
): { readonly spans: ReadonlyArray<Span>; readonly ambiguous: boolean } => {
  const spans: Array<Span> = []
  let rejected = 0
  let first = -1
  let at = haystack.indexOf(needle)
  while (at !== -1 && spans.length <= maxMatches && rejected <= maxMatches) {
    const span = accept(at)
    if (span === undefined) rejected++
    else {
      if (spans.length === 0) first = at
      spans.push(span)
    }
    at = haystack.indexOf(needle, at + (span === undefined ? 1 : needle.length))
  }
  const again = spans.length === 1 ? haystack.indexOf(needle, first + 1) : -1
  return { spans, ambiguous: spans.length > 1 || (again !== -1 && accept(again) !== undefined) }
}

const locateIn = (source: Source, oldText: string, options: Options): Located => {
  const needle = foldCrlf(withoutBom(oldText))
  const exact = occurrences(source.folded, needle, (start) => ({ start, end: start + needle.length }))
  if (exact.spans.length > 0 || options.exactOnly === true || source.folded.length > maxNormalizedLength) {
    return { strategy: "exact", ...exact }
  }
  const wanted = pattern(needle)
  if (wanted.text.trim() === "") return { strategy: "exact", ...exact }
  source.normalized ??= normalize(source.folded, source.breaks)
  const normalized = source.normalized
  return {
    strategy: "normalized",
    ...occurrences(
      normalized.text,
      wanted.text,
      (start) => normalized.span(start, start + wanted.text.length, wanted.toLineEnd)
    )
  }
}

/** Whether each of `quotes` matches in exactly one place. */
export const eachOnce = (text: string, quotes: ReadonlyArray<string>, options: Options = {}): boolean => {
  const source = sourceOf(text)
  return quotes.every((quote) => {
    if (withoutBom(quote) === "") return false
    const located = locateIn(source, quote, options)
    return located.spans.length === 1 && !located.ambiguous
  })
}

/** The line ending after the line that holds newline number `index`, or the closest one before it. */
const endingAt = (source: Source, index: number): string => {
  const at = Math.min(index, source.breaks.length - 1)
  return at >= 0 && (source.crlfs?.[at + 1] ?? 0) > (source.crlfs?.[at] ?? 0) ? "\r\n" : "\n"
}

/**
 * `replacement` with the endings of the lines it replaces. Lines equal at the head or the tail keep their own ending, a
 * line in the place of another takes over that one's, an added line takes that of the line it follows.
 */
const withEndings = (source: Source, span: Span, replacement: string): string => {
  if (source.crlfs === undefined || !replacement.includes("\n")) return replacement
  const before = source.folded.slice(span.start, span.end).split("\n")
  const after = replacement.split("\n")
  const shorter = Math.min(before.length, after.length)
  let head = 0
  while (head < shorter && before[head] === after[head]) head++
  let tail = 0
  while (tail < shorter - head && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++
  const firstBreak = countBelow(source.breaks, span.start)
  let ending = endingAt(source, Math.max(firstBreak - 1, 0))
  let out = ""
  for (let index = 0; index < after.length; index++) {
    const counterpart = index >= after.length - tail
      ? index - after.length + before.length
      : index < before.length - tail
      ? index
      : undefined
    if (counterpart !== undefined) ending = endingAt(source, firstBreak + counterpart)
    out += (after[index] ?? "") + (index === after.length - 1 ? "" : ending)
  }
  return out
}

/**
 * A whole new text in place of an old one: line endings are kept as in an edit, unless the new text brings CRLFs of its
 * own.
 */
export const rewrite = (oldText: string, newText: string): string =>
  newText.includes("\r\n")
    ? newText
    : withEndings(sourceOf(oldText), { start: 0, end: foldCrlf(oldText).length }, newText)

/** Applies all edits, or says what keeps it from doing so. */
export const apply = (
  text: string,
  edits: ReadonlyArray<Edit>,
  options: Options = {}
): Either.Either<Edited, FileError<EditCode>> => {
  if (edits.length === 0) return Either.left(fileError("edit_invalid", "There is no edit."))
  const source = sourceOf(text)
  const found: Array<Span & { readonly index: number; readonly replacement: string }> = []
  let strategy: Strategy = "exact"
  let replaced = 0
  for (const [index, edit] of edits.entries()) {
    if (withoutBom(edit.oldText) === "") {
      return Either.left(
        fileError("edit_invalid", `Edit ${index} has no old text. To write a whole file, call write.`, { index })
      )
    }
    const located = locateIn(source, edit.oldText, options)
    const problem = problemOf(source, edit, index, located)
    if (problem !== undefined) return Either.left(problem)
    if (located.strategy === "normalized") strategy = "normalized"
    const replacement = foldCrlf(withoutBom(edit.newText))
    replaced += replacement.length * located.spans.length
    if (replaced > maxReplaced) {
      return Either.left(fileError("edit_invalid", `Edit ${index} would make the file too large.`, { index }))
    }
    for (const span of located.spans) {
      found.push({ ...span, index, replacement: withEndings(source, span, replacement) })
    }
  }
  found.sort((left, right) => left.start - right.start || left.end - right.end)

  const ranges: Array<Range> = []
  let out = ""
  let last = 0
  let shift = 0
  let firstChangedLine: number | undefined
  for (const [position, span] of found.entries()) {
    const previous = found[position - 1]
    if (previous !== undefined && span.start < previous.end) {
      const indexes = [previous.index, span.index]
      return Either.left(
        fileError("edit_overlap", `Edits ${indexes.join(" and ")} overlap. Merge them into one.`, { indexes })
      )
    }
    const start = toOriginal(source, span.start)
    const end = toOriginal(source, span.end)
    const old = text.slice(start, end)
    const startLine = lineOf(source, span.start) + shift
    const added = newlines(span.replacement).length
    ranges.push({ start, end, text: span.replacement, startLine, endLine: startLine + added })
    if (old !== span.replacement) firstChangedLine ??= startLine + newlines(commonHead(old, span.replacement)).length
    shift += added - newlines(old).length
    out += text.slice(last, start) + span.replacement
    last = end
  }
  return firstChangedLine === undefined
    ? Either.left(fileError("edit_no_change", "The new text is the old text: nothing would change."))
    : Either.right({ text: out + text.slice(last), strategy, ranges, firstChangedLine })
}

const commonHead = (left: string, right: string): string => {
  let length = 0
  while (length < left.length && left.charCodeAt(length) === right.charCodeAt(length)) length++
  return left.slice(0, length)
}

const problemOf = (
  source: Source,
  edit: Edit,
  index: number,
  located: Located
): FileError<EditCode> | undefined => {
  if (located.spans.length === 0) return notFound(source, edit, index)
  if (located.spans.length > maxMatches) {
    return fileError("edit_invalid", `The old text of edit ${index} is there more than ${maxMatches} times.`, { index })
  }
  if (edit.replaceAll === true || !located.ambiguous) return undefined
  const times = Math.max(located.spans.length, 2)
  return fileError(
    "edit_ambiguous",
    `The old text of edit ${index} is there ${times} times. Add the lines around it, or set replaceAll.`,
    { index, count: times, lines: located.spans.slice(0, 20).map((span) => lineOf(source, span.start)) }
  )
}

/** Names the place that differs in blanks only, or that holds the longest line of the old text; never what is there. */
const notFound = (source: Source, edit: Edit, index: number): FileError<"edit_not_found"> => {
  const base = `The old text of edit ${index} is not in the file`
  if (source.folded.length > maxNormalizedLength) return fileError("edit_not_found", `${base}.`, { index })
  const squeezed = squeeze(source.folded)
  const wanted = squeeze(foldCrlf(edit.oldText)).replace(/^\n+/, "")
  const whole = wanted === "" ? -1 : squeezed.indexOf(wanted)
  const longest = wanted.split("\n").reduce((best, line) => line.length > best.length ? line : best, "")
  const at = whole !== -1 ? whole : longest.length < 4 ? -1 : squeezed.indexOf(longest)
  if (at === -1) {
    return fileError("edit_not_found", `${base}. Read the file again and copy the text from it.`, { index })
  }
  const line = countBelow(newlines(squeezed), at) + 1
  return whole !== -1
    ? fileError("edit_not_found", `${base}: at line ${line} only whitespace differs. Copy it from the file as it is.`, {
      index,
      nearestLine: line,
      difference: "whitespace"
    })
    : fileError("edit_not_found", `${base}. The nearest place is around line ${line}; read it again.`, {
      index,
      nearestLine: line
    })
}

const squeeze = (text: string): string => text.replace(/[^\S\n]+/g, "")
