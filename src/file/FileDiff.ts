/**
 * What a change did to a file: a short diff for the model, and a patch that `git apply` takes.
 *
 * Where a change is known from the ranges of an edit no search for differences is needed; the diff library only makes one
 * replaced span minimal, by lines, and within limits.
 *
 * @since 0.1.0
 */
import { diffArrays } from "diff/lib/diff/array.js"
import { cut } from "../internal/lines.ts"
import type { Range } from "./EditMatcher.ts"
import { type Encoding, utf8 } from "./TextFile.ts"

export interface FileDiff {
  /** For the model: hunks without file names, at most about 200 lines and 32 KiB, long lines cut, line endings not shown. */
  readonly diff: string
  /**
   * Unified, byte-exact, what `git apply` takes from the primary root. `null` where no patch can say it: nothing changes,
   * an empty file comes or goes, the file is UTF-16, or its path is absolute, outside or in `.git`; and where
   * it would be over 256 KiB.
   */
  readonly patch: string | null
}

/** Lines of context. */
const context = 3
/** Lines that the diff shows. */
const maxLines = 200
/** UTF-16 units of a line that the diff shows, and of all its lines together, roughly. */
const maxLineLength = 430
const maxLength = 32 * 1024
/** UTF-8 bytes of a patch. */
const maxPatchBytes = 256 * 1024
/** UTF-16 units of a replaced span, old and new together, that are compared line by line. */
const maxCompared = 4 * 1024 * 1024
/** Line comparisons that a minimal diff of a span may take, roughly. */
const maxComparisons = 1_000_000

/** What replaces some text: offsets of the old text, ascending. */
type Replaced = Pick<Range, "start" | "end" | "text">

/** Whole lines in place of whole lines. */
interface Change {
  /** Of the old text; at the start of a line. */
  readonly start: number
  readonly end: number
  readonly text: string
}

interface Hunk {
  /** From 1, in the old and in the new text. */
  readonly oldLine: number
  readonly newLine: number
  oldCount: number
  newCount: number
  changes: number
  /** Whole lines with their endings, and what becomes of them. */
  readonly parts: Array<readonly [sign: " " | "-" | "+", text: string]>
}

/**
 * What the ranges of an edit did to the text `before`. A byte order mark is not part of `before`, `encoding` says whether
 * there is one. `path` is relative to the primary root.
 */
export const ofRanges = (
  path: string,
  before: string,
  ranges: ReadonlyArray<Replaced>,
  encoding: Encoding = utf8
): FileDiff => {
  const marked = encoding.charset === "utf-8" && encoding.bom
  const text = marked ? bom + before : before
  const moved = marked
    ? ranges.map(({ end, start, text }) => ({ start: start + bom.length, end: end + bom.length, text }))
    : ranges
  const hunks = hunksOf(text, blocksOf(text, moved).flatMap((block) => minimal(text, block)))
  return { diff: shown(hunks), patch: patchOf(path, path, hunks, encoding) }
}

/** A whole text in place of another; `undefined` is a file that is not there. */
export const between = (
  path: string,
  before: string | undefined,
  after: string | undefined,
  encoding: Encoding = utf8
): FileDiff => {
  const mark = encoding.charset === "utf-8" && encoding.bom ? bom : ""
  const old = before === undefined ? "" : mark + before
  const text = after === undefined ? "" : mark + after
  const hunks = hunksOf(old, minimal(old, { start: 0, end: old.length, text }))
  const name = (side: string | undefined) => side === undefined ? undefined : path
  return { diff: shown(hunks), patch: patchOf(name(before), name(after), hunks, encoding) }
}

const bom = "\ufeff"

const lineStart = (text: string, offset: number): number => offset === 0 ? 0 : text.lastIndexOf("\n", offset - 1) + 1

const lineEnd = (text: string, offset: number): number => {
  const newline = text.indexOf("\n", offset)
  return newline === -1 ? text.length : newline + 1
}

const countNewlines = (text: string, from: number, to: number): number => {
  let count = 0
  for (let at = text.indexOf("\n", from); at !== -1 && at < to; at = text.indexOf("\n", at + 1)) count++
  return count
}

const countLines = (text: string): number =>
  countNewlines(text, 0, text.length) + (text === "" || text.endsWith("\n") ? 0 : 1)

