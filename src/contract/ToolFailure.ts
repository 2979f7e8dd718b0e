/**
 * The closed table of failure codes, one tagged error per situation (architecture section 4, seed 6.4).
 *
 * A failure is for a model to read: `code` says which situation, `message` what to do about it, the other fields become
 * the result's `details`. A tool's own failures are `ToolError`s with a code the tool declared.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

export const failureCodes = [
  "tool_unknown",
  "tool_not_advertised",
  "tool_invocation_in_progress",
  "tool_outcome_unknown",
  "idempotency_conflict",
  "tool_disabled",
  "sandbox_read_only",
  "sandbox_write_blocked",
  "sandbox_command_blocked",
  "sandbox_unavailable",
  "hook_denied",
  "hook_failed",
  "guard_denied",
  "arguments_truncated",
  "arguments_too_large",
  "arguments_invalid",
  "plan_mode_blocked",
  "read_before_edit_required",
  "stale_read",
  "rule_denied",
  "approval_policy_blocked",
  "approval_classification_failed",
  "approval_denied",
  "approval_expired",
  "approval_superseded",
  "approval_unavailable",
  "tool_execution_failed",
  "tool_timeout",
  "tool_output_invalid",
  "rate_limited",
  "tool_interrupted",
  "tool_not_started",
  "tool_storm",
  "turn_denied",
  "user_input_unavailable",
  "delegation_limit",
  "depth_exceeded",
  "mcp_disconnected",
  "state_unavailable"
] as const
export const FailureCode = Schema.Literal(...failureCodes)
export type FailureCode = typeof FailureCode.Type

/** The codes of the table that a tool may fail with by itself; the others are the plane's own words. */
export const toolFailureCodes = [
  "tool_execution_failed",
  "tool_timeout",
  "tool_output_invalid",
  "arguments_truncated",
  "arguments_too_large",
  "arguments_invalid",
  "sandbox_read_only",
  "sandbox_write_blocked",
  "sandbox_command_blocked",
  "sandbox_unavailable",
  "read_before_edit_required",
  "stale_read",
  "approval_denied",
  "approval_expired",
  "approval_superseded",
  "approval_unavailable",
  "rate_limited",
  "user_input_unavailable",
  "delegation_limit",
  "depth_exceeded",
  "mcp_disconnected"
] as const satisfies ReadonlyArray<FailureCode>
export type ToolFailureCode = typeof toolFailureCodes[number]

const coded = <const C extends FailureCode>(value: C) =>
  Schema.Literal(value).pipe(Schema.propertySignature, Schema.withConstructorDefault(() => value))

const id = <const T extends string>(tag: T) => `portcullis/${tag}` as const

export class ToolUnknown extends Schema.TaggedError<ToolUnknown>(id("ToolUnknown"))("ToolUnknown", {
  code: coded("tool_unknown"),
  toolName: Schema.String,
  near: Schema.Array(Schema.String)
}) {
  override get message() {
    return `There is no tool named ${JSON.stringify(this.toolName)}.` +
      (this.near.length === 0 ? "" : ` Did you mean ${this.near.join(", ")}?`)
  }
}

export const CatalogFilter = Schema.Literal("provider", "names", "plan", "sandbox", "advertise", "hidden")
export type CatalogFilter = typeof CatalogFilter.Type

export class ToolNotAdvertised extends Schema.TaggedError<ToolNotAdvertised>(id("ToolNotAdvertised"))(
  "ToolNotAdvertised",
  { code: coded("tool_not_advertised"), toolName: Schema.String, filter: CatalogFilter, reason: Schema.String }
) {
  override get message() {
    return `${this.toolName} is not available in this turn: ${this.reason}.`
  }
}

export class ToolDisabled extends Schema.TaggedError<ToolDisabled>(id("ToolDisabled"))("ToolDisabled", {
  code: coded("tool_disabled"),
  toolName: Schema.String
}) {
  override get message() {
    return `${this.toolName} is disabled by its own policy.`
  }
}

export class InvocationInProgress extends Schema.TaggedError<InvocationInProgress>(id("InvocationInProgress"))(
  "InvocationInProgress",
  { code: coded("tool_invocation_in_progress"), operationId: Schema.String }
) {
  override get message() {
    return "This very call is running already. Wait for its result instead of repeating it."
  }
}

export class OutcomeUnknown extends Schema.TaggedError<OutcomeUnknown>(id("OutcomeUnknown"))("OutcomeUnknown", {
  code: coded("tool_outcome_unknown"),
  operationId: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `This call was started before and nobody knows how it ended (${this.reason}). It will not be run again; ` +
      `look at the world to see what happened, or have the host reconcile ${this.operationId}.`
  }
}

