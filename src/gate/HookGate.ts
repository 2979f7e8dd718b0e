/**
 * Gate three: what the user's code says before and after a call (seed 6.3, seed 2; decisions: decisions merge).
 *
 * Verdicts merge as deny > ask > allow in any order of hooks. Guards can only deny, and run before anyone is asked.
 * Around-wrappers stand between the claim and the handler and are re-entrant: a retry passes every inner wrapper again.
 * A failing hook or guard fails closed; a failing observer is a warning.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { isObject, type Json, outputLimits, snapshot } from "../contract/Json.ts"
import type { ToolKind } from "../contract/Policy.ts"
import type { RawOutcome } from "../contract/RawOutcome.ts"
import type { CallId } from "../contract/ToolCall.ts"
import { GuardDenied, HookDenied, HookFailed, HookFailure, type ToolFailure } from "../contract/ToolFailure.ts"
import type { ToolResult } from "../contract/ToolResult.ts"
import type { Turn } from "../contract/Turn.ts"
import { describeFailure } from "../internal/settle.ts"
import type { EffectiveCall } from "../tool/ToolInvocation.ts"

/** The call as a hook sees it; earlier hooks' rewrites are in `arguments`. */
export interface HookCall {
  readonly callId: CallId
  readonly toolName: string
  /** The stricter of the declared and the claimed kind. */
  readonly kind: ToolKind
  readonly declaredKind: ToolKind
  /** Decoded, coerced and normalised as far as they fit the tool. */
  readonly arguments: Json
}

/** How a hook says that it did not work. Anything else it fails with, and defects, count as `crashed`. */
export class HookProblem extends Schema.TaggedError<HookProblem>("portcullis/HookProblem")("HookProblem", {
  failure: HookFailure,
  message: Schema.String
}) {}

/** `undefined` says nothing. `arguments` replaces the call's arguments for later hooks and everything after. */
export type PreVerdict = {
  readonly decision?: "allow" | "ask" | "deny"
  /** For the model when denying, for the approver when asking. */
  readonly reason?: string
  readonly arguments?: Json
} | undefined

/** `undefined` keeps the outcome; `output` and `isError` replace; `block` turns it into a failure with that feedback. */
export type PostVerdict = {
  readonly output?: Json
  readonly isError?: boolean
  readonly block?: string
} | undefined

interface Named {
  readonly name: string
  /** Tool names it applies to; default all. */
  readonly tools?: ReadonlyArray<string>
}

export interface PreToolUse<R = never> extends Named {
  readonly phase: "PreToolUse"
  /** Default: none; a hook that hangs can still be interrupted with its call. */
  readonly timeout?: Duration.DurationInput
  readonly run: (call: HookCall, turn: Turn) => Effect.Effect<PreVerdict, unknown, R>
}

export interface PostToolUse<R = never> extends Named {
  readonly phase: "PostToolUse"
  readonly timeout?: Duration.DurationInput
  readonly run: (call: HookCall, outcome: RawOutcome, turn: Turn) => Effect.Effect<PostVerdict, unknown, R>
}

export interface Guard<R = never> extends Named {
  readonly phase: "Guard"
  /** A reason denies, for good; `undefined` abstains. */
  readonly run: (call: HookCall, turn: Turn) => Effect.Effect<string | undefined, unknown, R>
}

/** One attempt at running the tool. */
export type Execution = Effect.Effect<RawOutcome, ToolFailure>

export interface Around<R = never> extends Named {
  readonly phase: "Around"
  /** Wraps the execution. `next` may be run any number of times, until the wrapper itself is done. */
  readonly run: (
    call: EffectiveCall,
    turn: Turn,
    next: Execution
  ) => Effect.Effect<RawOutcome, ToolFailure, R>
}

export interface Observer<R = never> extends Named {
  readonly phase: "Observer"
  /** Told once the call has settled; may take ten seconds, and what goes wrong is a warning. */
  readonly run: (result: ToolResult, turn: Turn) => Effect.Effect<void, unknown, R>
}

export type Hook<R = never> = PreToolUse<R> | PostToolUse<R> | Guard<R> | Around<R> | Observer<R>

/** The hooks in force, by phase; what a turn pins. */
export interface Hooks {
  readonly pre: ReadonlyArray<PreToolUse>
  readonly post: ReadonlyArray<PostToolUse>
  readonly guards: ReadonlyArray<Guard>
  /** Outermost first. */
  readonly around: ReadonlyArray<Around>
  readonly observers: ReadonlyArray<Observer>
}

export class HookGate extends Context.Tag("portcullis/HookGate")<HookGate, {
  readonly current: Effect.Effect<Hooks>
}>() {}

export const none: Hooks = { pre: [], post: [], guards: [], around: [], observers: [] }

/** Hooks in order; requirements are taken from the environment once. */
export const make = <R>(hooks: ReadonlyArray<Hook<R>>): Effect.Effect<HookGate["Type"], never, R> =>
  Effect.map(Effect.context<R>(), (context) => {
    const provided = hooks.map((hook) => provide(hook, context))
    const current: Hooks = {
      pre: provided.filter((hook) => hook.phase === "PreToolUse"),
      post: provided.filter((hook) => hook.phase === "PostToolUse"),
      guards: provided.filter((hook) => hook.phase === "Guard"),
      around: provided.filter((hook) => hook.phase === "Around"),
      observers: provided.filter((hook) => hook.phase === "Observer")
    }
    return HookGate.of({ current: Effect.succeed(current) })
  })

