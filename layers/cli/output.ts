/**
 * Results as people read them. What a tool or a model said is escaped, so that it cannot act on a terminal: what these
 * functions return is printed as it is.
 */
import type { ContentPart, ToolResult } from "../../src/contract/ToolResult.ts"
import { display } from "../../src/internal/display.ts"

export { displayJson } from "../../src/internal/display.ts"

export const lines = (text: string): string => display(text, { lines: true })

const part = (content: ContentPart): string => {
  switch (content.type) {
    case "text":
      return content.text
    case "image":
      return `[image, ${content.mediaType}]`
    case "resource":
      return content.text ?? `[resource ${content.uri}]`
  }
}

/** What the model is told, as text; with `max`, about so many characters of it. */
export const contentText = (content: ReadonlyArray<ContentPart>, max?: number): string =>
  display(content.map(part).join("\n"), { lines: true, max }).trimEnd()

/** `write: ok, 12 ms, allowed by --answer` */
export const summary = (result: ToolResult): string => {
  const { approval } = result
  return [
    `${display(result.toolName)}: ${result.isError ? display(result.code ?? "failed") : "ok"}`,
    `${Math.max(0, result.finishedAt - result.startedAt)} ms`,
    ...result.replayed ? ["replayed"] : result.executed ? [] : ["not executed"],
    ...approval === null ? [] : [`${decisions[approval.decision]} ${display(approval.principal)}`]
  ].join(", ")
}

const decisions = {
  allow: "allowed by",
  deny: "denied by",
  expired: "approval expired,",
  superseded: "approval superseded,",
  unavailable: "no approver,"
} as const

/** Rows under a head, in columns as wide as they need. */
export const table = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)))
  return rows.map((row) => `${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ").trimEnd()}\n`)
    .join("")
}
