/**
 * Whether this very operation has run already: `started → outcome → settled`, or `unknown`.
 *
 * An operation is a thread, a turn, a call id and a tool. `started` is recorded before the side effect and the raw outcome
 * right after it, so a crash in between leaves `unknown` and never a second execution. A claim carries a fencing token: a
 * holder whose claim was taken over cannot record.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { type Json, JsonObject } from "../contract/Json.ts"
import { ToolKind } from "../contract/Policy.ts"
import type { RawOutcome } from "../contract/RawOutcome.ts"
import { CallId } from "../contract/ToolCall.ts"
import { StateUnavailable } from "../contract/ToolFailure.ts"
import { ApprovalOutcome, ToolResult } from "../contract/ToolResult.ts"
import { ThreadId, TurnId } from "../contract/Turn.ts"

export const OperationId = Schema.String.pipe(Schema.brand("portcullis/OperationId"))
/** `threadId·turnId·callId·toolName`. */
export type OperationId = typeof OperationId.Type

export interface Operation {
  readonly id: OperationId
  readonly threadId: ThreadId
  readonly turnId: TurnId
  readonly callId: CallId
  readonly toolName: string
  /** Digest of the original arguments, before any hook. */
  readonly originalHash: string
}

/** What the claim records beside the operation; enough to go on after a crash. */
export const ClaimDetails = Schema.Struct({
  kind: ToolKind,
  arguments: JsonObject,
  /** Digest of the effective call. */
  digest: Schema.String,
  /** It changes nothing: a claim whose owner died is simply given up. */
  readOnly: Schema.Boolean,
  /** The approval that this claim uses up. */
  approval: Schema.NullOr(ApprovalOutcome),
  startedAt: Schema.Number
})
export type ClaimDetails = typeof ClaimDetails.Type

/** The right to record for one operation. */
export interface Claim {
  readonly operationId: OperationId
  readonly token: number
}

export type Peek =
  | { readonly _tag: "Absent" }
  /** Done: this result again. */
  | { readonly _tag: "Settled"; readonly result: ToolResult }
  /** Ran, but was not settled and its owner is gone: the caller now holds it and goes on after the execution. */
  | { readonly _tag: "Outcome"; readonly outcome: RawOutcome; readonly details: ClaimDetails; readonly claim: Claim }
  /** Somebody alive is at it. */
  | { readonly _tag: "Live" }
  | { readonly _tag: "Unknown"; readonly reason: string }
  /** The same operation with other arguments. */
  | { readonly _tag: "Conflict" }

export type Claimed = { readonly _tag: "Claimed"; readonly claim: Claim } | Exclude<Peek, { readonly _tag: "Absent" }>

export const LedgerState = Schema.Literal("started", "outcome", "settled", "unknown")
export type LedgerState = typeof LedgerState.Type

export interface LedgerEntry {
  readonly id: OperationId
  readonly threadId: ThreadId
  readonly turnId: TurnId
  readonly callId: CallId
  readonly toolName: string
  readonly state: LedgerState
  readonly reason: string | null
  readonly startedAt: number
  readonly updatedAt: number
}

export class ReconcileRefused extends Schema.TaggedError<ReconcileRefused>("portcullis/ReconcileRefused")(
  "ReconcileRefused",
  { code: Schema.Literal("operation_not_found", "operation_not_unknown"), operationId: Schema.String }
) {
  override get message() {
    return this.code === "operation_not_found"
      ? `There is no operation ${this.operationId}.`
      : `The outcome of ${this.operationId} is not unknown, so there is nothing to reconcile.`
  }
}

export class OperationLedger extends Context.Tag("portcullis/OperationLedger")<OperationLedger, {
  /**
   * Looks, and takes over an `outcome` whose owner is gone. A dead owner's `started` reads as `Unknown`, or `Absent` if
   * read-only; an outcome or a result that cannot be read is `Unknown` from then on, to a claim too.
   */
  readonly peek: (operation: Operation) => Effect.Effect<Peek, StateUnavailable>
  /**
   * Claims an absent operation: exactly one of any number of concurrent claimants gets `Claimed`. Durable on return. An
   * interrupted claim leaves the operation as it was.
   */
  readonly claim: (operation: Operation, details: ClaimDetails) => Effect.Effect<Claimed, StateUnavailable>
  /** Records what the tool came to, once. Fails when the claim is no longer the holder's. Durable on return. */
  readonly outcome: (claim: Claim, outcome: RawOutcome) => Effect.Effect<void, StateUnavailable>
  /** Records the final result, once. Fails when the claim is no longer the holder's. Durable on return. */
  readonly settle: (claim: Claim, result: ToolResult) => Effect.Effect<void, StateUnavailable>
  /**
   * Gives a claim up after an interruption: `unknown`, or absent when read-only. A settled result stays; a recorded outcome
   * stays too, and whoever peeks next takes it over.
   */
  readonly abandon: (claim: Claim, reason: string) => Effect.Effect<void, StateUnavailable>
  /** The host's word on an unknown operation: from then on it is settled, as a success or a `tool_execution_failed`. */
  readonly reconcile: (
    id: OperationId,
    outcome: "completed" | "failed"
  ) => Effect.Effect<LedgerEntry, ReconcileRefused | StateUnavailable>
  /** Newest first, at most `limit` (default 100). */
  readonly list: (
    options?: { readonly threadId?: ThreadId; readonly state?: LedgerState; readonly limit?: number }
  ) => Effect.Effect<ReadonlyArray<LedgerEntry>, StateUnavailable>
}>() {}

