/**
 * What an agent leaves behind: the record of its life, and the report of each of its turns.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { AgentId, ThreadId, TurnId } from "../contract/Turn.ts"

const exact = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/**
 * `idle` before its first turn, `queued` while it waits for a slot, `running` in a turn, then how its last turn ended.
 * `unknown`: its process died, so nobody can say how its turn ended.
 */
export const AgentStatus = Schema.Literal("idle", "queued", "running", "completed", "failed", "interrupted", "unknown")
export type AgentStatus = typeof AgentStatus.Type

/** Of an agent's own model requests and calls; failed and interrupted turns count (decisions, "child usage"). */
export const AgentUsage = Schema.Struct({
  inputTokens: Schema.Number,
  outputTokens: Schema.Number,
  /** Model requests. */
  requests: Schema.Number,
  calls: Schema.Number
})
export type AgentUsage = typeof AgentUsage.Type

export const noUsage: AgentUsage = { inputTokens: 0, outputTokens: 0, requests: 0, calls: 0 }

export const addUsage = (left: AgentUsage, right: AgentUsage): AgentUsage => ({
  inputTokens: left.inputTokens + right.inputTokens,
  outputTokens: left.outputTokens + right.outputTokens,
  requests: left.requests + right.requests,
  calls: left.calls + right.calls
})

/** One call of an agent, for whoever wants to see what its answer rests on. */
export const Evidence = Schema.Struct({
  toolName: Schema.String,
  /** What it was called on: the path, the pattern, the command, cut to 200 characters. */
  target: Schema.String,
  isError: Schema.Boolean,
  /** The start of its content, at most 500 characters. */
  digest: Schema.String
})
export type Evidence = typeof Evidence.Type

/** How one turn of an agent ended. */
export const AgentReport = Schema.Struct({
  agentId: AgentId,
  label: Schema.String,
  profile: Schema.NullOr(Schema.String),
  status: Schema.Literal("completed", "failed", "interrupted"),
  /** The agent's last words, at most 2000 lines and 50 KB: head, gap and tail when there were more. */
  summary: Schema.String,
  /** Where the whole text is when the summary is cut. */
  fullText: exact(Schema.Struct({ locator: Schema.String, bytes: Schema.Number })),
  /** Why it failed, or that it was stopped by a limit. */
  error: exact(Schema.Struct({ code: Schema.String, error: Schema.String })),
  /** The first 32 calls, when they were asked for. */
  evidence: exact(Schema.Array(Evidence)),
  usage: AgentUsage,
  /** Milliseconds in line for a slot, and in the turn. */
  queuedMs: Schema.Number,
  durationMs: Schema.Number
})
export type AgentReport = typeof AgentReport.Type

/** What is known of an agent, live or over. Kept in the thread store under its parent's thread. */
export const AgentRecord = Schema.Struct({
  agentId: AgentId,
  /** From the root agent to this one. */
  lineage: Schema.Array(AgentId),
  /** Its own conversation. */
  threadId: ThreadId,
  /** The thread and the turn it was spawned from; `null` for a root agent. */
  parentThreadId: Schema.NullOr(ThreadId),
  parentTurnId: Schema.NullOr(TurnId),
  label: Schema.String,
  profile: Schema.NullOr(Schema.String),
  /** First 16 hexadecimal digits of the SHA-256 of its system prompt. */
  promptFingerprint: Schema.String,
  detached: Schema.Boolean,
  status: AgentStatus,
  /** Turns it has ended. */
  turns: Schema.Number,
  usage: AgentUsage,
  /** Epoch milliseconds; of agents of one instant, `ordinal` says who was first. */
  spawnedAt: Schema.Number,
  /** Counts the agents of one process, from 1. */
  ordinal: Schema.Number,
  updatedAt: Schema.Number,
  /** Of its last ended turn. */
  report: exact(AgentReport)
})
export type AgentRecord = typeof AgentRecord.Type
