/**
 * Runs the calls of one model response through a turn session, in lanes, and leaves exactly one outcome for each.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { canonical, snapshot } from "../contract/Json.ts"
import { CallId, type ToolCall } from "../contract/ToolCall.ts"
import { CallNotCompleted } from "../contract/ToolFailure.ts"
import { text, type ToolResult } from "../contract/ToolResult.ts"
import type { Turn } from "../contract/Turn.ts"
import type { TurnSession } from "../host/ToolHost.ts"
import type { EventJournal } from "../journal/EventJournal.ts"

/** One call that the model issued, and what has become of it so far. */
export interface Ticket {
  readonly call: ToolCall
  /** The id as the model gave it; `call.callId` is unique in the turn. */
  readonly issuedAs: CallId
  /** Why it is not to be run. */
  readonly withheld: string | undefined
  started: boolean
  result: ToolResult | undefined
}

/**
 * A ticket for the next call of a response. `used` are the call ids of the turn, and gets this one.
 *
 * A repeated id becomes `<id>_2`, `<id>_3` and so on, in the order of issue, since the ledger and providers know a call by
 * its id alone. A repeat within the response that asks for the same tool with equal arguments is the same call delivered
 * twice: it is withheld.
 */
export const issue = (call: ToolCall, tickets: ReadonlyArray<Ticket>, used: Set<string>): Ticket => {
  const echo = tickets.some((ticket) => ticket.issuedAs === call.callId && sameRequest(ticket.call, call))
  const callId = unused(call.callId, used)
  used.add(callId)
  return {
    call: callId === call.callId ? call : { ...call, callId },
    issuedAs: call.callId,
    withheld: echo
      ? `The response held this call twice under the id ${call.callId}; it ran once. To run it again, ask again.`
      : undefined,
    started: false,
    result: undefined
  }
}

const unused = (id: CallId, used: ReadonlySet<string>): CallId => {
  let candidate = id
  for (let count = 2; used.has(candidate); count++) candidate = CallId.make(`${id.slice(0, 190)}_${count}`)
  return candidate
}

const sameRequest = (left: ToolCall, right: ToolCall): boolean => {
  if (left.toolName !== right.toolName) return false
  const [one, other] = [snapshot(left.arguments), snapshot(right.arguments)]
  return one.ok && other.ok && canonical(one.value) === canonical(other.value)
}

export interface Options {
  readonly session: TurnSession
  readonly journal: EventJournal["Type"]
  /** Told of each outcome, in the order of the calls. */
  readonly onSettled?: ((result: ToolResult) => Effect.Effect<void>) | undefined
}

const laneWidth = 3

/**
 * Runs every ticket and returns the outcomes in the order of the calls.
 *
 * Calls run one after the other. Up to three in a row run together when the catalog has them all as parallel-safe, none
 * claims a kind above `tool_call`, and the turn's approval policy, as it is then, is not `always`, `untrusted` or `never`
 * (decisions, Channel, "read-only lane").
 *
 * Interruption stops the running calls and starts no other; `abandon` then settles what is left.
 */
export const run = Effect.fnUntraced(function*(options: Options, tickets: ReadonlyArray<Ticket>) {
  const results: Array<ToolResult> = []
  for (let position = 0; position < tickets.length;) {
    const turn = yield* options.session.turn
    const batch = tickets.slice(position, position + laneLength(options, turn, tickets, position))
    yield* Effect.forEach(batch, (ticket) => perform(options, ticket), { concurrency: batch.length, discard: true })
    for (const { result } of batch) {
      if (result === undefined) continue
      results.push(result)
      if (options.onSettled !== undefined) yield* options.onSettled(result)
    }
    position += batch.length
  }
  return results
})

const laneLength = ({ session }: Options, turn: Turn, tickets: ReadonlyArray<Ticket>, position: number): number => {
  if (turn.approvalPolicy === "always" || turn.approvalPolicy === "untrusted" || turn.approvalPolicy === "never") {
    return 1
  }
  const joins = ({ call }: Ticket): boolean =>
    session.catalog.parallelSafe(call.toolName) && (call.claimedKind === undefined || call.claimedKind === "tool_call")
  const lane = tickets.slice(position, position + laneWidth)
  const end = lane.findIndex((ticket) => !joins(ticket))
  return end === -1 ? lane.length : Math.max(1, end)
}

const perform = Effect.fnUntraced(function*({ journal, session }: Options, ticket: Ticket) {
  if (ticket.withheld !== undefined) {
    const withheld = new CallNotCompleted({ code: "tool_not_started", reason: ticket.withheld })
    yield* settle(session, journal, ticket, withheld, false)
    return
  }
  ticket.started = true
  ticket.result = yield* session.execute(ticket.call)
})

/**
 * Records, in the order of the calls, an outcome for every ticket that has none: `tool_interrupted` when it was handed to
 * the channel, `tool_not_started` otherwise. What the channel has recorded itself stands.
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
      ? new CallNotCompleted({ code: "tool_not_started", reason: ticket.withheld ?? reason })
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
  const { threadId, turnId } = yield* session.turn
  const at = yield* Clock.currentTimeMillis
  const { call } = ticket
  const result: ToolResult = {
    id: `item_${threadId}_${turnId}_${call.callId}`,
    callId: call.callId,
    toolName: call.toolName.slice(0, 200).toWellFormed(),
    toolKind: call.claimedKind ?? "tool_call",
    isError: true,
    code: failure.code,
    output: { code: failure.code, error: failure.message },
    content: [text(failure.message)],
    executed,
    replayed: false,
    approval: null,
    effectiveArguments: null,
    startedAt: at,
    finishedAt: at
  }
  ticket.result = result
  yield* journal.append({ _tag: "call_settled", threadId, turnId, at, result })
}, Effect.uninterruptible)

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