export const layer = <R = never>(hooks: ReadonlyArray<Hook<R>>): Layer.Layer<HookGate, never, R> =>
  Layer.effect(HookGate, make(hooks))

export const layerNone: Layer.Layer<HookGate> = Layer.succeed(HookGate, { current: Effect.succeed(none) })

const provide = <R>(hook: Hook<R>, context: Context.Context<R>): Hook => {
  switch (hook.phase) {
    case "PreToolUse":
      return { ...hook, run: (call: HookCall, turn: Turn) => Effect.provide(hook.run(call, turn), context) }
    case "PostToolUse":
      return {
        ...hook,
        run: (call: HookCall, outcome: RawOutcome, turn: Turn) => Effect.provide(hook.run(call, outcome, turn), context)
      }
    case "Guard":
      return { ...hook, run: (call: HookCall, turn: Turn) => Effect.provide(hook.run(call, turn), context) }
    case "Around":
      return {
        ...hook,
        run: (call: EffectiveCall, turn: Turn, next: Execution) => Effect.provide(hook.run(call, turn, next), context)
      }
    case "Observer":
      return { ...hook, run: (result: ToolResult, turn: Turn) => Effect.provide(hook.run(result, turn), context) }
  }
}

const applies = (hook: Named, toolName: string): boolean => hook.tools === undefined || hook.tools.includes(toolName)

interface Failed {
  readonly failure: HookFailure
  readonly reason: string
}

/** A hook's effect with everything but an outside interruption as a value, under its time limit. */
const attempt = <A>(
  effect: Effect.Effect<A, unknown>,
  timeout: Duration.DurationInput | undefined
): Effect.Effect<{ readonly value: A } | Failed> => {
  const limited = timeout === undefined
    ? effect
    : Effect.timeoutFail(effect, {
      duration: timeout,
      onTimeout: () =>
        new HookProblem({
          failure: "timed_out",
          message: `no answer within ${Duration.format(Duration.decode(timeout))}`
        })
    })
  return Effect.matchCauseEffect(limited, {
    onSuccess: (value) => Effect.succeed({ value }),
    onFailure: (cause) => {
      const error = Option.getOrUndefined(Cause.failureOption(cause))
      if (error instanceof HookProblem) return Effect.succeed({ failure: error.failure, reason: error.message })
      return Effect.succeed({ failure: "crashed" as const, reason: describe(error ?? Cause.squash(cause)) })
    }
  })
}

const describe = (error: unknown): string => describeFailure(error).message.slice(0, 2000).toWellFormed()

export interface PreOutcome {
  readonly arguments: Json
  /** Whether some hook allowed and none asked or denied. */
  readonly allowed: boolean
  /** The reasons of hooks that want somebody asked. */
  readonly asks: ReadonlyArray<string>
}

/**
 * Runs the PreToolUse hooks in order. The first deny ends the chain; a failure only counts when nobody denies, so the
 * verdict is the same in any order.
 */
export const before = Effect.fnUntraced(function*(hooks: Hooks, call: HookCall, turn: Turn) {
  let current = call
  let allowed = false
  let failed: HookFailed | undefined
  const asks: Array<string> = []
  for (const hook of hooks.pre) {
    if (!applies(hook, call.toolName)) continue
    const answer = yield* attempt(Effect.suspend(() => hook.run(current, turn)), hook.timeout)
    const verdict = "failure" in answer ? answer : preVerdict(answer.value)
    if (verdict === undefined) continue
    if ("failure" in verdict) {
      failed ??= new HookFailed({ hook: hook.name, cause: verdict.failure, reason: verdict.reason, executed: false })
      continue
    }
    if (verdict.decision === "deny") {
      return yield* new HookDenied({ hook: hook.name, reason: verdict.reason ?? "no reason given", executed: false })
    }
    if (verdict.decision === "ask") asks.push(verdict.reason ?? `${hook.name} wants somebody asked`)
    if (verdict.decision === "allow") allowed = true
    if (verdict.arguments !== undefined) current = { ...current, arguments: verdict.arguments }
  }
  if (failed !== undefined) return yield* failed
  const outcome: PreOutcome = { arguments: current.arguments, allowed: allowed && asks.length === 0, asks }
  return outcome
})

/** Asks every guard about the call as it is going to run. A guard that fails, or answers nonsense, denies. */
export const guard = Effect.fnUntraced(function*(hooks: Hooks, call: HookCall, turn: Turn) {
  for (const guard of hooks.guards) {
    if (!applies(guard, call.toolName)) continue
    const answer = yield* attempt(Effect.suspend(() => guard.run(call, turn)), undefined)
    const reason = "failure" in answer ? `the guard itself failed: ${answer.reason}` : answer.value
    if (reason === undefined) continue
    return yield* new GuardDenied({
      guard: guard.name,
      reason: typeof reason === "string" ? prose(reason) : "it answered nonsense"
    })
  }
})

