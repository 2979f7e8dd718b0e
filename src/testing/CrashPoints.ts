/**
 * A ledger in memory whose process can be made to die at a chosen point, and to start again over what it left.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { StateUnavailable } from "../contract/ToolFailure.ts"
import type { MemoryOwner, Options } from "../host/OperationLedger.ts"
import { makeShared, OperationLedger } from "../host/OperationLedger.ts"

/** `before`: the step leaves no trace. `after`: it is recorded, but its caller is dead before it hears of it. */
export type Point =
  | "before_claim"
  | "after_claim"
  | "before_outcome"
  | "after_outcome"
  | "before_settle"
  | "after_settle"

export class CrashPoints extends Context.Tag("portcullis/testing/CrashPoints")<CrashPoints, {
  /** The process dies when a call next reaches this point. The call fails, and so does every later one until `restart`. */
  readonly crashAt: (point: Point) => Effect.Effect<void>
  /** Dies now. */
  readonly crash: Effect.Effect<void>
  /** A new process over the same record; the old one is gone and cannot record. */
  readonly restart: Effect.Effect<void>
}>() {}

export const layer = (options?: Options): Layer.Layer<OperationLedger | CrashPoints> =>
  Layer.effectContext(Effect.gen(function*() {
    const shared = yield* makeShared(options)
    let owner: MemoryOwner = yield* shared.join
    let armed: Point | undefined

    const reach = (point: Point, executed: boolean) =>
      Effect.suspend(() => {
        if (armed !== point) return Effect.void
        armed = undefined
        return Effect.zipRight(
          owner.die,
          Effect.fail(new StateUnavailable({ reason: `the process died at ${point}`, executed }))
        )
      })
    const around = <A, E>(
      step: "claim" | "outcome" | "settle",
      effect: Effect.Effect<A, E>
    ): Effect.Effect<A, E | StateUnavailable> => {
      const executed = step !== "claim"
      return reach(`before_${step}`, executed).pipe(
        Effect.zipRight(effect),
        Effect.zipLeft(reach(`after_${step}`, executed))
      )
    }
    const now = <A, E>(use: (ledger: typeof OperationLedger.Service) => Effect.Effect<A, E>): Effect.Effect<A, E> =>
      Effect.suspend(() => use(owner.ledger))

    return Context.make(OperationLedger, {
      peek: (operation) => now((ledger) => ledger.peek(operation)),
      claim: (operation, details) => around("claim", now((ledger) => ledger.claim(operation, details))),
      outcome: (claim, outcome) => around("outcome", now((ledger) => ledger.outcome(claim, outcome))),
      settle: (claim, result) => around("settle", now((ledger) => ledger.settle(claim, result))),
      abandon: (claim, reason) => now((ledger) => ledger.abandon(claim, reason)),
      reconcile: (id, outcome) => now((ledger) => ledger.reconcile(id, outcome)),
      list: (filter) => now((ledger) => ledger.list(filter))
    }).pipe(Context.add(CrashPoints, {
      crashAt: (point) => Effect.sync(() => void (armed = point)),
      crash: Effect.suspend(() => owner.die),
      restart: Effect.suspend(() => Effect.zipRight(owner.die, shared.join)).pipe(
        Effect.map((next) => {
          armed = undefined
          owner = next
        })
      )
    }))
  }))
