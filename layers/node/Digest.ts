/**
 * SHA-256 by the platform's own library.
 *
 * @since 0.1.0
 */
import * as Layer from "effect/Layer"
import * as Crypto from "node:crypto"
import { Digest, type Sha256 } from "../../src/contract/Digest.ts"

/** `hash` came with Node 20.12; it spares the object that `createHash` builds. */
const sha256: Sha256 = typeof Crypto.hash === "function"
  ? (input) => Crypto.hash("sha256", input, "hex")
  : (input) => Crypto.createHash("sha256").update(input).digest("hex")

export const layer: Layer.Layer<never> = Layer.succeed(Digest, sha256)
