/**
 * Asking the user something from inside a tool.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { UserInputUnavailable } from "../contract/ToolFailure.ts"
import type { Turn } from "../contract/Turn.ts"

export interface Question {
  readonly id: string
  readonly header: string
  readonly question: string
  readonly options: ReadonlyArray<{ readonly label: string; readonly description: string }>
  /** How many options may be chosen; 1 for free text. */
  readonly min: number
  readonly max: number
}

export interface Answer {
  readonly id: string
  /** Labels of the chosen options, or the one text that was typed. */
  readonly values: ReadonlyArray<string>
}

export class UserInput extends Context.Tag("portcullis/UserInput")<UserInput, {
  /** Waits for the answers; `undefined` when the user dismissed the questions. Interruption withdraws them. */
  readonly ask: (
    questions: ReadonlyArray<Question>,
    turn: Turn
  ) => Effect.Effect<ReadonlyArray<Answer> | undefined, UserInputUnavailable>
}>() {}

/** Nobody is there to answer: every question fails with `user_input_unavailable`, at once. */
export const layerUnavailable: Layer.Layer<UserInput> = Layer.succeed(UserInput, {
  ask: () =>
    Effect.fail(
      new UserInputUnavailable({
        reason: "Nobody is there to answer: continue without asking, and say what you assumed."
      })
    )
})

/** Answers come from a function of one question. */
export const layerFunction = (answer: (question: Question) => Effect.Effect<string>): Layer.Layer<UserInput> =>
  Layer.succeed(UserInput, {
    ask: (questions) =>
      Effect.forEach(
        questions,
        (question) => Effect.map(answer(question), (value) => ({ id: question.id, values: [value] }))
      )
  })
