/**
 * `grep`: lines of files by regular expression.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Encoding from "effect/Encoding"
import * as Schema from "effect/Schema"
import { toolError } from "../contract/ToolFailure.ts"
import { text } from "../contract/ToolResult.ts"
import { byCodeUnit } from "../internal/byCodeUnit.ts"
import { compile } from "../internal/glob.ts"
import { parseJson } from "../internal/parseJson.ts"
import { escapeControls } from "../process/OutputAccumulator.ts"
import * as Tool from "../tool/Tool.ts"
import { codes, relativeTo, resolve, run, smallest, splitter, unreadable } from "./search.ts"

const defaultLimit = 100

const flag = (description: string) => Schema.optionalWith(Schema.Boolean, { exact: true }).annotations({ description })

export const Parameters = Schema.Struct({
  pattern: Schema.String.pipe(Schema.minLength(1), Schema.maxLength(8192)).annotations({
    description: "Regular expression in Rust's syntax, matched line by line."
  }),
  path: Schema.optionalWith(Schema.String, { exact: true }).annotations({
    description: "File or directory to search; default the workspace."
  }),
  glob: Schema.optionalWith(Schema.String.pipe(Schema.minLength(1), Schema.maxLength(512)), { exact: true })
    .annotations({
      description: "Only files whose path below `path` fits, such as *.ts or src/**/*.md; !pattern for all but those."
    }),
  ignoreCase: flag("Match letters of either case."),
  literal: flag("Take the pattern as plain text."),
  context: Schema.optionalWith(Schema.Int.pipe(Schema.between(0, 20)), { exact: true }).annotations({
    description: "Lines to show before and after each match, 0 to 20."
  }),
  limit: Schema.optionalWith(Schema.Int.pipe(Schema.between(1, 1000)), { exact: true }).annotations({
    description: `Most matches to return; default ${defaultLimit}.`
  })
})

const lines = Schema.optionalWith(Schema.Array(Schema.String), { exact: true })

export const Match = Schema.Struct({
  /** From the workspace; absolute when outside. */
  path: Schema.String,
  /** From 1. */
  line: Schema.Number,
  /** Of the first match in the line, in characters from 1. */
  column: Schema.Number,
  /** At most 500 characters of the line around the match; control characters escaped. */
  text: Schema.String,
  before: lines,
  after: lines
})
export type Match = typeof Match.Type

export const Success = Schema.Struct({
  /** By path (code unit), then line. */
  matches: Schema.Array(Match),
  /** More lines matched than were returned. */
  truncated: Schema.Boolean,
  /** Lines left out, matching or around a match, because they are many megabytes long. */
  oversized: Schema.Number,
  /** Files and directories that could not be read. */
  unreadable: Schema.Number
})

const maxShown = 500
/** Of one line of ripgrep's JSON. */
const maxRecord = 6 * 1024 * 1024

const Bytes = Schema.Union(Schema.Struct({ text: Schema.String }), Schema.Struct({ bytes: Schema.String }))
const Line = Schema.Struct({
  type: Schema.Literal("match", "context"),
  data: Schema.Struct({
    path: Bytes,
    lines: Bytes,
    line_number: Schema.Number,
    submatches: Schema.Array(Schema.Struct({ start: Schema.Number }))
  })
})
const isLine = Schema.is(Line)
/** Told at the end of every search that was begun, so not when the pattern was refused. */
const isSummary = Schema.is(Schema.Struct({ type: Schema.Literal("summary") }))

const decode = (bytes: Uint8Array): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)

/** Text that is not UTF-8 comes as base64; what does not decode shows as U+FFFD. */
const asText = (value: typeof Bytes.Type): string => "text" in value ? value.text : decode(bytesOf(value))

const bytesOf = (value: typeof Bytes.Type): Uint8Array =>
  "text" in value
    ? new TextEncoder().encode(value.text)
    : Either.getOrElse(Encoding.decodeBase64(value.bytes), () => new Uint8Array(0))

const count = (value: string): number => {
  let characters = 0
  for (const _ of value) characters++
  return characters
}

