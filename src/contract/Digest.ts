/**
 * SHA-256 as a replaceable function: pure JavaScript by default, the platform's own through a Layer (about ten times
 * faster; see `layers/node/Digest`).
 *
 * @since 0.1.0
 */
import { sha256 } from "@noble/hashes/sha2.js"
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js"
import * as Context from "effect/Context"

/** Lower-case hexadecimal SHA-256 of the UTF-8 of a text, or of bytes. */
export type Sha256 = (input: string | Uint8Array) => string

export class Digest extends Context.Reference<Digest>()("portcullis/Digest", {
  defaultValue: (): Sha256 => (input) => bytesToHex(sha256(typeof input === "string" ? utf8ToBytes(input) : input))
}) {}

/** The short form that names a tool or a catalog: the first 16 hex digits. */
export const short = (hex: string): string => hex.slice(0, 16)
