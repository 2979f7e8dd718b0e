/**
 * Agents as a tree for people: who is under whom, and what each costs.
 *
 * @since 0.1.0
 */
import { display } from "../internal/display.ts"
import { addUsage, type AgentRecord, type AgentUsage, noUsage } from "./AgentReport.ts"

/** What these agents have used together; each counts once. */
export const totalUsage = (records: ReadonlyArray<AgentRecord>): AgentUsage =>
  records.reduce((total, { usage }) => addUsage(total, usage), noUsage)

/**
 * One line an agent, its children below it:
 *
 *     root                completed  3 turns   1200 tokens
 *     ├─ explore          running    0 turns    300 tokens
 *     └─ design-reviewer  queued     0 turns      0 tokens
 *
 * Agents whose parent is not among them stand at the top. Labels are shown with control characters escaped.
 */
export const render = (records: ReadonlyArray<AgentRecord>): string => {
  const known = new Set<string>(records.map(({ agentId }) => agentId))
  const childrenOf = new Map<string, Array<AgentRecord>>()
  const top: Array<AgentRecord> = []
  for (const record of records) {
    const parent = record.lineage.at(-2)
    if (parent === undefined || !known.has(parent)) {
      top.push(record)
      continue
    }
    const siblings = childrenOf.get(parent)
    if (siblings === undefined) childrenOf.set(parent, [record])
    else siblings.push(record)
  }
  const rows: Array<{ readonly name: string; readonly record: AgentRecord }> = []
  const walk = (record: AgentRecord, branch: string, indent: string): void => {
    rows.push({ name: branch + display(record.label, { max: 40 }), record })
    const children = childrenOf.get(record.agentId) ?? []
    children.forEach((child, index) => {
      const last = index === children.length - 1
      walk(child, `${indent}${last ? "└─ " : "├─ "}`, `${indent}${last ? "   " : "│  "}`)
    })
  }
  for (const record of top) walk(record, "", "")
  const width = Math.max(0, ...rows.map(({ name }) => name.length))
  return rows.map(({ name, record }) => {
    const tokens = record.usage.inputTokens + record.usage.outputTokens
    return `${name.padEnd(width)}  ${record.status.padEnd(11)}  ${record.turns} turns  ${tokens} tokens`
  }).join("\n")
}
