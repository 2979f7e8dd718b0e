/** A regular expression in Rust's syntax without ripgrep: RE2's syntax is near, and what differs is refused. */
import * as Effect from "effect/Effect"
import { type CodedError, toolError } from "../../contract/ToolFailure.ts"

/** Where in a line the leftmost match begins, as an index of a UTF-16 unit, or -1. */
export type LineTest = (line: string) => number

export interface Options {
  readonly literal: boolean
  readonly ignoreCase: boolean
}

/** Rust's `\w` and `\s` know all of Unicode, RE2's know ASCII alone. */
const word = "\\p{L}\\p{Nl}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}\\x{24b6}-\\x{24e9}" +
  "\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"
const space = "\\t\\n\\v\\f\\r\\x{85}\\p{Z}"
const outside: Readonly<Record<string, string>> = {
  d: "\\p{Nd}",
  D: "\\P{Nd}",
  w: `[${word}]`,
  W: `[^${word}]`,
  s: `[${space}]`,
  S: `[^${space}]`,
  A: "\\A",
  z: "\\z"
}
const within: Readonly<Record<string, string>> = { d: "\\p{Nd}", D: "\\P{Nd}", w: word, s: space }

/** One step of reading a pattern: what both syntaxes take alike, longest first. */
const same = /^(?:\\[tfrva]|\\x[0-9A-Fa-f]{2}|\\x\{[0-9A-Fa-f]{1,6}\}|\\[\\.+*?()|[\]{}^$#&~/"'%,:;=@`!-]|\\ )/
const property = /^\\[pP](?:\{\^?[A-Za-z_]+\}|[A-Z])/
const group = /^\((?:\?(?:[imsU]+(?:-[imsU]+)?:|:|P?<[A-Za-z_][A-Za-z0-9_]*>)|\?[imsU]+(?:-[imsU]+)?\)|(?!\?))/
const counted = /^\{\d{1,4}(?:,\d{0,4})?\}/

/** The pattern for RE2, or what in it only ripgrep takes. */
const translate = (pattern: string, ignoreCase: boolean): { readonly re2: string } | { readonly only: string } => {
  let out = ""
  let inClass = false
  let at = 0
  /** Where a class's first member may be a `]`. */
  let first = -1
  while (at < pattern.length) {
    const rest = pattern.slice(at)
    const letter = rest[0] === "\\" ? rest[1] ?? "" : ""
    const token = same.exec(rest)?.[0] ?? property.exec(rest)?.[0]
    if (token !== undefined) {
      if (/^\\x\{?0*[aA]\}?$/.test(token)) return { only: token }
      // The classes of one case grow differently when case is ignored.
      if (/^\\p/i.test(token) && (ignoreCase || pattern.includes("(?"))) return { only: token }
      out += token
      at += token.length
    } else if (rest[0] === "\\") {
      const known = (inClass ? within : outside)[letter]
      if (known === undefined) return { only: rest.slice(0, 2) }
      out += known
      at += 2
    } else if (inClass) {
      const named = /^\[:\^?[a-z]+:\]/.exec(rest)?.[0]
      if (named === undefined && (rest[0] === "[" || /^(?:&&|--|~~)/.test(rest))) return { only: rest.slice(0, 2) }
      if (rest[0] === "]" && at !== first) inClass = false
      out += named ?? (rest[0] === "]" && inClass ? "\\]" : rest[0])
      at += named?.length ?? 1
    } else if (rest[0] === "[") {
      const opening = rest[1] === "^" ? "[^" : "["
      inClass = true
      out += opening
      at += opening.length
      first = at
    } else if (rest[0] === "(") {
      const opening = group.exec(rest)?.[0]
      if (opening === undefined) return { only: rest.slice(0, 3) }
      out += opening
      at += opening.length
    } else if (rest[0] === "{" || rest[0] === "\n") {
      const repetition = counted.exec(rest)?.[0]
      if (repetition === undefined) return { only: rest[0] }
      out += repetition
      at += repetition.length
    } else {
      out += rest[0] ?? ""
      at++
    }
  }
  return inClass ? { only: "[" } : { re2: out }
}

const refused = (why: string): CodedError<"pattern_invalid"> =>
  toolError(
    "pattern_invalid",
    `ripgrep is not here, and without it this pattern cannot be searched: ${why}`.toWellFormed()
  )

/**
 * Takes time linear in the line, whatever the pattern. The library is loaded at the first search without ripgrep: it
 * takes as long as the rest of a small program.
 */
export const compile = (pattern: string, { ignoreCase, literal }: Options) =>
  Effect.gen(function*() {
    const { RE2JS } = yield* Effect.tryPromise({
      try: () => import("re2js"),
      catch: () => refused("its engine is missing.")
    })
    if (literal && pattern.includes("\n")) return yield* refused("it spans lines.")
    const translated = literal ? { re2: RE2JS.quote(pattern) } : translate(pattern, ignoreCase)
    if ("only" in translated) {
      return yield* refused(`${JSON.stringify(translated.only)} is taken by ripgrep alone or by nothing.`)
    }
    const compiled = yield* Effect.try({
      try: () => RE2JS.compile(translated.re2, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0),
      catch: (cause) => refused(cause instanceof Error ? cause.message.slice(0, 500) : "it is not a pattern.")
    })
    const test: LineTest = (line) => {
      if (!compiled.test(line)) return -1
      const matcher = compiled.matcher(line)
      return matcher.find() ? matcher.start() : -1
    }
    return test
  })
