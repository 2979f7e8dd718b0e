/**
 * The one way from a call to its result: admission (steps 1 to 13), then claim, execution, hooks, normalisation, settling.
 *
 * `execute` never fails. Failures and defects become results with a code; an interruption from outside propagates after the
 * handler's finalizers have run, and is told from a handler that interrupts itself by who interrupted. Between claim and
 * settling nothing is lost: an interrupted call leaves `unknown` in the ledger, or its recorded outcome.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberRef from "effect/FiberRef"
import * as Option from "effect/Option"
import type { Event } from "../contract/Event.ts"
import { type Json, snapshot } from "../contract/Json.ts"
import type { RawOutcome } from "../contract/RawOutcome.ts"
import type { ToolCall } from "../contract/ToolCall.ts"
import {
  CallNotCompleted,
  ExecutionFailed,
  InvocationInProgress,
  StateUnavailable,
  ToolError,
  type ToolFailure,
  toolFailureCodes,
  ToolTimeout
} from "../contract/ToolFailure.ts"
import type { ToolResult } from "../contract/ToolResult.ts"
import { pathCodes, readCodes } from "../file/FileError.ts"
import { after, type Execution, observe, wrap } from "../gate/HookGate.ts"
import { codeOf, describeFailure, failureOf, failureOutcome, toOutcome } from "../internal/settle.ts"
import type { EventJournal } from "../journal/EventJournal.ts"
import type { Observation, ToolInvocation } from "../tool/ToolInvocation.ts"
import { type Collaborators as AdmissionPlane, make as makeAdmission } from "./Admission.ts"
import type { Approved, Claimed, Executed, Pins, Received, Replay } from "./CallState.ts"
import { build, item, type Known, outcomeOf, received, refusedApproval } from "./Item.ts"
import { known } from "./Operation.ts"
import { recognise } from "./RateLimit.ts"
import { andThen, grow, type Restore } from "./Step.ts"
import { stepOf } from "./steps.ts"

export interface Collaborators extends AdmissionPlane {
  readonly journal: EventJournal["Type"]
}

export interface Channel {
  readonly execute: (pins: Pins, call: ToolCall) => Effect.Effect<ToolResult>
  /** The numbers of the steps, in the order in which they are taken. */
  readonly order: ReadonlyArray<string>
}

