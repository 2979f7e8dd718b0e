/**
 * What a resolved record means for the call that asked, in words for a model.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { ApprovalRefused } from "../contract/ToolFailure.ts"
import type { ApprovalOutcome } from "../contract/ToolResult.ts"
import type { ApprovalRecord } from "./ApprovalRecord.ts"

/** Who stands for what the plane itself resolved. */
export const plane = "portcullis"

export const refuse = (code: ApprovalRefused["code"], reason: string, record?: ApprovalRecord): ApprovalRefused =>
  new ApprovalRefused({
    code,
    reason,
    ...(record === undefined ? {} : { approvalId: record.id, principal: record.principal ?? plane })
  })

/** An allowance, or the refusal with its code. */
export const verdict = (record: ApprovalRecord): Effect.Effect<ApprovalOutcome, ApprovalRefused> => {
  const { toolName } = record.question
  const principal = record.principal ?? plane
  const because = record.reason === null ? "." : `: ${record.reason}`
  switch (record.status) {
    case "allowed":
      return Effect.succeed({ id: record.id, decision: "allow", principal })
    case "denied":
      return Effect.fail(refuse("approval_denied", `${principal} denied ${toolName}${because}`, record))
    case "expired":
      return Effect.fail(refuse("approval_expired", `Nobody approved ${toolName} in time.`, record))
    case "superseded":
      return Effect.fail(
        refuse(
          "approval_superseded",
          `${toolName} is not the call that was asked about any more; make it anew.`,
          record
        )
      )
    case "cancelled":
    case "pending":
      return Effect.fail(refuse("approval_unavailable", `Nobody can approve ${toolName} now${because}`, record))
  }
}
