/** `portcullis run`: an agent over a workspace. */
import * as Effect from "effect/Effect"
import * as TurnLoop from "../../src/agent/TurnLoop.ts"
import type { ToolCall } from "../../src/contract/ToolCall.ts"
import { ToolHost } from "../../src/host/ToolHost.ts"
import { display } from "../../src/internal/display.ts"
import type { RunOptions } from "./arguments.ts"
import { textOfInput } from "./call.ts"
import { usage } from "./CliError.ts"
import * as models from "./models.ts"
import { contentText, displayJson, lines, summary } from "./output.ts"
import { plane, turnRefused } from "./plane.ts"
import { Terminal } from "./Terminal.ts"

export const system =
  "You are a coding agent. You work in one workspace through the tools you are given, and through nothing " +
  "else. Read before you change. A call that is refused says why by its code: do what it asks for, and do not try to get " +
  "around it. When you are done, say in a few sentences what you did and what you found out."

/** The transcript of a turn, as it goes: what the model says, what it asks for, and what became of it. */
export const transcript = (terminal: Terminal["Type"]): (event: TurnLoop.TurnEvent) => Effect.Effect<void> => {
  let midLine = false
  const print = (text: string) =>
    Effect.suspend(() => {
      if (text === "") return Effect.void
      midLine = !text.endsWith("\n")
      return terminal.out(text)
    })
  const onNewLine = (text: string) => Effect.suspend(() => print(`${midLine ? "\n" : ""}${text}\n`))
  return (event) => {
    switch (event.type) {
      case "request":
        return Effect.void
      case "catalog_changed":
        return onNewLine(`[the tools changed: ${event.change.grade}]`)
      case "settled": {
        const { content, isError } = event.result
        const said = isError ? `\n    ${contentText(content, 600).replaceAll("\n", "\n    ")}` : ""
        return onNewLine(`  ${summary(event.result)}${said}`)
      }
      case "part":
        switch (event.part.type) {
          case "text":
            return print(lines(event.part.delta))
          case "tool_call":
            return onNewLine(shownCall(event.part.call))
          case "reasoning":
            return Effect.void
          case "finish":
            return midLine ? print("\n") : Effect.void
        }
    }
  }
}

const shownCall = ({ arguments: args, toolName }: ToolCall): string =>
  `> ${display(toolName, { max: 200 })} ${
    display(typeof args === "string" ? args : JSON.stringify(args) ?? "", { max: 300 })
  }`

/** One line of JSON an event. The last line tells how the turn ended. */
const events = (terminal: Terminal["Type"]) => (event: TurnLoop.TurnEvent): Effect.Effect<void> =>
  event.type === "part" && event.part.type === "finish" ? Effect.void : terminal.out(`${displayJson(event)}\n`)

/** Exit code 0 when the model was done, 1 when a limit or the model itself ended the turn. */
export const run = Effect.fnUntraced(function*(prompt: string | undefined, options: RunOptions) {
  const terminal = yield* Terminal
  if (options.model === undefined) {
    return yield* usage("run needs --model: scripted:FILE, openai:NAME or anthropic:NAME")
  }
  const scripted = options.model.startsWith("scripted:")
  if (prompt === undefined && !scripted) return yield* usage("run needs PROMPT")
  const model = yield* models.layer(options.model)
  const { layer, spec } = yield* plane(options, model)
  const given = prompt === "-" ? yield* textOfInput : prompt
  const json = options.json === true
  const turn = Effect.gen(function*() {
    const session = yield* Effect.mapError((yield* ToolHost).openTurn(spec), turnRefused)
    return yield* TurnLoop.run({
      session,
      ...given === undefined ? { messages: [] } : { prompt: given },
      system: scripted ? undefined : system,
      onEvent: json ? events(terminal) : transcript(terminal)
    }).pipe(Effect.either)
  })
  const ended = yield* Effect.scoped(turn).pipe(Effect.provide(model), Effect.provide(layer))
  if (ended._tag === "Left") {
    const { code, reason } = ended.left
    const retryAfterMs = ended.left._tag === "ModelError" ? ended.left.retryAfterMs : null
    if (json) yield* terminal.out(`${displayJson({ type: "failed", code, reason, retryAfterMs })}\n`)
    yield* terminal.err(`portcullis: ${code}: ${display(reason, { max: 600 })}\n`)
    return 1
  }
  const { calls, steps, stopped, text, usage: used } = ended.right
  if (json) {
    yield* terminal.out(`${displayJson({ type: "ended", stopped, steps, calls: calls.length, usage: used, text })}\n`)
  } else yield* terminal.out(`\n${stopped}: ${calls.length} calls in ${steps} steps\n`)
  return stopped === "done" ? 0 : 1
})