/** The result that `reconcile` settles an operation with. */
export const reconciledResult = (
  operation: Pick<Operation, "threadId" | "turnId" | "callId" | "toolName">,
  details: ClaimDetails,
  outcome: "completed" | "failed",
  now: number
): ToolResult => {
  const failed = outcome === "failed"
  const error = "The host settled this call as failed: it did not take effect."
  return {
    id: `item_${operation.threadId}_${operation.turnId}_${operation.callId}`,
    callId: operation.callId,
    toolName: operation.toolName,
    toolKind: details.kind,
    isError: failed,
    code: failed ? "tool_execution_failed" : null,
    output: failed ? { code: "tool_execution_failed", error, details: { reconciled: true } } : { reconciled: true },
    content: [{ type: "text", text: failed ? error : "The host settled this call as completed; its output was lost." }],
    executed: true,
    replayed: false,
    approval: details.approval,
    effectiveArguments: details.arguments,
    startedAt: details.startedAt,
    finishedAt: now
  }
}

/** What was to be recorded: the failure to do so carries it, for nothing else does. */
export interface Recorded {
  readonly executed: boolean
  readonly output: Json
}

export const notRecorded = (reason: string, { executed, output }: Recorded): StateUnavailable =>
  new StateUnavailable({ reason, executed, output })

export const claimLost = (recorded: Recorded): StateUnavailable =>
  notRecorded("this claim is no longer the holder's", recorded)

/** Reasons of operations whose owner is gone. */
export const ownerDied = "the process that ran it is gone"
export const ownerClosed = "its host was closed while it ran"

export interface Options {
  /** Settled operations kept; the oldest go first. Default 1024. */
  readonly keep?: number
  /** Operations started or unknown at one time; beyond it a claim is refused. Default 10,000. */
  readonly maxOpen?: number
}

/** An owner of operations in memory, and the way to let it die. */
export interface MemoryOwner {
  readonly ledger: typeof OperationLedger.Service
  /** From now on it records nothing, and others see that it is gone. */
  readonly die: Effect.Effect<void>
}

interface Cell {
  readonly operation: Operation
  readonly details: ClaimDetails
  owner: { readonly alive: boolean }
  token: number
  state: LedgerState
  reason: string | null
  outcome: RawOutcome | undefined
  result: ToolResult | undefined
  updatedAt: number
}

const nobody = { alive: false }
const absent = Effect.succeed<Peek>({ _tag: "Absent" })
const died = Effect.fail(new StateUnavailable({ reason: ownerDied, executed: false }))

const entryOf = (cell: Cell): LedgerEntry => ({
  id: cell.operation.id,
  threadId: cell.operation.threadId,
  turnId: cell.operation.turnId,
  callId: cell.operation.callId,
  toolName: cell.operation.toolName,
  state: cell.state,
  reason: cell.reason,
  startedAt: cell.details.startedAt,
  updatedAt: cell.updatedAt
})

