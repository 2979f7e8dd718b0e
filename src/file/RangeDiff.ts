/**
 * A small unified diff drawn from the ranges that an edit reports; no search for differences is needed.
 *
 * @since 0.1.0
 */
import { countBelow, cut, lineStart, newlines } from "../internal/lines.ts"
import type { Range } from "./EditMatcher.ts"

const context = 3
const maxLines = 200
const maxLineLength = 400

/** Hunks with three lines of context; after about 200 lines it says how many more changes there are. */
export const unified = (text: string, ranges: ReadonlyArray<Range>): string => {
  const breaks = newlines(text)
  const out: Array<string> = []
  let shift = 0
  let index = 0
  while (index < ranges.length) {
    const from = ranges[index]
    if (from === undefined) break
    if (out.length >= maxLines) {
      out.push(`… ${ranges.length - index} more changes`)
      break
    }
    const firstLine = Math.max(countBelow(breaks, from.start) - context, 0)
    const start = lineStart(breaks, firstLine)
    let lastLine = firstLine
    let at = start
    let block = ""
    for (let next: Range | undefined = from; next !== undefined; next = ranges[index]) {
      if (at !== start && countBelow(breaks, next.start) - context > lastLine) break
      block += text.slice(at, next.start) + next.text
      at = next.end
      lastLine = countBelow(breaks, next.end) + context
      index++
    }
    const end = endOfLine(text, breaks, lastLine)
    const before = split(text.slice(start, end))
    const after = split(block + text.slice(at, end))
    hunk(out, before, after, firstLine + 1, shift)
    shift += after.length - before.length
  }
  return out.join("\n")
}

const endOfLine = (text: string, breaks: ReadonlyArray<number>, line: number): number => {
  const at = breaks[line]
  return at === undefined ? text.length : at + 1
}

const split = (block: string): ReadonlyArray<string> => {
  const lines = block.split("\n").map((line) => line.endsWith("\r") ? line.slice(0, -1) : line)
  const last = lines.pop() ?? ""
  return last === "" ? lines : [...lines, `${cut(last, maxLineLength)}\n\\ No newline at end of file`]
}

const hunk = (
  out: Array<string>,
  before: ReadonlyArray<string>,
  after: ReadonlyArray<string>,
  line: number,
  shift: number
): void => {
  const shorter = Math.min(before.length, after.length)
  let head = 0
  while (head < shorter && before[head] === after[head]) head++
  let tail = 0
  while (tail < shorter - head && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++
  if (head === before.length && head === after.length) return
  const skipped = Math.max(head - context, 0)
  const kept = Math.min(tail, context)
  const span = (lines: ReadonlyArray<string>, offset: number): string => {
    const length = lines.length - skipped - (tail - kept)
    const first = line + skipped + offset
    return `${length === 0 ? first - 1 : first},${length}`
  }
  out.push(`@@ -${span(before, 0)} +${span(after, shift)} @@`)
  const add = (sign: string, lines: ReadonlyArray<string>): void => {
    for (const each of lines.slice(0, maxLines)) out.push(sign + cut(each, maxLineLength + 30))
    if (lines.length > maxLines) out.push(`… ${lines.length - maxLines} more lines`)
  }
  add(" ", before.slice(skipped, head))
  add("-", before.slice(head, before.length - tail))
  add("+", after.slice(head, after.length - tail))
  add(" ", before.slice(before.length - tail, before.length - tail + kept))
}
