/**
 * Agents as actors: spawned under a parent, addressed by id, supervised as a tree (architecture section 5).
 *
 * An agent takes one message, a turn, at a time. A child runs on the child stack alone; while it has nothing to do, or waits
 * for a slot, it is a record without a fiber. Whatever ends a parent ends its subtree.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { StateUnavailable } from "../contract/ToolFailure.ts"
import type { ContentPart } from "../contract/ToolResult.ts"
import { AgentId, type ThreadId, type Turn, type TurnSpecInput } from "../contract/Turn.ts"
import type { ToolHost } from "../host/ToolHost.ts"
import type { AgentRecord, AgentReport } from "./AgentReport.ts"
import type { Bound } from "./Authority.ts"
import type { Compaction, Limits } from "./TurnLoop.ts"

/** Why there is no such agent: over a budget, too deep, no such profile, none to resume. */
export class DelegationRefused extends Schema.TaggedError<DelegationRefused>("portcullis/DelegationRefused")(
  "DelegationRefused",
  {
    code: Schema.Literal("delegation_limit", "depth_exceeded", "profile_unknown", "agent_unknown", "agent_busy"),
    reason: Schema.String
  }
) {
  override get message() {
    return this.reason
  }
}

/** Why a message was not taken: the mailbox is full, or the agent is over. */
export class AgentUnavailable extends Schema.TaggedError<AgentUnavailable>("portcullis/AgentUnavailable")(
  "AgentUnavailable",
  { code: Schema.Literal("mailbox_full", "agent_stopped"), agentId: AgentId }
) {
  override get message() {
    return this.code === "mailbox_full"
      ? `${this.agentId} has too many messages waiting.`
      : `${this.agentId} is stopped.`
  }
}

export type Prompt = string | ReadonlyArray<ContentPart>

/** How a parent, a test or a server speaks to one live agent. */
export interface Agent {
  readonly id: AgentId
  readonly threadId: ThreadId
  /** From the root agent to this one. */
  readonly lineage: ReadonlyArray<AgentId>
  readonly record: Effect.Effect<AgentRecord>
  /**
   * Puts a message in the mailbox and waits for the report of its turn. Interrupting it takes the message back, or interrupts
   * the turn that it started, and returns when that is over. `bound` holds for that turn alone, as a plan mode does.
   *
   * A tool that asks an agent holds the slot of its own meanwhile: let it wait inside `AgentSystem.waiting`.
   */
  readonly ask: (prompt: Prompt, bound?: Bound) => Effect.Effect<AgentReport, AgentUnavailable>
  /** Puts a message in the mailbox: a turn of its own, after those before it. Its parent is told when that turn has ended. */
  readonly tell: (prompt: Prompt, bound?: Bound) => Effect.Effect<void, AgentUnavailable>
  /** Interrupts the turn that runs or waits for its slot; says whether there was one. Children it waits for end with it. */
  readonly interrupt: Effect.Effect<boolean>
  /** Ends it with its subtree. Returns when all of it is over: processes dead, questions withdrawn, slots and locks free. */
  readonly stop: Effect.Effect<void>
  /** Takes rights away, now and for good, from it and from all below it. */
  readonly narrow: (bound: Bound) => Effect.Effect<void>
}

export interface StartOptions {
  /** What its turns are opened with on the host. Without a thread id it gets a new one. */
  readonly spec: Omit<TurnSpecInput, "turnId" | "lineage">
  readonly label?: string
  readonly system?: string
}

export interface SpawnOptions {
  /** What it is called in lists; default the name of its profile. */
  readonly label?: string
  /** Default `general`. */
  readonly profile?: string
  /** Narrows beside the profile. */
  readonly bound?: Bound
  /** Appended to the prompt of its profile. */
  readonly systemPrompt?: string
  /** Starts from its parent's conversation, without the turn that runs, and under its parent's prompt. */
  readonly fork?: boolean
  /** It is kept when the call that spawned it is over, and may go when room is needed for others while it is idle. */
  readonly detached?: boolean
  /** Whether its reports carry evidence. */
  readonly evidence?: boolean
}

