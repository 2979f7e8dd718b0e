/**
 * One turn of an agent, from its message to its report.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { ToolResult } from "../contract/ToolResult.ts"
import type { TurnSession } from "../host/ToolHost.ts"
import type { EventJournal } from "../journal/EventJournal.ts"
import type { SpillStore } from "../spill/SpillStore.ts"
import * as Spill from "../spill/SpillStore.ts"
import { addUsage, type AgentRecord, type AgentReport, type AgentUsage, type Evidence, noUsage } from "./AgentReport.ts"
import type { Prompt } from "./AgentSystem.ts"
import type { Message, Model } from "./Model.ts"
import * as TurnLoop from "./TurnLoop.ts"

/** What a turn did, counted while it runs, so that a turn that is cut short has its numbers too. */
export interface Tally {
  usage: AgentUsage
  readonly evidence: Array<Evidence>
}

export const newTally = (): Tally => ({ usage: noUsage, evidence: [] })

/** How a turn ended, before it is made a report. */
export interface Ending {
  readonly status: AgentReport["status"]
  readonly text: string
  readonly error?: { readonly code: string; readonly error: string }
}

export const interrupted: Ending = {
  status: "interrupted",
  text: "",
  error: { code: "agent_interrupted", error: "It was interrupted before it was done." }
}

export const failed = (code: string, error: string): Ending => ({
  status: "failed",
  text: "",
  // What a model or its vendor says of itself has no bound.
  error: { code: clip(code, 100), error: clip(error, 2000) }
})

export interface Options {
  readonly session: TurnSession
  readonly system: string | undefined
  readonly messages: ReadonlyArray<Message>
  readonly prompt: Prompt
  readonly source: "user" | "agent"
  readonly limits: TurnLoop.Limits | undefined
  readonly compaction: TurnLoop.Compaction | undefined
  readonly notices: Effect.Effect<ReadonlyArray<string>>
  readonly mayRequest: Effect.Effect<string | undefined>
  readonly tally: Tally
  readonly onUsage: (usage: AgentUsage) => void
  readonly onCall: (result: ToolResult) => Effect.Effect<void>
}

/** Runs the turn; succeeds with how it ended and, when it ran to its end, with the conversation after it. */
export const run = (
  options: Options
): Effect.Effect<
  { readonly ending: Ending; readonly messages: ReadonlyArray<Message> | undefined },
  never,
  Model | EventJournal
> => {
  const { mayRequest, messages, notices, prompt, session, tally } = options
  const spend = (usage: Partial<AgentUsage>) => {
    const whole = { ...noUsage, ...usage }
    tally.usage = addUsage(tally.usage, whole)
    options.onUsage(whole)
  }
  const onEvent = (event: TurnLoop.TurnEvent): Effect.Effect<void> => {
    switch (event.type) {
      case "request":
        spend({ requests: 1 })
        return Effect.void
      case "part":
        if (event.part.type === "finish") spend(event.part.usage)
        return Effect.void
      case "settled":
        spend({ calls: 1 })
        if (tally.evidence.length < 32) tally.evidence.push(evidenceOf(event.result))
        return options.onCall(event.result)
      default:
        return Effect.void
    }
  }
  return TurnLoop.run({
    session,
    messages,
    prompt,
    source: options.source,
    onEvent,
    notices,
    compaction: options.compaction,
    onCompacted: session.forget,
    mayRequest,
    ...(options.system === undefined ? {} : { system: options.system }),
    ...(options.limits === undefined ? {} : { limits: options.limits })
  }).pipe(
    Effect.map((outcome) => ({ ending: endingOf(outcome), messages: outcome.messages })),
    // Only a failure of its own comes here: an interruption from outside goes on to whoever interrupted.
    Effect.catchAllCause((cause) => Effect.succeed({ ending: failure(cause), messages: undefined }))
  )
}

const endingOf = (outcome: TurnLoop.TurnOutcome): Ending => {
  const { stopped, text } = outcome
  if (stopped === "done") return { status: "completed", text }
  if (stopped === "budget") {
    return {
      status: "failed",
      text,
      error: { code: "delegation_limit", error: clip(outcome.reason ?? "A budget is used up.", 2000) }
    }
  }
  return { status: "failed", text, error: { code: stopped, error: whyStopped[stopped] } }
}

const whyStopped = {
  length: "The model's last response was cut off at its limit.",
  content_filter: "The model's last response was cut off by a filter.",
  step_limit: "The turn made as many model requests as it may.",
  call_limit: "The turn asked for more calls than it may.",
  storm: "The model asked for the same call again and again."
}

const failure = (cause: Cause.Cause<{ readonly code: string; readonly message: string }>): Ending => {
  const squashed = Cause.squash(cause)
  const known = cause._tag === "Fail" ? cause.error : undefined
  return known === undefined
    ? failed("agent_crashed", squashed instanceof Error ? squashed.message : "The turn failed unexpectedly.")
    : failed(known.code, known.message)
}

const evidenceOf = ({ code, content, effectiveArguments, toolName }: ToolResult): Evidence => {
  const target = Object.values(effectiveArguments ?? {}).find((value) => typeof value === "string") ?? ""
  const said = content.flatMap((part) => part.type === "text" ? [part.text] : []).join("\n")
  return { toolName, target: clip(String(target), 200), isError: code !== null, digest: clip(said, 500) }
}

const clip = (text: string, max: number): string => text.slice(0, max).toWellFormed()

/** What the report of a turn says. A summary over its bounds is kept whole in the spill store, under the parent's thread. */
export const report = Effect.fnUntraced(function*(options: {
  readonly record: AgentRecord
  readonly ending: Ending
  readonly tally: Tally
  readonly evidence: boolean
  readonly spill: SpillStore["Type"]
  readonly queuedMs: number
  readonly durationMs: number
}) {
  const { ending, evidence, record, tally } = options
  const bounded = yield* Spill.bounded(
    options.spill,
    record.parentThreadId ?? record.threadId,
    `${record.agentId}.txt`,
    ending.text
  )
  const made: AgentReport = {
    agentId: record.agentId,
    label: record.label,
    profile: record.profile,
    status: ending.status,
    summary: bounded.text,
    ...(bounded.spilled === undefined ? {} : { fullText: bounded.spilled }),
    ...(ending.error === undefined ? {} : { error: ending.error }),
    ...(evidence ? { evidence: tally.evidence } : {}),
    usage: tally.usage,
    queuedMs: options.queuedMs,
    durationMs: options.durationMs
  }
  return made
})
