/**
 * `write`: a whole file (seed 4.1).
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { text } from "../contract/ToolResult.ts"
import { rewrite, withoutBom } from "../file/EditMatcher.ts"
import * as FileChange from "../file/FileChange.ts"
import { changeCodes, pathCodes } from "../file/FileError.ts"
import { type Encoding, utf8 } from "../file/TextFile.ts"
import * as Tool from "../tool/Tool.ts"

const Parameters = Schema.Struct({
  path: Schema.String.annotations({ description: "The file, from the workspace or absolute." }),
  content: Schema.String.annotations({ description: "All of it." })
})

const Success = Schema.Struct({
  path: Schema.String,
  bytesWritten: Schema.Number,
  created: Schema.Boolean,
  /** Only when the file could not be replaced at once, as when it has several hard links. */
  inPlace: Schema.optionalWith(Schema.Literal(true), { exact: true })
})

const target = (args: typeof Parameters.Type): Tool.FileTarget => ({ path: args.path, requiresRead: true, quotes: [] })

const marked: Encoding = { charset: "utf-8", bom: true }

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
  handler: Effect.fnUntraced(function*(args) {
    const content = withoutBom(args.content)
    const changed = yield* FileChange.change(target(args), (before) =>
      Effect.succeed({
        text: before === undefined ? content : rewrite(before.text, content),
        encoding: before?.encoding ?? (content === args.content ? utf8 : marked),
        whole: true,
        value: undefined
      }))
    return {
      path: changed.path,
      bytesWritten: changed.bytesWritten,
      created: changed.created,
      ...(changed.inPlace ? { inPlace: true as const } : {})
    }
  }),
  render: (output) => [
    text(
      `${output.created ? "Created" : "Wrote"} ${output.path} (${output.bytesWritten} bytes).${
        output.inPlace ? " It was written in place." : ""
      }`
    )
  ]
})
