/** Writers line up here; one fiber commits all that stand in the line at once. */
import { SqlError } from "@effect/sql/SqlError"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { StateUnavailable } from "../../../src/contract/ToolFailure.ts"

export type Value = string | number | null
export type Row = { readonly [column: string]: unknown }

/** Runs one statement. The rows of `RETURNING` count what an update changed. */
export type Run = (sql: string, parameters: ReadonlyArray<Value>) => Effect.Effect<ReadonlyArray<Row>, SqlError>

/**
 * What a writer wants done. It runs inside the shared transaction, runs again when another job of the batch fails, and must
 * not wait for anything but its statements. A refusal is a value; a failure or a defect undoes this job alone.
 */
export type Job<A> = (run: Run) => Effect.Effect<A, SqlError>

export interface CommitQueue {
  /**
   * Runs a job and returns once it is durable. A job that dies is `state_unavailable` as well. Interruption withdraws a job
   * that no transaction has taken yet; of one that is taken the caller learns how it ended.
   */
  readonly commit: <A>(job: Job<A>) => Effect.Effect<A, StateUnavailable>
  /**
   * Lets a job ride on the next commit, at the latest after 50 ms; `committed` is called then. Never waits. What cannot be
   * written is counted in a logged warning.
   */
  readonly defer: (job: Job<void>, committed?: () => void) => void
  /** Returns when all that was deferred is durable. */
  readonly flush: Effect.Effect<void, StateUnavailable>
}

interface Item {
  readonly job: Job<unknown>
  readonly deferred: boolean
  readonly settle: (exit: Exit.Exit<unknown, StateUnavailable>) => void
  state: "waiting" | "withdrawn" | "taken"
}

/** Jobs in one transaction: bounds how long it keeps the thread. */
const maxBatch = 256
/** Deferred jobs kept while the disk refuses; the oldest go first. */
const maxDeferred = 10_000
const deferredDelay = 50

const isClosed = "the state file is closed"

export const codeOf = (error: SqlError): string => {
  const cause = error.cause
  return cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : ""
}

const isBusy = (error: SqlError): boolean => codeOf(error).startsWith("SQLITE_BUSY")

/** Failures of the file, not of a statement: SQLite may have rolled back by itself, and every other job fails alike. */
const isOfTheFile = (error: SqlError): boolean =>
  /^SQLITE_(BUSY|LOCKED|FULL|IOERR|READONLY|CORRUPT|NOTADB|CANTOPEN|NOMEM|PROTOCOL)/.test(codeOf(error))

/** Other processes and the disk live in real time, whatever clock a caller is tested under. */
const realTime = Clock.make()

const patience = Schedule.exponential("1 millis").pipe(
  Schedule.union(Schedule.spaced("50 millis")),
  Schedule.jittered,
  Schedule.upTo("5 seconds")
)

/** A busy file is tried again, ever more slowly, for five seconds in all; SQLite's own waiting would block the thread. */
export const retryBusy = <A>(effect: Effect.Effect<A, SqlError>): Effect.Effect<A, SqlError> =>
  Effect.catchAll(effect, (error) =>
    isBusy(error)
      ? Effect.withClock(Effect.retry(effect, { while: isBusy, schedule: patience }), realTime)
      : Effect.fail(error))

const maxReason = 500

export const describe = (error: SqlError): string => {
  const { cause } = error
  const text = cause instanceof Error ? cause.message : error.message
  return `${codeOf(error) || "SQLITE_ERROR"}: ${text.slice(0, maxReason).toWellFormed()}`
}

/** A job or the driver that died has failed. */
const errorOf = (cause: Cause.Cause<SqlError>): SqlError => {
  const error = Cause.squash(cause)
  return error instanceof SqlError ? error : new SqlError({ cause: error })
}

export const unavailable = (reason: string): StateUnavailable => new StateUnavailable({ reason, executed: false })

/** Lets every fiber that can run do so first: they may have jobs for the same commit. */
const nextTick = Effect.async<void>((resume) => {
  const immediate = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(immediate))
})

