/**
 * `grep`: lines of files by regular expression.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { toolError } from "../contract/ToolFailure.ts"
import { text } from "../contract/ToolResult.ts"
import { WorkspacePath } from "../file/WorkspacePath.ts"
import { byCodeUnit } from "../internal/byCodeUnit.ts"
import { compile } from "../internal/glob.ts"
import { escapeControls } from "../process/OutputAccumulator.ts"
import * as Tool from "../tool/Tool.ts"
import { backendOf, filesOf, findProgram, notes, Report } from "./search/backend.ts"
import { assemble, type Hit, type Line, type Query } from "./search/lines.ts"
import {
  type Against,
  collect,
  Cursor,
  decodeCursor,
  encodeCursor,
  lengthOf,
  type Position,
  queryId
} from "./search/page.ts"
import * as Ripgrep from "./search/ripgrep.ts"
import { codes, type Place, resolve } from "./search/root.ts"
import * as Scan from "./search/scan.ts"

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
    description: `Most matches to return; default ${defaultLimit}, and fewer when they are long.`
  }),
  cursor: Cursor
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
  /** By path, its names compared one after another by their bytes; then by line. */
  matches: Schema.Array(Match),
  /** Lines left out, matching or around a match, because they are many megabytes long. */
  oversized: Schema.Number,
  ...Report
})

interface Entry extends Hit, Position {
  readonly path: string
}

/** About what `render` makes of it. */
const sizeOf = ({ after, before, path, text }: Entry): number => {
  const name = lengthOf(path) + 12
  return [text, ...before, ...after].reduce((total, line) => total + name + lengthOf(line), 0)
}

/** In a tree of more files than this withheld ones are not counted: it would take long beside the search. */
const maxCounted = 5000

/** A page of matches, and how the search for it went. */
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
  const { withholds } = yield* WorkspacePath
  const { context = 0, ignoreCase = false, limit = defaultLimit, literal = false } = args
  const id = yield* queryId(["grep", args.pattern, root.physical, args.glob ?? null, ignoreCase, literal, context])
  const after = yield* decodeCursor(id, args.cursor)
  const chosen = ({ below }: Place) => fits(below) !== excluded

  const makeSink = (inOrder: boolean) => {
    const page = collect<Entry>({ limit, after, size: sizeOf })
    let oversized = 0
    let add: (line: Line) => void = () => {}
    // The lines after a match come later than it does.
    let complete = false
    const side = (against: Against) => {
      complete ||= inOrder && page.progress() >= 1
      return page.side(against)
    }
    return {
      page,
      lost: () => oversized,
      file: (place: Place) => {
        const known = side((key) => byCodeUnit(place.key, key))
        if (complete || known !== undefined || !chosen(place) || withholds(place.physical)) return false
        add = assemble(context, (hit) => page.add({ key: place.key, path: place.path, ...hit }))
        return true
      },
      line: (line: Line) => add(line),
      oversized: () => {
        oversized++
      },
      side,
      passed: page.passed,
      pages: page.pages,
      progress: () => context === 0 || complete ? page.progress() : Math.min(page.progress(), 0.99)
    }
  }
  const query: Query = {
    pattern: args.pattern,
    literal,
    ignoreCase,
    context,
    maxCount: (after?.line ?? 0) + limit + 1,
    name: glob === undefined || excluded ? undefined : Ripgrep.plainName(glob)
  }
  const program = yield* findProgram
  const { searches, sink, stopped, unreadable } = program === undefined
    ? yield* Scan.lines(root, query, makeSink)
    : yield* Ripgrep.lines(program, root, query, makeSink)
  const { items, next } = sink.page.result()
  // Only names are counted: whether the pattern is in a withheld file would tell of its content.
  let visited = searches
  let withheld = 0
  const last = next === undefined && !stopped
  if (last && root.isDirectory && visited <= maxCounted) {
    visited = 0
    yield* filesOf(program, root, query.name, () => false, (place) => {
      if (withholds(place.physical) && chosen(place)) withheld++
      return ++visited <= maxCounted
    })
  }
  return {
    matches: items.map(({ after, before, column, line, path, text }) => ({
      ...{ path, line, column, text },
      ...(context > 0 ? { before, after } : {})
    })),
    nextCursor: next === undefined ? null : encodeCursor(id, next),
    withheld: last && visited <= maxCounted ? withheld : null,
    oversized: sink.lost(),
    unreadable,
    ignored: root.ignored,
    backend: backendOf(program)
  }
})

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

/**
 * The tool. No match is a success with an empty list; a regular expression with a fault is `pattern_invalid`. Without
 * ripgrep files are searched one by one, and a pattern that only ripgrep takes is `pattern_invalid` too.
 *
 * Ignore files are read as ripgrep reads them, which is as git does but for this: braces are alternatives, classes such as
 * `[:alpha:]` and `***` are not known, `.ignore` and `.rgignore` count too, and what the index holds makes no difference.
 */
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
  render: ({ matches, oversized, ...report }) => [
    text([
      ...(matches.length === 0 ? ["No matches."] : matches.flatMap(rendered)),
      ...(oversized > 0 ? [`[${oversized} very long lines are left out]`] : []),
      ...notes(report)
    ].join("\n"))
  ]
})
