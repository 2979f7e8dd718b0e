/**
 * Files as text and back, byte for byte: UTF-8 with or without a byte order mark, and UTF-16 with one.
 *
 * Anything else is refused with the offset of the first byte that does not fit, so nothing is ever written that was not
 * understood (decisions, Files: encodings).
 *
 * @since 0.1.0
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import type { Sha256 } from "../contract/Digest.ts"
import { type FileError, fileError, fromPlatform, quote, type ReadCode } from "./FileError.ts"

/** How large a file may be, in bytes, to be taken into memory. Default 8 MiB. */
export class MaxFileBytes extends Context.Reference<MaxFileBytes>()("portcullis/MaxFileBytes", {
  defaultValue: () => 8 * 1024 * 1024
}) {}

export interface Encoding {
  readonly charset: "utf-8" | "utf-16le" | "utf-16be"
  readonly bom: boolean
}

export const utf8: Encoding = { charset: "utf-8", bom: false }

export interface Decoded {
  /** Without the byte order mark; line endings as they are. */
  readonly text: string
  readonly encoding: Encoding
}

export interface TextFile extends Decoded {
  /** SHA-256 of the bytes, hexadecimal. */
  readonly hash: string
  readonly byteSize: number
}

const bomLength = (encoding: Encoding): number => !encoding.bom ? 0 : encoding.charset === "utf-8" ? 3 : 2

const detect = (bytes: Uint8Array): Encoding => {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return { charset: "utf-8", bom: true }
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return { charset: "utf-16le", bom: true }
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return { charset: "utf-16be", bom: true }
  return utf8
}

/** The text of some bytes, or the offset of the first byte that is not text: ill-formed, or a NUL. */
export const decode = (bytes: Uint8Array): Either.Either<Decoded, number> => {
  const encoding = detect(bytes)
  const start = bomLength(encoding)
  const body = encoding.charset === "utf-16be" ? swapped(bytes.subarray(start)) : bytes.subarray(start)
  const label = encoding.charset === "utf-8" ? "utf-8" : "utf-16le"
  const text = Either.try(() => new TextDecoder(label, { fatal: true, ignoreBOM: true }).decode(body))
  if (Either.isLeft(text)) return Either.left(start + firstIllFormed(body, label))
  const nul = text.right.indexOf("\0")
  return nul === -1
    ? Either.right({ text: text.right, encoding })
    : Either.left(start + sizeOf(text.right.slice(0, nul), label))
}

/** The bytes of a text. Half a surrogate pair is `text_invalid`: it has no bytes. */
export const encode = (text: string, encoding: Encoding): Either.Either<Uint8Array, FileError<"text_invalid">> => {
  if (!text.isWellFormed()) return Either.left(fileError("text_invalid", "The text holds half a surrogate pair."))
  const marked = encoding.bom ? `\ufeff${text}` : text
  if (encoding.charset === "utf-8") return Either.right(new TextEncoder().encode(marked))
  const bytes = new Uint8Array(marked.length * 2)
  const view = new DataView(bytes.buffer)
  for (let index = 0; index < marked.length; index++) {
    view.setUint16(index * 2, marked.charCodeAt(index), encoding.charset === "utf-16le")
  }
  return Either.right(bytes)
}

const swapped = (bytes: Uint8Array): Uint8Array => {
  const out = new Uint8Array(bytes)
  for (let index = 0; index + 1 < out.length; index += 2) {
    out[index] = bytes[index + 1] ?? 0
    out[index + 1] = bytes[index] ?? 0
  }
  return out
}

type Label = "utf-8" | "utf-16le"

const sizeOf = (text: string, label: Label): number =>
  label === "utf-8" ? new TextEncoder().encode(text).length : text.length * 2

/**
 * A lenient decoder puts U+FFFD where the bytes are ill-formed; the first that is not in the bytes themselves is the
 * place.
 */
