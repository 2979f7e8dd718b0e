/**
 * `read`: a text file, or a page of it; of an image, what it is (seed 4.1).
 *
 * @since 0.1.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { Digest, short } from "../contract/Digest.ts"
import { toolError } from "../contract/ToolFailure.ts"
import { text } from "../contract/ToolResult.ts"
import type { Turn } from "../contract/Turn.ts"
import type { Info, OpenFile } from "../file/FileAccess.ts"
import { fileError, fromPlatform, pathCodes, quote, readCodes } from "../file/FileError.ts"
import { openIn } from "../file/Folder.ts"
import * as Image from "../file/Image.ts"
import { missing } from "../file/Missing.ts"
import { bytesUpTo, decode, MaxFileBytes } from "../file/TextFile.ts"
import * as TextPage from "../file/TextPage.ts"
import { type Resolved, WorkspacePath } from "../file/WorkspacePath.ts"
import { newlines } from "../internal/lines.ts"
import * as Tool from "../tool/Tool.ts"
import { ToolInvocation } from "../tool/ToolInvocation.ts"

const count = (description: string) =>
  Schema.optionalWith(Schema.Number.pipe(Schema.int(), Schema.positive()).annotations({ description }), { exact: true })

const Parameters = Schema.Struct({
  path: Schema.String.annotations({ description: "The file, from the workspace or absolute." }),
  offset: count("First line, counted from 1. Default 1."),
  column: count("First character of that line, counted from 1: only to go on inside a line too long for one page."),
  limit: count("Lines at most. Default as many as fit."),
  maxTokens: count("Tokens at most, about; a page is never larger than by default."),
  expectedRevision: Schema.optionalWith(
    Schema.String.annotations({
      description: "The revision of the page before; fails when the file is another by now."
    }),
    { exact: true }
  )
})
type Arguments = typeof Parameters.Type

const Text = Schema.Struct({
  kind: Schema.Literal("text"),
  path: Schema.String,
  /** LF endings, no byte order mark; the contents of all pages, joined, are the text. */
  content: Schema.String,
  startLine: Schema.Number,
  /** `startLine - 1` when the file is empty. */
  endLine: Schema.Number,
  /** `null` for a file too large to be read whole. */
  totalLines: Schema.NullOr(Schema.Number),
  /** On disk. */
  byteSize: Schema.Number,
  /** Something is left after the page. */
  truncated: Schema.Boolean,
  /** The line to go on with. */
  nextOffset: Schema.NullOr(Schema.Number),
  /** Only when the page ends inside a line: its first character that is not shown. */
  nextColumn: Schema.optionalWith(Schema.Number, { exact: true }),
  /** Only then: how many characters of that line are left, `null` when nobody counted them. */
  charactersLeft: Schema.optionalWith(Schema.NullOr(Schema.Number), { exact: true }),
  /** Of the content; of a file too large to be read whole `stat-<bytes>-<modification time>`. */
  revision: Schema.String,
  /** Only when the file is too large to be edited. */
  editable: Schema.optionalWith(Schema.Literal(false), { exact: true })
})

const Picture = Schema.Struct({
  kind: Schema.Literal("image"),
  path: Schema.String,
  mediaType: Schema.Literal(...Image.mediaTypes),
  /** Pixels; `null` when its header is broken. */
  width: Schema.NullOr(Schema.Number),
  height: Schema.NullOr(Schema.Number),
  byteSize: Schema.Number,
  /** Whether this turn's model can see it, by `read_image`. */
  viewable: Schema.Boolean
})

const Success = Schema.Union(Text, Picture)

/** How much of a large file's beginning shows that it is text, and within how much the header of a large image is. */
const headBytes = 4096
const headerBytes = 256 * 1024

const notText = (resolved: Resolved, turn: Turn, head: Uint8Array, byteSize: number, byteOffset: number) => {
  const image = Image.inspect(head)
  if (image !== undefined) {
    return Effect.succeed<typeof Picture.Type>({
      kind: "image",
      path: resolved.relative,
      mediaType: image.mediaType,
      width: image.size?.width ?? null,
      height: image.size?.height ?? null,
      byteSize,
      viewable: turn.model.inputModalities.includes("image")
    })
  }
  const format = Image.seems(head)
  return Effect.fail(fileError(
    "file_not_text",
    `${quote(resolved.relative)} is not text in UTF-8 or in UTF-16 with a byte order mark: byte ${byteOffset} does ` +
      `not fit. ${format === undefined ? "It may be binary, or in another encoding" : `It seems to be ${format}`}.`,
    { byteOffset, ...(format === undefined ? {} : { format }) }
  ))
}