export class IdempotencyConflict extends Schema.TaggedError<IdempotencyConflict>(id("IdempotencyConflict"))(
  "IdempotencyConflict",
  { code: coded("idempotency_conflict"), operationId: Schema.String }
) {
  override get message() {
    return "This call id was used in this turn with other arguments. Use a new call id."
  }
}

export class SandboxBlocked extends Schema.TaggedError<SandboxBlocked>(id("SandboxBlocked"))("SandboxBlocked", {
  code: Schema.Literal("sandbox_read_only", "sandbox_write_blocked", "sandbox_command_blocked", "sandbox_unavailable"),
  reason: Schema.String,
  path: Schema.optionalWith(Schema.String, { exact: true })
}) {
  override get message() {
    return this.reason
  }
}

export class HookDenied extends Schema.TaggedError<HookDenied>(id("HookDenied"))("HookDenied", {
  code: coded("hook_denied"),
  hook: Schema.String,
  reason: Schema.String,
  executed: Schema.Boolean,
  output: Schema.optionalWith(Schema.Unknown, { exact: true })
}) {
  override get message() {
    return this.executed
      ? `The tool ran, and then a hook objected to its result: ${this.reason}`
      : `A hook denied this call: ${this.reason}`
  }
}

/** How a hook failed (decisions, Gates). */
export const HookFailure = Schema.Literal("crashed", "timed_out", "never_started", "bad_output", "killed")
export type HookFailure = typeof HookFailure.Type

export class HookFailed extends Schema.TaggedError<HookFailed>(id("HookFailed"))("HookFailed", {
  code: coded("hook_failed"),
  hook: Schema.String,
  cause: HookFailure,
  reason: Schema.String,
  executed: Schema.Boolean,
  output: Schema.optionalWith(Schema.Unknown, { exact: true })
}) {
  override get message() {
    return this.executed
      ? `The tool ran, but the hook ${this.hook} failed after it (${this.cause}): ${this.reason}. The tool's output is in details.output.`
      : `The hook ${this.hook} failed (${this.cause}), so the tool was not run: ${this.reason}`
  }
}

export class GuardDenied extends Schema.TaggedError<GuardDenied>(id("GuardDenied"))("GuardDenied", {
  code: coded("guard_denied"),
  guard: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `Refused by ${this.guard}: ${this.reason}`
  }
}

export class ArgumentsRefused extends Schema.TaggedError<ArgumentsRefused>(id("ArgumentsRefused"))("ArgumentsRefused", {
  code: Schema.Literal("arguments_truncated", "arguments_too_large", "arguments_invalid"),
  reason: Schema.String,
  path: Schema.optionalWith(Schema.String, { exact: true }),
  received: Schema.optionalWith(Schema.Number, { exact: true }),
  limit: Schema.optionalWith(Schema.Number, { exact: true })
}) {
  override get message() {
    return this.reason
  }
}

export class PlanModeBlocked extends Schema.TaggedError<PlanModeBlocked>(id("PlanModeBlocked"))("PlanModeBlocked", {
  code: coded("plan_mode_blocked"),
  toolName: Schema.String
}) {
  override get message() {
    return `${this.toolName} cannot run in a plan turn: only reading tools and the plan itself can.`
  }
}

export class ReadRequired extends Schema.TaggedError<ReadRequired>(id("ReadRequired"))("ReadRequired", {
  code: Schema.Literal("read_before_edit_required", "stale_read"),
  path: Schema.String,
  reason: Schema.String,
  nextAction: Schema.Struct({
    tool: Schema.String,
    arguments: Schema.Struct({
      path: Schema.String,
      offset: Schema.optionalWith(Schema.Number, { exact: true }),
      column: Schema.optionalWith(Schema.Number, { exact: true })
    })
  }),
  /** The revisions that were read and that are there, when they differ. */
  readVersion: Schema.optionalWith(Schema.String, { exact: true }),
  currentVersion: Schema.optionalWith(Schema.String, { exact: true })
}) {
  override get message() {
    const { column, offset } = this.nextAction.arguments
    const inside = column === undefined ? "" : ` and column ${column}`
    const from = offset === undefined ? "" : ` with offset ${offset}${inside}`
    return `${this.reason} Call read on ${JSON.stringify(this.path)}${from} first, then repeat this call.`
  }
}

export class RuleDenied extends Schema.TaggedError<RuleDenied>(id("RuleDenied"))("RuleDenied", {
  code: coded("rule_denied"),
  rule: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `Denied by the rule ${JSON.stringify(this.rule)}: ${this.reason}`
  }
}