export const make = (run: Run): Effect.Effect<CommitQueue, never, Scope.Scope> =>
  Effect.gen(function*() {
    let line: Array<Item> = []
    let deferredInLine = 0
    let closed = false
    let lost = 0
    let lostReason = ""
    let sleeper: { readonly until: () => boolean; readonly wake: () => void } | undefined

    /** Returns when the condition holds, or after `atMost` milliseconds: a bare timer, because every call passes here. */
    const until = (condition: () => boolean, atMost?: number) =>
      Effect.async<void>((resume) => {
        if (condition()) return resume(Effect.void)
        const wake = () => {
          clearTimeout(timer)
          sleeper = undefined
          resume(Effect.void)
        }
        const timer = atMost === undefined ? undefined : setTimeout(wake, atMost)
        sleeper = { until: condition, wake }
        return Effect.sync(() => {
          clearTimeout(timer)
          sleeper = undefined
        })
      })

    const enter = (item: Item) => {
      line.push(item)
      if (item.deferred) deferredInLine++
      if (sleeper !== undefined && sleeper.until()) sleeper.wake()
    }

    const take = (): Array<Item> => {
      const taken = line.slice(0, maxBatch)
      line = line.length > maxBatch ? line.slice(maxBatch) : []
      for (const item of taken) if (item.deferred) deferredInLine--
      const batch = taken.filter((item) => item.state === "waiting")
      for (const item of batch) item.state = "taken"
      return batch
    }

    const lose = (count: number, reason: string) => {
      lost += count
      if (count > 0) lostReason = reason
    }

    const refuse = (items: ReadonlyArray<Item>, error: SqlError) => {
      const deferred = items.filter((item) => item.deferred)
      const again = closed ? [] : deferred.slice(Math.max(0, deferred.length + deferredInLine - maxDeferred))
      lose(deferred.length - again.length, describe(error))
      for (const item of again) item.state = "waiting"
      line = [...again, ...line]
      deferredInLine += again.length
      const failed = Exit.fail(unavailable(describe(error)))
      for (const item of items) if (!item.deferred) item.settle(failed)
      return false
    }

    const begin = Effect.exit(retryBusy(run("BEGIN IMMEDIATE", [])))
    const rollback = Effect.ignore(run("ROLLBACK", []))

    /** Runs in an open transaction and closes it. Answers what failed, and the job that failed if it was one. */
    const transact = Effect.fnUntraced(function*(items: ReadonlyArray<Item>) {
      const values: Array<unknown> = []
      for (const item of items) {
        const exit = yield* Effect.exit(Effect.suspend(() => item.job(run)))
        if (Exit.isFailure(exit)) {
          yield* rollback
          return { culprit: item, cause: exit.cause }
        }
        values.push(exit.value)
      }
      const committed = yield* Effect.exit(run("COMMIT", []))
      if (Exit.isFailure(committed)) {
        yield* rollback
        return { culprit: undefined, cause: committed.cause }
      }
      items.forEach((item, index) => item.settle(Exit.succeed(values[index])))
      return undefined
    }, Effect.withMaxOpsBeforeYield(Number.MAX_SAFE_INTEGER))

    /**
     * One commit of what stands in the line. Between BEGIN and COMMIT this fiber never yields, so no reader on the same
     * connection can see an open transaction. A job that fails is taken out and the others run again. `false` when the file
     * refused.
     */
    const round = Effect.uninterruptible(Effect.gen(function*() {
      let begun = yield* begin
      let items: ReadonlyArray<Item> = take()
      while (items.length > 0) {
        if (Exit.isFailure(begun)) return refuse(items, errorOf(begun.cause))
        const failure = yield* transact(items)
        if (failure === undefined) return true
        const culprit = failure.culprit
        const error = errorOf(failure.cause)
        if (culprit === undefined || isOfTheFile(error)) return refuse(items, error)
        if (culprit.deferred) lose(1, describe(error))
        else culprit.settle(Exit.fail(unavailable(describe(error))))
        items = items.filter((item) => item !== culprit)
        if (items.length > 0) begun = yield* begin
      }
      if (Exit.isSuccess(begun)) yield* rollback
      return true
    }))

    const report = Effect.suspend(() => {
      if (lost === 0) return Effect.void
      const message = `${lost} deferred rows could not be written and are lost: ${lostReason}`
      lost = 0
      return Effect.logWarning(message)
    })

    const isUrgent = () => line.length > deferredInLine || deferredInLine >= maxBatch
    const loop = until(() => line.length > 0).pipe(
      Effect.zipRight(Effect.suspend(() => isUrgent() ? Effect.void : until(isUrgent, deferredDelay))),
      Effect.zipRight(nextTick),
      Effect.zipRight(round),
      Effect.flatMap((written) => written ? Effect.void : Effect.sleep(deferredDelay)),
      Effect.zipRight(report),
      Effect.forever,
      Effect.withClock(realTime)
    )

    yield* Effect.acquireRelease(Effect.forkIn(Effect.interruptible(loop), yield* Effect.scope), (fiber) =>
      Fiber.interrupt(fiber).pipe(
        Effect.tap(() =>
          Effect.sync(() => (closed = true))
        ),
        Effect.zipRight(
          Effect.whileLoop({ while: () => line.length > 0, body: () => Effect.asVoid(round), step: () => undefined })
        ),
        Effect.zipRight(report)
      ))

    const commit = <A>(job: Job<A>): Effect.Effect<A, StateUnavailable> =>
      Effect.uninterruptibleMask((restore) =>
        Effect.suspend(() => {
          if (closed) return Effect.fail(unavailable(isClosed))
          const done = Deferred.unsafeMake<A, StateUnavailable>(FiberId.none)
          const item: Item = {
            job,
            deferred: false,
            settle: (exit) => Deferred.unsafeDone(done, exit as Exit.Exit<A, StateUnavailable>),
            state: "waiting"
          }
          enter(item)
          return Effect.flatMap(Effect.exit(restore(Deferred.await(done))), (exit) => {
            if (!Exit.isInterrupted(exit)) return exit
            if (item.state === "taken") return Deferred.await(done)
            item.state = "withdrawn"
            return exit
          })
        })
      )

    return {
      commit,
      defer: (job, committed) => {
        if (closed || deferredInLine >= maxDeferred) return lose(1, closed ? isClosed : "too many wait for the disk")
        enter({
          job,
          deferred: true,
          settle: () => committed?.(),
          state: "waiting"
        })
      },
      flush: Effect.suspend(() => deferredInLine === 0 ? Effect.void : commit(() => Effect.void))
    }
  })
