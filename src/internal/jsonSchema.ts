/** Validators for raw JSON Schemas, compiled by Ajv. Ajv is loaded when the first raw schema is. */
import type { ErrorObject } from "ajv"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { JsonObject } from "../contract/Json.ts"

export class SchemaInvalid extends Schema.TaggedError<SchemaInvalid>("portcullis/SchemaInvalid")("SchemaInvalid", {
  code: Schema.Literal("schema_invalid").pipe(
    Schema.propertySignature,
    Schema.withConstructorDefault(() => "schema_invalid" as const)
  ),
  reason: Schema.String
}) {
  override get message() {
    return `Not a usable JSON Schema: ${this.reason}`
  }
}

/** `undefined` when the value fits, else what is wrong with it. */
export type Validate = (value: JsonObject) => string | undefined

/**
 * Compiles a schema. References are resolved inside the schema only: nothing is fetched. Unknown keywords and formats are
 * ignored, as a model's own validation would.
 */
export const compileJsonSchema = (schema: JsonObject): Effect.Effect<Validate, SchemaInvalid> =>
  Effect.gen(function*() {
    const { Ajv } = yield* Effect.promise(() => import("ajv"))
    const ajv = new Ajv({
      strict: false,
      allErrors: false,
      logger: false,
      validateFormats: false,
      addUsedSchema: false
    })
    const check = yield* Effect.try({
      try: () => ajv.compile(schema),
      catch: (cause) => new SchemaInvalid({ reason: cause instanceof Error ? cause.message.slice(0, 300) : "unknown" })
    })
    return (value) => check(value) ? undefined : explain(check.errors ?? [])
  })

const explain = (errors: ReadonlyArray<ErrorObject>): string =>
  errors.map((error) => {
    const extra = "additionalProperty" in error.params
      ? ` (${String(error.params["additionalProperty"]).slice(0, 80)})`
      : ""
    return `${error.instancePath || "/"} ${error.message ?? error.keyword}${extra}`
  }).join("; ").slice(0, 2000).toWellFormed()