export const make = (plane: Collaborators): Channel => {
  const { approvals, journal, ledger, reads } = plane

  /** What a record keeper's defect would stop: the call goes on, and its result is the same. */
  const append = (event: Event): Effect.Effect<void> => Effect.catchAllCause(journal.append(event), () => Effect.void)

  const base = (state: Received) => ({ threadId: state.now.turn.threadId, turnId: state.now.turn.turnId })

  const claim = stepOf("14", (state: Approved): Effect.Effect<Approved & Claimed, ToolFailure | Replay> =>
    andThen(
      ledger.claim(state.operation, {
        kind: state.kind,
        arguments: state.effective.arguments,
        digest: state.effective.digest,
        readOnly: state.registered.tool.readOnly,
        approval: state.approval,
        startedAt: state.startedAt
      }),
      (claimed): Effect.Effect<Approved & Claimed, ToolFailure | Replay> =>
        claimed._tag === "Claimed"
          ? grow(state, { claim: claimed.claim, started: false })
          // Executed by somebody else since step 3b, and left: whoever asks next goes on from there.
          : known(state, state.operation, claimed, (executed) =>
            Effect.zipRight(
              abandon(executed, "left to the next"),
              Effect.fail(new InvocationInProgress({ operationId: state.operation.id }))
            ))
    ))

  const announce = (state: Approved & Claimed): Effect.Effect<void> =>
    append({
      _tag: "call_started",
      ...base(state),
      at: state.startedAt,
      callId: state.effective.callId,
      toolName: state.effective.toolName,
      arguments: state.effective.arguments
    })

  const invocationOf = (state: Approved & Claimed, observations: Array<Observation>): ToolInvocation["Type"] => ({
    turn: state.now.turn,
    call: state.effective,
    grants: state.grants,
    progress: (value) =>
      Effect.suspend(() => {
        const progress = snapshot(value, progressLimits)
        const at = state.clock.unsafeCurrentTimeMillis()
        return progress.ok
          ? append({
            _tag: "call_progress",
            ...base(state),
            at,
            callId: state.effective.callId,
            progress: progress.value
          })
          : Effect.void
      }),
    observe: (observation) =>
      Effect.sync(() => {
        if (observations.length < maxObservations) observations.push(observation)
      })
  })

  /**
   * Step 15 as one attempt, to be called where interruption is disabled. An around-wrapper may run it again until the
   * execution is over; each time the tool's own time limit starts anew.
   */
  const attempt = (state: Approved & Claimed, observations: Array<Observation>, over: { is: boolean }) => {
    const { tool } = state.registered
    const invocation = invocationOf(state, observations)
    const { timeout } = tool
    return (restore: Restore): Execution =>
      Effect.matchEffect(
        Effect.suspend(() => {
          if (over.is) return Effect.fail(new ExecutionFailed({ reason: "The call is over." }))
          observations.length = 0
          Object.assign(state, { started: true })
          return state.prepared.serve(
            invocation,
            timeout === undefined ? restore : (handler) => restore(limited(handler, timeout))
          )
        }),
        {
          onFailure: (error) => Effect.fail(asToolFailure(error, tool.codes)),
          onSuccess: ({ content, output }) =>
            Effect.succeed<RawOutcome>({ isError: false, code: null, output, content })
        }
      )
  }

  const postHooks = stepOf("16", (state: Executed): Effect.Effect<Executed, ToolFailure> => {
    const { arguments: args, callId, kind, toolName } = state.effective
    const call = { callId, toolName, kind, declaredKind: state.registered.tool.kind, arguments: args }
    return Effect.flatMap(
      after(state.pins.hooks, call, state.outcome, state.now.turn),
      (outcome) =>
        grow(state, {
          outcome,
          // The model did not see what a hook replaced, so it has not read it.
          observations: outcome.content === state.outcome.content
            ? state.observations
            : state.observations.filter(({ access }) => access === "write")
        })
    )
  })

  const normalise = (state: Executed, now: number): RawOutcome => {
    const limited = state.outcome.isError ? recognise(state.outcome, state.provider.kind, now) : undefined
    return limited === undefined ? state.outcome : toOutcome(limited)
  }

  /** Everything a call leaves behind but the ledger: journal, observers. */
  const publish = (state: Known, result: ToolResult): Effect.Effect<ToolResult> => {
    const { hooks } = state.pins
    const event = { ...base(state), at: result.finishedAt }
    return Effect.flatMap(append({ _tag: "call_settled", ...event, result }), () => {
      if (hooks.observers.length === 0) return Effect.succeed(result)
      return observe(hooks, result, state.now.turn).pipe(
        Effect.flatMap((problems) =>
          Effect.forEach(problems, (message) => append({ _tag: "warning", ...event, source: "observer", message }), {
            discard: true
          })
        ),
        Effect.as(result)
      )
    })
  }

  /** A call that ended before it was claimed: nothing happened, nothing to record but the refusal itself. */
  const refuse = (state: Known, failure: unknown): Effect.Effect<ToolResult> => {
    const outcome = failureOutcome(codeOf(failure, fileRefusals), failure)
    const result = build({ ...state, ...refusedApproval(failure) }, outcome)
    // The operation of this id is another call's, or still runs: its own item is the one in the journal.
    return result.code === "tool_invocation_in_progress" || result.code === "idempotency_conflict"
      ? Effect.as(
        append({
          _tag: "warning",
          ...base(state),
          at: result.finishedAt,
          source: "ledger",
          message: `${result.callId}: ${result.code}`
        }),
        result
      )
      : publish(state, result)
  }

  const settle = (state: Executed): Effect.Effect<ToolResult> => {
    const result = build(state, normalise(state, state.clock.unsafeCurrentTimeMillis()))
    return Effect.matchCauseEffect(ledger.settle(state.claim, result), {
      onFailure: (cause) => leaveBehind(state, item(state, unrecorded(cause, result.output))),
      onSuccess: () => leaveBehind(state, result)
    })
  }

  const leaveBehind = (state: Executed, result: ToolResult): Effect.Effect<ToolResult> => {
    const seen = state.observations.filter(({ access }) => access === "write" || !result.isError)
    if (seen.length === 0) return publish(state, result)
    return Effect.forEach(seen, (observation) => reads.observe(state.now.turn.threadId, observation), { discard: true })
      .pipe(
        // What is not remembered has to be read again; the result is the same.
        Effect.catchAllCause(() => Effect.void),
        Effect.zipRight(publish(state, result))
      )
  }

  /** Steps 16 to 18 over an outcome that is on disk, where interruption is disabled. */
  const finish = (state: Executed, restore: Restore): Effect.Effect<ToolResult> =>
    state.pins.hooks.post.length === 0 ? settle(state) : ended(restore(Effect.suspend(() => postHooks.run(state))), {
      done: (exit) =>
        settle(Exit.isSuccess(exit) ? exit.value : { ...state, outcome: failureOutcome(...coded(exit.cause)) }),
      // Its outcome stays in the ledger, and whoever asks next goes on from there: the item is not written yet.
      aborted: (cause) => Effect.zipRight(abandon(state, "interrupted before it was settled"), Effect.failCause(cause))
    })

  /** Nobody is left to be told: a ledger that cannot be written keeps its `started`, which reads as unknown. */
  const abandon = (state: Claimed, reason: string): Effect.Effect<void> =>
    Effect.catchAllCause(Effect.suspend(() => ledger.abandon(state.claim, reason)), () => Effect.void)

  /** The tool has ended: its raw outcome goes to disk before a hook can delay it. Without hooks its settling is as soon. */
  const executed = (state: Executed, restore: Restore): Effect.Effect<ToolResult> =>
    state.pins.hooks.post.length === 0
      ? settle(state)
      : Effect.matchCauseEffect(Effect.suspend(() => ledger.outcome(state.claim, state.outcome)), {
        onFailure: (cause) => settle(Object.assign(state, { outcome: unrecorded(cause, state.outcome.output) })),
        onSuccess: () => finish(state, restore)
      })

  const run = (state: Approved & Claimed, restore: Restore): Effect.Effect<ToolResult> => {
    const observations: Array<Observation> = []
    const over = { is: false }
    const { hooks } = state.pins
    const once = attempt(state, observations, over)
    const execution = hooks.around.length === 0
      ? once(restore)
      : restore(wrap(hooks, state.effective, state.now.turn, Effect.uninterruptibleMask(once)))
    return ended(execution, {
      done: (exit) => {
        over.is = true
        const outcome = Exit.isSuccess(exit)
          ? hooks.around.length === 0 ? exit.value : outcomeOf(exit.value)
          : failureOutcome(...coded(exit.cause, state.registered.tool.codes))
        return executed(Object.assign(state, { outcome, observations }), restore)
      },
      aborted: (cause) => {
        over.is = true
        return abandon(state, "interrupted while it ran").pipe(
          Effect.zipRight(Effect.suspend(() => publish(state, build(state, interrupted)))),
          Effect.zipRight(Effect.failCause(cause))
        )
      }
    })
  }

  /** From the claim on the call is ours to finish, so only the execution and the hooks can be interrupted. */
  const admitted = (state: Approved): Effect.Effect<ToolResult> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.matchCauseEffect(claim.run(state), {
        onFailure: (cause) => refused(state, cause),
        onSuccess: (claimed) => Effect.flatMap(started(claimed), () => run(claimed, restore))
      })
    )

  const started = (state: Approved & Claimed): Effect.Effect<void> =>
    state.approval === null
      ? announce(state)
      : Effect.zipRight(Effect.catchAllCause(approvals.consume(state.approval.id), () => Effect.void), announce(state))

  const refused = (state: Known, cause: Cause.Cause<unknown>): Effect.Effect<ToolResult> => {
    const failure = failureOf(cause)
    return isReplay(failure) ? Effect.succeed(failure.result) : refuse(state, failure)
  }

  const admission = makeAdmission(plane, finish)
  const whole = admission.into(admitted)

  /** Whatever else goes wrong is a bug of ours or of a collaborator; the call still ends, and its claim with it. */
  const lastResort = (state: Known, cause: Cause.Cause<unknown>): Effect.Effect<ToolResult> => {
    const result = item(state, failureOutcome("tool_execution_failed", failureOf(cause)))
    const { claim } = state
    if (claim === undefined) return publish(state, result)
    return Effect.suspend(() => ledger.settle(claim, result)).pipe(
      Effect.catchAllCause(() => Effect.void),
      Effect.zipRight(publish(state, result)),
      Effect.uninterruptible
    )
  }

  return {
    order: [...admission.numbers, claim.number, "15", postHooks.number, "17", "18"],
    execute: (pins, call) =>
      Effect.clockWith((clock) => {
        const state = received(pins, call, clock)
        return ended(Effect.suspend(() => whole(state)), {
          done: (exit) =>
            Exit.isSuccess(exit)
              ? Effect.succeed(exit.value)
              : Option.isSome(Cause.failureOption(exit.cause))
              ? refused(state, exit.cause)
              : lastResort(state, exit.cause),
          aborted: Effect.failCause
        })
      })
  }
}