/** One memory that several owners share, each as if it were a process of its own. */
export const makeShared = (options: Options = {}): Effect.Effect<{ readonly join: Effect.Effect<MemoryOwner> }> =>
  Effect.sync(() => {
    const keep = Math.max(1, options.keep ?? 1024)
    const maxOpen = options.maxOpen ?? 10_000
    const full = Effect.fail(
      new StateUnavailable({ reason: `${maxOpen} operations are open or unknown`, executed: false })
    )
    const cells = new Map<string, Cell>()
    const settled: Array<Cell> = []
    let settledCount = 0
    let lastToken = 0

    const finish = (cell: Cell, result: ToolResult, now: number) => {
      cell.state = "settled"
      cell.result = result
      cell.outcome = undefined
      cell.updatedAt = now
      const slot = settledCount++ % keep
      const oldest = settled[slot]
      if (oldest !== undefined) cells.delete(oldest.operation.id)
      settled[slot] = cell
    }

    /** A dead owner's `started` becomes what it is now: unknown, or nothing at all. */
    const judge = (cell: Cell, now: number): Cell | undefined => {
      if (cell.owner.alive || cell.state !== "started") return cell
      if (cell.details.readOnly) {
        cells.delete(cell.operation.id)
        return undefined
      }
      cell.state = "unknown"
      cell.reason = ownerDied
      cell.updatedAt = now
      return cell
    }

    const judgeAll = (now: number) => {
      for (const cell of cells.values()) judge(cell, now)
    }

    const join = Effect.clockWith((clock) =>
      Effect.sync((): MemoryOwner => {
        const owner = { alive: true }

        const now = () => clock.unsafeCurrentTimeMillis()

        const find = (operation: Operation): Cell | undefined => {
          const found = cells.get(operation.id)
          return found === undefined || found.owner === owner ? found : judge(found, now())
        }

        const look = (operation: Operation, cell: Cell): Exclude<Peek, { readonly _tag: "Absent" }> => {
          if (cell.operation.originalHash !== operation.originalHash) return { _tag: "Conflict" }
          if (cell.result !== undefined) return { _tag: "Settled", result: cell.result }
          if (cell.state === "unknown") return { _tag: "Unknown", reason: cell.reason ?? "" }
          if (cell.owner.alive || cell.outcome === undefined) return { _tag: "Live" }
          cell.owner = owner
          cell.token = ++lastToken
          const claim: Claim = { operationId: operation.id, token: cell.token }
          return { _tag: "Outcome", outcome: cell.outcome, details: cell.details, claim }
        }

        const held = (claim: Claim): Cell | undefined => {
          const cell = cells.get(claim.operationId)
          return owner.alive && cell?.token === claim.token ? cell : undefined
        }

        const whileAlive = <A, E>(body: () => Effect.Effect<A, E>): Effect.Effect<A, E | StateUnavailable> =>
          Effect.suspend((): Effect.Effect<A, E | StateUnavailable> => owner.alive ? body() : died)

        const ledger: typeof OperationLedger.Service = {
          peek: (operation) =>
            whileAlive(() => {
              const cell = find(operation)
              return cell === undefined ? absent : Effect.succeed(look(operation, cell))
            }),
          claim: (operation, details) =>
            whileAlive((): Effect.Effect<Claimed, StateUnavailable> => {
              const cell = find(operation)
              if (cell !== undefined) return Effect.succeed(look(operation, cell))
              if (cells.size - Math.min(settledCount, keep) >= maxOpen) return full
              const token = ++lastToken
              cells.set(operation.id, {
                operation,
                details,
                owner,
                token,
                state: "started",
                reason: null,
                outcome: undefined,
                result: undefined,
                updatedAt: now()
              })
              return Effect.succeed({ _tag: "Claimed", claim: { operationId: operation.id, token } })
            }),
          outcome: (claim, outcome) =>
            Effect.suspend(() => {
              const cell = held(claim)
              if (cell?.state !== "started") return Effect.fail(claimLost({ executed: true, output: outcome.output }))
              cell.state = "outcome"
              cell.outcome = outcome
              cell.updatedAt = now()
              return Effect.void
            }),
          settle: (claim, result) =>
            Effect.suspend(() => {
              const cell = held(claim)
              if (cell?.state !== "started" && cell?.state !== "outcome") return Effect.fail(claimLost(result))
              finish(cell, result, now())
              return Effect.void
            }),
          abandon: (claim, reason) =>
            Effect.suspend(() => {
              const cell = held(claim)
              if (cell?.state === "outcome") cell.owner = nobody
              if (cell?.state !== "started") return Effect.void
              if (cell.details.readOnly) cells.delete(claim.operationId)
              else {
                cell.state = "unknown"
                cell.reason = reason
                cell.updatedAt = now()
              }
              return Effect.void
            }),
          reconcile: (id, outcome) =>
            whileAlive(() => {
              const found = cells.get(id)
              const cell = found === undefined ? undefined : judge(found, now())
              if (cell === undefined) {
                return Effect.fail(new ReconcileRefused({ code: "operation_not_found", operationId: id }))
              }
              if (cell.state !== "unknown") {
                return Effect.fail(new ReconcileRefused({ code: "operation_not_unknown", operationId: id }))
              }
              finish(cell, reconciledResult(cell.operation, cell.details, outcome, now()), now())
              return Effect.succeed(entryOf(cell))
            }),
          list: ({ threadId, state, limit = 100 } = {}) =>
            whileAlive(() => {
              judgeAll(now())
              const found: Array<LedgerEntry> = []
              for (const cell of [...cells.values()].reverse()) {
                if (found.length >= limit) break
                if (threadId !== undefined && cell.operation.threadId !== threadId) continue
                if (state === undefined || cell.state === state) found.push(entryOf(cell))
              }
              return Effect.succeed(found)
            })
        }
        return { ledger, die: Effect.sync(() => void (owner.alive = false)) }
      })
    )

    return { join }
  })

/** A ledger that lasts as long as this process. */
export const make = (options?: Options): Effect.Effect<typeof OperationLedger.Service> =>
  Effect.flatMap(makeShared(options), (shared) => Effect.map(shared.join, (owner) => owner.ledger))

export const layerMemory = (options?: Options): Layer.Layer<OperationLedger> =>
  Layer.effect(OperationLedger, make(options))