export class ApprovalRefused extends Schema.TaggedError<ApprovalRefused>(id("ApprovalRefused"))("ApprovalRefused", {
  code: Schema.Literal(
    "approval_policy_blocked",
    "approval_classification_failed",
    "approval_denied",
    "approval_expired",
    "approval_superseded",
    "approval_unavailable"
  ),
  reason: Schema.String,
  approvalId: Schema.optionalWith(Schema.String, { exact: true }),
  principal: Schema.optionalWith(Schema.String, { exact: true })
}) {
  override get message() {
    return this.reason
  }
}

export class ExecutionFailed extends Schema.TaggedError<ExecutionFailed>(id("ExecutionFailed"))("ExecutionFailed", {
  code: coded("tool_execution_failed"),
  reason: Schema.String,
  details: Schema.optionalWith(Schema.Unknown, { exact: true })
}) {
  override get message() {
    return this.reason
  }
}

export class ToolTimeout extends Schema.TaggedError<ToolTimeout>(id("ToolTimeout"))("ToolTimeout", {
  code: coded("tool_timeout"),
  timeoutMs: Schema.Number
}) {
  override get message() {
    return `The tool did not finish within ${this.timeoutMs} ms and was stopped.`
  }
}

export class OutputInvalid extends Schema.TaggedError<OutputInvalid>(id("OutputInvalid"))("OutputInvalid", {
  code: coded("tool_output_invalid"),
  reason: Schema.String
}) {
  override get message() {
    return `The tool ran, but its output is not what it declares: ${this.reason}`
  }
}

export class RateLimited extends Schema.TaggedError<RateLimited>(id("RateLimited"))("RateLimited", {
  code: coded("rate_limited"),
  reason: Schema.String,
  /** Milliseconds to wait; `null` when the other side named none. */
  retryAfterMs: Schema.NullOr(Schema.Number),
  original: Schema.optionalWith(Schema.Unknown, { exact: true })
}) {
  override get message() {
    return this.retryAfterMs === null
      ? `Rate limited: ${this.reason}`
      : `Rate limited, retry after ${this.retryAfterMs} ms: ${this.reason}`
  }
}

/** How a call of a turn ended without the channel having answered it. */
export class CallNotCompleted extends Schema.TaggedError<CallNotCompleted>(id("CallNotCompleted"))("CallNotCompleted", {
  code: Schema.Literal(
    "tool_interrupted",
    "tool_not_started",
    "tool_storm",
    "turn_denied",
    "delegation_limit",
    "depth_exceeded",
    "mcp_disconnected"
  ),
  reason: Schema.String
}) {
  override get message() {
    return this.reason
  }
}

/** A tool had a question and nobody is there to answer it. */
export class UserInputUnavailable
  extends Schema.TaggedError<UserInputUnavailable>(id("UserInputUnavailable"))("UserInputUnavailable", {
    code: coded("user_input_unavailable"),
    reason: Schema.String
  })
{
  override get message() {
    return this.reason
  }
}

/** The plane's own record could not be read or written. `executed` says whether the tool had run by then. */
export class StateUnavailable extends Schema.TaggedError<StateUnavailable>(id("StateUnavailable"))("StateUnavailable", {
  code: coded("state_unavailable"),
  reason: Schema.String,
  executed: Schema.Boolean,
  output: Schema.optionalWith(Schema.Unknown, { exact: true })
}) {
  override get message() {
    return this.executed
      ? `The tool ran, but its outcome could not be recorded: ${this.reason}`
      : `The call could not be recorded, so it was not run: ${this.reason}`
  }
}

/** A failure of a tool's own: `code` is one the tool declares, `details` plain JSON for the model. */
export class ToolError extends Schema.TaggedError<ToolError>(id("ToolError"))("ToolError", {
  code: Schema.String,
  message: Schema.String,
  details: Schema.optionalWith(Schema.Unknown, { exact: true })
}) {}

/** A `ToolError` whose code the compiler knows, to be held against what the tool declares. */
export type CodedError<Code extends string> = ToolError & { readonly code: Code }

export const toolError = <const Code extends string>(
  code: Code,
  message: string,
  details?: unknown
): CodedError<Code> =>
  // The constructor keeps the code it is given.
  new ToolError({ code, message, ...(details === undefined ? {} : { details }) }) as CodedError<Code>

export type ToolFailure =
  | ToolUnknown
  | ToolNotAdvertised
  | ToolDisabled
  | InvocationInProgress
  | OutcomeUnknown
  | IdempotencyConflict
  | SandboxBlocked
  | HookDenied
  | HookFailed
  | GuardDenied
  | ArgumentsRefused
  | PlanModeBlocked
  | ReadRequired
  | RuleDenied
  | ApprovalRefused
  | ExecutionFailed
  | ToolTimeout
  | OutputInvalid
  | RateLimited
  | CallNotCompleted
  | UserInputUnavailable
  | StateUnavailable
  | ToolError
