/**
 * Files as text and back, byte for byte: UTF-8 with or without a byte order mark, and UTF-16 with one.
 *
 * Anything else is refused with the offset of the first byte that does not fit, so nothing is ever written that was not
 * understood (decisions, Files: encodings).
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Scope from "effect/Scope"
import type { Sha256 } from "../contract/Digest.ts"
import type { FileAccess, Info, OpenFile } from "./FileAccess.ts"
import { type FileError, fileError, fromPlatform, quote, type ReadCode } from "./FileError.ts"

/** How large a file may be, in bytes, to be taken into memory. Default 16 MiB. */
export class MaxFileBytes extends Context.Reference<MaxFileBytes>()("portcullis/MaxFileBytes", {
  defaultValue: () => 16 * 1024 * 1024
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
  const nul = firstNul(body, label)
  const ill = Either.isLeft(text) ? firstIllFormed(body, label) : Number.POSITIVE_INFINITY
  return Either.isLeft(text) || nul !== -1
    ? Either.left(start + (nul === -1 ? ill : Math.min(nul, ill)))
    : Either.right({ text: text.right, encoding })
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

const firstNul = (bytes: Uint8Array, label: Label): number => {
  let at = bytes.indexOf(0)
  if (label === "utf-8") return at
  while (at !== -1 && (at % 2 === 1 || bytes[at + 1] !== 0)) at = bytes.indexOf(0, at + 1)
  return at
}

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

const tooLarge = (display: string, byteSize: number, maxBytes: number) =>
  fileError(
    "file_too_large",
    `${quote(display)} is larger than the ${maxBytes} bytes that file tools take in at once.`,
    { byteSize, maxBytes }
  )

/**
 * Opens a regular file; nothing else is ever waited for. `path` is physical, `display` names it in failures. With `write`
 * it can be written through the same handle, or is `file_access_denied`.
 */
export const open = (
  access: FileAccess["Type"],
  path: string,
  display: string,
  options?: { readonly write?: boolean }
): Effect.Effect<OpenFile, FileError<ReadCode>, Scope.Scope> =>
  Effect.catchAll(
    access.open(path, options),
    (error): Effect.Effect<never, FileError<ReadCode>> =>
      error._tag !== "SystemError" || error.reason !== "BadResource"
        ? Effect.fail(fromPlatform(display)(error))
        : Effect.if(Effect.isSuccess(Effect.scoped(access.hold(path))), {
          onTrue: () =>
            Effect.fail(fileError("is_a_directory", `${quote(display)} is a directory. To list it, call ls.`)),
          onFalse: () => Effect.fail(fileError("not_a_regular_file", `${quote(display)} is not a regular file.`))
        })
  )

/** A file that tells no size, as in `/proc`, is read in pieces of this many bytes. */
const piece = 64 * 1024

/** The bytes of an open file, and the first beyond `max` if it has more. */
export const bytesUpTo = Effect.fnUntraced(function*(
  file: OpenFile,
  { size }: Info,
  display: string,
  max: number
): Effect.fn.Return<Uint8Array, FileError<ReadCode>> {
  const pieces: Array<Uint8Array> = []
  let total = 0
  // One byte more than the file says it has tells whether that is all.
  let asked = Math.min(size, max) + 1
  while (true) {
    const next = yield* Effect.mapError(file.read(total, asked), fromPlatform(display))
    pieces.push(next)
    total += next.length
    if (next.length < asked || total > max) return pieces.length === 1 ? next : joined(pieces, total)
    asked = Math.min(piece, max + 1 - total)
  }
})

/** All bytes of an open file of at most `maxBytes`: a larger one is refused before any memory is taken for it. */
export const bytesOf = (
  file: OpenFile,
  info: Info,
  display: string,
  maxBytes: number
): Effect.Effect<Uint8Array, FileError<ReadCode>> =>
  info.size > maxBytes ? Effect.fail(tooLarge(display, info.size, maxBytes)) : Effect.filterOrFail(
    bytesUpTo(file, info, display, maxBytes),
    (bytes) => bytes.length <= maxBytes,
    (bytes) => tooLarge(display, bytes.length, maxBytes)
  )

const joined = (pieces: ReadonlyArray<Uint8Array>, total: number): Uint8Array => {
  const out = new Uint8Array(total)
  let at = 0
  for (const one of pieces) {
    out.set(one, at)
    at += one.length
  }
  return out
}

/** All bytes of a regular file of at most `maxBytes`. An interruption waits for the read that is under way. */
export const readBytes = (
  access: FileAccess["Type"],
  path: string,
  display: string,
  maxBytes: number
): Effect.Effect<Uint8Array, FileError<ReadCode>> =>
  Effect.gen(function*() {
    const file = yield* open(access, path, display)
    const info = yield* Effect.mapError(file.info, fromPlatform(display))
    return yield* bytesOf(file, info, display, maxBytes)
  }).pipe(Effect.scoped)

/** Some bytes, and their hash, as a file of text. Fails with `file_not_text` and the byte offset when they are not. */
export const fromBytes = (
  bytes: Uint8Array,
  hash: string,
  display: string
): Effect.Effect<TextFile, FileError<"file_not_text">> =>
  Either.match(decode(bytes), {
    onLeft: (byteOffset) => Effect.fail(notText(bytes, byteOffset, display)),
    onRight: (decoded) => Effect.succeed({ ...decoded, hash, byteSize: bytes.length })
  })

const notText = (bytes: Uint8Array, byteOffset: number, display: string): FileError<"file_not_text"> => {
  const value = bytes[byteOffset] ?? 0
  const guess = value === 0 && detect(bytes).charset === "utf-8"
    ? "It seems to be a binary file"
    : "It may be in an older encoding such as GBK or Latin-1, or a binary file"
  return fileError(
    "file_not_text",
    `${quote(display)} is not text in UTF-8, or in UTF-16 with a byte order mark: byte ${byteOffset} ` +
      `(0x${value.toString(16).padStart(2, "0")}) does not fit. ${guess}; file tools leave it as it is. ` +
      "Use a command to look at it or to convert it.",
    { byteOffset }
  )
}

/** A file as text. Fails with `file_not_text` and the byte offset when it is not. */
export const read = (
  access: FileAccess["Type"],
  sha256: Sha256,
  path: string,
  display: string,
  maxBytes: number
): Effect.Effect<TextFile, FileError<ReadCode>> =>
  Effect.flatMap(readBytes(access, path, display, maxBytes), (bytes) => fromBytes(bytes, sha256(bytes), display))
