/**
 * Gate two: has somebody agreed to this call (seed 6.2, decisions: approval).
 *
 * A request is a record with a life of its own: armed before it is announced, decided exactly once by compare-and-set,
 * found again by its operation after a restart. The asker's interruption cancels it.
 *
 * @since 0.1.0
 */
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { ApprovalResolved } from "../contract/Event.ts"
import { type ApprovalRefused, StateUnavailable } from "../contract/ToolFailure.ts"
import type { ApprovalOutcome } from "../contract/ToolResult.ts"
import { EventJournal } from "../journal/EventJournal.ts"
import { type ApprovalQuestion, type ApprovalRecord, ApprovalStatus, Decision } from "./ApprovalRecord.ts"
import * as ApprovalStore from "./ApprovalStore.ts"
import { plane, refuse, verdict } from "./ApprovalVerdict.ts"

export { ApprovalQuestion, ApprovalReason, ApprovalRecord, ApprovalStatus, Decision } from "./ApprovalRecord.ts"

export class ApprovalNotFound extends Schema.TaggedError<ApprovalNotFound>("portcullis/ApprovalNotFound")(
  "ApprovalNotFound",
  { code: Schema.Literal("approval_not_found"), id: Schema.String }
) {
  override get message() {
    return `There is no approval ${this.id}.`
  }
}

export class AlreadyDecided extends Schema.TaggedError<AlreadyDecided>("portcullis/AlreadyDecided")("AlreadyDecided", {
  code: Schema.Literal("already_decided"),
  id: Schema.String,
  status: ApprovalStatus,
  by: Schema.NullOr(Schema.String),
  at: Schema.NullOr(Schema.Number)
}) {
  override get message() {
    return `${this.id} is ${this.status} already${this.by === null ? "" : ` (${this.by})`}.`
  }
}

/**
 * Who answers by itself. `undefined` means: not I, somebody else will call `decide`. A defect or an answer outside the
 * closed set counts as no answer.
 */
export interface Approver {
  readonly name: string
  readonly review: (record: ApprovalRecord) => Effect.Effect<Decision | undefined>
}

export interface Options {
  /**
   * `none`: nobody is there, every question is `approval_unavailable` at once. `external`: somebody will call `decide`.
   * Default `none`.
   */
  readonly approver?: "none" | "external" | Approver
  /** How long a question stays open. Default: no limit. */
  readonly timeToLive?: Duration.DurationInput
  /** Settled records kept in memory; default 1024. */
  readonly keep?: number
}

export class ApprovalGate extends Context.Tag("portcullis/ApprovalGate")<ApprovalGate, {
  /**
   * Asks, and waits for the answer. Succeeds with an allowance; a no, a deadline, a missing approver and a changed call
   * (same operation, other digest) fail with their codes. An answer given to this operation and digest before is found again
   * without asking, until it is consumed; a no holds for the operation whatever the digest. Several askers of one call share
   * one question; interrupting the last of them cancels it before the interruption completes. More than 1000 open questions
   * are refused.
   */
  readonly authorize: (question: ApprovalQuestion) => Effect.Effect<ApprovalOutcome, ApprovalRefused | StateUnavailable>
  /**
   * Marks an allowed answer as used up: it stays `allowed`, and later questions of its operation are asked anew. To be called
   * once the operation is claimed. Of anything else, and again, it changes nothing. A durable store writes it with its next
   * commit, so a crash before that leaves the answer unused.
   */
  readonly consume: (id: string) => Effect.Effect<void, StateUnavailable>
  /** Open questions, oldest first. What nobody answered in time is `expired` by then, whoever had asked. */
  readonly pending: Effect.Effect<ReadonlyArray<ApprovalRecord>, StateUnavailable>
  readonly get: (id: string) => Effect.Effect<ApprovalRecord, ApprovalNotFound | StateUnavailable>
  /** Decides an open question, once. The same decision again is fine; another one fails with `already_decided`. */
  readonly decide: (
    id: string,
    decision: Decision
  ) => Effect.Effect<ApprovalRecord, ApprovalNotFound | AlreadyDecided | StateUnavailable>
}>() {}

type Service = typeof ApprovalGate.Service
type Resolved = { readonly record: ApprovalRecord; readonly changed: boolean }

/** Askers of one open record, and what keeps an eye on it for them. */
interface Wait {
  readonly done: Deferred.Deferred<ApprovalRecord, StateUnavailable>
  askers: number
  watcher: Fiber.RuntimeFiber<void> | undefined
}

const maxPrincipal = 200
const maxReason = 2000

const statusOf = {
  allow: "allowed",
  deny: "denied",
  expired: "expired",
  superseded: "superseded",
  cancelled: "cancelled",
  unavailable: "cancelled"
} as const

const gone = new StateUnavailable({ reason: "the approval's record is gone", executed: false })
const unwatched = new StateUnavailable({ reason: "the approval's answer can no longer be heard", executed: false })
const closed = new StateUnavailable({ reason: "the approval gate is closed", executed: false })

const clip = (text: string | undefined, length: number): string | null => text?.slice(0, length).toWellFormed() ?? null