/** Up to 500 characters of the line, without its ending, among them the one at `from`; counts what is missing. */
const show = (raw: string, from = 0): string => {
  const line = raw.replace(/\r?\n$/, "")
  if (line.length <= maxShown) return escapeControls(line)
  const total = count(line)
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

interface Hit {
  readonly line: number
  readonly column: number
  readonly text: string
  readonly before: ReadonlyArray<string>
  readonly after: Array<string>
}

/** Gives each match the lines around it. ripgrep tells the lines of one file in order and never mixes two files. */
const assemble = (context: number, onHit: (path: string, hit: Hit) => void) => {
  let path = ""
  let last = 0
  let recent: ReadonlyArray<string> = []
  let open: ReadonlyArray<{ readonly line: number; readonly after: Array<string> }> = []
  return (record: typeof Line.Type): void => {
    const { data, type } = record
    const of = asText(data.path)
    if (of !== path || data.line_number !== last + 1) {
      recent = []
      open = []
    }
    path = of
    last = data.line_number
    const start = type === "match" ? count(decode(bytesOf(data.lines).subarray(0, data.submatches[0]?.start ?? 0))) : 0
    const raw = asText(data.lines)
    const shown = context > 0 ? show(raw) : ""
    open = open.filter(({ line }) => last - line <= context)
    for (const { after } of open) after.push(shown)
    if (type === "match") {
      const hit: Hit = { line: last, column: start + 1, text: show(raw, start), before: recent, after: [] }
      if (context > 0) open = [...open, hit]
      onHit(path, hit)
    }
    if (context > 0) recent = [...recent, shown].slice(-context)
  }
}

const search = Effect.fnUntraced(function*(args: typeof Parameters.Type) {
  const root = yield* resolve(args.path ?? ".")
  const excluded = args.glob?.startsWith("!") === true
  const glob = excluded ? args.glob?.slice(1) : args.glob
  const fits = glob === undefined ? () => true : compile(glob)
  if (fits === undefined) {
    return yield* toolError(
      "pattern_invalid",
      `${JSON.stringify(args.glob)} is not a pattern: a brace is open or there are too many.`
    )
  }
  if (args.pattern.includes("\0")) return yield* toolError("pattern_invalid", "A pattern cannot contain NUL.")
  const limit = args.limit ?? defaultLimit
  const context = args.context ?? 0
  const relative = relativeTo(root)
  const found = smallest<Match>(limit, (left, right) => byCodeUnit(left.path, right.path) || left.line - right.line)
  const add = assemble(context, (printed, { after, before, ...hit }) => {
    const { below, path } = relative(printed)
    if (fits(below) !== excluded) found.add({ path, ...hit, ...(context > 0 ? { before, after } : {}) })
  })
  let ran = false
  const records = splitter(0x0a, maxRecord, (piece) => {
    const record = parseJson(decode(piece))
    if (isLine(record)) add(record)
    else if (isSummary(record)) ran = true
  })
  const { exitCode, said } = yield* run(root, [
    "--json",
    ...(args.literal === true ? ["--fixed-strings"] : []),
    args.ignoreCase === true ? "--ignore-case" : "--case-sensitive",
    `--context=${context}`,
    // No file can give more than this to the first `limit` results.
    `--max-count=${limit + 1}`,
    ...(glob === undefined || excluded ? [] : narrowing(glob)),
    "-e",
    args.pattern
  ], records.push)
  const { items, truncated } = found.result()
  if (exitCode > 1 && !ran) {
    return yield* toolError(
      "pattern_invalid",
      `ripgrep does not take this pattern: ${said.slice(0, 1000)}`.toWellFormed()
    )
  }
  return { matches: items, truncated, oversized: records.dropped(), unreadable: unreadable(said) }
})

/**
 * Has ripgrep skip what cannot fit by its name, where the last segment is a plain one. Its own glob option would bring
 * back ignored files, so the exact test stays here.
 */
const narrowing = (glob: string): ReadonlyArray<string> => {
  const name = glob.slice(glob.lastIndexOf("/") + 1)
  return /^[\w.*?@+-]+$/.test(name) && !name.includes("**") && !/[{}[\]\\]/.test(glob)
    ? [`--type-add=portcullis:${name}`, "--type=portcullis"]
    : []
}

const rendered = ({ after, before, line, path, text: shown }: Match): ReadonlyArray<string> => {
  const name = escapeControls(path)
  const around = (lines: ReadonlyArray<string>, from: number) =>
    lines.map((content, index) => `${name}-${from + index}- ${content}`)
  return [
    ...around(before ?? [], line - (before?.length ?? 0)),
    `${name}:${line}: ${shown}`,
    ...around(after ?? [], line + 1)
  ]
}

/** The tool. No match is a success with an empty list; a regular expression with a fault is `pattern_invalid`. */
export const grep = Tool.make("grep", {
  description: "Search file contents with a regular expression. Hidden files are included; " +
    "ignored files, binary files and .git are not.",
  kind: "tool_call",
  policy: "auto",
  readOnly: true,
  parallelSafe: true,
  codes,
  parameters: Parameters,
  success: Success,
  handler: search,
  render: ({ matches, oversized, truncated, unreadable }) => [
    text([
      ...(matches.length === 0 ? ["No matches."] : matches.flatMap(rendered)),
      ...(truncated ? ["[more lines match: narrow the search or raise limit]"] : []),
      ...(oversized > 0 ? [`[${oversized} very long lines are left out]`] : []),
      ...(unreadable > 0 ? [`[${unreadable} places could not be read]`] : [])
    ].join("\n"))
  ]
})
