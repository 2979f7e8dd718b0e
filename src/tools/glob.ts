/**
 * `glob`, and its alias `find`: files by name.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { toolError } from "../contract/ToolFailure.ts"
import { text } from "../contract/ToolResult.ts"
import { WorkspacePath } from "../file/WorkspacePath.ts"
import { compile } from "../internal/glob.ts"
import { escapeControls } from "../process/OutputAccumulator.ts"
import * as Tool from "../tool/Tool.ts"
import { backendOf, filesOf, findProgram, notes, Report } from "./search/backend.ts"
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
import { plainName } from "./search/ripgrep.ts"
import { codes, resolve } from "./search/root.ts"

const defaultLimit = 1000

export const Parameters = Schema.Struct({
  pattern: Schema.String.pipe(Schema.minLength(1), Schema.maxLength(512)).annotations({
    description:
      "Pattern of file paths below `path`: * ? ** [a-z] {a,b}. Without a slash it matches names at any depth."
  }),
  path: Schema.optionalWith(Schema.String, { exact: true }).annotations({
    description: "Where to look; default the workspace."
  }),
  limit: Schema.optionalWith(Schema.Int.pipe(Schema.between(1, 10_000)), { exact: true }).annotations({
    description: `Most paths to return; default ${defaultLimit}, and fewer when they are long.`
  }),
  ignoreCase: Schema.optionalWith(Schema.Boolean, { exact: true }).annotations({
    description: "Match letters of either case."
  }),
  cursor: Cursor
})
type Args = typeof Parameters.Type

export const Success = Schema.Struct({
  /**
   * From the workspace, absolute when outside; their names compared one after another by their bytes. What is not UTF-8
   * shows as U+FFFD.
   */
  paths: Schema.Array(Schema.String),
  ...Report
})

interface Entry extends Position {
  readonly path: string
}

/** Files below `path` whose path fits: hidden ones too, ignored ones and `.git` never. */
const search = Effect.fnUntraced(function*({ cursor, ignoreCase = false, limit = defaultLimit, path, pattern }: Args) {
  const root = yield* resolve(path ?? ".")
  const within = [root.physical, root.lexical].find((folder) => pattern.startsWith(`${folder}/`))
  const relative = within === undefined ? pattern : pattern.slice(within.length)
  const fold = (text: string) => ignoreCase ? text.toLowerCase() : text
  const fits = compile(fold(relative))
  if (fits === undefined) {
    return yield* toolError(
      "pattern_invalid",
      `${JSON.stringify(pattern)} is not a pattern: a brace is open or there are too many.`
    )
  }
  const { withholds } = yield* WorkspacePath
  const id = yield* queryId(["glob", pattern, root.physical, ignoreCase])
  const found = collect<Entry>({
    limit,
    after: yield* decodeCursor(id, cursor),
    size: (entry) => lengthOf(entry.path) + 1
  })
  let withheld = 0
  const program = yield* findProgram
  const name = ignoreCase ? undefined : plainName(relative)
  // What ripgrep has tested by name, or what fits every name, is not tested again.
  const tested = /^(?:\*\*\/)?\*\*?$/.test(relative) ||
    (program !== undefined && root.isDirectory && name !== undefined && !name.includes("?") &&
      (relative === name || relative === `**/${name}`))
  // Withheld files are told with the last page: before that they need not be looked for.
  const skips = (against: Against) => found.isFull() && found.side(against) !== undefined
  const { unreadable } = yield* filesOf(program, root, name, skips, (place) => {
    if (!tested && !fits(fold(place.below))) return true
    if (withholds(place.physical)) withheld++
    else found.add({ key: place.key, line: 0, path: place.path })
    return true
  })
  const { items, next } = found.result()
  return {
    paths: items.map((item) => item.path),
    nextCursor: next === undefined ? null : encodeCursor(id, next),
    withheld: next === undefined ? withheld : null,
    unreadable,
    ignored: root.ignored,
    backend: backendOf(program)
  }
})

const named = <const Name extends string>(name: Name, modelAdvertised: boolean) =>
  Tool.make(name, {
    description: "List files by name pattern. Hidden files are included; ignored files and .git are not.",
    kind: "tool_call",
    policy: "auto",
    readOnly: true,
    parallelSafe: true,
    modelAdvertised,
    codes,
    parameters: Parameters,
    success: Success,
    handler: search,
    render: ({ paths, ...report }) => [
      text([...(paths.length === 0 ? ["No files match."] : paths.map(escapeControls)), ...notes(report)].join("\n"))
    ]
  })

export const glob = named("glob", true)
/** The same under another name: executable, never listed. */
export const find = named("find", false)
