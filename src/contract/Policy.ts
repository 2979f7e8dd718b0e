/**
 * The closed vocabularies of permission, each with its order of strictness.
 *
 * An order is a list from the most permissive value to the strictest. `stricter` picks the later one, so a host can clamp
 * what a turn asks for and a claimed kind can only tighten a declared one.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/** What a call does to the world, least to most risky. The sandbox gate judges by this alone (seed 6.1). */
export const toolKinds = ["tool_call", "file_change", "command_execution"] as const
export const ToolKind = Schema.Literal(...toolKinds)
export type ToolKind = typeof ToolKind.Type

/** A tool's own word on approval (seed 6.2). `never` disables it. */
export const ToolPolicy = Schema.Literal("auto", "on-request", "suggest", "untrusted", "never")
export type ToolPolicy = typeof ToolPolicy.Type

/** When the host asks for approval, most permissive first (seed 6.2). */
export const approvalPolicies = ["auto", "suggest", "on-request", "untrusted", "always", "never"] as const
export const ApprovalPolicy = Schema.Literal(...approvalPolicies)
export type ApprovalPolicy = typeof ApprovalPolicy.Type

/** What a turn may touch, most permissive first (seed 6.1). */
export const sandboxModes = ["danger-full-access", "workspace-write", "external-sandbox", "read-only"] as const
export const SandboxMode = Schema.Literal(...sandboxModes)
export type SandboxMode = typeof SandboxMode.Type

export const threadModes = ["agent", "plan"] as const
export const ThreadMode = Schema.Literal(...threadModes)
export type ThreadMode = typeof ThreadMode.Type

/** Where a tool's code acts: through the process sandbox, on another machine, or on this one directly. */
export const Runs = Schema.Literal("sandboxed", "remote", "host")
export type Runs = typeof Runs.Type

/** Who may hold a tool: every agent, or the main agent alone. Unknown reach counts as `main`. */
export const Reach = Schema.Literal("shared", "main")
export type Reach = typeof Reach.Type

/** What a process sandbox reports of itself. */
export const Confinement = Schema.Literal("none", "partial", "full", "external")
export type Confinement = typeof Confinement.Type

export const ClientSurface = Schema.Literal("gui", "tui", "cli", "api", "im", "extension")
export type ClientSurface = typeof ClientSurface.Type

const stricterIn = <A extends string>(order: ReadonlyArray<A>) => (left: A, right: A): A =>
  order.indexOf(left) >= order.indexOf(right) ? left : right

export const stricterKind: (left: ToolKind, right: ToolKind) => ToolKind = stricterIn(toolKinds)
export const stricterApproval: (left: ApprovalPolicy, right: ApprovalPolicy) => ApprovalPolicy = stricterIn(
  approvalPolicies
)
export const stricterSandbox: (left: SandboxMode, right: SandboxMode) => SandboxMode = stricterIn(sandboxModes)
export const stricterThreadMode: (left: ThreadMode, right: ThreadMode) => ThreadMode = stricterIn(threadModes)

/** The seed (9) lists its own full-access default as a limitation; a host restores it with one option. */
export const defaultSandboxMode: SandboxMode = "workspace-write"
export const defaultApprovalPolicy: ApprovalPolicy = "on-request"
