/** Matching lines with what is around them, from whoever finds them. */
import { escapeControls } from "../../process/OutputAccumulator.ts"
import type { Against, Side } from "./page.ts"
import type { Place } from "./root.ts"

const maxShown = 500
/** Of a line that is shown or searched; a longer one is left out and counted. */
export const maxLine = 4 * 1024 * 1024

export interface Query {
  readonly pattern: string
  readonly literal: boolean
  readonly ignoreCase: boolean
  readonly context: number
  /** No file can give more than this to the page. */
  readonly maxCount: number
  /** The last segment that file names must fit, where that is plain enough for ripgrep to look at. */
  readonly name: string | undefined
}

/** A line that matches or is beside one. */
export interface Line {
  readonly number: number
  /** With or without its ending. */
  readonly text: string
  /** Characters before the first match; `undefined` when only another line matches. */
  readonly start: number | undefined
}

/** Takes files one after another, each with its lines in order. */
export interface Sink {
  /** Where a file lies of which only the name is known, when none of its lines are wanted. */
  readonly side: (against: Against) => Side | undefined
  /** A match lies beyond the page. */
  readonly passed: () => void
  /** Whether the lines of this file are wanted. */
  readonly file: (place: Place) => boolean
  readonly line: (line: Line) => void
  /** A line of this file is left out for its length. */
  readonly oversized: () => void
  /** How much of the page is there, when files come in order; 1 and more when it is complete. */
  readonly progress: () => number
  /** How many pages at least there are to come, in whatever order files are told. */
  readonly pages: () => number
}

export const characters = (value: string): number => {
  let count = 0
  for (const _ of value) count++
  return count
}

/** Up to 500 characters of the line, without its ending, among them the one at `from`; counts what is missing. */
const show = (raw: string, from = 0): string => {
  const line = raw.replace(/\r?\n?$/, "")
  if (line.length <= maxShown) return escapeControls(line)
  const total = characters(line)
  const start = from < maxShown ? 0 : Math.min(from - maxShown / 5, Math.max(0, total - maxShown))
  let shown = ""
  let position = 0
  for (const character of line) {
    if (position >= start + maxShown) break
    if (position++ >= start) shown += character
  }
  const rest = Math.max(0, total - start - maxShown)
  return (start > 0 ? `[+${start} characters]…` : "") + escapeControls(shown) +
    (rest > 0 ? `…[+${rest} characters]` : "")
}

export interface Hit {
  readonly line: number
  readonly column: number
  readonly text: string
  readonly before: ReadonlyArray<string>
  readonly after: Array<string>
}

/** Gives each match of one file the lines around it. */
export const assemble = (context: number, onHit: (hit: Hit) => void) => {
  let last = 0
  let recent: ReadonlyArray<string> = []
  let open: ReadonlyArray<Hit> = []
  return ({ number, start, text }: Line): void => {
    if (number !== last + 1) {
      recent = []
      open = []
    }
    last = number
    const shown = context > 0 ? show(text) : ""
    open = open.filter(({ line }) => number - line <= context)
    for (const { after } of open) after.push(shown)
    if (start !== undefined) {
      const hit: Hit = { line: number, column: start + 1, text: show(text, start), before: recent, after: [] }
      if (context > 0) open = [...open, hit]
      onHit(hit)
    }
    if (context > 0) recent = [...recent, shown].slice(-context)
  }
}
