/** A tool of our catalog as a tool of `@effect/ai`: the provider sees its exact JSON Schema, its parameters stay undecoded. */
import * as Tool from "@effect/ai/Tool"
import * as Schema from "effect/Schema"
import { Json } from "../../src/contract/Json.ts"
import type { ToolSpec } from "../../src/tool/Tool.ts"
import { Refusal } from "./refusal.ts"

const AnyParameters = Schema.Struct({}, Schema.Record({ key: Schema.String, value: Schema.Unknown }))

export type SpecTool = Tool.Tool<string, {
  readonly parameters: typeof AnyParameters
  readonly success: typeof Json
  readonly failure: typeof Refusal
  readonly failureMode: "return"
}>

export const specTool = (spec: ToolSpec): SpecTool =>
  Tool.make(spec.name, { description: spec.description, success: Json, failure: Refusal, failureMode: "return" })
    .setParameters(AnyParameters.annotations({ jsonSchema: spec.parameters }))
