/** `portcullis call`: one call through the channel. */
import * as Effect from "effect/Effect"
import { defaultLimits } from "../../src/contract/Json.ts"
import * as ToolCall from "../../src/contract/ToolCall.ts"
import type { ToolResult } from "../../src/contract/ToolResult.ts"
import { ToolHost } from "../../src/host/ToolHost.ts"
import type { CallOptions } from "./arguments.ts"
import { CliError } from "./CliError.ts"
import { contentText, displayJson, summary } from "./output.ts"
import { plane, turnRefused } from "./plane.ts"
import { Terminal } from "./Terminal.ts"

/** Enough for any text within the channel's budget of characters. */
const maxInputBytes = defaultLimits.maxSize * 3

const unreadable = (message: string): CliError => new CliError({ code: "input_unreadable", message })

/** Stdin as text: bounded, and nothing but UTF-8, since a replaced byte would go into files. */
export const textOfInput = Effect.gen(function*() {
  const bytes = yield* (yield* Terminal).input(maxInputBytes)
  if (bytes.length > maxInputBytes) return yield* unreadable(`stdin holds more than ${maxInputBytes} bytes`)
  return yield* Effect.try({
    try: () => new TextDecoder("utf-8", { fatal: true }).decode(bytes),
    catch: () => unreadable("stdin is not UTF-8")
  })
})

/** The arguments go to the channel as the text they are: it decodes them, and answers what is wrong with a code. */
export const call = Effect.fnUntraced(function*(tool: string, args: string, options: CallOptions) {
  const terminal = yield* Terminal
  const { layer, spec } = yield* plane(options)
  const asked = ToolCall.make({
    toolName: tool,
    arguments: args === "-" ? yield* textOfInput : args,
    callId: options["call-id"],
    claimedKind: options["claim-kind"]
  })
  const result: ToolResult = yield* Effect.flatMap(ToolHost, (host) => host.execute(asked, spec)).pipe(
    Effect.catchTag("TurnRefused", (error) => Effect.fail(turnRefused(error))),
    Effect.provide(layer)
  )
  yield* terminal.out(
    options.json === true ? `${displayJson(result)}\n` : `${summary(result)}\n${contentText(result.content)}\n`
  )
  return result.isError ? 1 : 0
})
