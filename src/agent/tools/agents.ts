/**
 * `list_agents`, `send_message` and `interrupt_agent`: what an agent may do with those below it (seed 2).
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { toolError } from "../../contract/ToolFailure.ts"
import { text } from "../../contract/ToolResult.ts"
import { AgentId, type Turn } from "../../contract/Turn.ts"
import { display } from "../../internal/display.ts"
import * as Tool from "../../tool/Tool.ts"
import { ToolInvocation } from "../../tool/ToolInvocation.ts"
import { AgentStatus, AgentUsage } from "../AgentReport.ts"
import { AgentSystem } from "../AgentSystem.ts"
import { render, totalUsage } from "../AgentTree.ts"

const maxShown = 200

const Target = Schema.String.pipe(Schema.maxLength(200)).annotations({ description: "As list_agents shows it." })

/** The live agent of that id, if it is below the one that asks; others are none of its business. */
const descendant = Effect.fnUntraced(function*(turn: Turn, agentId: string) {
  const agent = yield* (yield* AgentSystem).reach(turn, agentId)
  if (agent === undefined) {
    return yield* toolError(
      "agent_unknown",
      `You have no live agent ${
        JSON.stringify(agentId)
      }. list_agents shows yours; delegate_task with resume wakes one that is over.`
    )
  }
  return agent
})

/** Succeeds with the agents below the caller, live or known from before, and what they have used together. */
export const listAgents = Tool.make("list_agents", {
  description: "Lists the agents that you have spawned: what they are called, how they stand, what they have used.",
  policy: "auto",
  readOnly: true,
  codes: ["state_lost"],
  parameters: Schema.Struct({
    scope: Schema.optionalWith(
      Schema.Literal("children", "descendants").annotations({ description: "Default descendants." }),
      { exact: true }
    )
  }),
  success: Schema.Struct({
    agents: Schema.Array(Schema.Struct({
      agentId: AgentId,
      parentId: Schema.NullOr(AgentId),
      label: Schema.String,
      profile: Schema.NullOr(Schema.String),
      status: AgentStatus,
      detached: Schema.Boolean,
      turns: Schema.Number,
      usage: AgentUsage
    })),
    /** Older ones. */
    notShown: Schema.Number,
    /** Of all of them together. */
    usage: AgentUsage,
    tree: Schema.String
  }),
  handler: Effect.fnUntraced(function*({ scope = "descendants" }) {
    const { turn } = yield* ToolInvocation
    const all = yield* Effect.mapError(
      (yield* AgentSystem).list(turn.threadId),
      ({ reason }) => toolError("state_lost", `What is known of agents cannot be read: ${reason}`)
    )
    const wanted = scope === "descendants" ? all : all.filter(({ parentThreadId }) => parentThreadId === turn.threadId)
    const records = [...wanted].sort((left, right) => left.spawnedAt - right.spawnedAt || left.ordinal - right.ordinal)
      .slice(-maxShown)
    return {
      agents: records.map(({ agentId, detached, label, lineage, profile, status, turns, usage }) => ({
        agentId,
        parentId: lineage.at(-2) ?? null,
        label,
        profile,
        status,
        detached,
        turns,
        usage
      })),
      notShown: wanted.length - records.length,
      usage: totalUsage(all),
      tree: render(records)
    }
  }),
  render: ({ agents, notShown, tree }) => [
    text(
      agents.length === 0 ? "You have spawned no agents." : [
        ...(notShown === 0 ? [] : [`${notShown} older ones are not shown.`]),
        tree,
        "",
        ...agents.map(({ agentId, label, status }) => `${agentId}  ${status}  ${display(label, { max: 120 })}`)
      ].join("\n")
    )
  ]
})

/** Succeeds when the message is in the mailbox; it is the agent's next turn and does not disturb the one that runs. */
export const sendMessage = Tool.make("send_message", {
  description: "Sends a message to an agent that you have spawned with detach. It becomes its next turn.",
  policy: "auto",
  codes: ["agent_unknown", "mailbox_full", "agent_stopped"],
  parameters: Schema.Struct({
    agentId: Target,
    message: Schema.String.pipe(Schema.minLength(1), Schema.maxLength(200_000))
  }),
  success: Schema.Struct({ agentId: AgentId, accepted: Schema.Literal(true) }),
  handler: Effect.fnUntraced(function*({ agentId, message }) {
    const { turn } = yield* ToolInvocation
    const agent = yield* descendant(turn, agentId)
    yield* agent.tell(message)
    return { agentId: agent.id, accepted: true as const }
  })
})

/** Succeeds with whether anything was interrupted; with `stop` the agent is over, with all below it. */
export const interruptAgent = Tool.make("interrupt_agent", {
  description: "Interrupts the turn of an agent that you have spawned; with stop it ends for good, with all below it.",
  policy: "auto",
  codes: ["agent_unknown"],
  parameters: Schema.Struct({
    agentId: Target,
    stop: Schema.optionalWith(Schema.Boolean, { exact: true })
  }),
  success: Schema.Struct({ agentId: AgentId, interrupted: Schema.Boolean }),
  handler: Effect.fnUntraced(function*({ agentId, stop = false }) {
    const { turn } = yield* ToolInvocation
    const agent = yield* descendant(turn, agentId)
    const interrupted = yield* agent.interrupt
    if (stop) yield* agent.stop
    return { agentId: agent.id, interrupted }
  })
})
