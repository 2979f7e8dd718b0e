/**
 * What a file that is not text seems to be, by its first bytes and never by its name; and how large an image is.
 *
 * Reads headers alone: nothing is unpacked, no offset that a file claims is trusted, and no bytes make it throw.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"

export const mediaTypes = ["image/png", "image/jpeg", "image/gif", "image/webp"] as const
export type MediaType = typeof mediaTypes[number]

/** In pixels, as stored: an orientation that the file asks for is not applied. */
export interface Size {
  readonly width: number
  readonly height: number
}

export interface Image {
  readonly mediaType: MediaType
  /** `undefined` when its header is broken or not within the bytes. */
  readonly size: Size | undefined
}

/** How large an image may be to be handed to a model. */
export interface Limits {
  /** Characters of its base64. */
  readonly base64: number
  /** Pixels. */
  readonly width: number
  readonly height: number
}

/** What `read_image` takes. Default 4.5 MiB of base64 and 8000 × 8000 pixels, which the usual models take. */
export class ImageLimits extends Context.Reference<ImageLimits>()("portcullis/ImageLimits", {
  defaultValue: (): Limits => ({ base64: 4.5 * 1024 * 1024, width: 8000, height: 8000 })
}) {}

const startsWith = (bytes: Uint8Array, text: string, at = 0): boolean => {
  for (let index = 0; index < text.length; index++) {
    if (bytes[at + index] !== text.charCodeAt(index)) return false
  }
  return true
}

/** An unsigned number of `count` bytes; 0 where the bytes end before. */
const big = (bytes: Uint8Array, at: number, count: number): number => {
  let value = 0
  for (let index = at; index < at + count; index++) value = value * 256 + (bytes[index] ?? 0)
  return at + count > bytes.length ? 0 : value
}

const little = (bytes: Uint8Array, at: number, count: number): number => {
  let value = 0
  for (let index = at + count - 1; index >= at; index--) value = value * 256 + (bytes[index] ?? 0)
  return at + count > bytes.length ? 0 : value
}

const sizeOf = (width: number, height: number): Size | undefined =>
  width > 0 && height > 0 ? { width, height } : undefined

const pngSize = (bytes: Uint8Array): Size | undefined =>
  startsWith(bytes, "IHDR", 12) ? sizeOf(big(bytes, 16, 4), big(bytes, 20, 4)) : undefined

/** Goes from segment to segment up to the frame header. */
const jpegSize = (bytes: Uint8Array): Size | undefined => {
  let at = 2
  while (at + 1 < bytes.length && bytes[at] === 0xff) {
    const marker = bytes[at + 1] ?? 0
    if (marker === 0xff) at += 1
    else if (marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8)) at += 2
    else if (marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc) {
      return sizeOf(big(bytes, at + 7, 2), big(bytes, at + 5, 2))
    } else {
      const length = big(bytes, at + 2, 2)
      if (length < 2 || marker === 0xd9 || marker === 0xda) return undefined
      at += 2 + length
    }
  }
  return undefined
}

const webpSize = (bytes: Uint8Array): Size | undefined => {
  if (startsWith(bytes, "VP8 ", 12) && startsWith(bytes, "\x9d\x01\x2a", 23)) {
    return sizeOf(little(bytes, 26, 2) & 0x3fff, little(bytes, 28, 2) & 0x3fff)
  }
  if (startsWith(bytes, "VP8L", 12) && bytes[20] === 0x2f && bytes.length >= 25) {
    const packed = little(bytes, 21, 4)
    return sizeOf((packed & 0x3fff) + 1, ((packed >>> 14) & 0x3fff) + 1)
  }
  return startsWith(bytes, "VP8X", 12) && bytes.length >= 30
    ? sizeOf(little(bytes, 24, 3) + 1, little(bytes, 27, 3) + 1)
    : undefined
}

/** The image that some bytes begin, or `undefined`. Linear in the bytes. */
export const inspect = (bytes: Uint8Array): Image | undefined => {
  if (startsWith(bytes, "\x89PNG\r\n\x1a\n")) return { mediaType: "image/png", size: pngSize(bytes) }
  if (startsWith(bytes, "\xff\xd8\xff")) return { mediaType: "image/jpeg", size: jpegSize(bytes) }
  if (startsWith(bytes, "GIF87a") || startsWith(bytes, "GIF89a")) {
    return { mediaType: "image/gif", size: sizeOf(little(bytes, 6, 2), little(bytes, 8, 2)) }
  }
  if (startsWith(bytes, "RIFF") && startsWith(bytes, "WEBP", 8)) {
    return { mediaType: "image/webp", size: webpSize(bytes) }
  }
  return undefined
}

const formats = [
  ["%PDF-", "a PDF document"],
  ["PK\x03\x04", "a zip archive or a document packed as one"],
  ["\x7fELF", "an ELF program or library"],
  ["MZ", "a Windows program"],
  ["\x1f\x8b", "gzip data"],
  ["SQLite format 3\0", "an SQLite database"],
  ["\0asm", "a WebAssembly module"]
] as const

/** What else the first bytes of a file that is not text say that it is, for a sentence; or `undefined`. */
export const seems = (bytes: Uint8Array): string | undefined => formats.find(([magic]) => startsWith(bytes, magic))?.[1]