/** The lines that the ranges touch, one block for those that share a line. */
const blocksOf = (text: string, ranges: ReadonlyArray<Replaced>): ReadonlyArray<Change> => {
  const blocks: Array<Change> = []
  for (let index = 0; index < ranges.length;) {
    const first = index
    const start = lineStart(text, ranges[first]?.start ?? 0)
    let at = start
    let end = start
    let block = ""
    for (let range = ranges[index]; range !== undefined; range = ranges[++index]) {
      if (index > first && range.start >= end && end < text.length) break
      block += text.slice(at, range.start) + range.text
      at = range.end
      if (at >= end && end < text.length) end = lineEnd(text, at)
    }
    blocks.push({ start, end, text: block + text.slice(at, end) })
  }
  return blocks
}

/** The changes in a block: without the lines that both sides begin and end with, and minimal when that is cheap. */
const minimal = (text: string, block: Change): ReadonlyArray<Change> => {
  const old = text.slice(block.start, block.end)
  const shorter = Math.min(old.length, block.text.length)
  let same = 0
  while (same < shorter && old.charCodeAt(same) === block.text.charCodeAt(same)) same++
  if (same === old.length && same === block.text.length) return []
  const head = lineStart(old, same)
  let tail = 0
  while (
    tail < shorter - head &&
    old.charCodeAt(old.length - 1 - tail) === block.text.charCodeAt(block.text.length - 1 - tail)
  ) tail++
  const begins = (side: string): boolean =>
    side.length - tail === head || side.charCodeAt(side.length - tail - 1) === 10
  if (!begins(old) || !begins(block.text)) tail = old.length - lineEnd(old, old.length - tail)
  const change = {
    start: block.start + head,
    end: block.end - tail,
    text: block.text.slice(head, block.text.length - tail)
  }
  return compared(old.slice(head, old.length - tail), change)
}

const compared = (old: string, change: Change): ReadonlyArray<Change> => {
  if (old === "" || change.text === "" || old.length + change.text.length > maxCompared) return [change]
  const numbers = new Map<string, number>()
  // Numbers compare faster than lines, however long those are.
  const numbered = (lines: ReadonlyArray<string>): Array<number> =>
    lines.map((line) => {
      const number = numbers.get(line) ?? numbers.size
      numbers.set(line, number)
      return number
    })
  const before = linesOf(old)
  const after = linesOf(change.text)
  const parts = diffArrays(numbered(before), numbered(after), {
    maxEditLength: Math.ceil(maxComparisons / (before.length + after.length))
  })
  if (parts === undefined) return [change]
  const changes: Array<Change> = []
  let start = change.start
  let [oldAt, newAt] = [0, 0]
  let removed = ""
  let added = ""
  const flush = (): void => {
    if (removed !== "" || added !== "") changes.push({ start, end: start + removed.length, text: added })
    start += removed.length
    removed = ""
    added = ""
  }
  for (const part of parts) {
    if (part.added) added += after.slice(newAt, newAt += part.count).join("")
    else if (part.removed) removed += before.slice(oldAt, oldAt += part.count).join("")
    else {
      flush()
      start += before.slice(oldAt, oldAt += part.count).join("").length
      newAt += part.count
    }
  }
  flush()
  return changes
}

/** Lines with their newlines. */
const linesOf = (text: string): ReadonlyArray<string> => text.match(/[^\n]*\n|[^\n]+$/g) ?? []

const hunksOf = (text: string, changes: ReadonlyArray<Change>): ReadonlyArray<Hunk> => {
  const hunks: Array<Hunk> = []
  let counted = 0
  let line = 1
  let shift = 0
  for (let index = 0; index < changes.length;) {
    let at = changes[index]?.start ?? 0
    for (let back = 0; back < context; back++) at = lineStart(text, Math.max(at - 1, 0))
    line += countNewlines(text, counted, at)
    counted = at
    const hunk: Hunk = { oldLine: line, newLine: line + shift, oldCount: 0, newCount: 0, changes: 0, parts: [] }
    const add = (sign: " " | "-" | "+", part: string): void => {
      if (part === "") return
      const count = countLines(part)
      if (sign !== "+") hunk.oldCount += count
      if (sign !== "-") hunk.newCount += count
      hunk.parts.push([sign, part])
    }
    let end = at
    for (let change = changes[index]; change !== undefined; change = changes[++index]) {
      let lead = change.start
      for (let back = 0; back < context && lead > end; back++) lead = lineStart(text, lead - 1)
      if (hunk.changes > 0 && lead > end) break
      add(" ", text.slice(at, change.start))
      add("-", text.slice(change.start, change.end))
      add("+", change.text)
      hunk.changes++
      at = end = change.end
      for (let forth = 0; forth < context; forth++) end = lineEnd(text, end)
    }
    add(" ", text.slice(at, end))
    shift += hunk.newCount - hunk.oldCount
    hunks.push(hunk)
  }
  return hunks
}