const decodeAnswer = Schema.decodeUnknown(Schema.UndefinedOr(Decision))

/** A gate over a store. Askers still waiting when the scope closes fail; their records stay open in a durable store. */
export const make = (
  options: Options = {}
): Effect.Effect<Service, never, ApprovalStore.ApprovalStore | EventJournal | Scope.Scope> =>
  Effect.gen(function*() {
    const store = yield* ApprovalStore.ApprovalStore
    const journal = yield* EventJournal
    const scope = yield* Effect.scope
    const approver = options.approver ?? "none"
    const timeToLive = options.timeToLive === undefined ? null : Duration.toMillis(options.timeToLive)
    const waits = new Map<string, Wait>()

    let open = true
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        open = false
        for (const wait of waits.values()) Deferred.unsafeDone(wait.done, Exit.fail(closed))
      })
    )

    const base = ({ question }: ApprovalRecord, at: number) => ({
      threadId: question.threadId,
      turnId: question.turnId,
      callId: question.callId,
      at
    })

    const announce = (record: ApprovalRecord) =>
      journal.append({
        _tag: "approval_requested",
        ...base(record, record.createdAt),
        approvalId: record.id,
        toolName: record.question.toolName,
        reason: record.question.reasons.join(", ")
      })

    /** Tells the journal and the askers that a record is resolved. */
    const conclude = (record: ApprovalRecord, decision: (typeof ApprovalResolved.Type)["decision"]) =>
      Effect.suspend(() => {
        tell(record)
        return journal.append({
          _tag: "approval_resolved",
          ...base(record, record.decidedAt ?? record.createdAt),
          approvalId: record.id,
          decision,
          principal: record.principal ?? plane
        })
      })

    const tell = (record: ApprovalRecord) => {
      const wait = waits.get(record.id)
      if (wait !== undefined) Deferred.unsafeDone(wait.done, Exit.succeed(record))
    }

    const resolve = (
      id: string,
      decision: (typeof ApprovalResolved.Type)["decision"],
      by: { readonly principal?: string; readonly reason?: string | undefined }
    ): Effect.Effect<Resolved | undefined, StateUnavailable> =>
      Clock.currentTimeMillis.pipe(
        Effect.flatMap((at) =>
          store.resolve(id, {
            status: statusOf[decision],
            principal: clip(by.principal, maxPrincipal),
            reason: clip(by.reason, maxReason),
            at
          })
        ),
        Effect.tap((result) => result?.changed === true ? conclude(result.record, decision) : Effect.void),
        Effect.uninterruptible
      )

    const giveUp = (id: string, reason: string) => resolve(id, "unavailable", { reason })

    /** An approver that dies or interrupts itself has not answered; only our own interruption is one. */
    const review = (approver: Approver, record: ApprovalRecord): Effect.Effect<void, StateUnavailable> =>
      Effect.fork(Effect.suspend(() => approver.review(record))).pipe(
        Effect.flatMap(Fiber.await),
        Effect.flatMap((exit) =>
          Effect.option(Exit.isSuccess(exit) ? decodeAnswer(exit.value) : Effect.fail(undefined))
        ),
        Effect.flatMap((answer) => {
          if (answer._tag === "None") return Effect.asVoid(giveUp(record.id, `${approver.name} gave no usable answer`))
          if (answer.value === undefined) return Effect.void
          return Effect.asVoid(resolve(record.id, answer.value.decision, answer.value))
        })
      )

    const expire = ({ deadline, id }: ApprovalRecord): Effect.Effect<void, StateUnavailable> =>
      deadline === null
        ? Effect.void
        : Clock.currentTimeMillis.pipe(
          Effect.flatMap((now) => Effect.sleep(Math.max(0, deadline - now))),
          Effect.zipRight(Effect.asVoid(resolve(id, "expired", {})))
        )

    /** Looks for a resolution made by another process. */
    const poll = ({ id }: ApprovalRecord): Effect.Effect<void, StateUnavailable> =>
      store.pollInterval === undefined
        ? Effect.void
        : Effect.zipRight(Effect.sleep(store.pollInterval), store.get(id)).pipe(
          Effect.repeat({ while: (now) => now?.status === "pending" }),
          Effect.flatMap((now) => now === undefined ? Effect.fail(gone) : Effect.sync(() => tell(now)))
        )

    /** Askers must not be left waiting, not even by a store that dies. */
    const giveIn = (wait: Wait, cause: Cause.Cause<StateUnavailable>): Effect.Effect<void> =>
      Option.match(Cause.failureOption(cause), {
        onSome: (error) => Effect.asVoid(Deferred.fail(wait.done, error)),
        onNone: () => Effect.zipRight(Deferred.fail(wait.done, unwatched), Effect.logWarning(unwatched.reason, cause))
      })

    const watch = (record: ApprovalRecord, wait: Wait): Effect.Effect<void> =>
      Effect.all([
        expire(record),
        poll(record),
        typeof approver === "string" ? Effect.void : review(approver, record)
      ], { concurrency: "unbounded", discard: true }).pipe(
        Effect.catchAllCause((cause) => giveIn(wait, cause))
      )

    const join = (record: ApprovalRecord): Effect.Effect<Wait> =>
      Effect.suspend(() => {
        const known = waits.get(record.id)
        if (known !== undefined) {
          known.askers++
          return Effect.succeed(known)
        }
        const wait: Wait = { done: Deferred.unsafeMake(FiberId.none), askers: 1, watcher: undefined }
        waits.set(record.id, wait)
        return Effect.map(Effect.forkIn(Effect.interruptible(watch(record, wait)), scope), (fiber) => {
          wait.watcher = fiber
          return wait
        })
      })

    /** Whether the last asker is gone. An interrupted asker waits until the approver has let go of the question. */
    const leave = (id: string, wait: Wait, interrupted: boolean) =>
      Effect.suspend(() => {
        wait.askers--
        if (wait.askers > 0) return Effect.succeed(false)
        waits.delete(id)
        const { watcher } = wait
        if (watcher === undefined) return Effect.succeed(true)
        return Effect.as(interrupted ? Fiber.interrupt(watcher) : Fiber.interruptAsFork(watcher, FiberId.none), true)
      })

    const answer = (record: ApprovalRecord, restore: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>) =>
      Effect.gen(function*() {
        const wait = yield* join(record)
        // It may have been resolved after it was found and before anybody listened.
        const now = yield* Effect.exit(store.get(record.id))
        if (Exit.isFailure(now)) yield* giveIn(wait, now.cause)
        else if (now.value !== undefined && now.value.status !== "pending") tell(now.value)
        const exit = yield* Effect.exit(restore(Deferred.await(wait.done)))
        const interrupted = Exit.isInterrupted(exit)
        const last = yield* leave(record.id, wait, interrupted)
        if (interrupted && last) {
          yield* Effect.ignoreLogged(resolve(record.id, "cancelled", { reason: "its asker was interrupted" }))
        }
        return yield* Effect.flatMap(exit, verdict)
      })

    const authorize: Service["authorize"] = (question) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function*() {
          if (!open) return yield* closed
          const at = yield* Clock.currentTimeMillis
          const fresh: ApprovalRecord = {
            id: `appr_${globalThis.crypto.randomUUID().replaceAll("-", "")}`,
            question,
            status: "pending",
            createdAt: at,
            deadline: timeToLive === null ? null : at + timeToLive,
            decidedAt: null,
            principal: null,
            reason: null
          }
          const armed = yield* store.arm(question, approver === "none" ? undefined : fresh, at)
          switch (armed._tag) {
            case "None": {
              const why = approver === "none" ? "nobody is there to approve it" : "too many questions are open"
              return yield* refuse("approval_unavailable", `${question.toolName} needs approval, but ${why}.`)
            }
            case "Superseded":
              yield* conclude(armed.record, "superseded")
              return yield* verdict(armed.record)
            case "Created":
              yield* announce(armed.record)
              return yield* answer(armed.record, restore)
            case "Found":
              if (armed.record.status !== "pending") return yield* verdict(armed.record)
              if (approver !== "none") return yield* answer(armed.record, restore)
              yield* giveUp(armed.record.id, "nobody is there to approve it")
              return yield* refuse(
                "approval_unavailable",
                `Nobody is there to approve ${question.toolName}.`,
                armed.record
              )
          }
        })
      )

    const decide: Service["decide"] = (id, decision) =>
      Effect.gen(function*() {
        const before = yield* store.get(id)
        const now = yield* Clock.currentTimeMillis
        const expired = before?.status === "pending" && ApprovalStore.hasPassed(before, now)
        const result = yield* expired ? resolve(id, "expired", {}) : resolve(id, decision.decision, decision)
        if (result === undefined) return yield* new ApprovalNotFound({ code: "approval_not_found", id })
        const { record } = result
        if (record.status === statusOf[decision.decision]) return record
        return yield* new AlreadyDecided({
          code: "already_decided",
          id,
          status: record.status,
          by: record.principal,
          at: record.decidedAt
        })
      })

    return {
      authorize,
      consume: store.consume,
      decide,
      pending: Effect.gen(function*() {
        const now = yield* Clock.currentTimeMillis
        const [open, passed] = Arr.partition(yield* store.pending, (record) => ApprovalStore.hasPassed(record, now))
        yield* Effect.forEach(passed, ({ id }) => Effect.ignoreLogged(resolve(id, "expired", {})), {
          concurrency: "unbounded",
          discard: true
        })
        return open
      }),
      get: (id) =>
        Effect.flatMap(store.get(id), (record) =>
          record === undefined
            ? Effect.fail(new ApprovalNotFound({ code: "approval_not_found", id }))
            : Effect.succeed(record))
    }
  })

export const layer = (
  options?: Options
): Layer.Layer<ApprovalGate, never, ApprovalStore.ApprovalStore | EventJournal> =>
  Layer.scoped(ApprovalGate, make(options))

/** Records live as long as this process. */
export const layerMemory = (options?: Options): Layer.Layer<ApprovalGate, never, EventJournal> =>
  Layer.provide(layer(options), ApprovalStore.layerMemory(options?.keep === undefined ? {} : { keep: options.keep }))
