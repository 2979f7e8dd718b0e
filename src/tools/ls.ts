/**
 * `ls`: what is in a directory (seed 4.1).
 *
 * @since 0.1.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { text } from "../contract/ToolResult.ts"
import { fileError, fromPlatform, pathCodes, quote } from "../file/FileError.ts"
import { missing } from "../file/Missing.ts"
import { WorkspacePath } from "../file/WorkspacePath.ts"
import * as Tool from "../tool/Tool.ts"
import { ToolInvocation } from "../tool/ToolInvocation.ts"

const maxEntries = 500

const Entry = Schema.Struct({
  name: Schema.String,
  /** Of the name itself: a link is a `symlink`, wherever it leads. */
  kind: Schema.Literal("file", "directory", "symlink", "other"),
  /** Bytes of a file, else `null`. */
  size: Schema.NullOr(Schema.Number)
})
type Entry = typeof Entry.Type

const Parameters = Schema.Struct({
  path: Schema.optionalWith(
    Schema.String.annotations({ description: "The directory, from the workspace or absolute. Default the workspace." }),
    { exact: true }
  ),
  limit: Schema.optionalWith(
    Schema.Number.pipe(Schema.int(), Schema.positive()).annotations({
      description: `Entries at most. Default and maximum ${maxEntries}.`
    }),
    { exact: true }
  )
})

const Success = Schema.Struct({
  path: Schema.String,
  /** By code unit of the name. */
  entries: Schema.Array(Entry),
  total: Schema.Number,
  truncated: Schema.Boolean
})

/** What a name is. It may dangle, vanish meanwhile or be out of reach: that makes it `other`, and fails nothing. */
const describe = (fs: FileSystem.FileSystem, target: string, name: string): Effect.Effect<Entry> => {
  const shown = name.toWellFormed()
  return fs.readLink(target).pipe(
    Effect.as<Entry>({ name: shown, kind: "symlink", size: null }),
    Effect.catchAll(() =>
      Effect.map(fs.stat(target), (info): Entry => ({
        name: shown,
        kind: info.type === "File" ? "file" : info.type === "Directory" ? "directory" : "other",
        size: info.type === "File" ? Number(info.size) : null
      }))
    ),
    Effect.orElseSucceed((): Entry => ({ name: shown, kind: "other", size: null }))
  )
}

export const ls = Tool.make("ls", {
  description: "Lists a directory: name, kind and size of each entry.",
  kind: "tool_call",
  policy: "auto",
  readOnly: true,
  parallelSafe: true,
  codes: [...pathCodes, "file_not_found", "not_a_directory", "file_io_failed"],
  parameters: Parameters,
  success: Success,
  handler: Effect.fnUntraced(function*(args) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const invocation = yield* ToolInvocation
    const resolved = yield* (yield* WorkspacePath).forRead(invocation.turn, args.path ?? ".")
    if (!resolved.exists) return yield* missing(fs, path, resolved)
    const failed = fromPlatform(resolved.relative)
    const info = yield* Effect.mapError(fs.stat(resolved.physical), failed)
    if (info.type !== "Directory") {
      return yield* fileError(
        "not_a_directory",
        `${quote(resolved.relative)} is not a directory. To see a file, call read.`
      )
    }
    const names = yield* Effect.mapError(fs.readDirectory(resolved.physical), failed)
    const shown = names.sort().slice(0, Math.min(args.limit ?? maxEntries, maxEntries))
    const entries = yield* Effect.forEach(shown, (name) => describe(fs, path.join(resolved.physical, name), name), {
      concurrency: 8
    })
    return { path: resolved.relative, entries, total: names.length, truncated: entries.length < names.length }
  }),
  render: (output) => {
    const lines = output.entries.map((entry) =>
      entry.kind === "directory"
        ? `${entry.name}/`
        : entry.kind === "file"
        ? `${entry.name} (${entry.size} bytes)`
        : `${entry.name} (${entry.kind})`
    )
    const more = output.truncated ? [`[${output.entries.length} of ${output.total} entries]`] : []
    return [text(lines.length === 0 ? "[The directory is empty.]" : [...lines, ...more].join("\n"))]
  }
})
