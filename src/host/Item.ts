/** The item a call leaves: whatever is known of it, as a plain, frozen result. */
import type * as Clock from "effect/Clock"
import * as Either from "effect/Either"
import { freezeDeep, isObject, outputLimits, snapshot } from "../contract/Json.ts"
import type { RawOutcome } from "../contract/RawOutcome.ts"
import type { ToolCall } from "../contract/ToolCall.ts"
import { ApprovalRefused, OutputInvalid } from "../contract/ToolFailure.ts"
import { type ApprovalOutcome, contentOf, type ToolResult } from "../contract/ToolResult.ts"
import { toOutcome } from "../internal/settle.ts"
import type { Approved, Executed, Pins, Received } from "./CallState.ts"

/** What is known of a call that may have ended anywhere. */
export type Known = Received & { readonly [K in keyof (Approved & Executed)]?: (Approved & Executed)[K] | undefined }

/** A call of which nothing is known yet; with every property, so that the record keeps one shape while it grows. */
export const received = (pins: Pins, call: ToolCall, clock: Clock.Clock): Received & Known => {
  const unknown = undefined
  const record = {
    pins,
    call,
    clock,
    startedAt: clock.unsafeCurrentTimeMillis(),
    now: pins.now(),
    registered: unknown,
    provider: unknown,
    kind: unknown,
    received: unknown,
    operation: unknown,
    ready: unknown,
    hookAllowed: unknown,
    hookAsks: unknown,
    prepared: unknown,
    effective: unknown,
    targets: unknown,
    ruleAsks: unknown,
    ruleAllows: unknown,
    unconfined: unknown,
    explicit: unknown,
    grants: unknown,
    approval: unknown,
    asked: unknown,
    claim: unknown,
    started: unknown,
    outcome: unknown,
    observations: unknown
  }
  return record
}

/** The item, after the tool's `finalize` had its one word in it. */
export const build = (known: Known, outcome: RawOutcome): ToolResult => item(known, finalized(known, outcome))

/** The item, without a word of anybody's. */
export const item = (known: Known, outcome: RawOutcome): ToolResult => {
  const { callId, claimedKind, toolName } = known.call
  const { threadId, turnId } = known.now.turn
  return freezeDeep({
    id: `item_${threadId}_${turnId}_${callId}`,
    callId,
    toolName: known.registered?.tool.name ??
      (typeof toolName === "string" ? toolName.slice(0, 200).toWellFormed() : ""),
    toolKind: known.kind ?? claimedKind ?? "tool_call",
    isError: outcome.isError,
    code: outcome.code,
    output: outcome.output,
    content: outcome.content,
    executed: known.started === true,
    replayed: false,
    approval: known.approval ?? null,
    effectiveArguments: known.effective?.arguments ?? null,
    startedAt: known.startedAt,
    finishedAt: known.clock.unsafeCurrentTimeMillis()
  })
}

const finalized = (known: Known, outcome: RawOutcome): RawOutcome => {
  const finalize = known.registered?.tool.finalize
  if (finalize === undefined) return outcome
  const content = Either.getOrUndefined(Either.try(() => contentOf(finalize(outcome.content))))
  if (content !== undefined) return { ...outcome, content }
  return toOutcome(new OutputInvalid({ reason: "its finalizer failed, or what it made is no content" }))
}

/** What a wrapper hands over is its own work: it is held to what a tool's outcome is held to. */
export const outcomeOf = (outcome: unknown): RawOutcome =>
  Either.getOrUndefined(Either.try(() => checked(outcome))) ??
    toOutcome(new OutputInvalid({ reason: "a wrapper handed over what is no outcome" }))

const checked = (outcome: unknown): RawOutcome | undefined => {
  if (!isObject(outcome)) return undefined
  const { code, isError } = outcome
  const output = snapshot(outcome["output"], outputLimits)
  const content = contentOf(outcome["content"])
  if (!output.ok || content === undefined || typeof isError !== "boolean") return undefined
  if (isError ? typeof code !== "string" : code !== null) return undefined
  return {
    isError,
    code: typeof code === "string" ? code.slice(0, 200).toWellFormed() : null,
    output: output.value,
    content
  }
}

/** What the approval gate said, when it said no. */
export const refusedApproval = (failure: unknown): { readonly approval?: ApprovalOutcome } => {
  if (!(failure instanceof ApprovalRefused) || failure.approvalId === undefined) return {}
  const decision = refusals[failure.code]
  return decision === undefined
    ? {}
    : { approval: { id: failure.approvalId, decision, principal: failure.principal ?? "nobody" } }
}

const refusals: { readonly [code: string]: ApprovalOutcome["decision"] } = {
  approval_denied: "deny",
  approval_expired: "expired",
  approval_superseded: "superseded",
  approval_unavailable: "unavailable"
}