const firstIllFormed = (bytes: Uint8Array, label: Label): number => {
  const genuine = label === "utf-8" ? [0xef, 0xbf, 0xbd] : [0xfd, 0xff]
  const lenient = new TextDecoder(label, { ignoreBOM: true }).decode(bytes)
  let offset = 0
  let from = 0
  for (let at = lenient.indexOf("\ufffd"); at !== -1; at = lenient.indexOf("\ufffd", from)) {
    offset += sizeOf(lenient.slice(from, at), label)
    if (!genuine.every((byte, index) => bytes[offset + index] === byte)) return offset
    offset += genuine.length
    from = at + 1
  }
  return offset
}

/** Refuses everything but a regular file of at most `maxBytes`. */
export const admit = (
  info: FileSystem.File.Info,
  display: string,
  maxBytes: number
): Effect.Effect<void, FileError<"is_a_directory" | "not_a_regular_file" | "file_too_large">> => {
  if (info.type === "Directory") return Effect.fail(fileError("is_a_directory", `${quote(display)} is a directory.`))
  if (info.type !== "File") {
    return Effect.fail(fileError("not_a_regular_file", `${quote(display)} is not a regular file but a ${info.type}.`))
  }
  return info.size > maxBytes ? Effect.fail(tooLarge(display, Number(info.size), maxBytes)) : Effect.void
}

const tooLarge = (display: string, byteSize: number, maxBytes: number) =>
  fileError(
    "file_too_large",
    `${quote(display)} is larger than the ${maxBytes} bytes that file tools take in at once.`,
    {
      byteSize,
      maxBytes
    }
  )

/**
 * All bytes of a regular file of at most `maxBytes`. `path` is physical, `display` names it in failures.
 *
 * Nothing but a regular file is ever opened: opening a FIFO would wait for its writer. An interruption waits for the
 * read that is under way.
 */
export const readBytes = (
  fs: FileSystem.FileSystem,
  path: string,
  display: string,
  maxBytes: number
): Effect.Effect<Uint8Array, FileError<ReadCode>> => {
  const failed = fromPlatform(display)
  return Effect.gen(function*() {
    yield* admit(yield* Effect.mapError(fs.stat(path), failed), display, maxBytes)
    const file = yield* Effect.mapError(fs.open(path), failed)
    const info = yield* Effect.mapError(file.stat, failed)
    yield* admit(info, display, maxBytes)
    const chunks: Array<Uint8Array> = []
    let total = 0
    while (true) {
      const chunk = yield* Effect.mapError(file.readAlloc(Math.max(Number(info.size) - total, 0) + 4096), failed)
      if (Option.isNone(chunk)) return joined(chunks, total)
      chunks.push(chunk.value)
      total += chunk.value.length
      if (total > maxBytes) return yield* tooLarge(display, total, maxBytes)
    }
  }).pipe(
    Effect.scoped,
    // A read cannot be called back: closing its descriptor under it could make it read another file's.
    Effect.uninterruptible
  )
}

const joined = (chunks: ReadonlyArray<Uint8Array>, total: number): Uint8Array => {
  const [first] = chunks
  if (first !== undefined && chunks.length === 1) return first
  const out = new Uint8Array(total)
  let at = 0
  for (const chunk of chunks) {
    out.set(chunk, at)
    at += chunk.length
  }
  return out
}

/** A file as text. Fails with `file_not_text` and the byte offset when it is not. */
export const read = (
  fs: FileSystem.FileSystem,
  sha256: Sha256,
  path: string,
  display: string,
  maxBytes: number
): Effect.Effect<TextFile, FileError<ReadCode>> =>
  Effect.flatMap(readBytes(fs, path, display, maxBytes), (bytes) =>
    Either.match(decode(bytes), {
      onLeft: (byteOffset) =>
        Effect.fail(
          fileError("file_not_text", `${quote(display)} is not text in UTF-8 or in UTF-16 with a byte order mark.`, {
            byteOffset
          })
        ),
      onRight: (decoded) => Effect.succeed({ ...decoded, hash: sha256(bytes), byteSize: bytes.length })
    }))
