/** Where lines begin and end, by the offsets of their newlines. */

/** Offsets of every `\n`, ascending. */
export const newlines = (text: string): ReadonlyArray<number> => {
  const out: Array<number> = []
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) out.push(at)
  return out
}

/** How many of the ascending `values` are below `limit`. */
export const countBelow = (values: ReadonlyArray<number>, limit: number): number => {
  let low = 0
  let high = values.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((values[middle] ?? limit) < limit) low = middle + 1
    else high = middle
  }
  return low
}

/** Offset of the first character of a line, counted from 0. */
export const lineStart = (breaks: ReadonlyArray<number>, line: number): number => (breaks[line - 1] ?? -1) + 1

/** CRLF as LF; a lone CR is data. */
export const foldCrlf = (text: string): string => text.replaceAll("\r\n", "\n")

/** At most `limit` UTF-16 units, never ending inside a surrogate pair. */
export const cut = (text: string, limit: number): string => {
  if (text.length <= limit) return text
  const last = text.charCodeAt(limit - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? limit - 1 : limit)
}
