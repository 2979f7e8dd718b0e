/**
 * Runs the calls of one model response through a turn session, in lanes, and leaves exactly one outcome for each.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Lane } from "../catalog/Catalog.ts"
import { CallId, type ToolCall } from "../contract/ToolCall.ts"
import { CallNotCompleted } from "../contract/ToolFailure.ts"
import { text, type ToolResult } from "../contract/ToolResult.ts"
import type { Turn } from "../contract/Turn.ts"
import type { TurnSession } from "../host/ToolHost.ts"
import type { EventJournal } from "../journal/EventJournal.ts"
import { requestOf, type StormBreaker } from "./StormBreaker.ts"

/** One call that the model issued, and what has become of it so far. */
export interface Ticket {
  /** Under an id that is unique in the turn. */
  readonly call: ToolCall
  /** See `StormBreaker.requestOf`. */
  readonly request: string
  /** Why it is not to be run. */
  withheld: CallNotCompleted | undefined
  started: boolean
  result: ToolResult | undefined
}

/** The call ids of a turn, each with the number that a repetition of it got last. */
export type Issued = Map<string, number>

/**
 * A ticket for the next call of a response. `response` knows the calls of the response so far, `issued` the ids of the turn;
 * both get this one.
 *
 * A repeated id becomes `<id>_2`, `<id>_3` and so on, in the order of issue, since the ledger and providers know a call by
 * its id alone. A repeat within the response that asks for the same tool with equal arguments is the same call delivered
 * twice: it is withheld.
 */
export const issue = (call: ToolCall, response: Set<string>, issued: Issued): Ticket => {
  const request = requestOf(call)
  const key = `${call.callId} ${request}`
  const echo = response.has(key)
  response.add(key)
  const callId = unused(call.callId, issued)
  issued.set(callId, 1)
  return {
    call: callId === call.callId ? call : { ...call, callId },
    request,
    withheld: echo
      ? notStarted(
        `The response held this call twice under the id ${call.callId}; it ran once. To run it again, ask again.`
      )
      : undefined,
    started: false,
    result: undefined
  }
}

const unused = (id: CallId, issued: Issued): CallId => {
  let candidate = id
  let count = issued.get(id) ?? 0
  while (issued.has(candidate)) candidate = CallId.make(`${id.slice(0, 190)}_${++count}`)
  if (count > 0) issued.set(id, count)
  return candidate
}

const notStarted = (reason: string): CallNotCompleted => new CallNotCompleted({ code: "tool_not_started", reason })

export interface Options {
  readonly session: TurnSession
  readonly journal: EventJournal["Type"]
  /** Holds back what goes round in circles; default: nothing does. */
  readonly storms?: StormBreaker | undefined
  /** Told of each outcome, in the order of the calls. */
  readonly onSettled?: ((result: ToolResult) => Effect.Effect<void>) | undefined
}

/** How many calls of a lane run together. How many agents really run at once is for the delegation semaphore to say. */
const laneWidth = { serial: 1, read_only: 3, delegation: Number.POSITIVE_INFINITY } as const

/**
 * Runs every ticket and returns the outcomes in the order of the calls.
 *
 * Calls run one after the other. A row of calls in the same lane of the catalog runs together: up to three of `read_only`,
 * none of which claims a kind above `tool_call`, and all of `delegation`. Every call is serial when the turn's approval
 * policy, as it is then, is `always`, `untrusted` or `never` (decisions, Channel, "read-only lane"; seed 4.5).
 *
 * Interruption stops the running calls and starts no other; `abandon` then settles what is left.
 */
export const run = Effect.fnUntraced(function*(options: Options, tickets: ReadonlyArray<Ticket>) {
  const { onSettled, session, storms } = options
  const results: Array<ToolResult> = []
  for (let position = 0; position < tickets.length;) {
    const batch = nextBatch(session, yield* session.turn, tickets, position)
    for (const ticket of batch) {
      const { call, request } = ticket
      if (ticket.withheld !== undefined) continue
      const reason = storms?.refusal(call, request, session.catalog.interactive(call.toolName))
      if (reason !== undefined) ticket.withheld = new CallNotCompleted({ code: "tool_storm", reason })
    }
    yield* Effect.forEach(batch, (ticket) => perform(options, ticket), { concurrency: "unbounded", discard: true })
    for (const { request, result, started } of batch) {
      if (result === undefined) continue
      if (started) storms?.observe(request, result)
      results.push(result)
      if (onSettled !== undefined) yield* onSettled(result)
    }
    position += batch.length
  }
  return results
})

