/** Who answers: the command line, a person at the terminal, or nobody. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ApprovalReason, ApprovalRecord, Approver } from "../../src/gate/ApprovalGate.ts"
import { display } from "../../src/internal/display.ts"
import * as UserInput from "../../src/tool/UserInput.ts"
import type { TurnOptions } from "./arguments.ts"
import type { Terminal } from "./Terminal.ts"

const because: { readonly [Reason in ApprovalReason]: string } = {
  outside_write: "it writes outside the workspace",
  unconfined_command: "its command cannot be fully confined",
  explicit: "the tool demands it for this call",
  hook: "a hook asks for it",
  rule: "a rule asks for it",
  ordinary: "the approval policy asks for it"
}

const shownCharacters = 4000
const indented = (text: string, indent: string): string => text.replaceAll("\n", `\n${indent}`)

/** What a person is shown before saying yes. Whatever comes from the model is escaped and stays within its indentation. */
export const question = ({ question: asked }: ApprovalRecord): string => {
  const name = display(asked.toolName, { max: 200 })
  const args = display(JSON.stringify(asked.arguments, undefined, 2), { lines: true, max: shownCharacters })
  return [
    "",
    `${name} (${asked.kind}) in ${display(asked.workspace, { max: 400 })}, sandbox ${asked.sandboxMode}`,
    `  because ${asked.reasons.map((reason) => because[reason]).join(", ")}`,
    ...asked.notes.map((note) => `  ${display(note, { max: 400 })}`),
    ...asked.outsideTargets.map((target) => `  outside the workspace: ${display(target, { max: 400 })}`),
    `  ${indented(args, "  ")}`,
    "Allow it this once? [y/N] "
  ].join("\n")
}

/** `--answer`, else the person at the terminal, else nobody. Anything but yes is no, and so is the end of input. */
export const approver = (options: TurnOptions, terminal: Terminal["Type"]): "none" | Approver => {
  const { answer } = options
  if (answer !== undefined) {
    return { name: "--answer", review: () => Effect.succeed({ decision: answer, principal: "--answer" }) }
  }
  if (!terminal.interactive) return "none"
  return {
    name: "terminal",
    review: (record) =>
      Effect.map(terminal.ask(question(record)), (line) => ({
        decision: /^\s*y(es)?\s*$/i.test(line ?? "") ? "allow" : "deny",
        principal: "terminal"
      }))
  }
}

/** A number chooses an option; anything else is the answer itself. */
const chosen = (asked: UserInput.Question, line: string): ReadonlyArray<string> =>
  (asked.max > 1 ? line.split(",").slice(0, asked.max) : [line]).map((part) => {
    const option = /^\s*\d{1,3}\s*$/.test(part) ? asked.options[Number(part) - 1] : undefined
    return option?.label ?? part.trim()
  })

const form = (asked: UserInput.Question): string =>
  [
    "",
    `${display(asked.header, { max: 200 })}: ${
      indented(display(asked.question, { lines: true, max: shownCharacters }), "  ")
    }`,
    ...asked.options.map(({ description, label }, index) =>
      `  ${index + 1}. ${display(label, { max: 200 })}${
        description === "" ? "" : ` (${display(description, { max: 400 })})`
      }`
    ),
    asked.max > 1 ? `Up to ${asked.max}, with commas: ` : "> "
  ].join("\n")

/** `--reply`, else the person at the terminal, else nobody. The end of input dismisses the questions. */
export const userInput = (options: TurnOptions, terminal: Terminal["Type"]): Layer.Layer<UserInput.UserInput> => {
  const { reply } = options
  if (reply !== undefined) return UserInput.layerFunction(() => Effect.succeed(reply))
  if (!terminal.interactive) return UserInput.layerUnavailable
  return Layer.succeed(UserInput.UserInput, {
    ask: Effect.fnUntraced(function*(questions) {
      const answers: Array<UserInput.Answer> = []
      for (const asked of questions) {
        const line = yield* terminal.ask(form(asked))
        if (line === undefined) return undefined
        answers.push({ id: asked.id, values: chosen(asked, line) })
      }
      return answers
    })
  })
}
