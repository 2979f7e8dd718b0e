/**
 * The tools by which an agent hands work to others, offered to main agents and to children alike.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { CapabilityRegistry, type RegistrationError } from "../catalog/CapabilityRegistry.ts"
import * as ToolProvider from "../tool/ToolProvider.ts"
import { AgentSystem } from "./AgentSystem.ts"
import { ChildStack } from "./ChildStack.ts"
import type { Profile } from "./Profile.ts"
import { Profiles } from "./Profiles.ts"
import { interruptAgent, listAgents, sendMessage } from "./tools/agents.ts"
import { delegateTask, subagentFork } from "./tools/delegate_task.ts"
import { ralph } from "./tools/ralph.ts"
import * as Workflow from "./tools/workflow.ts"

/** The provider as these profiles make it. */
export const provider = (profiles: ReadonlyArray<Profile>) =>
  ToolProvider.make({
    id: "delegation",
    kind: "delegation",
    tools: [delegateTask(profiles), subagentFork, listAgents, sendMessage, interruptAgent, Workflow.make(), ralph]
  })

/** Registers the tools, and again whenever a refresh finds other profiles: the next turn that is opened has those. */
export const offer = (
  registry: CapabilityRegistry["Type"]
): Effect.Effect<void, RegistrationError, AgentSystem | Profiles | Scope.Scope> =>
  Effect.gen(function*() {
    const profiles = yield* Profiles
    const context = yield* Effect.context<AgentSystem | Scope.Scope>()
    yield* registry.register(provider(yield* profiles.list))
    yield* profiles.subscribe(
      Effect.flatMap(profiles.list, (list) => registry.replace(provider(list))).pipe(
        Effect.provide(context),
        // The same names as before, in the place of themselves.
        Effect.orDie
      )
    )
  })

/** Offers the tools to the registry of the main agent and to that of its children, which follows the main one's policies. */
export const layer: Layer.Layer<
  never,
  RegistrationError,
  AgentSystem | Profiles | CapabilityRegistry | ChildStack
> = Layer.scopedDiscard(
  Effect.flatMap(
    Effect.all([CapabilityRegistry, ChildStack]),
    ([main, { follow, registry }]) => Effect.all([follow(main), offer(main), offer(registry)], { discard: true })
  )
)
