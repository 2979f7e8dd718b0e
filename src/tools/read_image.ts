/**
 * `read_image`: hands an image to a model that can see it, as a content part.
 *
 * @since 0.1.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { toolError } from "../contract/ToolFailure.ts"
import { text } from "../contract/ToolResult.ts"
import { fromPlatform, pathCodes, quote, readCodes } from "../file/FileError.ts"
import { openIn } from "../file/Folder.ts"
import * as Image from "../file/Image.ts"
import { missing } from "../file/Missing.ts"
import { bytesUpTo } from "../file/TextFile.ts"
import { WorkspacePath } from "../file/WorkspacePath.ts"
import { base64 } from "../internal/base64.ts"
import * as Tool from "../tool/Tool.ts"
import { ToolInvocation } from "../tool/ToolInvocation.ts"

const Parameters = Schema.Struct({
  path: Schema.String.annotations({ description: "The image, from the workspace or absolute." })
})

const Output = Schema.Struct({
  path: Schema.String,
  mediaType: Schema.Literal(...Image.mediaTypes),
  /** Pixels, as stored. */
  width: Schema.Number,
  height: Schema.Number,
  byteSize: Schema.Number
})

/** The base64 is content for the model alone: the output would only keep it a second time. */
const Success = Schema.transform(Output, Schema.Struct({ ...Output.fields, data: Schema.String }), {
  strict: true,
  decode: (output) => ({ ...output, data: "" }),
  encode: ({ data: _, ...output }) => output
})

const tooLarge = (path: string, what: string, details: { readonly [key: string]: number }) =>
  toolError(
    "image_too_large",
    `${quote(path)} has ${what}. Make a smaller copy with a command, then call read_image on that.`,
    details
  )

/** Bytes whose base64 is so long. */
const bytesIn = (base64: number): number => Math.floor(base64 / 4) * 3

export const readImage = Tool.make("read_image", {
  description: "Shows you an image: PNG, JPEG, GIF or WebP.",
  kind: "tool_call",
  policy: "auto",
  readOnly: true,
  parallelSafe: true,
  shouldAdvertise: (turn) => turn.model.inputModalities.includes("image"),
  codes: [...pathCodes, ...readCodes, "not_an_image", "image_too_large"],
  parameters: Parameters,
  success: Success,
  handler: ({ path }) =>
    Effect.gen(function*() {
      const limits = yield* Image.ImageLimits
      const { turn } = yield* ToolInvocation
      const resolved = yield* (yield* WorkspacePath).forRead(turn, path)
      if (!resolved.exists) return yield* missing(yield* FileSystem.FileSystem, yield* Path.Path, resolved)
      const file = yield* openIn(resolved)
      const info = yield* Effect.mapError(file.info, fromPlatform(resolved.relative))
      const maxBytes = bytesIn(limits.base64)
      const bytes = yield* bytesUpTo(file, info, resolved.relative, maxBytes)
      const image = Image.inspect(bytes)
      if (image === undefined) {
        return yield* toolError(
          "not_an_image",
          `${quote(path)} is not a PNG, JPEG, GIF or WebP image, whatever its name says. For text call read.`
        )
      }
      if (bytes.length > maxBytes) {
        const byteSize = Math.max(info.size, bytes.length)
        return yield* tooLarge(path, `${byteSize} bytes where ${maxBytes} fit`, { byteSize, maxBytes })
      }
      if (image.size === undefined) {
        return yield* toolError(
          "not_an_image",
          `${quote(path)} begins like ${image.mediaType}, but its header is broken.`
        )
      }
      const { height, width } = image.size
      if (width > limits.width || height > limits.height) {
        return yield* tooLarge(path, `${width} × ${height} pixels where ${limits.width} × ${limits.height} fit`, {
          width,
          height,
          maxWidth: limits.width,
          maxHeight: limits.height
        })
      }
      const { mediaType } = image
      const data = base64(bytes)
      return { path: resolved.relative, mediaType, width, height, byteSize: bytes.length, data }
    }).pipe(Effect.scoped),
  render: ({ byteSize, data, height, mediaType, path, width }) => [
    text(`${path}: ${mediaType}, ${width} × ${height} pixels, ${byteSize} bytes.`),
    { type: "image", mediaType, data }
  ]
})
