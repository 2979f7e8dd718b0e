import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { sandboxModes } from "../../src/contract/Policy.ts"
import { layerReporting, layerUnavailable, layerUnconfined, ProcessSandbox } from "../../src/process/ProcessSandbox.ts"

const argv = ["/bin/ls", "-l"]

/** What becomes of a command under each mode: the argv, or the code of the refusal. */
const confined = (layer: Layer.Layer<ProcessSandbox>) =>
  Effect.gen(function*() {
    const sandbox = yield* ProcessSandbox
    return yield* Effect.forEach(sandboxModes, (mode) =>
      sandbox.confine(argv, { mode, roots: ["/w"], cwd: "/w" }).pipe(
        Effect.scoped,
        Effect.catchAll(({ code }) => Effect.succeed([code]))
      ))
  }).pipe(Effect.provide(layer))

const refused = ["sandbox_unavailable"]

describe("ProcessSandbox", () => {
  it.effect("unconfined says so and runs under full access alone", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* confined(layerUnconfined), [argv, refused, refused, refused])
      assert.strictEqual(yield* Effect.flatMap(ProcessSandbox, (_) => _.report), "none")
    }).pipe(Effect.provide(layerUnconfined)))

  it.effect("unavailable refuses to report and to confine, and leaves full access alone", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* confined(layerUnavailable("no runner")), [argv, refused, refused, refused])
      const error = yield* Effect.flip(Effect.flatMap(ProcessSandbox, (_) => _.report))
      assert.strictEqual(error.reason, "no runner")
    }).pipe(Effect.provide(layerUnavailable("no runner"))))

  it.effect("reporting says what it is told and passes every argv through", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* confined(layerReporting("external")), [argv, argv, argv, argv])
      assert.strictEqual(yield* Effect.flatMap(ProcessSandbox, (_) => _.report), "external")
    }).pipe(Effect.provide(layerReporting("external"))))
})
