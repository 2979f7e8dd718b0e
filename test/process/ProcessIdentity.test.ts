import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { layerSolitary, ProcessIdentity } from "../../src/process/ProcessIdentity.ts"

describe("ProcessIdentity, solitary", () => {
  it.effect("knows itself alone, and is another each time it is built", () =>
    Effect.gen(function*() {
      const one = yield* Effect.provide(ProcessIdentity, layerSolitary)
      const two = yield* Effect.provide(ProcessIdentity, layerSolitary)
      assert.isTrue(yield* one.alive(one.self))
      assert.isFalse(yield* one.alive(two.self))
    }))
})
