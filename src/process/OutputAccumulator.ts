/**
 * What is kept of a process's output: bounded in memory, exact in its totals, safe to show to a model.
 *
 * Texts are cut on code points, at both caps at once, on whole lines where there is one, and a cut leaves a visible gap
 * (decisions, Files: truncation).
 *
 * @since 0.1.0
 */
import type { Output } from "./Subprocess.ts"

export interface Limits {
  readonly lines: number
  /** Of UTF-8. */
  readonly bytes: number
}

export const defaultLimits: Limits = { lines: 2000, bytes: 50 * 1024 }

export interface Excerpt {
  /** At most what the limits allow, and one more line that tells of the gap when something is missing. */
  readonly text: string
  readonly truncated: boolean
  readonly totalLines: number
  readonly totalBytes: number
}

interface Totals {
  readonly lines: number
  readonly bytes: number
}

const utf8Length = (codePoint: number): number =>
  codePoint < 0x80 ? 1 : codePoint < 0x800 ? 2 : codePoint < 0x10000 ? 3 : 4

/** A final newline ends a line and starts none. */
const measure = (text: string): Totals => {
  let bytes = 0
  let lines = 0
  for (const character of text) {
    bytes += utf8Length(character.codePointAt(0) ?? 0)
    if (character === "\n") lines++
  }
  return { lines: text === "" || text.endsWith("\n") ? lines : lines + 1, bytes }
}

const countLines = (text: string): number => measure(text).lines

const gap = (where: "above" | "below", missing: number, totals: Totals): string =>
  `[… ${missing > 0 ? `${missing} lines` : "part of a line"} ${where} not shown, ${totals.bytes} bytes in all]`

const whole = (text: string, totals: Totals): Excerpt => ({
  text,
  truncated: false,
  totalLines: totals.lines,
  totalBytes: totals.bytes
})

const fits = (text: string, limits: Limits): boolean => {
  const { bytes, lines } = measure(text)
  return bytes <= limits.bytes && lines <= limits.lines
}

/** The beginning of a text. */
export const truncateHead = (input: string, limits: Limits = defaultLimits): Excerpt => {
  const text = input.toWellFormed()
  const totals = measure(text)
  if (fits(text, limits)) return whole(text, totals)
  let end = 0
  let bytes = 0
  let lines = 0
  let lineEnd = 0
  for (const character of text) {
    bytes += utf8Length(character.codePointAt(0) ?? 0)
    if (bytes > limits.bytes || lines === limits.lines) break
    end += character.length
    if (character === "\n") {
      lines++
      lineEnd = end
    }
  }
  const kept = text.slice(0, lineEnd === 0 ? end : lineEnd)
  return {
    ...whole(
      `${kept}${kept === "" || kept.endsWith("\n") ? "" : "\n"}${
        gap("below", totals.lines - countLines(kept), totals)
      }`,
      totals
    ),
    truncated: true
  }
}

/** The end of a text. */
export const truncateTail = (text: string, limits: Limits = defaultLimits): Excerpt =>
  tailOf(text.toWellFormed(), limits, measure(text.toWellFormed()))

const tailOf = (text: string, limits: Limits, totals: Totals): Excerpt => {
  if (fits(text, limits)) return whole(text, totals)
  let start = text.length
  let bytes = 0
  let lines = 0
  let lineStart = text.length
  while (start > 0) {
    const low = text.charCodeAt(start - 1)
    const width = low >= 0xdc00 && low <= 0xdfff ? 2 : 1
    if (low === 0x0a && start < text.length) {
      lines++
      lineStart = start
    }
    bytes += utf8Length(text.codePointAt(start - width) ?? 0)
    if (bytes > limits.bytes || lines === limits.lines) break
    start -= width
  }
  const kept = text.slice(lineStart === text.length ? start : lineStart)
  return { ...whole(`${gap("above", totals.lines - countLines(kept), totals)}\n${kept}`, totals), truncated: true }
}

const controls = /\r\n|[\0-\x08\x0b-\x1f\x7f-\x9f]/g

/** Control characters but tab and newline shown as `\x1b`, `\r` and the like; CRLF becomes a newline. */
export const escapeControls = (text: string): string =>
  text.replace(
    controls,
    (found) =>
      found === "\r\n" ? "\n" : found === "\r" ? "\\r" : `\\x${found.charCodeAt(0).toString(16).padStart(2, "0")}`
  )

