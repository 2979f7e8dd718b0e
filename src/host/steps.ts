/**
 * The channel's steps in order, as data (architecture section 4, seed 6.4).
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import type { ToolFailure } from "../contract/ToolFailure.ts"
import type { Replay } from "./CallState.ts"
import type { Step, StepInfo } from "./Step.ts"

const ledgerCodes = ["tool_invocation_in_progress", "tool_outcome_unknown", "idempotency_conflict"] as const
const sandboxCodes = [
  "sandbox_read_only",
  "sandbox_write_blocked",
  "sandbox_command_blocked",
  "sandbox_unavailable"
] as const

/** Number, name, and the refusal codes that start there. */
export const steps = [
  { number: "1", name: "pins", codes: [] },
  { number: "2", name: "abort point", codes: [] },
  { number: "3", name: "resolve", codes: ["tool_unknown", "tool_not_advertised"] },
  { number: "3b", name: "ledger peek", codes: [...ledgerCodes, "state_unavailable"] },
  { number: "4", name: "tool policy", codes: ["tool_disabled"] },
  { number: "5", name: "sandbox gate", codes: sandboxCodes },
  { number: "6", name: "hooks and guards", codes: ["hook_denied", "hook_failed", "guard_denied"] },
  { number: "7", name: "arguments", codes: ["arguments_truncated", "arguments_too_large", "arguments_invalid"] },
  { number: "8", name: "plan mode", codes: ["plan_mode_blocked"] },
  // A path that cannot be followed is refused here too, with a code of `file/FileError`.
  { number: "9", name: "read before edit", codes: ["read_before_edit_required", "stale_read"] },
  { number: "10", name: "runtime policy", codes: [...sandboxCodes, "rule_denied", "approval_policy_blocked"] },
  { number: "11", name: "outside targets", codes: ["sandbox_write_blocked", "approval_classification_failed"] },
  {
    number: "12",
    name: "approval gate",
    codes: ["approval_denied", "approval_expired", "approval_superseded", "approval_unavailable"]
  },
  { number: "13", name: "judge again", codes: ["approval_superseded", "tool_not_started"] },
  { number: "14", name: "ledger claim", codes: [...ledgerCodes, "state_unavailable"] },
  { number: "15", name: "execute", codes: ["tool_execution_failed", "tool_timeout", "tool_output_invalid"] },
  { number: "16", name: "post hooks", codes: ["hook_failed", "hook_denied"] },
  { number: "17", name: "rate limit", codes: ["rate_limited"] },
  { number: "18", name: "settle", codes: ["state_unavailable"] }
] as const satisfies ReadonlyArray<StepInfo>

/** What a step of the table does. */
export const stepOf = <In, Out>(
  number: typeof steps[number]["number"],
  run: (state: In) => Effect.Effect<Out, ToolFailure | Replay>
): Step<In, Out> => ({ number, run })
