/** What the demo prints. */
import * as Effect from "effect/Effect"
import { contentText, lines } from "../../layers/cli/output.ts"
import type { Terminal } from "../../layers/cli/Terminal.ts"
import type { AgentEvent } from "../../src/agent/AgentSystem.ts"
import type { TurnEvent } from "../../src/agent/TurnLoop.ts"
import type { ToolResult } from "../../src/contract/ToolResult.ts"
import type { LedgerEntry } from "../../src/host/OperationLedger.ts"
import { steps } from "../../src/host/steps.ts"
import { display } from "../../src/internal/display.ts"

/** Paints when somebody looks. */
export const makePaint = (colours: boolean) => {
  const paint = (code: number) => (text: string) => colours ? `\u001b[${code}m${text}\u001b[0m` : text
  return { bold: paint(1), dim: paint(2), red: paint(31), green: paint(32), yellow: paint(33) }
}
export type Paint = ReturnType<typeof makePaint>

/** The gates that a reader wants to see, by their step; some have a say in changes of files alone. */
const gates = [
  { step: 5, name: "sandbox", files: false },
  { step: 6, name: "hooks", files: false },
  { step: 9, name: "read first", files: true },
  { step: 10, name: "rules", files: false },
  { step: 11, name: "inside", files: true },
  { step: 12, name: "approval", files: false }
] as const
const execution = 15

/** The step that refused a call. A sandbox code stands in three steps; a blocked path is the last of them. */
const refusedAt = ({ code, executed }: ToolResult): number => {
  if (executed || code === null) return execution
  const named = steps.filter((step) => step.codes.some((candidate) => candidate === code))
  const found = code === "sandbox_write_blocked" ? named.at(-1) : named[0]
  return Number.parseInt(found?.number ?? "", 10) || execution
}

const chain = (result: ToolResult, paint: Paint): string => {
  const stop = refusedAt(result)
  const spoke = gates.filter(({ files, step }) => step < stop && (!files || result.toolKind === "file_change"))
  const passed = spoke.map(({ name, step }) =>
    step !== 12
      ? `${name} ${paint.green("✓")}`
      : result.approval === null
      ? paint.dim("approval not needed")
      : `approval ${paint.green("✓")} ${result.approval.principal}`
  )
  if (stop >= execution) return [...passed, result.executed ? "ran" : "not run"].join(paint.dim(" → "))
  const name = gates.find(({ step }) => step === stop)?.name ??
    steps.find(({ number }) => number === String(stop))?.name ?? "channel"
  return [...passed, paint.red(`${name} ✗`)].join(paint.dim(" → "))
}

const shown = (result: ToolResult, asked: unknown): string => {
  const args = typeof asked === "object" && asked !== null ? Object.values(asked) : []
  const first = args.find((value) => typeof value === "string") ?? ""
  return display(`${result.toolName} ${first}`.trimEnd(), { max: 56 })
}