const prose = (text: string): string => text.slice(0, 4000).toWellFormed()

const decisions: ReadonlyArray<unknown> = [undefined, "allow", "ask", "deny"]

const badOutput = (reason: string): Failed => ({ failure: "bad_output", reason })

/** Hooks are the user's code and answer whatever they like: a word outside the closed set is no verdict. */
const preVerdict = (verdict: unknown): Exclude<PreVerdict, undefined> | undefined | Failed => {
  if (verdict === undefined) return undefined
  if (!isObject(verdict)) return badOutput("the verdict is no object")
  const { decision, reason } = verdict
  if (!decisions.includes(decision)) return badOutput("the decision is not one of allow, ask and deny")
  if (reason !== undefined && typeof reason !== "string") return badOutput("the reason is no text")
  const rewritten = verdict["arguments"] === undefined ? undefined : snapshot(verdict["arguments"])
  if (rewritten?.ok === false) return badOutput(`rewritten arguments: ${rewritten.problem} at ${rewritten.path || "/"}`)
  return {
    ...decision === "allow" || decision === "ask" || decision === "deny" ? { decision } : {},
    ...reason === undefined ? {} : { reason: prose(reason) },
    ...rewritten === undefined ? {} : { arguments: rewritten.value }
  }
}

const postVerdict = (verdict: unknown): Exclude<PostVerdict, undefined> | undefined | Failed => {
  if (verdict === undefined) return undefined
  if (!isObject(verdict)) return badOutput("the verdict is no object")
  const { block, isError } = verdict
  if (block !== undefined && typeof block !== "string") return badOutput("the feedback is no text")
  if (isError !== undefined && typeof isError !== "boolean") return badOutput("isError is neither true nor false")
  const output = verdict["output"] === undefined ? undefined : snapshot(verdict["output"], outputLimits)
  if (output?.ok === false) return badOutput(`output: ${output.problem} at ${output.path || "/"}`)
  return {
    ...block === undefined ? {} : { block: prose(block) },
    ...isError === undefined ? {} : { isError },
    ...output === undefined ? {} : { output: output.value }
  }
}

/** The execution inside every wrapper that applies, outermost first. */
export const wrap = (
  hooks: Hooks,
  call: EffectiveCall,
  turn: Turn,
  execution: Execution
): Execution =>
  hooks.around.reduceRight(
    (next, wrapper) => applies(wrapper, call.toolName) ? Effect.suspend(() => wrapper.run(call, turn, next)) : next,
    execution
  )

/** Runs the PostToolUse hooks over what the tool came to. A failure or a block keeps the tool's output in its details. */
export const after = Effect.fnUntraced(function*(hooks: Hooks, call: HookCall, outcome: RawOutcome, turn: Turn) {
  let current = outcome
  for (const hook of hooks.post) {
    if (!applies(hook, call.toolName)) continue
    const seen = current
    const answer = yield* attempt(Effect.suspend(() => hook.run(call, seen, turn)), hook.timeout)
    const verdict = "failure" in answer ? answer : postVerdict(answer.value)
    if (verdict === undefined) continue
    if ("failure" in verdict) {
      return yield* new HookFailed({
        hook: hook.name,
        cause: verdict.failure,
        reason: verdict.reason,
        executed: true,
        output: outcome.output
      })
    }
    if (verdict.block !== undefined) {
      return yield* new HookDenied({ hook: hook.name, reason: verdict.block, executed: true, output: outcome.output })
    }
    current = replaced(current, verdict.output, verdict.isError)
  }
  return current
})

const replaced = (outcome: RawOutcome, output: Json | undefined, isError: boolean | undefined): RawOutcome => {
  const failed = isError ?? outcome.isError
  const value = output === undefined ? outcome.output : output
  return {
    isError: failed,
    code: failed ? outcome.code ?? "tool_execution_failed" : null,
    output: value,
    content: output === undefined
      ? outcome.content
      : [{ type: "text", text: typeof value === "string" ? value : JSON.stringify(value) }]
  }
}

/** How long an observer may take; a call's end waits for it no longer. */
const observerLimit = Duration.seconds(10)

/**
 * Tells every observer; returns what went wrong, for the journal. Each runs in a fiber of its own, so it can be stopped
 * also where the call itself cannot be interrupted any more.
 */
export const observe = (hooks: Hooks, result: ToolResult, turn: Turn): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(
    Effect.forEach(
      hooks.observers.filter((observer) => applies(observer, result.toolName)),
      (observer) =>
        attempt(Effect.suspend(() => observer.run(result, turn)), observerLimit).pipe(
          Effect.interruptible,
          Effect.fork,
          Effect.flatMap(Fiber.await),
          Effect.map((exit) =>
            Exit.isSuccess(exit) && "value" in exit.value
              ? []
              : [
                `observer ${observer.name}: ${
                  Exit.isSuccess(exit) && "failure" in exit.value ? exit.value.reason : "it was interrupted"
                }`
              ]
          )
        )
    ),
    (problems) => problems.flat()
  )
