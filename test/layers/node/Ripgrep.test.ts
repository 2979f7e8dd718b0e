import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { accessSync, constants } from "node:fs"
import * as NodeRipgrep from "../../../layers/node/Ripgrep.ts"
import { layerAt, layerUnavailable, Ripgrep } from "../../../src/process/Ripgrep.ts"

const executable = Effect.flatMap(Ripgrep, (_) => _.executable)

describe("Ripgrep", () => {
  it.effect("finds the program of the package", () =>
    Effect.gen(function*() {
      const path = yield* executable
      assert.isTrue(path.startsWith("/"))
      accessSync(path, constants.X_OK)
    }).pipe(Effect.provide(NodeRipgrep.layer)))

  it.effect("is where it is told to be, or unavailable with a code", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* Effect.provide(executable, layerAt("/x/rg")), "/x/rg")
      const error = yield* Effect.flip(Effect.provide(executable, layerUnavailable("no binary")))
      assert.strictEqual(error.code, "ripgrep_unavailable")
      assert.include(error.message, "no binary")
    }))
})