/** A bounded store of bytes with an exact total. */
export interface Capture {
  readonly push: (chunk: Uint8Array) => void
  /** Whether something did not fit. */
  readonly overflowed: () => boolean
  readonly output: () => Output
}

/** Keeps the first or the last `bytes` bytes; holds at most twice that. */
export const capture = (options: { readonly bytes: number; readonly keep: "head" | "tail" }): Capture => {
  const capacity = Math.max(0, Math.floor(options.bytes))
  const room = options.keep === "head" ? capacity : capacity * 2
  let buffer = new Uint8Array(0)
  let used = 0
  let totalBytes = 0
  const append = (chunk: Uint8Array) => {
    if (used + chunk.length > buffer.length) {
      const grown = new Uint8Array(Math.min(room, Math.max(1024, (used + chunk.length) * 2)))
      grown.set(buffer.subarray(0, used))
      buffer = grown
    }
    buffer.set(chunk, used)
    used += chunk.length
  }
  return {
    push: (chunk) => {
      totalBytes += chunk.length
      if (options.keep === "head") return append(chunk.subarray(0, capacity - used))
      const fresh = chunk.length > capacity ? chunk.subarray(chunk.length - capacity) : chunk
      if (used + fresh.length > room) {
        const kept = Math.min(used, capacity - fresh.length)
        buffer.copyWithin(0, used - kept, used)
        used = kept
      }
      append(fresh)
    },
    overflowed: () => totalBytes > capacity,
    output: () => ({ bytes: buffer.slice(Math.max(0, used - capacity), used), totalBytes })
  }
}

export interface OutputAccumulator {
  /** A character split over two chunks of one source stays whole, whatever another source writes in between. */
  readonly push: (chunk: Uint8Array, source?: "stdout" | "stderr") => void
  readonly totalBytes: () => number
  /** The end of all that was pushed, decoded and escaped; totals are exact. The limits given may be smaller ones. */
  readonly excerpt: (limits?: Limits) => Excerpt
}

/** Bytes at the end of a chunk that begin a UTF-8 sequence and do not finish it: 0 to 3. */
const unfinished = (bytes: Uint8Array): number => {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte >= 0xc0) return byte >= (back === 1 ? 0xc0 : back === 2 ? 0xe0 : 0xf0) ? back : 0
    if (byte < 0x80) return 0
  }
  return 0
}

const concat = (left: Uint8Array, right: Uint8Array): Uint8Array => {
  const out = new Uint8Array(left.length + right.length)
  out.set(left)
  out.set(right, left.length)
  return out
}

/** A rolling tail of interleaved output, about four times `limits.bytes` in memory at most. */
export const make = (limits: Limits = defaultLimits): OutputAccumulator => {
  // Escaping never shortens a text to less than half, so what overflowed here overflows the limits too.
  const kept = capture({ bytes: limits.bytes * 2 + 8, keep: "tail" })
  const pending = { stdout: new Uint8Array(0), stderr: new Uint8Array(0) }
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true })
  let totalBytes = 0
  let newlines = 0
  let last = 0x0a
  return {
    push: (chunk, source = "stdout") => {
      if (chunk.length === 0) return
      totalBytes += chunk.length
      for (let index = 0; index < chunk.length; index++) if (chunk[index] === 0x0a) newlines++
      last = chunk[chunk.length - 1] ?? last
      const joined = pending[source].length === 0 ? chunk : concat(pending[source], chunk)
      const cut = joined.length - unfinished(joined)
      pending[source] = joined.slice(cut)
      kept.push(joined.subarray(0, cut))
    },
    totalBytes: () => totalBytes,
    excerpt: (own = limits) => {
      const held = kept.output()
      let start = 0
      if (kept.overflowed()) { while (start < 3 && ((held.bytes[start] ?? 0) & 0xc0) === 0x80) start++ }
      const rest = concat(pending.stdout, pending.stderr)
      const text = escapeControls(decoder.decode(held.bytes.subarray(start)) + decoder.decode(rest))
      return tailOf(text, own, { lines: newlines + (last === 0x0a ? 0 : 1), bytes: totalBytes })
    }
  }
}