const nextBatch = (
  { catalog }: TurnSession,
  { approvalPolicy }: Turn,
  tickets: ReadonlyArray<Ticket>,
  position: number
): ReadonlyArray<Ticket> => {
  const asks = approvalPolicy === "always" || approvalPolicy === "untrusted" || approvalPolicy === "never"
  const laneOf = ({ call: { claimedKind, toolName } }: Ticket): Lane => {
    const lane = asks ? "serial" : catalog.lane(toolName)
    return lane === "read_only" && claimedKind !== undefined && claimedKind !== "tool_call" ? "serial" : lane
  }
  const first = tickets[position]
  if (first === undefined) return []
  const lane = laneOf(first)
  let end = position + 1
  for (; end < tickets.length && end - position < laneWidth[lane]; end++) {
    const next = tickets[end]
    if (next === undefined || laneOf(next) !== lane) break
  }
  return tickets.slice(position, end)
}

const perform = Effect.fnUntraced(function*({ journal, session }: Options, ticket: Ticket) {
  if (ticket.withheld !== undefined) {
    yield* settle(session, journal, ticket, ticket.withheld, false)
    return
  }
  ticket.started = true
  ticket.result = yield* session.execute(ticket.call)
})

/**
 * Records, in the order of the calls, an outcome for every ticket that has none: `tool_interrupted` when it was handed to
 * the channel, `tool_not_started` or why it was withheld otherwise. What the channel has recorded itself stands.
 */
export const abandon = Effect.fnUntraced(function*(
  { journal, session }: Pick<Options, "journal" | "session">,
  tickets: ReadonlyArray<Ticket>,
  reason: string
) {
  const open = tickets.filter((ticket) => ticket.result === undefined)
  // The channel answers to nobody when it is interrupted: only the journal knows how far it came.
  const { ran, settled } = open.some((ticket) => ticket.started)
    ? yield* known(journal, yield* session.turn)
    : { ran: new Set<string>(), settled: new Set<string>() }
  for (const ticket of open) {
    const { callId } = ticket.call
    if (settled.has(callId)) continue
    const failure = !ticket.started
      ? ticket.withheld ?? notStarted(reason)
      : ran.has(callId)
      ? new CallNotCompleted({
        code: "tool_interrupted",
        reason: "Interrupted while it ran: it may have taken effect in part."
      })
      : new CallNotCompleted({ code: "tool_interrupted", reason: "Interrupted before its tool ran." })
    yield* settle(session, journal, ticket, failure, ran.has(callId))
  }
})

/** Records the outcome of a call that the channel did not answer, and puts it on the ticket. */
const settle = Effect.fnUntraced(function*(
  session: TurnSession,
  journal: EventJournal["Type"],
  ticket: Ticket,
  failure: CallNotCompleted,
  executed: boolean
) {
  const turn = yield* session.turn
  const at = yield* Clock.currentTimeMillis
  const result = notCompleted(turn, ticket.call, failure, executed, at)
  ticket.result = result
  yield* journal.append({ _tag: "call_settled", threadId: turn.threadId, turnId: turn.turnId, at, result })
}, Effect.uninterruptible)

/** The outcome of a call that the channel did not answer. */
export const notCompleted = (
  { threadId, turnId }: Pick<Turn, "threadId" | "turnId">,
  { callId, claimedKind, toolName }: Pick<ToolCall, "callId" | "claimedKind" | "toolName">,
  { code, message }: CallNotCompleted,
  executed: boolean,
  at: number
): ToolResult => ({
  id: `item_${threadId}_${turnId}_${callId}`,
  callId,
  toolName: toolName.slice(0, 200).toWellFormed(),
  toolKind: claimedKind ?? "tool_call",
  isError: true,
  code,
  output: { code, error: message },
  content: [text(message)],
  executed,
  replayed: false,
  approval: null,
  effectiveArguments: null,
  startedAt: at,
  finishedAt: at
})

const pageSize = 1000

/** The calls of the turn that the journal has seen. A journal that cannot be read has seen none. */
const known = Effect.fnUntraced(function*(journal: EventJournal["Type"], { threadId, turnId }: Turn) {
  const ran = new Set<string>()
  const settled = new Set<string>()
  for (let after = 0;;) {
    const page = yield* Effect.orElseSucceed(journal.entries(threadId, { after, limit: pageSize }), () => [])
    for (const { event } of page) {
      if (event.turnId !== turnId) continue
      if (event._tag === "call_started") ran.add(event.callId)
      if (event._tag === "call_settled") settled.add(event.result.callId)
    }
    const last = page.at(-1)
    if (last === undefined || page.length < pageSize) return { ran, settled }
    after = last.sequence
  }
})
