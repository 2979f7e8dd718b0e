/**
 * What a tool itself came to, before PostToolUse hooks: what the ledger keeps right after the execution.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { Json } from "./Json.ts"
import { ContentPart } from "./ToolResult.ts"

export const RawOutcome = Schema.Struct({
  isError: Schema.Boolean,
  code: Schema.NullOr(Schema.String),
  output: Json,
  content: Schema.Array(ContentPart)
})
export type RawOutcome = typeof RawOutcome.Type
