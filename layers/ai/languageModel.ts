/** A `LanguageModel` of `@effect/ai` as our `Model`. */
import type * as AiError from "@effect/ai/AiError"
import * as LanguageModel from "@effect/ai/LanguageModel"
import type * as Toolkit from "@effect/ai/Toolkit"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { finished, Model, type ModelError, type ModelPart, type ModelRequest } from "../../src/agent/Model.ts"
import { isObject } from "../../src/contract/Json.ts"
import type { ToolSpec } from "../../src/tool/Tool.ts"
import { errorPart, toModelError, undecodedParts, unreadable } from "./errors.ts"
import { makeReader, readPart } from "./parts.ts"
import { toPrompt } from "./prompt.ts"
import { type SpecTool, specTool } from "./specTool.ts"

export interface Options {
  /** Default `effect-ai`. */
  readonly name?: string | undefined
  /** Ask with `streamText`, else with `generateText`. Default `true`. */
  readonly streaming?: boolean | undefined
}

/** See `layerModel`. */
export const makeModel = (
  options: Options = {}
): Effect.Effect<Model["Type"], never, LanguageModel.LanguageModel> =>
  Effect.map(LanguageModel.LanguageModel, (languageModel) => {
    const known = new WeakMap<ToolSpec, SpecTool>()
    const toTool = (spec: ToolSpec): SpecTool => {
      const tool = known.get(spec) ?? specTool(spec)
      known.set(spec, tool)
      return tool
    }

    const respond = (request: ModelRequest): Stream.Stream<unknown, AiError.AiError> => {
      const toolkit: Toolkit.WithHandler<Record<string, SpecTool>> = {
        tools: Object.fromEntries(request.tools.map((spec) => [spec.name, toTool(spec)])),
        handle: () => Effect.dieMessage("Tool calls are not resolved here.")
      }
      const asked = { prompt: toPrompt(request), toolkit, disableToolCallResolution: true } as const
      return options.streaming === false
        ? Stream.unwrap(Effect.map(languageModel.generateText(asked), ({ content }) => Stream.fromIterable(content)))
        : languageModel.streamText(asked)
    }

    return Model.of({
      name: options.name ?? "effect-ai",
      respond: (request) => Stream.suspend(() => finished(toParts(respond(request))))
    })
  })

/**
 * Our `Model` over the app's `LanguageModel`.
 *
 * The provider sees each tool's exact JSON Schema; arguments arrive undecoded and `@effect/ai` runs nothing.
 *
 * `@effect/ai` fails a response in which the model names an unknown tool or gives parameters that are not an object. The
 * raw parts are taken back from the error and told as calls, so that the channel answers them with a code. With
 * `streaming: false` nothing is lost by this. In a stream what follows the offending chunk is lost: further text and calls,
 * the usage (told as 0) and the finish reason (told as `tool_calls`), and the last call of the chunk is marked `truncated`
 * since it may have been cut. When a provider itself fails on arguments that are not JSON, the call is told as `truncated`
 * with the text that was streamed; without streaming such a response is `model_output_malformed`.
 *
 * Errors: HTTP 429 is `model_rate_limited`, other 4xx but 408 `model_refused`, what could not be read
 * `model_output_malformed`, all else `model_unavailable`; `retryAfterMs` comes from the response's headers.
 *
 * Tools are converted once for each spec of the catalog. `@effect/ai` builds the schema of its response anew each time, at
 * a cost that grows with the catalog and that no option avoids.
 */
export const layerModel = (options?: Options): Layer.Layer<Model, never, LanguageModel.LanguageModel> =>
  Layer.effect(Model, makeModel(options))

const toParts = (parts: Stream.Stream<unknown, AiError.AiError>): Stream.Stream<ModelPart, ModelError> => {
  const reader = makeReader()

  const tell = (raw: unknown): Effect.Effect<ReadonlyArray<ModelPart>, ModelError> => {
    const part = readPart(raw)
    if (Option.isNone(part)) return Effect.succeed([])
    return part.value.type === "error"
      ? Effect.fail(errorPart(part.value.error))
      : Effect.succeed(reader.read(part.value))
  }

  const recover = (error: AiError.MalformedOutput): Stream.Stream<ModelPart, ModelError> =>
    Stream.unwrap(Effect.gen(function*() {
      const before = reader.calls()
      const told = (yield* Effect.forEach(undecodedParts(error), tell)).flat()
      if (told.some((part) => part.type === "finish")) return Stream.fromIterable(told)
      const lost = reader.giveUp()
      if (reader.calls() === before) {
        return Stream.fail(error.description === undefined ? unreadable : yield* now(error))
      }
      const last = told.findLastIndex((part) => part.type === "tool_call")
      return Stream.fromIterable([...told.map((part, index) => index === last ? asCut(part) : part), ...lost])
    }))

  return parts.pipe(
    Stream.mapConcatEffect(tell),
    Stream.catchAll((error) =>
      error._tag === "MalformedOutput"
        ? recover(error)
        : error._tag === "ModelError"
        ? Stream.fail(error)
        : Stream.unwrap(Effect.map(now(error), Stream.fail))
    )
  )
}

/** Marks a call that could run; one whose arguments can be no object has its own refusal. */
const asCut = (part: ModelPart): ModelPart =>
  part.type === "tool_call" && (typeof part.call.arguments === "string" || isObject(part.call.arguments))
    ? { ...part, call: { ...part.call, truncated: true } }
    : part

const now = (error: AiError.AiError): Effect.Effect<ModelError> =>
  Effect.map(Clock.currentTimeMillis, (millis) => toModelError(error, millis))
