/**
 * A question, and what came of it.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { JsonObject } from "../contract/Json.ts"
import { ApprovalPolicy, SandboxMode, ToolKind } from "../contract/Policy.ts"
import { CallId } from "../contract/ToolCall.ts"
import { AgentId, ThreadId, TurnId } from "../contract/Turn.ts"

/** Why a call is asked about; the first three are never waived by a hook. */
export const ApprovalReason = Schema.Literal(
  "outside_write",
  "unconfined_command",
  "explicit",
  "hook",
  "rule",
  "ordinary"
)
export type ApprovalReason = typeof ApprovalReason.Type

/** What is asked: one effective call of one operation. */
export const ApprovalQuestion = Schema.Struct({
  operationId: Schema.String,
  /** Digest of the effective call: an answer holds for this digest alone. */
  digest: Schema.String,
  threadId: ThreadId,
  turnId: TurnId,
  callId: CallId,
  toolName: Schema.String,
  kind: ToolKind,
  arguments: JsonObject,
  reasons: Schema.Array(ApprovalReason),
  /** What hooks and rules say of why they want somebody asked. */
  notes: Schema.optionalWith(Schema.Array(Schema.String), { default: () => [] }),
  /** Physical paths outside the roots that the call would write. */
  outsideTargets: Schema.Array(Schema.String),
  workspace: Schema.String,
  approvalPolicy: ApprovalPolicy,
  sandboxMode: SandboxMode,
  lineage: Schema.Array(AgentId)
})
export type ApprovalQuestion = typeof ApprovalQuestion.Type

export const ApprovalStatus = Schema.Literal("pending", "allowed", "denied", "expired", "superseded", "cancelled")
export type ApprovalStatus = typeof ApprovalStatus.Type

export const ApprovalRecord = Schema.Struct({
  /** Random. */
  id: Schema.String,
  question: ApprovalQuestion,
  status: ApprovalStatus,
  createdAt: Schema.Number,
  /** Epoch milliseconds; `null` for no deadline. */
  deadline: Schema.NullOr(Schema.Number),
  decidedAt: Schema.NullOr(Schema.Number),
  principal: Schema.NullOr(Schema.String),
  /** The decider's words for the model. */
  reason: Schema.NullOr(Schema.String)
})
export type ApprovalRecord = typeof ApprovalRecord.Type

export const Decision = Schema.Struct({
  decision: Schema.Literal("allow", "deny"),
  principal: Schema.String,
  reason: Schema.optionalWith(Schema.String, { exact: true })
})
export type Decision = typeof Decision.Type