const header = ({ newCount, newLine, oldCount, oldLine }: Hunk): string => {
  const side = (line: number, count: number): string => `${count === 0 ? line - 1 : line},${count}`
  return `@@ -${side(oldLine, oldCount)} +${side(newLine, newCount)} @@`
}

const noNewline = "\\ No newline at end of file"

const shown = (hunks: ReadonlyArray<Hunk>): string => {
  const out: Array<string> = []
  let length = 0
  for (const [index, hunk] of hunks.entries()) {
    if (out.length >= maxLines || length >= maxLength) {
      out.push(`… ${hunks.slice(index).reduce((sum, { changes }) => sum + changes, 0)} more changes`)
      break
    }
    out.push(header(hunk))
    let skipped = 0
    for (const [sign, part] of hunk.parts) {
      // No part takes more than half of what is left, so that what comes is shown beside what goes.
      const lines = out.length + Math.ceil((maxLines - out.length) / 2)
      const units = length + Math.ceil((maxLength - length) / 2)
      let at = 0
      for (; skipped === 0 && at < part.length && out.length < lines && length < units; at = lineEnd(part, at)) {
        const line = part.slice(at, lineEnd(part, at)).replace(/^\ufeff/, "").replace(/\r?\n$/, "")
        out.push(sign + cut(line, maxLineLength))
        length += Math.min(line.length, maxLineLength)
      }
      if (out.length >= maxLines || length >= maxLength) skipped += countLines(part.slice(at))
      else if (at < part.length) out.push(`… ${countLines(part.slice(at))} more lines`)
      else if (!part.endsWith("\n")) out.push(noNewline)
    }
    if (skipped > 0) out.push(`… ${skipped} more lines`)
  }
  return out.join("\n")
}

const patchOf = (
  from: string | undefined,
  to: string | undefined,
  hunks: ReadonlyArray<Hunk>,
  encoding: Encoding
): string | null => {
  const path = from ?? to ?? ""
  if (hunks.length === 0 || encoding.charset !== "utf-8" || !isTaken(path)) return null
  let out = `--- ${from === undefined ? "/dev/null" : named(`a/${from}`)}\n`
  out += `+++ ${to === undefined ? "/dev/null" : named(`b/${to}`)}\n`
  for (const hunk of hunks) {
    out += `${header(hunk)}\n`
    for (const [sign, part] of hunk.parts) {
      if (out.length + part.length > maxPatchBytes) return null
      const finished = part.endsWith("\n")
      out += sign + (finished ? part.slice(0, -1) : part).replaceAll("\n", `\n${sign}`)
      out += finished ? "\n" : `\n${noNewline}\n`
    }
  }
  return new TextEncoder().encode(out).length > maxPatchBytes ? null : out
}

/** Git takes no path that is absolute, leads outside, or is in `.git`. */
const isTaken = (path: string): boolean =>
  path.isWellFormed() && !path.includes("\0") && path.split("/").every((name) => !/^(?:\.{0,2}|\.git)$/i.test(name))

const escapes: Readonly<Record<string, string>> = {
  "\x07": "\\a",
  "\b": "\\b",
  "\t": "\\t",
  "\n": "\\n",
  "\v": "\\v",
  "\f": "\\f",
  "\r": "\\r",
  "\"": "\\\"",
  "\\": "\\\\"
}

/** As git writes names: in C quotes when it must be, else with a tab after it when it holds a space. */
const named = (name: string): string => {
  if (!/[^ !#-[\]-~]/.test(name)) return name.includes(" ") ? `${name}\t` : name
  const octal = (character: string): string =>
    [...new TextEncoder().encode(character)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("")
  const quoted = name.replace(/[^ !#-[\]-~]/gu, (character) => escapes[character] ?? octal(character))
  return `"${quoted}"`
}
