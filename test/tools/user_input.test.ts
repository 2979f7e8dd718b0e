import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Json } from "../../src/contract/Json.ts"
import { type Answer, layerFunction, layerUnavailable, type Question, UserInput } from "../../src/tool/UserInput.ts"
import { normalize, requestUserInput, userInput } from "../../src/tools/user_input.ts"
import { call, failureOf, turnIn } from "./processSupport.ts"

/** Answers as told and keeps what was asked. */
const asking = (args: Readonly<Record<string, Json>>, answers: ReadonlyArray<Answer> | undefined) =>
  Effect.gen(function*() {
    const asked: Array<Question> = []
    const layer = Layer.succeed(UserInput, {
      ask: (questions) => Effect.sync(() => (asked.push(...questions), answers))
    })
    const outcome = yield* Effect.either(Effect.provide(call(userInput, args, turnIn("/w")), layer))
    return { asked, outcome }
  })

describe("user_input and request_user_input", () => {
  it("only ask, are for the main agent alone, and are alike", () => {
    for (const tool of [userInput, requestUserInput]) {
      assert.deepInclude(tool, { kind: "tool_call", policy: "auto", readOnly: true, interactive: true, reach: "main" })
    }
    assert.deepStrictEqual(userInput.parameters, requestUserInput.parameters)
  })

  it.effect("return the answers of the user", () =>
    Effect.gen(function*() {
      for (const tool of [userInput, requestUserInput]) {
        const { output, shown } = yield* call(tool, { prompt: "Which?" }, turnIn("/w"))
        assert.deepStrictEqual(output, { answers: [{ id: "question_1", question: "Which?", values: ["Which?!"] }] })
        assert.strictEqual(shown, "Which?\nWhich?!")
      }
    }).pipe(Effect.provide(layerFunction((question) => Effect.succeed(`${question.question}!`)))))

  it("ask by question, prompt or message, with what is missing filled in", () => {
    const plain = { id: "question_1", header: "Input", options: [], min: 1, max: 1 }
    for (const key of ["question", "prompt", "message"]) {
      assert.deepStrictEqual(normalize({ [key]: " Hm? " }), [{ ...plain, question: "Hm?" }])
    }
    assert.deepStrictEqual(
      normalize({ message: "Hm?", options: ["a", " a", "", { label: "b", description: "B" }], header: "H", id: "x" }),
      [{
        ...plain,
        id: "x",
        header: "H",
        question: "Hm?",
        options: [{ label: "a", description: "" }, { label: "b", description: "B" }]
      }]
    )
  })

  it("drop questions without a text, number the rest and keep ids apart", () => {
    const questions = normalize({
      prompt: "not asked when there are questions",
      questions: [{ question: "A" }, { header: "no text" }, { id: "a", prompt: "B", header: "Hb" }, {
        id: "a",
        message: "C"
      }, { id: "question_1", question: "D" }]
    })
    assert.deepStrictEqual(questions.map(({ header, id, question }) => [id, header, question]), [
      ["question_1", "Question 1", "A"],
      ["a", "Hb", "B"],
      ["a_2", "Question 3", "C"],
      ["question_1_2", "Question 4", "D"]
    ])
  })

  it("allow several answers only where there are options, within bounds that can be met", () => {
    const bounds = (args: Parameters<typeof normalize>[0]) =>
      normalize({ question: "?", ...args }).map(({ max, min }) => [min, max])[0]
    const options = ["a", "b", "c"]
    assert.deepStrictEqual(bounds({ selectionMode: "multiple" }), [1, 1])
    assert.deepStrictEqual(bounds({ selectionMode: "multiple", options }), [1, 3])
    assert.deepStrictEqual(bounds({ selectionMode: "multiple", options, minSelections: 2, maxSelections: 9 }), [2, 3])
    assert.deepStrictEqual(bounds({ selectionMode: "multiple", options, minSelections: 5, maxSelections: 2 }), [2, 2])
    assert.deepStrictEqual(bounds({ selectionMode: "multiple", options, minSelections: -1, maxSelections: 0 }), [1, 1])
    assert.deepStrictEqual(bounds({ options, minSelections: 2, maxSelections: 3 }), [1, 1])
  })

  it.effect("fail with their codes when dismissed, when there is nothing to ask and when nobody is there", () =>
    Effect.gen(function*() {
      const dismissed = yield* asking({ question: "?" }, undefined)
      assert.strictEqual((yield* failureOf(dismissed.outcome)).code, "user_input_dismissed")
      for (const args of [{}, { question: "  " }, { questions: [{ header: "x" }] }, { options: ["a"] }]) {
        const { asked, outcome } = yield* asking(args, [])
        assert.strictEqual((yield* failureOf(outcome)).code, "question_missing")
        assert.deepStrictEqual(asked, [])
      }
      const alone = yield* failureOf(Effect.provide(call(userInput, { question: "?" }, turnIn("/w")), layerUnavailable))
      assert.strictEqual(alone.code, "user_input_unavailable")
    }))
})
