/**
 * Who owns something on disk, and whether that owner still lives.
 *
 * A pid alone names nobody: pids are reused. The start time and the boot id make it a name (decisions, Files: lock).
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

export const Owner = Schema.Struct({
  pid: Schema.Int.pipe(Schema.positive()),
  /** As the platform counts it; compared for equality only. `null` where it cannot be had. */
  startTime: Schema.NullOr(Schema.String),
  /** `null` where the platform has none. */
  bootId: Schema.NullOr(Schema.String),
  /** Random, one for each instance of this service. */
  token: Schema.String
})
export type Owner = typeof Owner.Type

export class ProcessIdentity extends Context.Tag("portcullis/ProcessIdentity")<ProcessIdentity, {
  /** This process. */
  readonly self: Owner
  /**
   * Whether the process of that record still lives. A zombie is dead; a pid with another start time, or of another boot, is
   * somebody else. In doubt the answer is yes: a live owner is never robbed.
   */
  readonly alive: (owner: Owner) => Effect.Effect<boolean>
}>() {}

/** A process of its own that knows nobody else: for stores that never leave memory. */
export const layerSolitary: Layer.Layer<ProcessIdentity> = Layer.sync(ProcessIdentity, () => {
  const self: Owner = { pid: 1, startTime: null, bootId: null, token: globalThis.crypto.randomUUID() }
  return { self, alive: (owner) => Effect.succeed(owner.token === self.token) }
})
