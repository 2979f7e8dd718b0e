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
import { foldCrlf } from "../internal/lines.ts"
import { type EditCode, type FileError, fileError } from "./FileError.ts"
import { find, type Found, normalized, type Span, type Subject, subject, verbatim } from "./Normalized.ts"

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
const maxNormalizedLength = 16 * 1024 * 1024

/** In longer texts, in UTF-16 units, the place nearest to an old text that is not there is looked for by one line only. */
const maxSqueezed = 1024 * 1024

interface Located extends Found {
  readonly strategy: Strategy
}

interface Source extends Subject {
  readonly hasCrlf: boolean
}

const sourceOf = (text: string): Source => ({ ...subject(text), hasCrlf: text.includes("\r\n") })

export const withoutBom = (text: string): string => text.replace(/^\ufeff+/, "")

const occurrences = (text: string, needle: string, accept?: (end: number) => boolean): Found => {
  const spans: Array<Span> = []
  let ambiguous = false
  let free = 0
  for (let at = text.indexOf(needle); at !== -1 && spans.length <= maxMatches;) {
    const end = at + needle.length
    const accepted = accept === undefined || accept(end)
    if (accepted) {
      ambiguous ||= spans.length > 0
      if (at >= free) {
        spans.push({ start: at, end })
        free = end
      }
    }
    at = text.indexOf(needle, accepted && ambiguous ? free : at + 1)
  }
  return { spans, ambiguous }
}

const exactly = (source: Source, needle: string): Found => {
  const { hasCrlf, text } = source
  if (hasCrlf && needle.includes("\n")) return find(source, verbatim(needle), maxMatches)
  // The CR of a CRLF belongs to a newline.
  return hasCrlf && needle.endsWith("\r")
    ? occurrences(text, needle, (end) => text.charCodeAt(end) !== 10)
    : occurrences(text, needle)
}

