/**
 * What the user's code says and sees around a turn: the four phases of the seed (6.3) that are not about one call.
 *
 * `userPromptSubmit` may deny the turn or add context to the prompt. The others only observe. Whatever goes wrong in any of
 * them is a warning, never the end of a turn (decisions, Gates, "hook outcomes").
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
import { isObject } from "../contract/Json.ts"
import type { Turn } from "../contract/Turn.ts"
import { describeFailure } from "../internal/settle.ts"
import type { Usage } from "./Model.ts"

/** `undefined` says nothing. At most 4000 characters of a reason and 65536 of a context are taken. */
export type PromptVerdict = { readonly deny: string } | { readonly context: string } | undefined

/** How a turn ended, for those who look on. */
export interface TurnEnding {
  readonly status: "completed" | "failed" | "interrupted"
  /** Why a completed turn stopped, or the code that a failed one failed with; `null` when it was interrupted. */
  readonly reason: string | null
  /** Model requests, their tokens, and calls with an outcome. */
  readonly steps: number
  readonly usage: Usage
  readonly calls: number
}

export interface TurnHook<R = never> {
  readonly name: string
  /** How long `userPromptSubmit` may take; default a minute. The others may take ten seconds. */
  readonly timeout?: Duration.DurationInput | undefined
  /** Before anything is recorded or asked of a model. Sees the text of the prompt. */
  readonly userPromptSubmit?: ((prompt: string, turn: Turn) => Effect.Effect<PromptVerdict, unknown, R>) | undefined
  readonly turnStart?: ((turn: Turn) => Effect.Effect<void, unknown, R>) | undefined
  /** Once for each turn that started, however it ended. Of a turn that was interrupted, all hooks share one second. */
  readonly turnEnd?: ((turn: Turn, ending: TurnEnding) => Effect.Effect<void, unknown, R>) | undefined
  /** Before a conversation of so many messages is compacted. */
  readonly preCompact?: ((turn: Turn, messages: number) => Effect.Effect<void, unknown, R>) | undefined
}

/** The hooks around turns, in order; default none. */
export class TurnHooks extends Context.Reference<TurnHooks>()("portcullis/TurnHooks", {
  defaultValue: (): ReadonlyArray<TurnHook> => []
}) {}

/** Hooks in order; requirements are taken from the environment once. */
export const make = <R>(hooks: ReadonlyArray<TurnHook<R>>): Effect.Effect<ReadonlyArray<TurnHook>, never, R> =>
  Effect.map(
    Effect.context<R>(),
    (context) =>
      hooks.map(({ name, preCompact, timeout, turnEnd, turnStart, userPromptSubmit }) => {
        const provided = <Args extends ReadonlyArray<unknown>, A>(
          run: ((...args: Args) => Effect.Effect<A, unknown, R>) | undefined
        ) =>
          run === undefined ? undefined : (...args: Args) => Effect.provide(Effect.suspend(() => run(...args)), context)
        return {
          name,
          timeout,
          userPromptSubmit: provided(userPromptSubmit),
          turnStart: provided(turnStart),
          turnEnd: provided(turnEnd),
          preCompact: provided(preCompact)
        }
      })
  )

export const layer = <R = never>(hooks: ReadonlyArray<TurnHook<R>>): Layer.Layer<never, never, R> =>
  Layer.effect(TurnHooks, make(hooks))

const describe = (error: unknown): string => describeFailure(error).message.slice(0, 2000).toWellFormed()

type Attempt<A> = { readonly value: A } | { readonly problem: string }

/** A hook's effect with everything but an outside interruption as a value, under its time limit. */
const attempt = <A>(run: () => Effect.Effect<A, unknown>, timeout: Duration.DurationInput): Effect.Effect<Attempt<A>> =>
  Effect.suspend(run).pipe(
    Effect.timeoutFail({
      duration: timeout,
      onTimeout: () => `no answer within ${Duration.format(Duration.decode(timeout))}`
    }),
    Effect.matchCause({
      onSuccess: (value) => ({ value }),
      onFailure: (cause) => ({
        problem: describe(Option.getOrElse(Cause.failureOption(cause), () => Cause.squash(cause)))
      })
    })
  )

const prose = (value: string, max: number): string => value.slice(0, max).toWellFormed()

/** Hooks are the user's code and answer whatever they like. */
const verdictOf = (verdict: unknown): Attempt<PromptVerdict> => {
  if (verdict === undefined) return { value: undefined }
  if (isObject(verdict)) {
    if (typeof verdict["deny"] === "string") return { value: { deny: prose(verdict["deny"], 4000) } }
    if (typeof verdict["context"] === "string") return { value: { context: prose(verdict["context"], 65_536) } }
  }
  return { problem: "the verdict is neither a reason to deny nor a context" }
}

/** What the hooks together say of a prompt, and what went wrong with them. */
export interface Submission {
  readonly denied: { readonly hook: string; readonly reason: string } | undefined
  readonly contexts: ReadonlyArray<string>
  readonly warnings: ReadonlyArray<string>
}

/** Asks the hooks about a prompt, in order. The first that denies ends the chain. */
export const submit = Effect.fnUntraced(function*(hooks: ReadonlyArray<TurnHook>, prompt: string, turn: Turn) {
  const contexts: Array<string> = []
  const warnings: Array<string> = []
  for (const { name, timeout, userPromptSubmit } of hooks) {
    if (userPromptSubmit === undefined) continue
    const answer = yield* attempt(() => userPromptSubmit(prompt, turn), timeout ?? "1 minute")
    const verdict = "problem" in answer ? answer : verdictOf(answer.value)
    if ("problem" in verdict) warnings.push(`${name}: ${verdict.problem}`)
    else if (verdict.value === undefined) continue
    else if ("context" in verdict.value) contexts.push(verdict.value.context)
    else {
      const submission: Submission = { denied: { hook: name, reason: verdict.value.deny }, contexts, warnings }
      return submission
    }
  }
  const submission: Submission = { denied: undefined, contexts, warnings }
  return submission
})

/**
 * Tells every hook that looks on, in order; returns what went wrong, for the journal. Each runs in a fiber of its own, so it
 * can be stopped also where the turn itself cannot be interrupted any more, and has so many milliseconds.
 */
export const tell = (
  hooks: ReadonlyArray<TurnHook>,
  told: (hook: TurnHook) => Effect.Effect<void, unknown> | undefined,
  limitMs: number
): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(
    Effect.forEach(hooks, (hook) =>
      attempt(() => told(hook) ?? Effect.void, limitMs).pipe(
        Effect.interruptible,
        Effect.fork,
        Effect.flatMap((fiber) => Effect.onInterrupt(Fiber.await(fiber), () => Fiber.interrupt(fiber))),
        Effect.map((exit) =>
          Exit.isFailure(exit)
            ? [`${hook.name}: it was interrupted`]
            : "problem" in exit.value
            ? [`${hook.name}: ${exit.value.problem}`]
            : []
        )
      )),
    (problems) => problems.flat()
  )
