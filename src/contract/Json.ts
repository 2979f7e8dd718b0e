/**
 * Plain JSON values: their type, and the one bounded pass that turns whatever somebody sent into a frozen plain copy.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

export type Json = null | boolean | number | string | ReadonlyArray<Json> | JsonObject
export interface JsonObject {
  readonly [key: string]: Json
}

const isJson = (value: unknown): value is Json => snapshot(value, unboundedLimits).ok

/** Any plain JSON value, as decoded from outside. */
export const Json: Schema.Schema<Json> = Schema.declare(isJson, { identifier: "Json", jsonSchema: {} })

const isJsonObject = (value: unknown): value is JsonObject => isObject(value) && isJson(value)
export const JsonObject: Schema.Schema<JsonObject> = Schema.declare(isJsonObject, {
  identifier: "JsonObject",
  jsonSchema: { type: "object" }
})

export interface Limits {
  /** Characters of keys and strings plus eight per scalar and container: an upper estimate of the JSON text. */
  readonly maxSize: number
  /** Containers inside containers. */
  readonly maxDepth: number
}

/** For arguments and whatever else a model, a hook or a file sends. */
export const defaultLimits: Limits = { maxSize: 8 * 1024 * 1024, maxDepth: 64 }
/** For what a tool hands over. */
export const outputLimits: Limits = { maxSize: 16 * 1024 * 1024, maxDepth: 128 }
const unboundedLimits: Limits = { maxSize: Number.POSITIVE_INFINITY, maxDepth: 512 }

export type Problem = "too_large" | "too_deep" | "not_json" | "malformed_text" | "forbidden_key"

export type Snapshot =
  | { readonly ok: true; readonly value: Json; readonly size: number }
  | { readonly ok: false; readonly problem: Problem; readonly path: string }

/** Own data properties only; class instances, functions, symbols and cycles are not JSON. */
export const isObject = (value: unknown): value is { readonly [key: string]: unknown } => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

interface Walk {
  readonly limits: Limits
  size: number
  problem: Problem | undefined
  path: string
}

const refuse = (walk: Walk, problem: Problem): null => {
  walk.problem = problem
  return null
}

/** Built while unwinding, so that a value without a problem costs no path. */
const under = (walk: Walk, key: string): null => {
  walk.path = `/${key.length > 64 ? `${key.slice(0, 64)}…` : key}`.toWellFormed() + walk.path
  return null
}

const copy = (value: unknown, depth: number, walk: Walk): Json => {
  walk.size += 8
  if (walk.size > walk.limits.maxSize) return refuse(walk, "too_large")
  switch (typeof value) {
    case "string":
      walk.size += value.length
      if (walk.size > walk.limits.maxSize) return refuse(walk, "too_large")
      return value.isWellFormed() ? value : refuse(walk, "malformed_text")
    case "boolean":
      return value
    case "number":
      return Number.isFinite(value) ? value : refuse(walk, "not_json")
    case "object":
      break
    default:
      return refuse(walk, "not_json")
  }
  if (value === null) return null
  if (depth >= walk.limits.maxDepth) return refuse(walk, "too_deep")
  if (Array.isArray(value)) {
    const out: Array<Json> = []
    for (let index = 0; index < value.length; index++) {
      out.push(copy(value[index], depth + 1, walk))
      if (walk.problem !== undefined) return under(walk, String(index))
    }
    return Object.freeze(out)
  }
  if (!isObject(value)) return refuse(walk, "not_json")
  const out: Record<string, Json> = {}
  for (const key of Object.keys(value)) {
    const item = value[key]
    if (item === undefined) continue
    if (key === "__proto__") refuse(walk, "forbidden_key")
    else if (!key.isWellFormed()) refuse(walk, "malformed_text")
    else if ((walk.size += key.length) > walk.limits.maxSize) refuse(walk, "too_large")
    else {
      out[key] = copy(item, depth + 1, walk)
    }
    if (walk.problem !== undefined) return under(walk, key)
  }
  return Object.freeze(out)
}

/**
 * A deep-frozen plain copy of `value`, or the first thing that keeps it from being one, with its JSON pointer.
 *
 * `undefined` members are dropped; non-finite numbers, class instances, functions, `__proto__` keys and strings with lone
 * surrogates are refused. Time and memory are bounded by `limits`, whatever the input.
 */
export const snapshot = (value: unknown, limits: Limits = defaultLimits): Snapshot => {
  const walk: Walk = { limits, size: 0, problem: undefined, path: "" }
  const out = copy(value, 0, walk)
  return walk.problem === undefined
    ? { ok: true, value: out, size: walk.size }
    : { ok: false, problem: walk.problem, path: walk.path }
}

/** JSON text with object keys sorted by code unit at every level; arrays keep their order. Equal values, equal text. */
export const canonical = (value: Json): string => {
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  if (isArray(value)) {
    let out = "["
    for (let index = 0; index < value.length; index++) {
      const item = value[index]
      out += (index === 0 ? "" : ",") + canonical(item === undefined ? null : item)
    }
    return `${out}]`
  }
  const keys = Object.keys(value)
  if (keys.length > 1) keys.sort()
  let out = "{"
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index]
    const item = key === undefined ? undefined : value[key]
    if (key === undefined || item === undefined) continue
    out += `${out.length === 1 ? "" : ","}${JSON.stringify(key)}:${canonical(item)}`
  }
  return `${out}}`
}

const isArray = (value: Json): value is ReadonlyArray<Json> => Array.isArray(value)

/** Freezes plain data through and through. What is frozen already is taken to be frozen below as well. */
export const freezeDeep = <A>(value: A): A => {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value
  for (const key in value) freezeDeep(value[key])
  return Object.freeze(value)
}
