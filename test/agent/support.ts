/** Tools of a thread, called through the whole channel. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ThreadStore from "../../src/agent/ThreadStore.ts"
import * as CapabilityRegistry from "../../src/catalog/CapabilityRegistry.ts"
import type { Json } from "../../src/contract/Json.ts"
import * as ToolHost from "../../src/host/ToolHost.ts"
import type { Any } from "../../src/tool/Tool.ts"
import * as ToolProvider from "../../src/tool/ToolProvider.ts"
import { executeIn, Test } from "../support/plane.ts"

type Services = Test.Services | ThreadStore.ThreadStore

/** A host over these tools, with a store in memory. */
export const planeWith = <const Tools extends ReadonlyArray<Any>>(tools: Tools) => {
  const provider = ToolProvider.make({ id: "thread", kind: "built-in", tools }) as ToolProvider.ToolProvider<Services>
  return ToolHost.layer().pipe(
    Layer.provideMerge(CapabilityRegistry.layer<ReadonlyArray<ToolProvider.ToolProvider<Services>>>([provider])),
    Layer.provideMerge(Layer.merge(Test.services(), ThreadStore.layerMemory))
  )
}

/** What the model gets: the code of a refusal or `null`, the output, and the text. */
export const callIn = (threadId: string, toolName: string, args: Json = {}) =>
  Effect.map(
    executeIn({ workspace: "/", threadId }, { toolName, arguments: args }),
    ({ code, content, output }) => ({
      code,
      output: Object(output),
      shown: content.map((part) => part.type === "text" ? part.text : "").join("")
    })
  )
