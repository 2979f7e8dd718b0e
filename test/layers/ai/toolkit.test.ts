import * as LanguageModel from "@effect/ai/LanguageModel"
import * as AiTool from "@effect/ai/Tool"
import { assert, describe, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { expectTypeOf } from "vitest"
import * as EffectAi from "../../../layers/ai/EffectAi.ts"
import { text } from "../../../src/contract/ToolResult.ts"
import * as Provider from "../../support/provider.ts"
import { fakeSession, type FakeTool, memoryJournal } from "../../support/session.ts"

const read: FakeTool = {
  parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  run: (args) => Effect.succeed({ path: args["path"] ?? null, lines: 2 }),
  render: () => [text("1: a"), text("2: b")]
}
const deploy: FakeTool = {
  run: () => Effect.fail({ code: "approval_denied", message: "Nobody agreed to this.", details: { asked: 1 } })
}

const session = (tools: Readonly<Record<string, FakeTool>>) => fakeSession({ memory: memoryJournal(), tools })

const asked = (...calls: ReadonlyArray<readonly [string, unknown]>) =>
  Provider.layer([{
    chunks: [calls.map(([name, params], index) => Provider.call(`c${index}`, name, params)), [
      Provider.finish("tool-calls")
    ]]
  }])

describe("EffectAi.toolkit", () => {
  it.effect("runs calls through the session and gives results and refusals as values", () =>
    Effect.gen(function*() {
      const response = yield* LanguageModel.generateText({
        prompt: "Go",
        toolkit: EffectAi.toolkit(session({ read, deploy }))
      })
      assert.deepStrictEqual(
        response.toolResults.map(({ encodedResult, isFailure, result }) => ({ encodedResult, isFailure, result })),
        [
          { isFailure: false, result: { path: "a", lines: 2 }, encodedResult: "1: a\n2: b" },
          {
            isFailure: true,
            result: { code: "approval_denied", error: "Nobody agreed to this.", details: { asked: 1 } },
            encodedResult: { code: "approval_denied", error: "Nobody agreed to this.", details: { asked: 1 } }
          }
        ]
      )
      const [failed] = response.toolResults.filter(({ isFailure }) => isFailure)
      if (failed?.isFailure === true) expectTypeOf(failed.result).toEqualTypeOf<EffectAi.Refusal>()
    }).pipe(Effect.provide(asked(["read", { path: "a" }], ["deploy", {}]))))

  it.effect("leaves the judgement of parameters to the channel", () =>
    Effect.gen(function*() {
      const parts = yield* LanguageModel.streamText({ prompt: "Go", toolkit: EffectAi.toolkit(session({ read })) })
        .pipe(
          Stream.runCollect,
          Effect.map(Chunk.toReadonlyArray)
        )
      assert.deepStrictEqual(
        parts.flatMap((part) => part.type === "tool-result" ? [part.result] : []),
        [{ path: 7, lines: 2 }]
      )
    }).pipe(Effect.provide(asked(["read", { path: 7, more: true }]))))

  it.effect("shows the exact JSON Schema of each tool", () =>
    Effect.sync(() => {
      const tool = EffectAi.toolkit(session({ read })).tools["read"]
      assert.isDefined(tool)
      if (tool !== undefined) assert.deepStrictEqual(AiTool.getJsonSchema(tool) as unknown, read.parameters)
    }))

  it.effect("interrupts the tool when the request is interrupted", () =>
    Effect.gen(function*() {
      const entered = yield* Deferred.make<void>()
      let released = false
      const hang: FakeTool = {
        run: () =>
          Effect.zipRight(Deferred.succeed(entered, undefined), Effect.never).pipe(
            Effect.onInterrupt(() => Effect.sync(() => released = true))
          )
      }
      const fiber = yield* Effect.fork(
        LanguageModel.generateText({ prompt: "Go", toolkit: EffectAi.toolkit(session({ hang })) })
      )
      yield* Deferred.await(entered)
      yield* Fiber.interrupt(fiber)
      assert.isTrue(released)
    }).pipe(Effect.provide(asked(["hang", {}]))))
})
