/**
 * The conversation of a thread, rebuilt from its journal.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Event } from "../contract/Event.ts"
import {
  interruptedReason,
  interruptedResult,
  type Message,
  type MessageCall,
  type MessageResult,
  resultOf
} from "../contract/Message.ts"
import type { CallId } from "../contract/ToolCall.ts"
import { CallNotCompleted, type StateUnavailable } from "../contract/ToolFailure.ts"
import { text } from "../contract/ToolResult.ts"
import type { ThreadId, TurnId } from "../contract/Turn.ts"
import { EventJournal } from "../journal/EventJournal.ts"
import { notCompleted } from "./Dispatch.ts"

/** A response and what is known of its calls so far, whatever was said in between. */
interface Asked {
  readonly message: Message & { readonly role: "assistant" }
  readonly results: Map<CallId, MessageResult>
}

/** A call that has no outcome yet. */
interface Open {
  readonly turnId: TurnId
  readonly call: MessageCall
  readonly asked: Asked
  ran: boolean
}

interface Fold {
  said: Array<Message | Asked>
  readonly open: Map<string, Open>
  /** The calls of the newest turn: one that is run again under its old id has its outcome already. */
  newest: { readonly turnId: TurnId; readonly calls: Set<CallId> } | undefined
}

const keyOf = (turnId: TurnId, callId: CallId): string => `${turnId} ${callId}`

const accept = (fold: Fold, event: Event): void => {
  switch (event._tag) {
    case "user_message":
      fold.said.push({ role: "user", content: event.content ?? [text(event.text)] })
      break
    case "model_message": {
      const { calls = [], turnId } = event
      const asked: Asked = { message: { role: "assistant", text: event.text, calls }, results: new Map() }
      fold.said.push(asked)
      if (fold.newest?.turnId !== turnId) fold.newest = { turnId, calls: new Set() }
      for (const call of calls) {
        if (fold.newest.calls.has(call.callId)) continue
        fold.newest.calls.add(call.callId)
        fold.open.set(keyOf(turnId, call.callId), { turnId, call, asked, ran: false })
      }
      break
    }
    case "call_started": {
      const open = fold.open.get(keyOf(event.turnId, event.callId))
      if (open !== undefined) open.ran = true
      break
    }
    case "call_settled": {
      const { callId } = event.result
      const key = keyOf(event.turnId, callId)
      fold.open.get(key)?.asked.results.set(callId, resultOf(event.result))
      fold.open.delete(key)
      break
    }
    case "context_compacted":
      fold.said = [...event.messages]
  }
}

const messagesOf = ({ said }: Fold): ReadonlyArray<Message> =>
  said.flatMap((one): ReadonlyArray<Message> => {
    if (!("message" in one)) return [one]
    const { message, results } = one
    return results.size === 0 ? [message] : [message, { role: "tool", results: inOrder(message.calls, results) }]
  })

const inOrder = (
  calls: ReadonlyArray<MessageCall>,
  results: ReadonlyMap<CallId, MessageResult>
): ReadonlyArray<MessageResult> => calls.flatMap(({ callId }) => results.get(callId) ?? [])

const pageSize = 500

/** Holds the conversation and one page of the journal at a time. */
const read = Effect.fnUntraced(function*(journal: EventJournal["Type"], threadId: ThreadId, without?: TurnId) {
  const fold: Fold = { said: [], open: new Map(), newest: undefined }
  for (let after = 0;;) {
    const page = yield* journal.entries(threadId, { after, limit: pageSize })
    for (const { event } of page) if (event.turnId !== without) accept(fold, event)
    const last = page.at(-1)
    if (last === undefined || page.length < pageSize) return fold
    after = last.sequence
  }
})

/**
 * The conversation as the journal has it: what the outcome of the last turn held, or, when that turn was cut off, what the
 * model was told and said until then, with calls that may have no result (see `repair`). Calls that no model asked for are
 * left out, and so is the turn `without`. A journal that keeps its newest entries alone gives the newest part.
 *
 * Fails when the journal cannot be read. Changes nothing.
 */
export const load = (
  threadId: ThreadId,
  options: { readonly without?: TurnId } = {}
): Effect.Effect<ReadonlyArray<Message>, StateUnavailable, EventJournal> =>
  Effect.flatMap(EventJournal, (journal) => Effect.map(read(journal, threadId, options.without), messagesOf))

/**
 * The conversation to go on with after a crash or an abort: well formed, whatever was cut off. Every call of the thread that
 * has no outcome gets one in the journal, `tool_interrupted`, so that it holds exactly one for each; a second time there is
 * nothing to add. For a thread that has no running turn: the calls of a running one would be settled under its hands.
 *
 * Fails when the journal cannot be read; then nothing was added.
 */
export const resume: (
  threadId: ThreadId
) => Effect.Effect<ReadonlyArray<Message>, StateUnavailable, EventJournal> = Effect.fn("Conversation.resume")(
  function*(threadId: ThreadId) {
    const journal = yield* EventJournal
    const fold = yield* read(journal, threadId)
    const failure = new CallNotCompleted({ code: "tool_interrupted", reason: interruptedReason })
    for (const { call, ran, turnId } of Array.from(fold.open.values())) {
      const at = yield* Clock.currentTimeMillis
      const result = notCompleted({ threadId, turnId }, call, failure, ran, at)
      const event: Event = { _tag: "call_settled", threadId, turnId, at, result }
      yield* journal.append(event)
      accept(fold, event)
    }
    return repair(messagesOf(fold))
  }
)

/**
 * A conversation that every provider takes: each call has one result, right after the message that asked for it and in the
 * order of the calls. A call without one gets `interruptedResult`; results without a call before them, repeated results and
 * calls under an id that is taken are dropped, and so are responses of which nothing is left. What is well formed stays as it is.
 */
export const repair = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const taken = new Set<CallId>()
  const repeated = new Set<CallId>()
  const results = new Map<CallId, MessageResult>()
  const kept: Array<Message> = []
  for (const message of messages) {
    switch (message.role) {
      case "user":
        kept.push(message)
        break
      case "assistant": {
        const calls = new Map(message.calls.toReversed().map((call) => [call.callId, call]))
        // What comes for such an id from here on is not for the call that has it.
        for (const callId of calls.keys()) if (taken.has(callId)) repeated.add(callId)
        const fresh = message.calls.filter((call) => calls.get(call.callId) === call && !taken.has(call.callId))
        for (const { callId } of fresh) taken.add(callId)
        if (message.text !== "" || fresh.length > 0) kept.push({ ...message, calls: fresh })
        break
      }
      case "tool":
        for (const result of message.results) {
          const { callId } = result
          if (taken.has(callId) && !repeated.has(callId) && !results.has(callId)) results.set(callId, result)
        }
    }
  }
  return kept.flatMap((message): ReadonlyArray<Message> =>
    message.role === "assistant" && message.calls.length > 0
      ? [message, {
        role: "tool",
        results: message.calls.map((call) => results.get(call.callId) ?? interruptedResult(call))
      }]
      : [message]
  )
}