/** What happens to agents, in order: a change of status, a call that has settled. */
export type AgentEvent =
  | { readonly type: "status"; readonly at: number; readonly record: AgentRecord }
  | {
    readonly type: "call"
    readonly at: number
    readonly agentId: AgentId
    readonly toolName: string
    readonly code: string | null
  }

/** What a tree of agents may use. Over the number of slots agents queue; over one of these they are refused. */
export interface Budget {
  /** How deep children may nest; default 1: a root's children have none. */
  readonly depth?: number
  /** Agents spawned below one root, over its whole life; default no limit. */
  readonly children?: number
  /** Input and output tokens of a root and all below it; default no limit. What is over ends at its next model request. */
  readonly tokens?: number
  /** How long a root's child may live, with all below it; default no limit. What is over is interrupted. */
  readonly time?: Duration.DurationInput
}

export interface Options {
  readonly budget?: Budget
  /** The prompt that a child's own is appended to. */
  readonly system?: string
  /** Of each turn. */
  readonly limits?: Limits
  /** How a conversation that grows too long is made shorter; default never. */
  readonly compaction?: Compaction
  /** Messages that wait in one mailbox; default 16. */
  readonly mailbox?: number
  /** Agents alive at once; default 10,000. */
  readonly live?: number
}

export class AgentSystem extends Context.Tag("portcullis/AgentSystem")<AgentSystem, {
  /** A root agent over the host of the context; it ends with the scope. A thread has one live agent: another is `agent_busy`. */
  readonly start: (options: StartOptions) => Effect.Effect<Agent, DelegationRefused, ToolHost | Scope.Scope>
  /**
   * A child of the agent whose turn this is; a turn outside any agent counts as the turn of a root that ends with the system.
   * A child that nobody stops lives until its parent ends.
   */
  readonly spawn: (parent: Turn, options?: SpawnOptions) => Effect.Effect<Agent, DelegationRefused | StateUnavailable>
  /**
   * A child of this thread that is idle, over, or whose process died, with its conversation and no more rights than it had. Its
   * lost calls are settled as interrupted; nothing of it is run again by itself.
   */
  readonly resume: (
    parent: Turn,
    agentId: string,
    options?: Pick<SpawnOptions, "detached">
  ) => Effect.Effect<Agent, DelegationRefused | StateUnavailable>
  /** The live agent of that id, if it is below the one whose turn this is: what it is told has at most that turn's rights. */
  readonly reach: (parent: Turn, agentId: string) => Effect.Effect<Agent | undefined>
  /** Runs what waits for children, without holding the slot of the agent whose turn this is. */
  readonly waiting: <A, E, R>(parent: Turn, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** The live agent of that id, for the host: what it is told has all the rights that it has. */
  readonly find: (agentId: string) => Effect.Effect<Agent | undefined>
  /**
   * All below the agent of that thread, live or known to the store, each before its own children, at most 1000. What its
   * process left `queued` or `running` when it died is `unknown`.
   */
  readonly list: (threadId: ThreadId) => Effect.Effect<ReadonlyArray<AgentRecord>, StateUnavailable>
  /** What happens from now on; a reader that is a thousand events behind loses the oldest. */
  readonly events: Stream.Stream<AgentEvent>
}>() {}

/** The id of the agent whose turn this is; of a turn outside any agent, its thread's. */
export const selfOf = (turn: Pick<Turn, "lineage" | "threadId">): AgentId =>
  turn.lineage.at(-1) ?? AgentId.make(turn.threadId)

/** From the root agent to the one whose turn this is. */
export const lineageOf = (turn: Pick<Turn, "lineage" | "threadId">): ReadonlyArray<AgentId> =>
  turn.lineage.length === 0 ? [AgentId.make(turn.threadId)] : turn.lineage
