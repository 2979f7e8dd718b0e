/**
 * What happened, as data: the entries of the journal and of every live stream.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { Json } from "./Json.ts"
import { Message, MessageCall } from "./Message.ts"
import { CallId } from "./ToolCall.ts"
import { ContentPart, ToolResult } from "./ToolResult.ts"
import { AgentId, ThreadId, TurnId } from "./Turn.ts"

const exact = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

const base = { threadId: ThreadId, turnId: TurnId, /** Epoch milliseconds. */ at: Schema.Number }

export const DriftGrade = Schema.Literal("none", "additive", "breaking")
export type DriftGrade = typeof DriftGrade.Type

export const TurnOpened = Schema.TaggedStruct("turn_opened", {
  ...base,
  fingerprint: Schema.String,
  toolCount: Schema.Number
})
export const TurnClosed = Schema.TaggedStruct("turn_closed", base)
/** The tools changed: between turns the change is in force, within one it is deferred to the next. */
export const CatalogChanged = Schema.TaggedStruct("tool_catalog_changed", {
  ...base,
  grade: DriftGrade,
  deferred: Schema.Boolean,
  fingerprint: Schema.String,
  toolCount: Schema.Number,
  /** The first 50. */
  toolNames: Schema.Array(Schema.String)
})
export const CallStarted = Schema.TaggedStruct("call_started", {
  ...base,
  callId: CallId,
  toolName: Schema.String,
  arguments: Json
})
export const CallProgress = Schema.TaggedStruct("call_progress", { ...base, callId: CallId, progress: Json })
export const CallSettled = Schema.TaggedStruct("call_settled", { ...base, result: ToolResult })
export const ApprovalRequested = Schema.TaggedStruct("approval_requested", {
  ...base,
  callId: CallId,
  approvalId: Schema.String,
  toolName: Schema.String,
  reason: Schema.String
})
export const ApprovalResolved = Schema.TaggedStruct("approval_resolved", {
  ...base,
  callId: CallId,
  approvalId: Schema.String,
  decision: Schema.Literal("allow", "deny", "expired", "superseded", "cancelled", "unavailable"),
  principal: Schema.String
})
export const MessageSource = Schema.Literal("user", "host", "agent")
export type MessageSource = typeof MessageSource.Type
/** What the model was told beside results, by the user, by another agent, or by the host (a note, a notice). */
export const UserMessage = Schema.TaggedStruct("user_message", {
  ...base,
  /** The words of whoever wrote it. */
  text: Schema.String,
  /** All that the model saw, where that is more than `text`: images, resources, what a hook added. */
  content: exact(Schema.Array(ContentPart)),
  /** Absent is `user`. */
  source: exact(MessageSource)
})
/** What a response held, also one that was cut off. */
export const ModelMessage = Schema.TaggedStruct("model_message", {
  ...base,
  text: Schema.String,
  /** Absent when there are none. */
  calls: exact(Schema.Array(MessageCall))
})
/** From here on the conversation is these messages: after a compaction, or at the start of a fork. */
export const ContextCompacted = Schema.TaggedStruct("context_compacted", { ...base, messages: Schema.Array(Message) })
/** An agent of the thread's tree has a new status. */
export const AgentChanged = Schema.TaggedStruct("agent_changed", {
  ...base,
  agentId: AgentId,
  parentId: Schema.NullOr(AgentId),
  label: Schema.String,
  status: Schema.String,
  /** From the root agent to this one. */
  lineage: Schema.Array(AgentId)
})
export const Warning = Schema.TaggedStruct("warning", { ...base, source: Schema.String, message: Schema.String })

export const Event = Schema.Union(
  TurnOpened,
  TurnClosed,
  CatalogChanged,
  CallStarted,
  CallProgress,
  CallSettled,
  ApprovalRequested,
  ApprovalResolved,
  UserMessage,
  ModelMessage,
  ContextCompacted,
  AgentChanged,
  Warning
)
export type Event = typeof Event.Type
