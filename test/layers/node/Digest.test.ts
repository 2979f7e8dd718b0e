import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "effect/FastCheck"
import * as NodeDigest from "../../../layers/node/Digest.ts"
import { Digest } from "../../../src/contract/Digest.ts"

describe("Digest", () => {
  it.effect("the platform's digest is the default's, for any text and any bytes", () =>
    Effect.gen(function*() {
      const portable = yield* Digest
      const native = yield* Effect.provide(Digest, NodeDigest.layer)
      assert.notStrictEqual(native, portable)
      fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => native(text) === portable(text)))
      fc.assert(fc.property(fc.uint8Array(), (bytes) => native(bytes) === portable(bytes)))
      assert.strictEqual(native("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    }))
})