const sameRevision = (args: Arguments, actual: string) =>
  args.expectedRevision === undefined || args.expectedRevision === actual ? Effect.void : Effect.fail(toolError(
    "file_revision_mismatch",
    `${quote(args.path)} has changed: revision ${quote(args.expectedRevision)} was expected, it has ${actual}. Read ` +
      "it again from its beginning.",
    { expected: args.expectedRevision, actual }
  ))

/** The page that is asked for, or the failure that there is none. */
const pageOf = Effect.fnUntraced(function*<E>(args: Arguments, source: TextPage.Source<E>) {
  const place = { line: args.offset ?? 1, column: args.column ?? 1 }
  const limits = TextPage.limitsOf(yield* TextPage.ReadBudget, args.limit, args.maxTokens)
  const page = yield* TextPage.page(source, place, limits)
  if (Either.isRight(page)) return page.right
  const problem = page.left
  switch (problem._tag) {
    case "PastEnd":
      return yield* fileError(
        "offset_out_of_range",
        `${quote(args.path)} has ${problem.totalLines} lines; offset ${place.line} is past its end.`,
        { totalLines: problem.totalLines }
      )
    case "PastLine":
      return yield* fileError(
        "offset_out_of_range",
        `Line ${place.line} of ${quote(args.path)} has ${problem.columns} characters; column ${place.column} is past ` +
          "its end.",
        { columns: problem.columns }
      )
    case "IllFormed":
      return yield* fileError(
        "file_not_text",
        `${quote(args.path)} is not text in UTF-8 here: byte ${problem.byteOffset} does not fit.`,
        { byteOffset: problem.byteOffset }
      )
  }
})

const shown = (
  resolved: Resolved,
  args: Arguments,
  page: TextPage.Page,
  byteSize: number,
  revision: string
) => ({
  kind: "text" as const,
  path: resolved.relative,
  content: page.content,
  startLine: args.offset ?? 1,
  endLine: page.endLine,
  byteSize,
  truncated: page.next !== null,
  nextOffset: page.next?.line ?? null,
  revision
})

const inside = (page: TextPage.Page): page is TextPage.Page & { readonly next: TextPage.Place } =>
  page.next !== null && page.next.column > 1

/** A file that is all in memory: judged, hashed and observed as a whole, whatever part of it is shown. */
const small = Effect.fnUntraced(function*(resolved: Resolved, args: Arguments, bytes: Uint8Array) {
  const { observe, turn } = yield* ToolInvocation
  const decoded = decode(bytes)
  if (Either.isLeft(decoded)) return yield* notText(resolved, turn, bytes, bytes.length, decoded.left)
  const hash = (yield* Digest)(bytes)
  yield* sameRevision(args, short(hash))
  const { encoding, text } = decoded.right
  const utf8 = encoding.charset === "utf-8" ? bytes : new TextEncoder().encode(text)
  const start = encoding.charset === "utf-8" && encoding.bom ? 3 : 0
  const page = yield* pageOf(args, TextPage.ofBytes(utf8, start))
  const output: typeof Text.Type = {
    ...shown(resolved, args, page, bytes.length, short(hash)),
    totalLines: newlines(text).length + (text === "" || text.endsWith("\n") ? 0 : 1),
    ...(inside(page) ? { nextColumn: page.next.column, charactersLeft: charactersLeft(utf8, page.end) } : {})
  }
  yield* observe({
    access: "read",
    path: resolved.physical,
    hash,
    partial: page.begin > start || page.next !== null,
    span: { from: page.begin - start, to: page.next === null ? null : page.end - start }
  })
  return output
})

const charactersLeft = (utf8: Uint8Array, from: number): number => {
  const found = utf8.indexOf(0x0a, from)
  const end = found === -1 ? utf8.length : found
  return TextPage.characters(utf8.subarray(from, utf8[end - 1] === 0x0d && found !== -1 ? end - 1 : end))
}

/**
 * A file too large to be taken into memory: only its head and what leads to the page and is in it are read. Nothing is
 * observed, since no edit of it could be made.
 */
