/** The JSON that somebody's last words end with. */
import { isObject, type Json, snapshot } from "../contract/Json.ts"
import { parseJson } from "./parseJson.ts"

/** A fence opens at the start of a line. No JSON text has a newline inside a string, so none is cut by one. */
const opened = /^[ \t]*```json\b/gim
const closed = /^[ \t]*```/m
const bare = /^[ \t]*[[{]/gm
const attempts = 32

/**
 * The value of the last ```json block; without one, of what goes from the start of a line to the end of the text.
 * `undefined` when that is not JSON or not of the `kind`.
 */
export const lastJson = (text: string, kind: "object" | "array"): Json | undefined => {
  const block = [...text.matchAll(opened)].at(-1)
  if (block !== undefined) return parse(blockAt(text, block.index + block[0].length), kind)
  const body = text.trimEnd()
  let attempt = 0
  for (const { index } of body.matchAll(bare)) {
    if (attempt++ === attempts) return undefined
    const value = parse(body.slice(index), kind)
    if (value !== undefined) return value
  }
  return undefined
}

const blockAt = (text: string, start: number): string => {
  const rest = text.slice(start)
  const end = rest.search(closed)
  const body = (end === -1 ? rest : rest.slice(0, end)).trimEnd()
  return body.endsWith("```") ? body.slice(0, -3) : body
}

const parse = (text: string, kind: "object" | "array"): Json | undefined => {
  const plain = snapshot(parseJson(text))
  return plain.ok && (kind === "array" ? Array.isArray(plain.value) : isObject(plain.value)) ? plain.value : undefined
}
