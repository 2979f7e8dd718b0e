/** Names that somebody may have meant instead of the one they gave. */

const consideredLength = 64
const considered = 1000

/** The closest of `candidates`, best first, at most `limit`; only those a slip of the hand away. */
export const near = (wanted: string, candidates: ReadonlyArray<string>, limit = 3): ReadonlyArray<string> => {
  const target = wanted.toLowerCase().slice(0, consideredLength)
  const scored: Array<{ readonly name: string; readonly score: number }> = []
  for (const name of candidates.slice(0, considered)) {
    const other = name.toLowerCase().slice(0, consideredLength)
    const contained = Math.min(target.length, other.length) > 2 && (target.includes(other) || other.includes(target))
    const score = contained ? 1 : distance(target, other)
    if (score <= Math.max(target.length > 3 ? 2 : 1, Math.floor(target.length / 3))) scored.push({ name, score })
  }
  scored.sort((left, right) => left.score - right.score || (left.name < right.name ? -1 : 1))
  return scored.slice(0, limit).map((entry) => entry.name)
}

const distance = (left: string, right: string): number => {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (let i = 1; i <= left.length; i++) {
    const next = [i]
    for (let j = 1; j <= right.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (left[i - 1] === right[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[right.length] ?? 0
}
