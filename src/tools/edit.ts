/**
 * `edit`: pieces of a file, by the text they hold (seed 4.4).
 *
 * @since 0.1.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { short } from "../contract/Digest.ts"
import { text } from "../contract/ToolResult.ts"
import * as EditMatcher from "../file/EditMatcher.ts"
import * as FileChange from "../file/FileChange.ts"
import * as FileDiff from "../file/FileDiff.ts"
import { changeCodes, editCodes, fileError, pathCodes } from "../file/FileError.ts"
import { missing } from "../file/Missing.ts"
import { replacedBy } from "../file/Replaced.ts"
import * as Tool from "../tool/Tool.ts"

/** Whether edits match exactly only. Default `false`: the five normalisations are tried as well. */
export class EditExactOnly extends Context.Reference<EditExactOnly>()("portcullis/EditExactOnly", {
  defaultValue: () => false
}) {}

const maxEdits = 100
const maxRanges = 100

const oldText = Schema.String.annotations({ description: "Text that is in the file exactly once, copied from it." })
const newText = Schema.String.annotations({ description: "What shall be there instead." })
const replaceAll = Schema.Boolean.annotations({ description: "Replace every occurrence. Default false." })

const Edit = Schema.Struct({ oldText, newText, replaceAll: Schema.optionalWith(replaceAll, { exact: true }) })

const Parameters = Schema.Struct({
  path: Schema.String.annotations({ description: "The file, from the workspace or absolute." }),
  edits: Schema.optionalWith(
    Schema.Array(Edit).pipe(Schema.maxItems(maxEdits)).annotations({
      description: "Several edits, each located in the file as it is now. All of them apply, or none."
    }),
    { exact: true }
  ),
  oldText: Schema.optionalWith(oldText, { exact: true }),
  newText: Schema.optionalWith(newText, { exact: true }),
  replaceAll: Schema.optionalWith(replaceAll, { exact: true })
}).pipe(
  Schema.filter(
    (args) =>
      args.edits === undefined
        ? args.oldText !== undefined && args.newText !== undefined || "Give edits, or oldText and newText."
        : args.oldText === undefined && args.newText === undefined && args.replaceAll === undefined ||
          "Give edits, or oldText and newText, not both.",
    { jsonSchema: {} }
  )
)
type Parameters = typeof Parameters.Type

const Success = Schema.Struct({
  path: Schema.String,
  replacements: Schema.Number,
  strategy: Schema.Literal("exact", "normalized"),
  /** Lines of the edited file that were replaced; the first 100. */
  ranges: Schema.Array(Schema.Struct({ startLine: Schema.Number, endLine: Schema.Number })),
  firstChangedLine: Schema.Number,
  /** Unified, without file names. */
  diff: Schema.String,
  /** What `git apply` takes from the primary root; `null` where no patch can say it or it would be over 256 KiB. */
  patch: Schema.NullOr(Schema.String),
  bytesWritten: Schema.Number,
  /** Of the edited file, as `read` gives it. */
  revision: Schema.String,
  /** Only when the file could not be replaced at once, as when it has several hard links. */
  inPlace: Schema.optionalWith(Schema.Literal(true), { exact: true })
})

const editsOf = (args: Parameters): ReadonlyArray<EditMatcher.Edit> =>
  args.edits ?? [{
    oldText: args.oldText ?? "",
    newText: args.newText ?? "",
    ...(args.replaceAll === undefined ? {} : { replaceAll: args.replaceAll })
  }]

const target = (args: Parameters): Tool.FileTarget => ({
  path: args.path,
  requiresRead: true,
  quotes: editsOf(args).map((edit) => edit.oldText)
})

export const edit = Tool.make("edit", {
  description:
    "Replaces pieces of a text file that was read before. Each oldText must be in the file exactly once (or set " +
    "replaceAll), with its whitespace as it is there. Give one oldText and newText, or several in edits.",
  kind: "file_change",
  policy: "on-request",
  codes: [...pathCodes, ...changeCodes, ...editCodes],
  parameters: Parameters,
  success: Success,
  normalize: (args) => ({ path: args.path, edits: editsOf(args) }),
  targets: (args) => [target(args)],
  handler: Effect.fnUntraced(function*(args) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const exactOnly = yield* EditExactOnly
    const changed = yield* FileChange.change(
      target(args),
      Effect.fnUntraced(function*(before, resolved, visible) {
        if (before === undefined) return yield* missing(fs, path, resolved)
        const edited = yield* Effect.catchIf(
          EditMatcher.apply(before.text, editsOf(args), { exactOnly }),
          (error) => error.code === "edit_not_found" && visible,
          ({ details, message }) =>
            Effect.flatMap(
              replacedBy(resolved, before.text, target(args).quotes),
              (why) => fileError("edit_not_found", message + why, Object(details))
            )
        )
        const shown = visible
          ? FileDiff.ofRanges(resolved.relative, before.text, edited.ranges, before.encoding)
          : { diff: "", patch: null }
        const value = { edited, ...shown }
        return { text: edited.text, encoding: before.encoding, whole: false, value }
      })
    )
    const { diff, edited, patch } = changed.value
    return {
      path: changed.path,
      replacements: edited.ranges.length,
      strategy: edited.strategy,
      ranges: edited.ranges.slice(0, maxRanges).map(({ endLine, startLine }) => ({ startLine, endLine })),
      firstChangedLine: edited.firstChangedLine,
      diff,
      patch,
      bytesWritten: changed.bytesWritten,
      revision: short(changed.hash),
      ...(changed.inPlace ? { inPlace: true as const } : {})
    }
  }),
  render: (output) => [
    text(
      `Edited ${output.path}: ${output.replacements} replaced (${output.strategy} match), first changed line ` +
        `${output.firstChangedLine}${output.inPlace ? ", written in place" : ""}, revision ${output.revision}.\n` +
        output.diff
    )
  ]
})
