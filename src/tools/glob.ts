/**
 * `glob`, and its alias `find`: files by name.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { toolError } from "../contract/ToolFailure.ts"
import { text } from "../contract/ToolResult.ts"
import { byCodeUnit } from "../internal/byCodeUnit.ts"
import { compile } from "../internal/glob.ts"
import { escapeControls } from "../process/OutputAccumulator.ts"
import * as Tool from "../tool/Tool.ts"
import { codes, relativeTo, resolve, run, smallest, splitter, unreadable } from "./search.ts"

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
    description: `Most paths to return; default ${defaultLimit}.`
  })
})

export const Success = Schema.Struct({
  /** From the workspace, sorted by code unit; absolute when outside. Bytes that are not UTF-8 show as U+FFFD. */
  paths: Schema.Array(Schema.String),
  /** More files matched than were returned. */
  truncated: Schema.Boolean,
  /** Directories that could not be read. */
  unreadable: Schema.Number
})

const maxPath = 64 * 1024

/** Files below `path` whose path fits: hidden ones too, ignored ones and `.git` never. */
const search = Effect.fnUntraced(function*(args: typeof Parameters.Type) {
  const root = yield* resolve(args.path ?? ".")
  const within = [root.physical, root.lexical].find((folder) => args.pattern.startsWith(`${folder}/`))
  const fits = compile(within === undefined ? args.pattern : args.pattern.slice(within.length))
  if (fits === undefined) {
    return yield* toolError(
      "pattern_invalid",
      `${JSON.stringify(args.pattern)} is not a pattern: a brace is open or there are too many.`
    )
  }
  const relative = relativeTo(root)
  const found = smallest(args.limit ?? defaultLimit, byCodeUnit)
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true })
  const paths = splitter(0, maxPath, (piece) => {
    const { below, path } = relative(decoder.decode(piece))
    if (fits(below)) found.add(path)
  })
  const { exitCode, said } = yield* run(root, ["--files", "--null"], paths.push)
  const { items, truncated } = found.result()
  if (exitCode > 1 && items.length === 0 && unreadable(said) === 0) {
    return yield* toolError("search_failed", said.slice(0, 500).toWellFormed())
  }
  return { paths: items, truncated, unreadable: unreadable(said) }
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
    render: ({ paths, truncated, unreadable }) => [
      text([
        ...(paths.length === 0 ? ["No files match."] : paths.map(escapeControls)),
        ...(truncated ? ["[more files match: narrow the pattern or raise limit]"] : []),
        ...(unreadable > 0 ? [`[${unreadable} places could not be read]`] : [])
      ].join("\n"))
    ]
  })

export const glob = named("glob", true)
/** The same under another name: executable, never listed. */
export const find = named("find", false)
