/**
 * `user_input` and `request_user_input`: one tool under two names that asks the user.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { toolError } from "../contract/ToolFailure.ts"
import { text } from "../contract/ToolResult.ts"
import * as Tool from "../tool/Tool.ts"
import { ToolInvocation } from "../tool/ToolInvocation.ts"
import { type Question, UserInput } from "../tool/UserInput.ts"

const exact = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })
const Text = exact(Schema.String.pipe(Schema.maxLength(10_000)))

const Choice = Schema.Union(
  Schema.String.pipe(Schema.maxLength(1000)),
  Schema.Struct({ label: Schema.String.pipe(Schema.maxLength(1000)), description: Text })
)

const asked = {
  question: Text,
  prompt: Text,
  message: Text,
  header: Text,
  id: exact(Schema.String.pipe(Schema.maxLength(200))),
  options: exact(Schema.Array(Choice).pipe(Schema.maxItems(50))),
  selectionMode: exact(Schema.Literal("single", "multiple")),
  minSelections: exact(Schema.Int),
  maxSelections: exact(Schema.Int)
}
const Asked = Schema.Struct(asked)

/** One question at the top, or several in `questions`; what has no text is left out (seed, user_input). */
export const Parameters = Schema.Struct({
  ...asked,
  questions: exact(Schema.Array(Asked).pipe(Schema.maxItems(20)))
})

export const Success = Schema.Struct({
  answers: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      question: Schema.String,
      /** Labels of the chosen options, or the text that was typed. */
      values: Schema.Array(Schema.String)
    })
  )
})

export const codes = ["user_input_dismissed", "question_missing"] as const

const textOf = ({ message, prompt, question }: typeof Asked.Type): string =>
  [question, prompt, message].find((candidate) => candidate !== undefined && candidate.trim() !== "")?.trim() ?? ""

const optionsOf = (choices: ReadonlyArray<typeof Choice.Type>): Question["options"] => {
  const options = new Map<string, { readonly label: string; readonly description: string }>()
  for (const choice of choices) {
    const label = (typeof choice === "string" ? choice : choice.label).trim()
    const description = typeof choice === "string" ? "" : choice.description?.trim() ?? ""
    if (label !== "" && !options.has(label)) options.set(label, { label, description })
  }
  return [...options.values()]
}

const clamp = (value: number, low: number, high: number): number => Math.max(low, Math.min(high, value))

/** Questions as the user will see them: with a text, a header, an id of their own, and bounds that can be met. */
export const normalize = (args: typeof Parameters.Type): ReadonlyArray<Question> => {
  const several = (args.questions ?? []).filter((one) => textOf(one) !== "")
  const all = several.length > 0 ? several : textOf(args) === "" ? [] : [args]
  const ids = new Set<string>()
  return all.map((one, index) => {
    const options = optionsOf(one.options ?? [])
    const max = one.selectionMode === "multiple" && options.length > 0
      ? clamp(one.maxSelections ?? options.length, 1, options.length)
      : 1
    const wanted = one.id?.trim() || `question_${index + 1}`
    let id = wanted
    for (let copy = 2; ids.has(id); copy++) id = `${wanted}_${copy}`
    ids.add(id)
    return {
      id,
      header: one.header?.trim() || (all.length === 1 ? "Input" : `Question ${index + 1}`),
      question: textOf(one),
      options,
      min: clamp(one.minSelections ?? 1, 1, max),
      max
    }
  })
}

const ask = Effect.fnUntraced(function*(args: typeof Parameters.Type) {
  const { turn } = yield* ToolInvocation
  const questions = normalize(args)
  if (questions.length === 0) {
    return yield* toolError(
      "question_missing",
      "There is nothing to ask: give question, or questions with a question each."
    )
  }
  const answers = yield* (yield* UserInput).ask(questions, turn)
  if (answers === undefined) {
    return yield* toolError(
      "user_input_dismissed",
      "The user dismissed the question. Go on without an answer, or stop."
    )
  }
  const values = new Map(answers.map((answer) => [answer.id, answer.values]))
  return { answers: questions.map(({ id, question }) => ({ id, question, values: values.get(id) ?? [] })) }
})

const named = <const Name extends string>(name: Name) =>
  Tool.make(name, {
    description: "Ask the user one or several questions and wait for the answers. Offer options where you can.",
    kind: "tool_call",
    policy: "auto",
    // A child has no user: whoever delegated to it answers for it.
    reach: "main",
    readOnly: true,
    interactive: true,
    codes,
    parameters: Parameters,
    success: Success,
    handler: ask,
    render: ({ answers }) => [
      text(
        answers.map(({ question, values }) => `${question}\n${values.length === 0 ? "(no answer)" : values.join(", ")}`)
          .join("\n\n")
      )
    ]
  })

/**
 * Succeeds with the answers. Fails with `question_missing`, `user_input_dismissed`, or `user_input_unavailable` when
 * nobody is there. Interruption withdraws the questions.
 */
export const userInput = named("user_input")
/** The same under its other name. */
export const requestUserInput = named("request_user_input")
