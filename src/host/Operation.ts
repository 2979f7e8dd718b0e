/** An operation's identity, and what the ledger's answer about it means for a call. */
import * as Effect from "effect/Effect"
import type { ToolCall } from "../contract/ToolCall.ts"
import { IdempotencyConflict, InvocationInProgress, OutcomeUnknown, type ToolFailure } from "../contract/ToolFailure.ts"
import type { ToolResult } from "../contract/ToolResult.ts"
import type { Turn } from "../contract/Turn.ts"
import type { Executed, Replay, Resolved } from "./CallState.ts"
import { type Operation, OperationId, type Peek } from "./OperationLedger.ts"

/** `threadId·turnId·callId·toolName`. The separator is in none of the parts, so the text names one operation only. */
export const operationOf = (turn: Turn, call: ToolCall, toolName: string, originalHash: string): Operation => ({
  id: OperationId.make(`${turn.threadId}·${turn.turnId}·${call.callId}·${toolName}`, { disableValidation: true }),
  threadId: turn.threadId,
  turnId: turn.turnId,
  callId: call.callId,
  toolName,
  originalHash
})

/** Goes on after an execution, where interruption is disabled. */
export type Resume = (state: Executed) => Effect.Effect<ToolResult, ToolFailure>

/** Replay, go on after the execution, or refuse. To be called where interruption is disabled: a peek may take over. */
export const known = (
  state: Resolved,
  operation: Operation,
  seen: Exclude<Peek, { readonly _tag: "Absent" }>,
  resume: Resume
): Effect.Effect<never, ToolFailure | Replay> => {
  switch (seen._tag) {
    case "Settled":
      return Effect.fail({ _tag: "Replay", result: Object.freeze({ ...seen.result, replayed: true }) })
    case "Outcome": {
      const { approval, arguments: args, digest, kind } = seen.details
      const { callId, toolName } = operation
      const executed: Executed = Object.assign(state, {
        kind,
        effective: { callId, toolName, kind, arguments: args, digest },
        approval,
        claim: seen.claim,
        outcome: seen.outcome,
        started: true,
        observations: []
      })
      return Effect.flatMap(resume(executed), (result) => Effect.fail({ _tag: "Replay", result }))
    }
    case "Live":
      return Effect.fail(new InvocationInProgress({ operationId: operation.id }))
    case "Unknown":
      return Effect.fail(new OutcomeUnknown({ operationId: operation.id, reason: seen.reason }))
    case "Conflict":
      return Effect.fail(new IdempotencyConflict({ operationId: operation.id }))
  }
}
