/**
 * `ls`: what is in a directory (seed 4.1).
 *
 * @since 0.1.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { text } from "../contract/ToolResult.ts"
import type { Turn } from "../contract/Turn.ts"
import { FileAccess } from "../file/FileAccess.ts"
import { fileError, fromPlatform, pathCodes, quote } from "../file/FileError.ts"
import { hold } from "../file/Folder.ts"
import { missing } from "../file/Missing.ts"
import { WorkspacePath } from "../file/WorkspacePath.ts"
import { byCodeUnit } from "../internal/byCodeUnit.ts"
import { display, displayJson } from "../internal/display.ts"
import * as Tool from "../tool/Tool.ts"
import { ToolInvocation } from "../tool/ToolInvocation.ts"

const maxEntries = 500

const Entry = Schema.Struct({
  name: Schema.String,
  /**
   * Of the name itself: a link is a `symlink`, wherever it leads. `unreachable` is what could not be looked at: it is gone
   * by now, may not be seen, or its name is not UTF-8 and cannot be said.
   */
  kind: Schema.Literal("file", "directory", "symlink", "other", "unreachable"),
  /** Bytes of a file, else `null`. */
  size: Schema.NullOr(Schema.Number),
  /** Of a link: what it holds; not when it leads to what is withheld. */
  target: Schema.optionalWith(Schema.String, { exact: true }),
  /** Of a link: where it ends, seen from the roots. `nowhere` when it dangles. */
  leads: Schema.optionalWith(Schema.Literal("inside", "outside", "nowhere", "withheld"), { exact: true })
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
  ),
  after: Schema.optionalWith(
    Schema.String.annotations({ description: "Only names after this one: `next` of the page before." }),
    { exact: true }
  )
})

const Success = Schema.Struct({
  path: Schema.String,
  /** By code unit of the name; hidden ones too. */
  entries: Schema.Array(Entry),
  /** All names in the directory but those withheld. */
  total: Schema.Number,
  /** Names that no tool shows. */
  withheld: Schema.Number,
  truncated: Schema.Boolean,
  /** What to give as `after` to go on; `null` when nothing is left. */
  next: Schema.NullOr(Schema.String)
})

/** Where a link leads. What cannot be followed leads nowhere. */
const linkOf = (paths: WorkspacePath["Type"], turn: Turn, name: string, path: string, target: string) =>
  Effect.map(Effect.either(paths.resolve(turn, path)), (resolved): Entry => {
    const link = { name, kind: "symlink", size: null } as const
    if (Either.isLeft(resolved) && resolved.left.code === "file_withheld") return { ...link, leads: "withheld" }
    const shown = { ...link, target: target.toWellFormed() }
    if (Either.isLeft(resolved) || !resolved.right.exists) return { ...shown, leads: "nowhere" }
    return { ...shown, leads: resolved.right.inside ? "inside" : "outside" }
  })

const statOf = (fs: FileSystem.FileSystem, name: string, at: string): Effect.Effect<Entry> =>
  Effect.match(fs.stat(at), {
    onFailure: () => ({ name, kind: "unreachable", size: null }),
    onSuccess: ({ size, type }) =>
      type === "File"
        ? { name, kind: "file", size: Number(size) }
        : { name, kind: type === "Directory" ? "directory" : "other", size: null }
  })

export const ls = Tool.make("ls", {
  description:
    "Lists a directory: name, kind and size of each entry, and where a link leads. Long ones come in pages: " +
    "go on with after = next.",
  kind: "tool_call",
  policy: "auto",
  readOnly: true,
  parallelSafe: true,
  codes: [...pathCodes, "file_not_found", "not_a_directory", "file_io_failed", "path_changed"],
  parameters: Parameters,
  success: Success,
  handler: ({ after = "", limit = maxEntries, path: given = "." }) =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const access = yield* FileAccess
      const paths = yield* WorkspacePath
      const { turn } = yield* ToolInvocation
      const resolved = yield* paths.forRead(turn, given)
      if (!resolved.exists) return yield* missing(fs, path, resolved)
      const failed = fromPlatform(resolved.relative)
      // Held, so that the entries are those of the directory that was judged.
      const held = yield* Effect.mapError(
        hold({ fs, path, access }, resolved.physical, resolved.physical, resolved.relative),
        (error) =>
          error._tag === "ToolError" ? error : error._tag === "SystemError" && error.reason === "BadResource"
            ? fileError(
              "not_a_directory",
              `${quote(resolved.relative)} is not a directory. To see a file, call read.`
            )
            : failed(error)
      )
      const names = yield* Effect.mapError(fs.readDirectory(held.at(".")), failed)
      const visible = names.filter((name) => !paths.withholds(path.join(resolved.physical, name)))
      const rest = visible.filter((name) => name > after).sort(byCodeUnit)
      const page = rest.slice(0, Math.min(limit, maxEntries))
      const entries = yield* Effect.forEach(page, (raw) => {
        const name = raw.toWellFormed()
        return Effect.matchEffect(fs.readLink(held.at(raw)), {
          onFailure: () => statOf(fs, name, held.at(raw)),
          onSuccess: (target) => linkOf(paths, turn, name, path.join(resolved.physical, raw), target)
        })
      }, { concurrency: 8 })
      const truncated = page.length < rest.length
      return {
        path: resolved.relative,
        entries,
        total: visible.length,
        withheld: names.length - visible.length,
        truncated,
        next: truncated ? entries.at(-1)?.name ?? null : null
      }
    }).pipe(Effect.scoped),
  render: ({ entries, next, total, withheld }) => {
    const lines = [
      ...entries.map(lineOf),
      ...total === 0 ? ["[The directory is empty.]"] : entries.length === 0 ? ["[No names after that.]"] : [],
      ...next === null ? [] : [`[${entries.length} of ${total} entries; go on with after ${shown(next)}]`],
      ...withheld === 0 ? [] : [`[${withheld} more are withheld.]`]
    ]
    return [text(lines.join("\n"))]
  }
})

/** A name on a line of its own, as it can be given to a tool: one with odd characters as JSON. */
const shown = (name: string): string => display(name) === name ? name : displayJson(name)

const leading = {
  inside: "",
  outside: " (outside the workspace)",
  nowhere: " (dangling)",
  withheld: " (to what is withheld)"
} as const

const lineOf = ({ kind, leads, name, size, target }: Entry): string => {
  switch (kind) {
    case "directory":
      return `${shown(name)}/`
    case "file":
      return `${shown(name)} (${size} bytes)`
    case "symlink":
      return `${shown(name)}${target === undefined ? "" : ` -> ${shown(target)}`}${
        leads === undefined ? "" : leading[leads]
      }`
    case "other":
    case "unreachable":
      return `${shown(name)} (${name.includes("\ufffd") && kind === "unreachable" ? "its name is not UTF-8" : kind})`
  }
}
