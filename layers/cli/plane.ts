/** The main stack as the options of a command want it. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { layerUnavailable, type Model } from "../../src/agent/Model.ts"
import type { CapabilityRegistry } from "../../src/catalog/CapabilityRegistry.ts"
import type { TurnSpecInput } from "../../src/contract/Turn.ts"
import type { ToolHost, TurnRefused } from "../../src/host/ToolHost.ts"
import * as Bubblewrap from "../sandbox/Bubblewrap.ts"
import * as Main from "../stacks/Main.ts"
import * as approvals from "./approver.ts"
import type { TurnOptions } from "./arguments.ts"
import { CliError, usage } from "./CliError.ts"
import { locate, type Place } from "./state.ts"
import { Terminal } from "./Terminal.ts"

export interface Plane extends Place {
  readonly spec: TurnSpecInput
  readonly layer: Layer.Layer<Main.Services | CapabilityRegistry | ToolHost, CliError>
}

/** What confines commands here: bubblewrap where it can, else nothing. */
export const sandbox = Bubblewrap.layerOrUnconfined

/** A state file that cannot be used, as the command line says it. */
export const stateRefused = (error: Main.StateRefused): CliError =>
  new CliError({
    code: "state_refused",
    message: error._tag === "StateUnavailable" ? `the state file cannot be used: ${error.reason}` : error.message
  })

export const turnRefused = (error: TurnRefused): CliError =>
  error.code === "workspace_unavailable"
    ? new CliError({ code: "workspace_unavailable", message: error.reason })
    : usage(error.reason)

/** Opens nothing yet. Without a model there are agents all the same, and each fails at its first request. */
export const plane = Effect.fnUntraced(function*(
  options: TurnOptions,
  model: Layer.Layer<Model> = layerUnavailable
) {
  const terminal = yield* Terminal
  const place = yield* locate(options)
  const { approval, plan, thread, turn } = options
  const spec: TurnSpecInput = {
    workspace: place.workspace,
    clientSurface: "cli",
    threadId: thread ?? "cli",
    ...(turn === undefined ? {} : { turnId: turn }),
    ...(options.sandbox === undefined ? {} : { sandboxMode: options.sandbox }),
    ...(approval === undefined ? {} : { approvalPolicy: approval }),
    ...(plan === true ? { threadMode: "plan" } : {})
  }
  const layer = Main.layerAgents({
    state: { filename: place.state },
    approvals: { approver: approvals.approver(options, terminal) },
    userInput: approvals.userInput(options, terminal),
    sandbox
  }).pipe(
    Layer.provide(model),
    Layer.catchAll((error) =>
      error._tag === "DatabaseRefused" || error._tag === "StateUnavailable"
        ? Layer.fail(stateRefused(error))
        // The built-in tools and profiles clash with nothing.
        : Layer.die(error)
    )
  )
  const made: Plane = { ...place, spec, layer }
  return made
})
