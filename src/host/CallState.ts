/**
 * What is known of a call after each step: a record that grows.
 *
 * Every step takes the state it needs and returns it with what it found, so running a tool before its call is claimed does
 * not type-check.
 *
 * @since 0.1.0
 */
import type * as Clock from "effect/Clock"
import type * as Either from "effect/Either"
import type { ProviderEntry, Ready, RegisteredTool, Snapshot } from "../catalog/CapabilityRegistry.ts"
import type { Catalog } from "../catalog/Catalog.ts"
import type { JsonObject } from "../contract/Json.ts"
import type { ToolKind } from "../contract/Policy.ts"
import type { RawOutcome } from "../contract/RawOutcome.ts"
import type { ToolCall } from "../contract/ToolCall.ts"
import type { ArgumentsRefused } from "../contract/ToolFailure.ts"
import type { ApprovalOutcome, ToolResult } from "../contract/ToolResult.ts"
import type { Turn } from "../contract/Turn.ts"
import type { Resolved as ResolvedPath } from "../file/WorkspacePath.ts"
import type { Hooks } from "../gate/HookGate.ts"
import type { SandboxTable } from "../gate/SandboxGate.ts"
import type { FileTarget } from "../tool/Tool.ts"
import type { EffectiveCall, Observation, WriteGrant } from "../tool/ToolInvocation.ts"
import type { Claim, Operation } from "./OperationLedger.ts"

/** The modes of a turn and what follows from them; replaced whole when a mode changes. */
export interface Now {
  readonly turn: Turn
  readonly sandbox: SandboxTable
  /** Whether the turn's scope is still open. */
  readonly open: boolean
}

/** What a turn pinned when it was opened. */
export interface Pins {
  readonly snapshot: Snapshot
  readonly catalog: Catalog
  readonly hooks: Hooks
  readonly now: () => Now
}

export interface Received {
  readonly pins: Pins
  readonly call: ToolCall
  readonly clock: Clock.Clock
  /** Epoch milliseconds. */
  readonly startedAt: number
  /** As the turn stood when it was last looked at. */
  readonly now: Now
}

export interface Resolved extends Received {
  readonly registered: RegisteredTool
  readonly provider: ProviderEntry
  /** The stricter of the declared and the claimed kind. */
  readonly kind: ToolKind
}

export interface Identified extends Resolved {
  readonly operation: Operation
  readonly received: Either.Either<JsonObject, ArgumentsRefused>
}

export interface Heard extends Identified {
  /** The arguments as hooks left them, decoded: what guards saw and step 7 takes, or why it refuses. */
  readonly ready: Either.Either<Ready, ArgumentsRefused>
  readonly hookAllowed: boolean
  readonly hookAsks: ReadonlyArray<string>
}

export interface Effective extends Heard {
  readonly prepared: Ready
  readonly effective: EffectiveCall
}

export interface Located extends Effective {
  readonly targets: ReadonlyArray<{ readonly target: FileTarget; readonly resolved: ResolvedPath }>
}

export interface Ruled extends Located {
  /** Why a rule wants somebody asked, if one does. */
  readonly ruleAsks: string | undefined
  readonly ruleAllows: boolean
  readonly unconfined: boolean
}

export interface Inventoried extends Ruled {
  readonly grants: ReadonlyArray<WriteGrant>
  readonly explicit: boolean
}

export interface Approved extends Inventoried {
  readonly approval: ApprovalOutcome | null
  /** Digest of all that was asked about; `null` when nobody was asked. */
  readonly asked: string | null
}

/** What everything after the claim needs; a call that goes on after a crash starts here. */
export interface Claimed extends Resolved {
  readonly effective: EffectiveCall
  readonly approval: ApprovalOutcome | null
  readonly claim: Claim
  /** Whether the handler was started. */
  readonly started: boolean
}

export interface Executed extends Claimed {
  readonly outcome: RawOutcome
  readonly observations: ReadonlyArray<Observation>
}

/** A way out that is no refusal: the operation has a result already. */
export interface Replay {
  readonly _tag: "Replay"
  readonly result: ToolResult
}
