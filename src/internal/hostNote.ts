/** What the host itself tells a model, in words that say so. */
import type { CatalogChanged } from "../contract/Event.ts"

/** What is quoted in it has to be escaped by then. */
export const fromHost = (words: string): string => `Note from the host: ${words}`

const namesShown = 12

/** A change of the tools. Names may come from outside: they are quoted, in plain ASCII, short and few. */
export const driftNote = (
  { deferred, fingerprint, grade, toolCount, toolNames }: typeof CatalogChanged.Type
): string => {
  const shown = toolNames.slice(0, namesShown).map((name) => ascii(JSON.stringify(name.slice(0, 64))))
  const more = toolCount - shown.length
  return fromHost(`the available tools changed (${grade}), to ${toolCount} tools with fingerprint ${fingerprint}. `) +
    (deferred ? "This turn keeps the tools it has; the change applies from the next turn. " : "") +
    `Names: ${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}.`
}

const ascii = (value: string): string =>
  value.replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`)
