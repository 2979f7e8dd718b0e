/**
 * Where approval records are kept. The gate decides, a store only moves records from one status to the next, atomically.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { StateUnavailable } from "../contract/ToolFailure.ts"
import type { ApprovalRecord, ApprovalStatus } from "./ApprovalRecord.ts"

/** What stood under an operation when a call asked. */
export type Armed =
  /** Nothing, and now the fresh record. */
  | { readonly _tag: "Created"; readonly record: ApprovalRecord }
  /** A record with the same digest, or a refusal: `pending`, `allowed` and not consumed, or `denied`. */
  | { readonly _tag: "Found"; readonly record: ApprovalRecord }
  /** An open or allowed record of another call, not consumed, which is superseded now. */
  | { readonly _tag: "Superseded"; readonly record: ApprovalRecord }
  /** Nothing, and no fresh record was offered, or too many are open. */
  | { readonly _tag: "None" }

export interface Resolution {
  readonly status: Exclude<ApprovalStatus, "pending">
  readonly principal: string | null
  readonly reason: string | null
  readonly at: number
}

export class ApprovalStore extends Context.Tag("portcullis/ApprovalStore")<ApprovalStore, {
  /**
   * Finds what holds for the operation of a question, or stores `fresh`. An operation has at most one record that is
   * `pending`, `allowed` and not consumed, or `denied`. At most `maxPending` records are open at one time; those whose
   * deadline has passed do not count.
   */
  readonly arm: (
    question: { readonly operationId: string; readonly digest: string },
    fresh: ApprovalRecord | undefined,
    at: number
  ) => Effect.Effect<Armed, StateUnavailable>
  /** Resolves a record if it is still pending, and returns it as it is then. `undefined`: there is none. */
  readonly resolve: (
    id: string,
    resolution: Resolution
  ) => Effect.Effect<{ readonly record: ApprovalRecord; readonly changed: boolean } | undefined, StateUnavailable>
  /** From now on an allowed record does not hold for its operation. */
  readonly consume: (id: string) => Effect.Effect<void, StateUnavailable>
  readonly get: (id: string) => Effect.Effect<ApprovalRecord | undefined, StateUnavailable>
  /** Oldest first, those whose deadline has passed among them. */
  readonly pending: Effect.Effect<ReadonlyArray<ApprovalRecord>, StateUnavailable>
  /** How often to look for a resolution made by another process; `undefined` when there can be none. */
  readonly pollInterval: Duration.DurationInput | undefined
}>() {}

/** Open questions at one time; beyond it nobody can be asked. */
export const maxPending = 1000

/** Whether nobody can answer any more. */
export const hasPassed = ({ deadline }: ApprovalRecord, at: number): boolean => deadline !== null && deadline <= at

/** Whether a record still speaks for its operation. */
const holds = (status: ApprovalStatus): boolean => status === "pending" || status === "allowed" || status === "denied"

/** Whether a record must give way to a question with another digest. A no stands for the operation, however it is put. */
const yields = (record: ApprovalRecord, digest: string): boolean =>
  record.status !== "denied" && record.question.digest !== digest

const resolved = (record: ApprovalRecord, resolution: Resolution): ApprovalRecord => ({
  ...record,
  status: resolution.status,
  principal: resolution.principal,
  reason: resolution.reason,
  decidedAt: resolution.at
})

export const superseded = (at: number): Resolution => ({
  status: "superseded",
  principal: null,
  reason: "the call changed after it was asked about",
  at
})

const expired = (at: number): Resolution => ({ status: "expired", principal: null, reason: null, at })

export interface Options {
  /** Resolved records kept; the oldest go first. Default 1024. */
  readonly keep?: number
}

/** Keeps records in memory. */
export const make = (options: Options = {}): Effect.Effect<typeof ApprovalStore.Service> =>
  Effect.sync(() => {
    const keep = Math.max(1, options.keep ?? 1024)
    const open = new Map<string, ApprovalRecord>()
    const done = new Map<string, ApprovalRecord>()
    /** The record that holds for an operation. */
    const byOperation = new Map<string, string>()

    const find = (id: string) => open.get(id) ?? done.get(id)

    const forget = (record: ApprovalRecord) => {
      done.delete(record.id)
      if (byOperation.get(record.question.operationId) === record.id) byOperation.delete(record.question.operationId)
    }

    const finish = (record: ApprovalRecord, resolution: Resolution): ApprovalRecord => {
      const next = resolved(record, resolution)
      open.delete(record.id)
      done.delete(record.id)
      done.set(record.id, next)
      if (!holds(next.status)) byOperation.delete(record.question.operationId)
      const oldest = done.size > keep ? done.values().next().value : undefined
      if (oldest !== undefined) forget(oldest)
      return next
    }

    return {
      arm: (question, fresh, at) =>
        Effect.sync((): Armed => {
          const id = byOperation.get(question.operationId)
          const record = id === undefined ? undefined : find(id)
          if (record !== undefined) {
            return yields(record, question.digest)
              ? { _tag: "Superseded", record: finish(record, superseded(at)) }
              : { _tag: "Found", record }
          }
          if (fresh === undefined) return { _tag: "None" }
          if (open.size >= maxPending) {
            for (const old of [...open.values()]) if (hasPassed(old, at)) finish(old, expired(at))
            if (open.size >= maxPending) return { _tag: "None" }
          }
          open.set(fresh.id, fresh)
          byOperation.set(question.operationId, fresh.id)
          return { _tag: "Created", record: fresh }
        }),
      resolve: (id, resolution) =>
        Effect.sync(() => {
          const pending = open.get(id)
          if (pending !== undefined) return { record: finish(pending, resolution), changed: true }
          const record = done.get(id)
          return record === undefined ? undefined : { record, changed: false }
        }),
      consume: (id) =>
        Effect.sync(() => {
          const record = done.get(id)
          const operationId = record?.status === "allowed" ? record.question.operationId : undefined
          if (operationId !== undefined && byOperation.get(operationId) === id) byOperation.delete(operationId)
        }),
      get: (id) => Effect.sync(() => find(id)),
      pending: Effect.sync(() => [...open.values()]),
      pollInterval: undefined
    }
  })

export const layerMemory = (options?: Options): Layer.Layer<ApprovalStore> => Layer.effect(ApprovalStore, make(options))
