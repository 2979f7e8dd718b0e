/**
 * `write`: a whole file (seed 4.1).
 *
 * @since 0.1.0
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { text } from "../contract/ToolResult.ts"
import { rewrite, withoutBom } from "../file/EditMatcher.ts"
import * as FileChange from "../file/FileChange.ts"
import * as FileDiff from "../file/FileDiff.ts"
import { changeCodes, pathCodes } from "../file/FileError.ts"
import { type Encoding, utf8 } from "../file/TextFile.ts"
import { foldCrlf, newlines } from "../internal/lines.ts"
import * as Tool from "../tool/Tool.ts"

const Parameters = Schema.Struct({
  path: Schema.String.annotations({ description: "The file, from the workspace or absolute." }),
  content: Schema.String.annotations({ description: "All of it." }),
  lineEndings: Schema.optionalWith(
    Schema.Literal("lf", "crlf").annotations({
      description: "Makes all line endings these. Default: as the file has them, or as the content does."
    }),
    { exact: true }
  )
})
type Arguments = typeof Parameters.Type

const Success = Schema.Struct({
  path: Schema.String,
  /** 0 when the file held this already. */
  bytesWritten: Schema.Number,
  /** Of the file now. */
  lines: Schema.Number,
  created: Schema.Boolean,
  /** Only when the file held this already: nothing was written. */
  unchanged: Schema.optionalWith(Schema.Literal(true), { exact: true }),
  /** What changed, long ones cut; empty when nothing did, or when the file may not be read. */
  diff: Schema.String,
  /** Only when the file could not be replaced at once, as when it has several hard links. */
  inPlace: Schema.optionalWith(Schema.Literal(true), { exact: true })
})

const target = (args: Arguments): Tool.FileTarget => ({ path: args.path, requiresRead: true, quotes: [] })

const marked: Encoding = { charset: "utf-8", bom: true }

/** The content with the line endings that were asked for, else those of the file, unless it has CRLF of its own. */
const endings = (before: string | undefined, content: string, asked: Arguments["lineEndings"]): string => {
  switch (asked) {
    case "lf":
      return foldCrlf(content)
    case "crlf":
      return foldCrlf(content).replaceAll("\n", "\r\n")
    case undefined:
      return before === undefined ? content : rewrite(before, content)
  }
}

/** Leaves the change before anything is put on disk. */
class Unchanged extends Data.TaggedError("Unchanged")<{ readonly path: string; readonly text: string }> {}

const linesOf = (content: string): number =>
  newlines(content).length + (content === "" || content.endsWith("\n") ? 0 : 1)

export const write = Tool.make("write", {
  description:
    "Writes a whole file, creating directories as needed. An existing file must have been read first; it keeps " +
    "its encoding and, unless the content has CRLF of its own, its line endings. For a small change call edit.",
  kind: "file_change",
  policy: "on-request",
  codes: [...pathCodes, ...changeCodes],
  parameters: Parameters,
  success: Success,
  targets: (args) => [target(args)],
  handler: (args) => {
    const content = withoutBom(args.content)
    return FileChange.change(target(args), (before, { relative }, visible) => {
      const after = endings(before?.text, content, args.lineEndings)
      return before?.text === after ? new Unchanged({ path: relative, text: after }) : Effect.succeed({
        text: after,
        encoding: before?.encoding ?? (content === args.content ? utf8 : marked),
        whole: true,
        value: {
          lines: linesOf(after),
          diff: visible ? FileDiff.between(relative, before?.text, after).diff : ""
        }
      })
    }).pipe(
      Effect.map(({ bytesWritten, created, inPlace, path, value }): typeof Success.Type => ({
        path,
        bytesWritten,
        created,
        ...value,
        ...(inPlace ? { inPlace: true } : {})
      })),
      Effect.catchTag("Unchanged", ({ path, text }) =>
        Effect.succeed<typeof Success.Type>({
          path,
          bytesWritten: 0,
          lines: linesOf(text),
          created: false,
          unchanged: true,
          diff: ""
        }))
    )
  },
  render: (output) => {
    if (output.unchanged) return [text(`${output.path} held this already; nothing was written.`)]
    const done = `${
      output.created ? "Created" : "Wrote"
    } ${output.path} (${output.lines} lines, ${output.bytesWritten} bytes).`
    return [
      text(output.inPlace ? `${done} It was written in place.` : done),
      ...output.created || output.diff === "" ? [] : [text(output.diff)]
    ]
  }
})
