/**
 * Confining an argv. What a sandbox reports decides which commands run at all (vectors/sandbox.json).
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { Confinement, SandboxMode } from "../contract/Policy.ts"
import { SandboxBlocked } from "../contract/ToolFailure.ts"

export interface ConfineOptions {
  readonly mode: SandboxMode
  /** Absolute; writable under `workspace-write`. */
  readonly roots: ReadonlyArray<string>
  readonly cwd: string
  /** Added to what commands get of the environment; a sandbox that clears it passes nothing else from the tool on. */
  readonly env?: Readonly<Record<string, string>>
}

export class ProcessSandbox extends Context.Tag("portcullis/ProcessSandbox")<ProcessSandbox, {
  /** How well it confines here, or `sandbox_unavailable` when its runner is missing or failed its probe. */
  readonly report: Effect.Effect<Confinement, SandboxBlocked>
  /**
   * The argv that runs `argv` confined, to be run before the scope closes: what it needs on disk goes with that. Fails
   * closed with `sandbox_unavailable`.
   */
  readonly confine: (
    argv: ReadonlyArray<string>,
    options: ConfineOptions
  ) => Effect.Effect<ReadonlyArray<string>, SandboxBlocked, Scope.Scope>
}>() {}

/** Confines nothing and says so: commands run under `danger-full-access` alone. */
export const layerUnconfined: Layer.Layer<ProcessSandbox> = Layer.succeed(ProcessSandbox, {
  report: Effect.succeed<Confinement>("none"),
  confine: (argv, options) =>
    options.mode === "danger-full-access"
      ? Effect.succeed(argv)
      : Effect.fail(new SandboxBlocked({ code: "sandbox_unavailable", reason: "Nothing here can confine a command." }))
})

/** Reports what it is told and passes argv through: for tests, and for hosts that are themselves confined (`external`). */
export const layerReporting = (confinement: Confinement): Layer.Layer<ProcessSandbox> =>
  Layer.succeed(ProcessSandbox, { report: Effect.succeed(confinement), confine: (argv) => Effect.succeed(argv) })

/** A sandbox that was asked for and cannot be had: every command that needs confinement is refused. */
export const layerUnavailable = (reason: string): Layer.Layer<ProcessSandbox> => {
  const refused = Effect.fail(new SandboxBlocked({ code: "sandbox_unavailable", reason }))
  return Layer.succeed(ProcessSandbox, {
    report: refused,
    confine: (argv, options) => options.mode === "danger-full-access" ? Effect.succeed(argv) : refused
  })
}