const large = Effect.fnUntraced(function*(
  resolved: Resolved,
  args: Arguments,
  file: OpenFile,
  info: Info,
  maxBytes: number
) {
  const { turn } = yield* ToolInvocation
  const failed = fromPlatform(resolved.relative)
  const read = (offset: number, length: number) => Effect.mapError(file.read(offset, length), failed)
  const head = yield* read(0, headBytes)
  if ((head[0] === 0xff && head[1] === 0xfe) || (head[0] === 0xfe && head[1] === 0xff)) {
    return yield* fileError(
      "file_too_large",
      `${quote(resolved.relative)} is UTF-16 and larger than ${maxBytes} bytes: only UTF-8 can be paged at that size.`,
      { byteSize: info.size, maxBytes }
    )
  }
  const decoded = decode(head.subarray(0, TextPage.boundary(head, head.length - 1)))
  if (Either.isLeft(decoded)) {
    return yield* notText(resolved, turn, yield* read(0, headerBytes), info.size, decoded.left)
  }
  const revision = `stat-${info.size}-${info.modifiedMs}`
  yield* sameRevision(args, revision)
  const page = yield* pageOf(args, { start: decoded.right.encoding.bom ? 3 : 0, read })
  const output: typeof Text.Type = {
    ...shown(resolved, args, page, info.size, revision),
    totalLines: null,
    ...(inside(page) ? { nextColumn: page.next.column, charactersLeft: null } : {}),
    editable: false
  }
  return output
})

export const read = Tool.make("read", {
  description: "Reads a text file. Long files come in pages: go on with offset = nextOffset (and column = nextColumn " +
    "where there is one). Lines end with LF here, whatever the file has on disk. Of an image it tells type and size.",
  kind: "tool_call",
  policy: "auto",
  readOnly: true,
  parallelSafe: true,
  codes: [...pathCodes, ...readCodes, "offset_out_of_range", "file_revision_mismatch"],
  parameters: Parameters,
  success: Success,
  handler: (args) =>
    Effect.gen(function*() {
      const maxBytes = yield* MaxFileBytes
      const { turn } = yield* ToolInvocation
      const resolved = yield* (yield* WorkspacePath).forRead(turn, args.path)
      if (!resolved.exists) return yield* missing(yield* FileSystem.FileSystem, yield* Path.Path, resolved)
      const file = yield* openIn(resolved)
      const info = yield* Effect.mapError(file.info, fromPlatform(resolved.relative))
      if (info.size > maxBytes) return yield* large(resolved, args, file, info, maxBytes)
      const bytes = yield* bytesUpTo(file, info, resolved.relative, maxBytes)
      return yield* bytes.length > maxBytes
        ? large(resolved, args, file, info, maxBytes)
        : small(resolved, args, bytes)
    }).pipe(Effect.scoped),
  render: (output) => {
    if (output.kind === "image") {
      const { height, mediaType, width } = output
      const size = width === null || height === null ? "its size cannot be told" : `${width} × ${height} pixels`
      return [
        text(
          `[An image, ${mediaType}, ${size}, ${output.byteSize} bytes. ` +
            `${output.viewable ? "To look at it, call read_image." : "It cannot be shown to this model."}]`
        )
      ]
    }
    if (output.endLine < output.startLine) return [text("[The file is empty.]")]
    return [text(output.content), ...noteOf(output).map(text)]
  }
})

const noteOf = (output: typeof Text.Type): ReadonlyArray<string> => {
  const { charactersLeft, endLine, nextColumn, nextOffset, startLine, totalLines } = output
  const of = totalLines === null ? `a file of ${output.byteSize} bytes, too large to be edited` : totalLines
  const lines = `Lines ${startLine} to ${endLine} of ${of}, revision ${output.revision}`
  if (nextColumn !== undefined) {
    const left = charactersLeft === null ? "more" : `${charactersLeft} more characters`
    return [
      `[${lines}; line ${endLine} has ${left}: go on with offset ${endLine} and column ${nextColumn}, or skip them with ` +
      `offset ${endLine + 1}.]`
    ]
  }
  if (nextOffset !== null) return [`[${lines}; next offset ${nextOffset}.]`]
  return totalLines === null ? [`[${lines}.]`] : []
}
