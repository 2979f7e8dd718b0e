/** Our catalog as a toolkit of `@effect/ai`. */
import type * as Tool from "@effect/ai/Tool"
import type * as Toolkit from "@effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as ToolCall from "../../src/contract/ToolCall.ts"
import type { TurnSession } from "../../src/host/ToolHost.ts"
import { refusalOf, textOf } from "./refusal.ts"
import { type SpecTool, specTool } from "./specTool.ts"

/**
 * The session's catalog, for a `generateText` or `streamText` call that an app already has.
 *
 * Parameters arrive undecoded and go through the session's channel. A success is the tool's output, and the model reads
 * its content as text (images are named only). A failure or refusal is a `Refusal` value: it never fails the call.
 * Interrupting the call interrupts the tool.
 *
 * `@effect/ai` itself answers, with `MalformedOutput` for the whole call, a tool name that is not in the toolkit and
 * parameters that are not an object: `streamText` before any call of that chunk runs, `generateText` after all of them ran.
 * It does not hand over the model's call ids, so each call gets a new one and a replay is not recognised.
 */
export const toolkit = (session: TurnSession): Toolkit.WithHandler<Record<string, SpecTool>> => ({
  tools: Object.fromEntries(session.catalog.tools.map((spec) => [spec.name, specTool(spec)])),
  handle: (toolName, params) =>
    Effect.map(
      Effect.suspend(() => session.execute(ToolCall.make({ toolName, arguments: params }))),
      (result): Tool.HandlerResult<SpecTool> => {
        if (!result.isError) return { isFailure: false, result: result.output, encodedResult: textOf(result.content) }
        const refusal = refusalOf(result)
        return { isFailure: true, result: refusal, encodedResult: refusal }
      }
    )
})
