/**
 * The ripgrep that comes with `@vscode/ripgrep`, loaded at the first search and not before.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Ripgrep, RipgrepUnavailable } from "../../src/process/Ripgrep.ts"

/** Never fails to build: a platform without a binary answers `ripgrep_unavailable`. */
export const make: Effect.Effect<Ripgrep["Type"]> = Effect.map(
  Effect.cached(Effect.tryPromise({
    try: () => import("@vscode/ripgrep"),
    catch: (cause) => new RipgrepUnavailable({ reason: cause instanceof Error ? cause.message : String(cause) })
  })),
  (loaded) => ({ executable: Effect.map(loaded, ({ rgPath }) => rgPath) })
)

export const layer: Layer.Layer<Ripgrep> = Layer.effect(Ripgrep, make)
