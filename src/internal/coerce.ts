/** Mends the slips that models make in otherwise good arguments, where the JSON Schema leaves no doubt of what was meant. */
import type { Json, JsonObject } from "../contract/Json.ts"
import { isObject, snapshot } from "../contract/Json.ts"
import { parseJson } from "./parseJson.ts"

/**
 * Top-level properties only: `"3"` for a number, `"true"` for a boolean, the JSON text of an array or object, `null` for an
 * absent optional. Anything else is left for the validator to refuse. Returns `args` itself when nothing was to mend.
 */
export const coerce = (schema: JsonObject, args: JsonObject): JsonObject => {
  const properties = schema["properties"]
  if (!isObject(properties)) return args
  const required = Array.isArray(schema["required"]) ? schema["required"] : []
  let mended = false
  const out: Record<string, Json> = {}
  for (const [key, value] of Object.entries(args)) {
    const property = Object.hasOwn(properties, key) ? properties[key] : undefined
    const type = isObject(property) ? property["type"] : undefined
    const next = value === null && !required.includes(key) && type !== "null" && !allowsNull(property)
      ? undefined
      : typeof value === "string"
      ? fromText(type, value)
      : value
    if (next !== value) mended = true
    if (next !== undefined) out[key] = next
  }
  return mended ? Object.freeze(out) : args
}

const allowsNull = (property: unknown): boolean =>
  isObject(property) &&
  (property["anyOf"] !== undefined || property["oneOf"] !== undefined || Array.isArray(property["type"]))

const fromText = (type: unknown, value: string): Json => {
  switch (type) {
    case "number":
    case "integer":
      return /^-?(0|[1-9]\d{0,14})(\.\d{1,15})?$/.test(value) ? Number(value) : value
    case "boolean":
      return value === "true" ? true : value === "false" ? false : value
    case "array":
    case "object":
      return parsed(type, value)
    default:
      return value
  }
}

const parsed = (type: "array" | "object", value: string): Json => {
  const json = parseJson(value)
  if (json === undefined) return value
  const plain = snapshot(json)
  return plain.ok && (type === "array" ? Array.isArray(plain.value) : isObject(plain.value)) ? plain.value : value
}
