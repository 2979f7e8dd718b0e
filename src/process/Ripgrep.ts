/**
 * Where the ripgrep program is.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

export class RipgrepUnavailable extends Schema.TaggedError<RipgrepUnavailable>("portcullis/RipgrepUnavailable")(
  "RipgrepUnavailable",
  {
    code: Schema.Literal("ripgrep_unavailable").pipe(
      Schema.propertySignature,
      Schema.withConstructorDefault(() => "ripgrep_unavailable" as const)
    ),
    reason: Schema.String
  }
) {
  override get message() {
    return `Searching is not possible here: ${this.reason}`
  }
}

export class Ripgrep extends Context.Tag("portcullis/Ripgrep")<Ripgrep, {
  /** Absolute path of the program. Looked for once, at the first use. */
  readonly executable: Effect.Effect<string, RipgrepUnavailable>
}>() {}

/** A program that is known to be there. */
export const layerAt = (executable: string): Layer.Layer<Ripgrep> =>
  Layer.succeed(Ripgrep, { executable: Effect.succeed(executable) })

/** No program: every search is refused with `ripgrep_unavailable`. */
export const layerUnavailable = (reason: string): Layer.Layer<Ripgrep> =>
  Layer.succeed(Ripgrep, { executable: Effect.fail(new RipgrepUnavailable({ reason })) })
