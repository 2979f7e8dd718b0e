/**
 * Agents over a plane: the stack that children run on, the budget, the profiles, and the tools of delegation.
 *
 * @since 0.1.0
 */
import * as Layer from "effect/Layer"
import type * as AgentSystem from "../../src/agent/AgentSystem.ts"
import * as ChildStack from "../../src/agent/ChildStack.ts"
import * as Delegation from "../../src/agent/Delegation.ts"
import * as DelegationSemaphore from "../../src/agent/DelegationSemaphore.ts"
import * as Profiles from "../../src/agent/Profiles.ts"
import * as Supervision from "../../src/agent/Supervision.ts"
import type { CapabilityRegistry, RegistrationError } from "../../src/catalog/CapabilityRegistry.ts"
import type { ReadTracker } from "../../src/file/ReadTracker.ts"
import type * as ToolHost from "../../src/host/ToolHost.ts"
import type { ToolProvider } from "../../src/tool/ToolProvider.ts"

export interface Options extends AgentSystem.Options {
  /** Children that run at once; default 8. */
  readonly concurrency?: number
  /** Default: the built-in profiles. */
  readonly profiles?: Profiles.Options
  /** Of the children's host; the stacks give it the options of the main one. */
  readonly host?: ToolHost.Options
}

export type Agents =
  | AgentSystem.AgentSystem
  | ChildStack.ChildStack
  | DelegationSemaphore.DelegationSemaphore
  | Profiles.Profiles

/** A provider that children may hold, over these services and what they have read. */
export type SharedProvider<R> = ToolProvider<R | ReadTracker, "shared">

/**
 * Children hold the tools of these providers, and both they and the main agent those of delegation. `shares` names the
 * services that the providers need beside those of every plane.
 */
export const layer = <const Keys extends ReadonlyArray<ChildStack.Key>>(
  providers: ReadonlyArray<ToolProvider<ChildStack.Services<Keys>, "shared">>,
  shares: Keys,
  options: Options = {}
): Layer.Layer<
  Agents,
  RegistrationError | Profiles.InvalidProfile,
  ChildStack.Shared | Keys[number]["Identifier"] | CapabilityRegistry | Exclude<Supervision.Requirements, Agents>
> => {
  const { concurrency, host, profiles, ...rest } = options
  return Delegation.layer.pipe(
    Layer.provideMerge(Supervision.layer(rest)),
    Layer.provideMerge(Layer.mergeAll(
      ChildStack.layer(providers, { ...host, shares }),
      DelegationSemaphore.layer(concurrency === undefined ? {} : { limit: concurrency }),
      Profiles.layer(profiles)
    ))
  )
}
