/**
 * File name patterns, matched by a scan that never backtracks more than once a star: no pattern makes it slow.
 *
 * `*` and `?` stay within a segment, `**` spans segments, `[a-z]` and `[!a-z]` are one character, `{a,b}` is either,
 * `\` takes the next character as it is. A pattern without a slash matches the last segment at any depth.
 */
type Token =
  | { readonly _tag: "Literal"; readonly character: string }
  | { readonly _tag: "Any" }
  | { readonly _tag: "Star" }
  | { readonly _tag: "Class"; readonly negated: boolean; readonly ranges: ReadonlyArray<readonly [string, string]> }

type Segment = "**" | ReadonlyArray<Token>

const maxAlternatives = 256
/** Characters of all intermediate patterns together. */
const maxExpanded = 8192

/** The pattern with its braces multiplied out, or `undefined` when there are too many or one is not closed. */
export const expand = (pattern: string): ReadonlyArray<string> | undefined => {
  const done: Array<string> = []
  const open = [pattern]
  let size = 0
  for (let current = open.pop(); current !== undefined; current = open.pop()) {
    size += current.length
    if (done.length + open.length > maxAlternatives || size > maxExpanded) return undefined
    const brace = firstBrace(current)
    if (brace === undefined) return undefined
    if (brace === "none") done.push(current)
    else {
      const { alternatives, from, to } = brace
      for (const alternative of alternatives) open.push(current.slice(0, from) + alternative + current.slice(to))
    }
  }
  return done
}

const firstBrace = (
  pattern: string
):
  | { readonly from: number; readonly to: number; readonly alternatives: ReadonlyArray<string> }
  | "none"
  | undefined =>
{
  let depth = 0
  let from = 0
  let last = 0
  const alternatives: Array<string> = []
  for (let index = 0; index < pattern.length; index++) {
    const character = pattern[index]
    if (character === "\\") index++
    else if (character === "[" && classEnd(pattern, index) !== -1) index = classEnd(pattern, index)
    else if (character === "{" && depth++ === 0) {
      from = index
      last = index + 1
    } else if (character === "," && depth === 1) {
      alternatives.push(pattern.slice(last, index))
      last = index + 1
    } else if (character === "}" && depth > 0 && --depth === 0) {
      return { from, to: index + 1, alternatives: [...alternatives, pattern.slice(last, index)] }
    }
  }
  return depth === 0 ? "none" : undefined
}

/** Index of the `]` that closes the class opened at `start`, or -1. A `]` right after the opening is a member. */
const classEnd = (text: ArrayLike<string>, start: number): number => {
  let index = start + 1
  if (text[index] === "!" || text[index] === "^") index++
  for (let first = true; index < text.length; index++, first = false) {
    if (text[index] === "/") return -1
    if (text[index] === "]" && !first) return index
    if (text[index] === "\\") index++
  }
  return -1
}

const tokens = (segment: string): ReadonlyArray<Token> => {
  const characters = Array.from(segment)
  const out: Array<Token> = []
  for (let index = 0; index < characters.length; index++) {
    const character = characters[index] ?? ""
    const end = character === "[" ? classEnd(characters, index) : -1
    if (character === "*") {
      if (out.at(-1)?._tag !== "Star") out.push({ _tag: "Star" })
    } else if (character === "?") out.push({ _tag: "Any" })
    else if (end !== -1) {
      out.push(classOf(characters.slice(index + 1, end)))
      index = end
    } else if (character === "\\" && index + 1 < characters.length) {
      out.push({ _tag: "Literal", character: characters[++index] ?? "" })
    } else out.push({ _tag: "Literal", character })
  }
  return out
}

const classOf = (inside: ReadonlyArray<string>): Token => {
  const negated = inside[0] === "!" || inside[0] === "^"
  const members = inside.slice(negated ? 1 : 0)
  const ranges: Array<readonly [string, string]> = []
  for (let index = 0; index < members.length; index++) {
    if (members[index] === "\\" && index + 1 < members.length) index++
    const low = members[index] ?? ""
    const high = members[index + 1] === "-" ? members[index + 2] : undefined
    ranges.push([low, high ?? low])
    if (high !== undefined) index += 2
  }
  return { _tag: "Class", negated, ranges }
}

const accepts = (token: Token, character: string): boolean => {
  switch (token._tag) {
    case "Literal":
      return token.character === character
    case "Class":
      return token.ranges.some(([low, high]) => at(low) <= at(character) && at(character) <= at(high)) !== token.negated
    case "Any":
    case "Star":
      return true
  }
}

const at = (character: string): number => character.codePointAt(0) ?? 0

/** Wildcard matching with one point to fall back to: the latest `wild`. */
const scan = <P, V>(
  pattern: ReadonlyArray<P>,
  values: ReadonlyArray<V>,
  wild: (item: P) => boolean,
  matches: (item: P, value: V) => boolean
): boolean => {
  let position = 0
  let star = -1
  let resume = 0
  let index = 0
  while (index < values.length) {
    const item = pattern[position]
    const value = values[index]
    if (item !== undefined && wild(item)) {
      star = position++
      resume = index
    } else if (item !== undefined && value !== undefined && matches(item, value)) {
      position++
      index++
    } else if (star !== -1) {
      position = star + 1
      index = ++resume
    } else return false
  }
  while (position < pattern.length) {
    const item = pattern[position++]
    if (item === undefined || !wild(item)) return false
  }
  return true
}

const segmentMatches = (segment: Segment, name: string): boolean =>
  segment === "**" || scan(segment, Array.from(name), (token) => token._tag === "Star", accepts)

/** A test of relative paths with forward slashes, or `undefined` for a pattern that is not one. */
export const compile = (pattern: string): ((path: string) => boolean) | undefined => {
  const alternatives = expand(pattern)?.map((alternative): ReadonlyArray<Segment> => {
    const anchored = alternative.replace(/^(\.?\/)+/, "").replace(/\/$/, "/**")
    const named = alternative.includes("/") ? anchored : `**/${anchored}`
    const segments = named.split("/").map((segment) => segment === "**" ? segment : tokens(segment))
    // Files are asked about, and a directory's content begins below it.
    return segments.at(-1) === "**" ? [...segments, tokens("*")] : segments
  })
  if (alternatives === undefined || pattern === "") return undefined
  return (path) => {
    const names = path.split("/")
    return alternatives.some((segments) => scan(segments, names, (segment) => segment === "**", segmentMatches))
  }
}
