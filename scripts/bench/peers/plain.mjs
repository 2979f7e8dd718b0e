/** The shortest code that gives the same answer: one JSON text of all tools, and its SHA-256. */
import { createHash } from "node:crypto"
import { toolSpecs } from "../tools.mjs"

export const catalog = (count) => {
  const tools = toolSpecs(count)
  let last = ""
  return {
    run: (n) => {
      for (let index = 0; index < n; index++) last = createHash("sha256").update(JSON.stringify(tools)).digest("hex")
      return last
    }
  }
}
