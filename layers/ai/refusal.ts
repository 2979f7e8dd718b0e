/** How a gated call that was refused, or failed without a word of its own, comes back: a value the model can read. */
import * as Schema from "effect/Schema"
import { isObject } from "../../src/contract/Json.ts"
import type { ToolResult } from "../../src/contract/ToolResult.ts"

export const Refusal = Schema.Struct({
  /** One of the closed table of failure codes, or one that the tool declares. */
  code: Schema.String,
  /** What to do about it, for the model. */
  error: Schema.String,
  details: Schema.optionalWith(Schema.Unknown, { exact: true })
})
export type Refusal = typeof Refusal.Type

/** The refusal that a failed result carries. */
export const refusalOf = (result: ToolResult): Refusal => {
  const { code, content, output } = result
  const fields = isObject(output) ? output : {}
  return {
    code: code ?? "tool_execution_failed",
    error: typeof fields["error"] === "string" ? fields["error"] : textOf(content),
    ...(fields["details"] === undefined ? {} : { details: fields["details"] })
  }
}

/** Content as text: images are named only. */
export const textOf = (content: ToolResult["content"]): string =>
  content.map((part) => {
    switch (part.type) {
      case "text":
        return part.text
      case "image":
        return `[image ${part.mediaType}]`
      case "resource":
        return part.text ?? `[resource ${part.uri}]`
    }
  }).join("\n")
