/** Agents over a plane in memory, with a model that answers by conversation. */
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Test from "../../layers/stacks/Test.ts"
import type { Agent, StartOptions } from "../../src/agent/AgentSystem.ts"
import { AgentSystem } from "../../src/agent/AgentSystem.ts"
import type { ModelRequest } from "../../src/agent/Model.ts"
import type { ToolHost } from "../../src/host/ToolHost.ts"
import * as ScriptedModel from "../../src/testing/ScriptedModel.ts"
import { workspace } from "./plane.ts"

/** What a model sees of a conversation. */
export interface Seen {
  /** The text of its first message. */
  readonly opening: string
  /** What the model has said in it so far. */
  readonly said: number
  readonly request: ModelRequest
}

/** A model that answers by the conversation it is asked in. */
export const speaking = (answer: (seen: Seen) => ScriptedModel.ScriptedTurn) =>
  ScriptedModel.layer((request) =>
    answer({
      opening: ScriptedModel.openingOf(request),
      said: request.messages.filter(({ role }) => role === "assistant").length,
      request
    })
  )

/** A call of `delegate_task`. */
export const delegate = (
  prompt: string,
  more: Readonly<Record<string, unknown>> = {}
): ScriptedModel.ScriptedCall => ({ toolName: "delegate_task", arguments: { prompt, ...more } })

/** The results that the conversation's last message holds, as text. */
export const lastResults = ({ messages }: ModelRequest): ReadonlyArray<string> => {
  const last = messages.at(-1)
  return last?.role !== "tool" ?
    [] :
    last.results.map(({ content }) => content.flatMap((part) => part.type === "text" ? [part.text] : []).join("\n"))
}

export const layer = (
  answer: (seen: Seen) => ScriptedModel.ScriptedTurn,
  providers: Parameters<typeof Test.layerAgents>[0] = [],
  options: Test.AgentOptions = {}
) => Layer.provideMerge(Test.layerAgents(providers, options), speaking(answer))

/** A root agent in a temporary workspace. */
export const root = (
  spec: Partial<StartOptions["spec"]> = {}
): Effect.Effect<
  Agent & { readonly workspace: string },
  never,
  AgentSystem | ToolHost | FileSystem.FileSystem | Scope.Scope
> =>
  Effect.gen(function*() {
    const { root: folder } = yield* Effect.orDie(workspace)
    const agent = yield* Effect.orDie((yield* AgentSystem).start({ spec: { workspace: folder, ...spec } }))
    return { ...agent, workspace: folder }
  })