/** Why a call failed, without its code; of tests, how many. */
const reason = (result: ToolResult): string => {
  const counts = [...JSON.stringify(result.output).matchAll(/(?:#|ℹ) (pass|fail) (\d+)/g)].map(([, word, number]) =>
    `${number} ${word}`
  )
  const [line = ""] = contentText(result.content, 2000).split("\n", 1)
  return [line.slice(line.indexOf(": ") + 2), ...counts].join(" ")
}

const width = 100

/** Breaks text at blanks; every line but the first is indented. */
const wrap = (text: string, indent: string): string =>
  text.replace(new RegExp(`(.{1,${width - indent.length}})(?:[ \\n]+|$)`, "g"), `$1\n${indent}`).trimEnd()

export const call = (result: ToolResult, asked: unknown, paint: Paint): string => {
  const verdict = result.isError ? paint.red(display(result.code ?? "failed")) : paint.green("ok")
  const time = paint.dim(`${Math.max(0, result.finishedAt - result.startedAt)} ms`)
  return [
    `  ${result.isError ? paint.red("✗") : paint.green("✓")} ${paint.bold(shown(result, asked))}  ${verdict}  ${time}`,
    `      ${chain(result, paint)}`,
    ...result.isError ? [`      ${paint.dim(reason(result))}`] : [],
    ""
  ].join("\n")
}

/** What somebody said, with their name before it. */
export const speech = (name: string, text: string, paint: Paint): string =>
  `\n${paint.yellow(name)}  ${wrap(lines(text), " ".repeat(name.length + 2))}\n`

interface Bar {
  readonly label: string
  queued: number
  started: number | undefined
  ended: number | undefined
  status: string
  calls: number
}

/** The life of each child, in the order of their spawning. */
const bars = (events: ReadonlyArray<AgentEvent>): ReadonlyArray<Bar> => {
  const byId = new Map<string, Bar>()
  for (const event of events) {
    if (event.type === "call") {
      const bar = byId.get(event.agentId)
      if (bar !== undefined) bar.calls++
      continue
    }
    const { agentId, label, parentThreadId, status } = event.record
    if (parentThreadId === null) continue
    const bar = byId.get(agentId) ?? { label, queued: event.at, started: undefined, ended: undefined, status, calls: 0 }
    byId.set(agentId, bar)
    bar.status = status
    if (status === "running") bar.started = event.at
    else if (status !== "idle" && status !== "queued") bar.ended = event.at
  }
  return [...byId.values()]
}

/** How many children ran at once at most. */
export const peak = (events: ReadonlyArray<AgentEvent>): number => {
  let most = 0
  const active = new Set<string>()
  for (const event of events) {
    if (event.type !== "status" || event.record.parentThreadId === null) continue
    if (event.record.status === "running") active.add(event.record.agentId)
    else active.delete(event.record.agentId)
    most = Math.max(most, active.size)
  }
  return most
}

const chart = 50

/** One line a child: dots while it waited for a slot, blocks while it ran. */
export const timeline = (events: ReadonlyArray<AgentEvent>, paint: Paint): string => {
  const all = bars(events)
  const first = Math.min(...all.map(({ queued }) => queued))
  const last = Math.max(...all.map(({ ended, queued }) => ended ?? queued))
  const column = (at: number): number => Math.round((at - first) / Math.max(1, last - first) * chart)
  const names = Math.max(0, ...all.map(({ label }) => display(label).length))
  const rows = all.map(({ calls, ended, label, queued, started, status }) => {
    const [from, begin, end] = [column(queued), column(started ?? last), column(ended ?? last)]
    const ran = Math.max(1, end - begin)
    const bar = `${" ".repeat(from)}${paint.dim("·".repeat(begin - from))}${paint.green("█".repeat(ran))}`
    const rest = " ".repeat(Math.max(0, chart + 1 - begin - ran))
    return `  ${display(label).padEnd(names)}  ${bar}${rest}  ${status}, ${calls} calls, ${
      (ended ?? last) - (started ?? last)
    } ms\n`
  })
  return `${rows.join("")}  ${" ".repeat(names)}  ${paint.dim(`0 ms ${"─".repeat(chart - 14)} ${last - first} ms`)}\n`
}

/** Follows a turn: what the agent says, then each call with the gates that spoke. */
export const follow = (terminal: Terminal["Type"], paint: Paint): (event: TurnEvent) => Effect.Effect<void> => {
  const asked = new Map<string, unknown>()
  let said = ""
  const speak = Effect.suspend(() => {
    const text = said.trim()
    said = ""
    return text === "" ? Effect.void : terminal.out(speech("agent", text, paint))
  })
  return (event) => {
    if (event.type === "settled") return terminal.out(call(event.result, asked.get(event.result.callId), paint))
    if (event.type === "catalog_changed") {
      return terminal.out(`  the agent is told: the tools changed (${event.change.grade})\n`)
    }
    if (event.type !== "part") return Effect.void
    const { part } = event
    if (part.type === "text") said += part.delta
    if (part.type === "tool_call") asked.set(part.call.callId, part.call.arguments)
    return part.type === "finish" ? speak : Effect.void
  }
}

export const ledger = (entries: ReadonlyArray<LedgerEntry>, paint: Paint): string =>
  entries.map(({ callId, startedAt, state, toolName, updatedAt }) =>
    `  ${state.padEnd(8)} ${toolName.padEnd(6)} ${
      paint.dim(`${display(callId).padEnd(10)} ${updatedAt - startedAt} ms`)
    }\n`
  ).join("")
