/** A step of the channel as a value: its number and name for people, its codes for the table, and what it does. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { FailureCode, ToolFailure } from "../contract/ToolFailure.ts"
import type { Replay } from "./CallState.ts"

export interface StepInfo {
  /** As in the table of architecture section 4: `1` to `18`, and `3b`. */
  readonly number: string
  readonly name: string
  /** The refusals that start here. */
  readonly codes: ReadonlyArray<FailureCode>
}

export interface Step<in In, out Out> {
  readonly number: string
  readonly run: (state: In) => Effect.Effect<Out, ToolFailure | Replay>
}

/** Gives an effect the interruptibility that its caller has. */
export type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

const isDone = <A, E>(effect: Effect.Effect<A, E>): effect is Exit.Exit<A, E> => Exit.isExit(effect)

/** The next effect, without a trip through the fiber's loop when the first is done already. */
export const andThen = <A, B, E, E2>(
  first: Effect.Effect<A, E>,
  next: (value: A) => Effect.Effect<B, E2>
): Effect.Effect<B, E | E2> => {
  if (!isDone(first)) return Effect.flatMap(first, next)
  return Exit.isSuccess(first) ? next(first.value) : Exit.failCause(first.cause)
}

type Run<In, Out> = (state: In) => Effect.Effect<Out, ToolFailure | Replay>

/** Steps in order; a step that needs what no earlier one provides does not type-check. */
export interface Sequence<in In, out Out> {
  /** Their numbers in the table. */
  readonly numbers: ReadonlyArray<string>
  /** All of them, and then something over what they found. To be called once, not for each state. */
  readonly into: <Z>(next: Run<Out, Z>) => Run<In, Z>
  readonly then: <Next>(step: Step<Out, Next>) => Sequence<In, Next>
}

/** Each step calls what comes after it, so a run of steps that are done at once costs the fiber's loop nothing. */
const sequence = <In, Out>(
  numbers: ReadonlyArray<string>,
  into: <Z>(next: Run<Out, Z>) => Run<In, Z>
): Sequence<In, Out> => ({
  numbers,
  into,
  then: (step) => sequence([...numbers, step.number], (next) => into((state) => andThen(step.run(state), next)))
})

export const startWith = <In, Out>(step: Step<In, Out>): Sequence<In, Out> =>
  sequence([step.number], (next) => (state) => andThen(step.run(state), next))

/** The state with what a step found. The record is the call's own, so it grows in place. */
export const grow = <S extends object, F extends object>(state: S, found: F): Effect.Effect<S & F> =>
  Effect.succeed(Object.assign(state, found))