/** A call of a turn that is over. */
export const closedResult = (pins: Pins, call: ToolCall): Effect.Effect<ToolResult> =>
  Effect.clockWith((clock) => {
    const failure = new CallNotCompleted({ code: "tool_not_started", reason: "The turn is closed." })
    return Effect.succeed(item(received(pins, call, clock), toOutcome(failure)))
  })

/** Of one progress value; a larger one is not published. */
const progressLimits = { maxSize: 64 * 1024, maxDepth: 16 }
const maxObservations = 1024

/**
 * How an effect ended, and whether that was our own fiber being interrupted from outside. That is decided by the fiber's
 * own record of who interrupted it: a handler that interrupts itself looks the same in its cause.
 */
const ended = <A, E, B>(
  effect: Effect.Effect<A, E>,
  on: {
    readonly done: (exit: Exit.Exit<A, E>) => Effect.Effect<B>
    readonly aborted: (cause: Cause.Cause<never>) => Effect.Effect<B>
  }
): Effect.Effect<B> =>
  Effect.matchCauseEffect(effect, {
    onSuccess: (value) => on.done(Exit.succeed(value)),
    onFailure: (cause) =>
      Cause.isInterrupted(cause)
        ? Effect.flatMap(
          FiberRef.get(FiberRef.interruptedCause),
          (outside) => Cause.isEmpty(outside) ? on.done(Exit.failCause(cause)) : on.aborted(outside)
        )
        : on.done(Exit.failCause(cause))
  })

