/** @effect/ai: one no-op tool, handled inside one fiber. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

export const channelCall = () => {
  const noop = Tool.make("noop", { parameters: { path: Schema.String }, success: Schema.String })
  const toolkit = Toolkit.make(noop)
  const layer = toolkit.toLayer({ noop: () => Effect.succeed("done") })
  const calls = (n) =>
    Effect.flatMap(toolkit, (handlers) =>
      // Asked anew for each call, as for a model's call.
      Effect.repeatN(Effect.suspend(() => handlers.handle("noop", { path: "README.md" })), n - 1))
  return { run: (n) => Effect.runPromise(Effect.provide(calls(n), layer)) }
}