const locateIn = (source: Source, oldText: string, options: Options): Located => {
  const needle = foldCrlf(withoutBom(oldText))
  const exact = exactly(source, needle)
  if (exact.spans.length > 0 || options.exactOnly === true || source.text.length > maxNormalizedLength) {
    return { strategy: "exact", ...exact }
  }
  const wanted = normalized(needle)
  return wanted.text.trim() === ""
    ? { strategy: "exact", ...exact }
    : { strategy: "normalized", ...find(source, wanted, maxMatches) }
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

/** Where an offset is among the lines of a text. */
interface Position {
  /** From 1. */
  readonly line: number
  /** The closest newlines before it, and at it or after it; -1 when there is none. */
  readonly before: number
  readonly after: number
}

/** Answers for ascending offsets, in one walk over the text. */
const walk = (text: string): (offset: number) => Position => {
  let line = 1
  let before = -1
  let after = text.indexOf("\n")
  return (offset) => {
    while (after !== -1 && after < offset) {
      line++
      before = after
      after = text.indexOf("\n", after + 1)
    }
    return { line, before, after }
  }
}

/** How many newlines a text holds. */
const breaksIn = (text: string): number => walk(text)(text.length).line - 1

/**
 * `replacement` with the endings of the lines it replaces. Lines equal at the head or the tail keep their own ending, a
 * line in the place of another takes over that one's, an added line takes that of the line it follows.
 */
const withEndings = (text: string, span: Span, from: Position, to: Position, replacement: string): string => {
  if (!replacement.includes("\n")) return replacement
  const isCrlf = (newline: number): boolean => newline > 0 && text.charCodeAt(newline - 1) === 13
  const old = text.slice(span.start, span.end).split("\n")
  const last = old.length - 1
  const crlfs = old.map((line, index) =>
    index < last ? line.endsWith("\r") : isCrlf(to.after === -1 ? to.before : to.after)
  )
  const before = old.map((line, index) => index < last && crlfs[index] === true ? line.slice(0, -1) : line)
  const after = replacement.split("\n")
  const shorter = Math.min(before.length, after.length)
  let head = 0
  while (head < shorter && before[head] === after[head]) head++
  let tail = 0
  while (tail < shorter - head && before[last - tail] === after[after.length - 1 - tail]) tail++
  let crlf = isCrlf(from.before === -1 ? from.after : from.before)
  let out = ""
  for (const [index, line] of after.entries()) {
    if (index >= after.length - tail) crlf = crlfs[index - after.length + before.length] ?? crlf
    else if (index < before.length - tail) crlf = crlfs[index] ?? crlf
    out += line + (index === after.length - 1 ? "" : crlf ? "\r\n" : "\n")
  }
  return out
}

/**
 * A whole new text in place of an old one: line endings are kept as in an edit, unless the new text brings CRLFs of its
 * own.
 */
export const rewrite = (oldText: string, newText: string): string => {
  if (newText.includes("\r\n") || !oldText.includes("\r\n")) return newText
  const end = oldText.length
  const position = walk(oldText)
  return withEndings(oldText, { start: 0, end }, position(0), position(end), newText)
}

/** Applies all edits, or says what keeps it from doing so. */
export const apply = (
  text: string,
  edits: ReadonlyArray<Edit>,
  options: Options = {}
): Either.Either<Edited, FileError<EditCode>> => {
  if (edits.length === 0) return Either.left(fileError("edit_invalid", "There is no edit."))
  const source = sourceOf(text)
  const found: Array<Span & { readonly index: number; readonly added: string }> = []
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
    for (const span of located.spans) found.push({ ...span, index, added: replacement })
  }
  found.sort((left, right) => left.start - right.start || left.end - right.end)

  const ranges: Array<Range> = []
  const position = walk(text)
  let out = ""
  let last = 0
  let shift = 0
  let firstChangedLine: number | undefined
  for (const [at, span] of found.entries()) {
    const { added, end, index, start } = span
    const previous = found[at - 1]
    if (previous !== undefined && start < previous.end) {
      const indexes = [previous.index, index]
      return Either.left(
        fileError("edit_overlap", `Edits ${indexes.join(" and ")} overlap. Merge them into one.`, { indexes })
      )
    }
    const from = position(start)
    const to = position(end)
    const replacement = source.hasCrlf ? withEndings(text, span, from, to, added) : added
    const old = text.slice(start, end)
    const startLine = from.line + shift
    const lines = breaksIn(replacement)
    // What ends with a newline does not reach into the line after that.
    const endLine = startLine + (lines > 0 && replacement.endsWith("\n") ? lines - 1 : lines)
    ranges.push({ start, end, text: replacement, startLine, endLine })
    if (old !== replacement) firstChangedLine ??= startLine + breaksIn(commonHead(old, replacement))
    shift += lines - (to.line - from.line)
    out += text.slice(last, start) + replacement
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
  const position = walk(source.text)
  return fileError(
    "edit_ambiguous",
    `The old text of edit ${index} is there ${times} times. Add the lines around it, or set replaceAll.`,
    { index, count: times, lines: located.spans.slice(0, 20).map(({ start }) => position(start).line) }
  )
}

/** Names the place that differs in blanks only, or that holds the longest line of the old text; never what is there. */
const notFound = (source: Source, edit: Edit, index: number): FileError<"edit_not_found"> => {
  const base = `The old text of edit ${index} is not in the file`
  const folds = source.text.length <= maxSqueezed
  const searched = folds ? squeeze(source.text) : source.text
  const wanted = folds ? squeeze(edit.oldText).replace(/^\n+/, "") : edit.oldText
  const whole = !folds || wanted === "" ? -1 : searched.indexOf(wanted)
  const longest = wanted.split("\n").reduce((best, line) => line.trim().length > best.length ? line.trim() : best, "")
  const at = whole !== -1 ? whole : longest.length < 4 ? -1 : searched.indexOf(longest)
  if (at === -1) {
    return fileError("edit_not_found", `${base}. Read the file again and copy the text from it.`, { index })
  }
  const line = walk(searched)(at).line
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