const noCodes: ReadonlySet<string> = new Set<never>([])
const ofTools: ReadonlySet<string> = new Set(toolFailureCodes)

/** What `WorkspacePath` and `ReadTracker` may answer before any tool runs (step 9). */
const fileRefusals: ReadonlySet<string> = new Set([...pathCodes, ...readCodes])

/** How an execution or a post hook failed. What a tool fails with is held to the codes a tool may have. */
const coded = (cause: Cause.Cause<unknown>, declared?: ReadonlySet<string>): [string, unknown] => {
  const failure = failureOf(cause)
  return [declared === undefined ? codeOf(failure, noCodes) : codeOf(failure, declared, ofTools), failure]
}

const limited = <A, R>(
  effect: Effect.Effect<A, unknown, R>,
  timeout: Duration.DurationInput
): Effect.Effect<A, unknown, R> =>
  Effect.timeoutFail(effect, {
    duration: timeout,
    onTimeout: () => new ToolTimeout({ timeoutMs: Duration.toMillis(timeout) })
  })

/** Wrappers see failures with a code; what the model is told is made from the same value. */
const asToolFailure = (error: unknown, declared: ReadonlySet<string>): ToolFailure => {
  const code = codeOf(error, declared, ofTools)
  if (isToolFailure(error, code)) return error
  const { details, message } = describeFailure(error)
  return new ToolError({ code, message, ...(details === undefined ? {} : { details }) })
}

const isToolFailure = (error: unknown, code: string): error is ToolFailure =>
  error instanceof Error && "_tag" in error && "code" in error && error.code === code

const interrupted: RawOutcome = failureOutcome("tool_interrupted", "The call was interrupted while it ran.")

const unrecorded = (cause: Cause.Cause<StateUnavailable>, output: Json): RawOutcome => {
  const failure = failureOf(cause)
  const reason = failure instanceof StateUnavailable ? failure.reason : describeFailure(failure).message
  return toOutcome(new StateUnavailable({ reason, executed: true, output }))
}

const isReplay = (value: unknown): value is Replay =>
  typeof value === "object" && value !== null && "_tag" in value && value._tag === "Replay"
