/**
 * `read`: a text file, or a page of it (seed 4.1).
 *
 * @since 0.1.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Digest, short } from "../contract/Digest.ts"
import { text } from "../contract/ToolResult.ts"
import { fileError, pathCodes, quote, readCodes } from "../file/FileError.ts"
import { missing } from "../file/Missing.ts"
import { MaxFileBytes, read as readText } from "../file/TextFile.ts"
import { WorkspacePath } from "../file/WorkspacePath.ts"
import { cut, foldCrlf, lineStart, newlines } from "../internal/lines.ts"
import * as Tool from "../tool/Tool.ts"
import { ToolInvocation } from "../tool/ToolInvocation.ts"

/** At once: 2000 lines and 50 KB; of one line, 2000 characters (decisions, Files: truncation). */
const maxLines = 2000
const maxBytes = 50 * 1024
const maxLineLength = 2000

const Line = Schema.Number.pipe(Schema.int(), Schema.positive())

const Parameters = Schema.Struct({
  path: Schema.String.annotations({ description: "The file, from the workspace or absolute." }),
  offset: Schema.optionalWith(Line.annotations({ description: "First line, counted from 1. Default 1." }), {
    exact: true
  }),
  limit: Schema.optionalWith(Line.annotations({ description: `Lines at most. Default and maximum ${maxLines}.` }), {
    exact: true
  })
})

const Success = Schema.Struct({
  path: Schema.String,
  /** LF endings, no byte order mark; every line but an unfinished last one ends with a newline. */
  content: Schema.String,
  startLine: Schema.Number,
  /** `startLine - 1` when the file is empty. */
  endLine: Schema.Number,
  totalLines: Schema.Number,
  /** On disk. */
  byteSize: Schema.Number,
  /** Lines after `endLine` are left, or long lines were cut. */
  truncated: Schema.Boolean,
  nextOffset: Schema.NullOr(Schema.Number),
  revision: Schema.String
})

interface Page {
  readonly content: string
  readonly endLine: number
  readonly linesCut: number
}

const pageOf = (folded: string, breaks: ReadonlyArray<number>, from: number, until: number): Page => {
  let content = ""
  let bytes = 0
  let linesCut = 0
  let line = from
  for (; line <= until; line++) {
    const end = breaks[line - 1]
    const whole = folded.slice(lineStart(breaks, line - 1), end ?? folded.length)
    const kept = cut(whole, maxLineLength)
    const shown = kept.length === whole.length ? whole : `${kept}… [${whole.length - kept.length} more characters]`
    const size = new TextEncoder().encode(shown).length + (end === undefined ? 0 : 1)
    if (bytes + size > maxBytes) break
    bytes += size
    content += end === undefined ? shown : `${shown}\n`
    if (kept.length < whole.length) linesCut++
  }
  return { content, endLine: line - 1, linesCut }
}

export const read = Tool.make("read", {
  description: "Reads a text file. Long files come in pages: go on with offset = nextOffset. Lines end with LF here, " +
    "whatever the file has on disk.",
  kind: "tool_call",
  policy: "auto",
  readOnly: true,
  parallelSafe: true,
  codes: [...pathCodes, ...readCodes, "offset_out_of_range"],
  parameters: Parameters,
  success: Success,
  handler: Effect.fnUntraced(function*(args) {
    const fs = yield* FileSystem.FileSystem
    const invocation = yield* ToolInvocation
    const resolved = yield* (yield* WorkspacePath).forRead(invocation.turn, args.path)
    if (!resolved.exists) return yield* missing(fs, yield* Path.Path, resolved)
    const file = yield* readText(fs, yield* Digest, resolved.physical, resolved.relative, yield* MaxFileBytes)
    const folded = foldCrlf(file.text)
    const breaks = newlines(folded)
    const totalLines = breaks.length + (folded === "" || folded.endsWith("\n") ? 0 : 1)
    const startLine = args.offset ?? 1
    if (startLine > Math.max(totalLines, 1)) {
      return yield* fileError(
        "offset_out_of_range",
        `${quote(args.path)} has ${totalLines} lines; offset ${startLine} is past its end.`,
        {
          totalLines
        }
      )
    }
    const until = Math.min(totalLines, startLine - 1 + Math.min(args.limit ?? maxLines, maxLines))
    const page = pageOf(folded, breaks, startLine, until)
    const partial = startLine > 1 || page.endLine < totalLines || page.linesCut > 0
    yield* invocation.observe({ access: "read", path: resolved.physical, hash: file.hash, partial })
    return {
      path: resolved.relative,
      content: page.content,
      startLine,
      endLine: page.endLine,
      totalLines,
      byteSize: file.byteSize,
      truncated: page.endLine < totalLines || page.linesCut > 0,
      nextOffset: page.endLine < totalLines ? page.endLine + 1 : null,
      revision: short(file.hash)
    }
  }),
  render: (output) => {
    if (output.totalLines === 0) return [text("[The file is empty.]")]
    const more = output.nextOffset === null
      ? []
      : [
        text(
          `[Lines ${output.startLine} to ${output.endLine} of ${output.totalLines}; next offset ${output.nextOffset}.]`
        )
      ]
    return [text(output.content), ...more]
  }
})
