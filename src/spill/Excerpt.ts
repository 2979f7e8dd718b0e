/**
 * Head and tail of a text that is too large, with a visible gap between them.
 *
 * Both caps hold at once and count the gap as well; cuts are made on code points, and on whole lines unless that would
 * waste most of the room (decisions, Files: truncation).
 *
 * @since 0.1.0
 */

export interface Bounds {
  /** At least 1; default 2000. */
  readonly maxLines?: number | undefined
  /** UTF-8 bytes; default 50 KB. */
  readonly maxBytes?: number | undefined
}

interface Size {
  readonly lines: number
  readonly bytes: number
}

const capsOf = ({ maxBytes = 50 * 1024, maxLines = 2000 }: Bounds): Size => ({ lines: maxLines, bytes: maxBytes })

/** Bytes of the code point that a UTF-16 unit begins or ends; both halves of a pair count for two. */
const widthOf = (unit: number): number => unit < 0x80 ? 1 : unit < 0x800 ? 2 : unit >= 0xd800 && unit <= 0xdfff ? 2 : 3

/** UTF-8 bytes of a well-formed text. */
export const utf8Length = (text: string): number => {
  let bytes = 0
  for (let index = 0; index < text.length; index++) bytes += widthOf(text.charCodeAt(index))
  return bytes
}

/** A final newline ends a line and starts none. */
const measure = (text: string): Size => {
  let lines = text === "" || text.endsWith("\n") ? 0 : 1
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) lines++
  return { lines, bytes: utf8Length(text) }
}

const within = (size: Size, caps: Size): boolean => size.lines <= caps.lines && size.bytes <= caps.bytes

/** Whether a well-formed text may be shown whole. */
export const fits = (text: string, bounds: Bounds = {}): boolean => within(measure(text), capsOf(bounds))

/** Where the head ends. */
const headEnd = (text: string, caps: Size): number => {
  let end = 0
  let bytes = 0
  let lines = 0
  let lineEnd = 0
  for (const character of text) {
    bytes += utf8Length(character)
    if (bytes > caps.bytes || lines >= caps.lines) break
    end += character.length
    if (character === "\n") {
      lines++
      lineEnd = end
    }
  }
  return lineEnd * 2 >= end ? lineEnd : end
}

const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff

/** Where the tail starts, not before `from`. */
const tailStart = (text: string, from: number, caps: Size): number => {
  let start = text.length
  let bytes = 0
  let lines = 0
  let lineStart = start
  while (start > from) {
    const last = text.charCodeAt(start - 1)
    if (last === 0x0a && start < text.length) {
      lines++
      lineStart = start
    }
    const units = isLowSurrogate(last) ? 2 : 1
    bytes += units * widthOf(last)
    if (bytes > caps.bytes || lines >= caps.lines) break
    start -= units
  }
  return (text.length - lineStart) * 2 >= text.length - start ? lineStart : start
}

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`

const gap = ({ bytes, lines }: Size, locator: string | undefined): string =>
  `[… ${plural(lines, "line")}, ${plural(bytes, "byte")} left out${
    locator === undefined ? "" : `; the whole is at ${locator}: read it with read or grep`
  } …]`

/**
 * Head, gap and tail of a well-formed text that does not fit. The gap counts exactly what is left out; a line that is
 * left out in part counts as one. The result never exceeds the bounds: where they have no room for the gap itself, it is
 * cut as well.
 */
export const excerpt = (text: string, bounds: Bounds = {}, locator?: string): string => {
  const caps = capsOf(bounds)
  // Its counts are never longer than those of the whole text; a newline on either side.
  const reserved = utf8Length(gap(measure(text), locator)) + 2
  const room = { lines: caps.lines - 1, bytes: caps.bytes - reserved }
  const end = headEnd(text, { lines: Math.ceil(room.lines / 2), bytes: Math.ceil(room.bytes / 2) })
  const head = text.slice(0, end)
  const used = measure(head)
  const start = tailStart(text, end, { lines: room.lines - used.lines, bytes: room.bytes - used.bytes })
  const told = gap(measure(text.slice(end, start)), locator)
  const whole = `${head}${head === "" || head.endsWith("\n") ? "" : "\n"}${told}${
    start === text.length ? "" : `\n${text.slice(start)}`
  }`
  return room.bytes >= 0 ? whole : told.slice(0, headEnd(told, caps))
}
