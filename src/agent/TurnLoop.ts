/**
 * One turn of an agent: ask the model, run what it asks for, tell it the results, until it asks for nothing more.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Digest } from "../contract/Digest.ts"
import type { CatalogChanged, Event, MessageSource } from "../contract/Event.ts"
import { callOf, resultOf } from "../contract/Message.ts"
import type { CallId } from "../contract/ToolCall.ts"
import { CallNotCompleted } from "../contract/ToolFailure.ts"
import { contentOf, type ContentPart, text, type ToolResult } from "../contract/ToolResult.ts"
import type { Turn } from "../contract/Turn.ts"
import type { TurnSession } from "../host/ToolHost.ts"
import { driftNote, fromHost } from "../internal/hostNote.ts"
import { EventJournal } from "../journal/EventJournal.ts"
import type { ToolSpec } from "../tool/Tool.ts"
import * as Conversation from "./Conversation.ts"
import * as Dispatch from "./Dispatch.ts"
import { finished, type FinishReason, type Message, Model, ModelError, type ModelPart, type Usage } from "./Model.ts"
import * as StormBreaker from "./StormBreaker.ts"
import * as TurnHooks from "./TurnHooks.ts"

export interface Limits {
  /** Model requests of a turn; default 50. */
  readonly steps?: number
  /** Calls of one response; default 100. */
  readonly callsPerResponse?: number
  /** Calls of the turn; default 10,000. */
  readonly calls?: number
  /** Characters of one response: text, reasoning and calls; default 4 Mi. */
  readonly responseCharacters?: number
}

/**
 * What happens in a turn, as it happens. A `part` is as the model gave it, with its own call id; `settled` has the id that is
 * unique in the turn (see `Dispatch.issue`). A call that an interruption or an error settled is told to the journal alone.
 */
export type TurnEvent =
  | { readonly type: "request"; readonly step: number }
  | { readonly type: "part"; readonly step: number; readonly part: ModelPart }
  | { readonly type: "settled"; readonly step: number; readonly result: ToolResult }
  | { readonly type: "catalog_changed"; readonly step: number; readonly change: typeof CatalogChanged.Type }

/** A new message from the user, an earlier conversation to go on with, or both, in this order: `messages`, `prompt`. */
export type Input =
  | { readonly prompt: string | ReadonlyArray<ContentPart>; readonly messages?: ReadonlyArray<Message> | undefined }
  | { readonly prompt?: undefined; readonly messages: ReadonlyArray<Message> }

/** How a conversation is made shorter. It is looked at before each request. */
export interface Compaction {
  readonly due: (state: {
    readonly messages: ReadonlyArray<Message>
    /** Of the turn's last response; `undefined` before the first. */
    readonly usage: Usage | undefined
  }) => boolean
  /** The conversation to go on with; it is repaired (see `Conversation.repair`) and put in the journal. */
  readonly compact: (messages: ReadonlyArray<Message>) => Effect.Effect<ReadonlyArray<Message>>
}

export type Options = Input & {
  readonly session: TurnSession
  /** Sent as it is; nothing is ever added to it. */
  readonly system?: string | undefined
  /** Who wrote the prompt; default the user. */
  readonly source?: "user" | "agent" | undefined
  readonly limits?: Limits | undefined
  /** Awaited before the turn goes on. */
  readonly onEvent?: ((event: TurnEvent) => Effect.Effect<void>) | undefined
  readonly compaction?: Compaction | undefined
  /** After a compaction: what the thread has read is not before the model any more. */
  readonly onCompacted?: Effect.Effect<void> | undefined
  /** Asked before each request; each notice becomes a message marked as from the host. What it quotes has to be escaped. */
  readonly notices?: Effect.Effect<ReadonlyArray<string>> | undefined
  /** Asked before each request; a reason ends the turn as `budget`. */
  readonly mayRequest?: Effect.Effect<string | undefined> | undefined
}

/**
 * Why a turn ended: the model asked for nothing more (`done`), its last response was cut (`length`, `content_filter`), a
 * limit was met, it went round in circles and would not stop (`storm`), or `mayRequest` said no (`budget`).
 */
export type Stopped = "done" | "length" | "content_filter" | "step_limit" | "call_limit" | "storm" | "budget"

export interface TurnOutcome {
  /** Text of the last response. */
  readonly text: string
  /** Model requests made. */
  readonly steps: number
  /** Sum over the responses. */
  readonly usage: Usage
  /** One outcome for each call id, in the order in which the model asked. */
  readonly calls: ReadonlyArray<ToolResult>
  /** The whole conversation, for the next turn. */
  readonly messages: ReadonlyArray<Message>
  readonly stopped: Stopped
  /** What `mayRequest` said. */
  readonly reason?: string
}

/** A hook denied the prompt; nothing was asked of a model. */
export class TurnDenied extends Schema.TaggedError<TurnDenied>("portcullis/TurnDenied")("TurnDenied", {
  code: Schema.Literal("turn_denied"),
  reason: Schema.String
}) {
  override get message() {
    return `A hook denied the prompt: ${this.reason}`
  }
}

export type TurnError = ModelError | TurnDenied

/** What a turn has come to. */
interface Progress {
  messages: Array<Message>
  text: string
  steps: number
  readonly calls: Array<ToolResult>
  readonly usage: { inputTokens: number; outputTokens: number }
  /** Of the last response. */
  lastUsage: Usage | undefined
}

/** One response while it arrives. */
interface Response {
  text: string
  characters: number
  readonly requests: Set<string>
  readonly tickets: Array<Dispatch.Ticket>
  finish: { readonly reason: FinishReason; readonly usage: Usage } | undefined
}

/**
 * Runs a turn to its end.
 *
 * Each model request carries the session's catalog and the conversation so far. A response that was cut has its calls
 * marked `truncated`, so that the channel refuses them (field case N01). A response with more calls than `limits` allows is
 * cut there, none of its calls runs and the turn stops. A response whose calls were all held back as `tool_storm` is
 * followed by one last request without tools. A change of the live tools, which the session records, is told to the model as
 * a message, once. All that the model is told and says is in the journal: `Conversation.load` gives back `messages`.
 *
 * Fails with the model's error; a stream without `finish`, or beyond `limits`, is `model_output_malformed`. Calls that had
 * arrived by then are settled as `tool_not_started`. Fails with `turn_denied` when a hook denies the prompt.
 *
 * Interrupting it interrupts the request or the running calls. Before the interruption completes, each call id that the
 * model issued has one outcome in the journal: its own, `tool_interrupted` or `tool_not_started` (field case N04).
 */
export const run: (options: Options) => Effect.Effect<TurnOutcome, TurnError, Model | EventJournal> = Effect.fn(
  "TurnLoop.run"
)(function*(options: Options) {
  const { session } = options
  const journal = yield* EventJournal
  const hooks = yield* TurnHooks.TurnHooks
  const record: Recorder = (event) =>
    Effect.flatMap(
      Effect.all([session.turn, Clock.currentTimeMillis]),
      ([{ threadId, turnId }, at]) => journal.append(event({ threadId, turnId, at }))
    )
  const warn = (messages: ReadonlyArray<string>): Effect.Effect<void> =>
    Effect.forEach(messages, (message) => record((at) => ({ _tag: "warning", ...at, source: "hook", message })), {
      discard: true
    })
  const tell: Teller = (told, limitMs = 10_000) =>
    Effect.flatMap(
      session.turn,
      (turn) => Effect.flatMap(TurnHooks.tell(hooks, (hook) => told(hook, turn), limitMs), warn)
    )

  const prompt = partsOf(options.prompt)
  const words = plainText(prompt).toWellFormed()
  const submission = yield* TurnHooks.submit(options.prompt === undefined ? [] : hooks, words, yield* session.turn)
  yield* warn(submission.warnings)
  if (submission.denied !== undefined) {
    const { hook, reason } = submission.denied
    yield* warn([`${hook} denied the prompt: ${reason}`])
    return yield* new TurnDenied({ code: "turn_denied", reason })
  }

  const progress: Progress = {
    messages: [...options.messages ?? []],
    text: "",
    steps: 0,
    calls: [],
    usage: { inputTokens: 0, outputTokens: 0 },
    lastUsage: undefined
  }
  const say = (content: ReadonlyArray<ContentPart>, words: string, source: MessageSource): Effect.Effect<void> => {
    progress.messages.push({ role: "user", content })
    const [first] = content
    const whole = content.length === 1 && first?.type === "text" && first.text === words
    return record((at) => ({
      _tag: "user_message",
      ...at,
      text: words,
      ...whole ? {} : { content },
      ...source === "user" ? {} : { source }
    }))
  }
  const turn = Effect.gen(function*() {
    yield* tell((hook, turn) => hook.turnStart?.(turn))
    if (options.prompt !== undefined) {
      const added = submission.contexts.map((context) => text(fromHost(context)))
      yield* say([...prompt, ...added], words, options.source ?? "user")
    }
    return yield* loop({ options, journal, progress, record, tell, say })
  })
  return yield* Effect.onExit(turn, (exit) => {
    const told = hooks.filter(({ turnEnd }) => turnEnd !== undefined).length
    // Whoever interrupted it waits for this: all hooks together have a second then.
    const limitMs = Exit.isInterrupted(exit) ? Math.floor(1000 / Math.max(1, told)) : undefined
    return tell((hook, turn) => hook.turnEnd?.(turn, endingOf(exit, progress)), limitMs)
  })
})

type Stamp = Pick<Turn, "threadId" | "turnId"> & { readonly at: number }
type Recorder = (event: (at: Stamp) => Event) => Effect.Effect<void>
type Teller = (
  told: (hook: TurnHooks.TurnHook, turn: Turn) => Effect.Effect<void, unknown> | undefined,
  /** Of each hook. */
  limitMs?: number
) => Effect.Effect<void>

interface Loop {
  readonly options: Options
  readonly journal: EventJournal["Type"]
  readonly progress: Progress
  readonly record: Recorder
  readonly tell: Teller
  readonly say: (content: ReadonlyArray<ContentPart>, words: string, source: MessageSource) => Effect.Effect<void>
}

const loop = Effect.fnUntraced(function*({ journal, options, progress, record, say, tell }: Loop) {
  const { session } = options
  const model = yield* Model
  const clock = yield* Effect.clock
  const storms = StormBreaker.make(yield* Digest, () => clock.unsafeCurrentTimeMillis())
  const emit = options.onEvent ?? (() => Effect.void)
  const limits = limitsOf(options.limits)
  const issued: Dispatch.Issued = new Map(callIds(progress.messages).map((callId) => [callId, 1]))

  const note = (words: string): Effect.Effect<void> => say([text(words)], words, "host")

  const compact = Effect.fnUntraced(function*(compaction: Compaction) {
    const messages = [...progress.messages]
    if (!compaction.due({ messages, usage: progress.lastUsage })) return
    yield* tell((hook, turn) => hook.preCompact?.(turn, messages.length))
    const kept = Conversation.repair(yield* compaction.compact(messages))
    progress.messages = [...kept]
    // Not one without the other: a thread that forgot what it read may not pass for one that remembers.
    yield* Effect.uninterruptible(Effect.zipRight(
      record((at) => ({ _tag: "context_compacted", ...at, messages: kept })),
      options.onCompacted ?? Effect.void
    ))
  })

  const tellNews = Effect.fnUntraced(function*(step: number) {
    const change = yield* session.drift
    if (change !== undefined) {
      yield* note(driftNote(change))
      yield* emit({ type: "catalog_changed", step, change })
    }
    for (const notice of yield* options.notices ?? Effect.succeed([])) yield* note(fromHost(notice.toWellFormed()))
  })

  const receive = (response: Response, part: ModelPart): Effect.Effect<boolean, ModelError> => {
    switch (part.type) {
      case "text":
        response.text += part.delta
        response.characters += part.delta.length
        break
      case "reasoning":
        response.characters += part.delta.length
        break
      case "tool_call": {
        const { arguments: args } = part.call
        const ticket = Dispatch.issue(part.call, response.requests, issued)
        response.characters += Math.max(ticket.request.length, typeof args === "string" ? args.length : 0)
        response.tickets.push(ticket)
        break
      }
      case "finish":
        response.finish = part
        progress.lastUsage = part.usage
        progress.usage.inputTokens += part.usage.inputTokens
        progress.usage.outputTokens += part.usage.outputTokens
    }
    return response.characters > limits.responseCharacters
      ? Effect.fail(
        new ModelError({
          code: "model_output_malformed",
          reason: `The model's response exceeds ${limits.responseCharacters} characters.`,
          retryAfterMs: null
        })
      )
      : Effect.succeed(response.tickets.length <= callsLeft())
  }

  const callsLeft = (): number => Math.min(limits.callsPerResponse, limits.calls - progress.calls.length)

  const ask = (step: number, response: Response, tools: ReadonlyArray<ToolSpec>): Effect.Effect<void, ModelError> =>
    finished(model.respond({ system: options.system, messages: [...progress.messages], tools })).pipe(
      Stream.runForEachWhile((part) => {
        const received = receive(response, part)
        const told = emit({ type: "part", step, part })
        // What a response cost is told before anything else can end the turn.
        return part.type === "finish" ? Effect.zipRight(told, received) : Effect.zipLeft(received, told)
      }),
      Effect.ensuring(Effect.suspend(() => {
        const { calls, text } = saidIn(response)
        if (text === "" && calls.length === 0) return Effect.void
        return record((at) => ({ _tag: "model_message", ...at, text, ...calls.length === 0 ? {} : { calls } }))
      }))
    )

  /** Without tools every call is withheld. */
  const takeStep = Effect.fnUntraced(function*(step: number, response: Response, withTools: boolean) {
    const { tickets } = response
    yield* ask(step, response, withTools ? session.catalog.tools : [])
    if (response.finish === undefined) {
      const reason = `The response held more calls than the ${callsLeft()} that were left; none was run.`
      yield* Dispatch.abandon({ session, journal }, tickets, reason)
    } else {
      for (const [index, ticket] of tickets.entries()) {
        if (!withTools) ticket.withheld = toolsOff
        if (cut(response.finish.reason)) tickets[index] = { ...ticket, call: { ...ticket.call, truncated: true } }
      }
      const onSettled = (result: ToolResult) => emit({ type: "settled", step, result })
      yield* Dispatch.run({ session, journal, storms, onSettled }, tickets)
    }
    return tickets.flatMap(({ result }) => result === undefined ? [] : [result])
  })

  const outcome = (stopped: Stopped, reason?: string): TurnOutcome => {
    const { calls, messages, steps, text, usage } = progress
    return { text, steps, usage, calls, messages, stopped, ...reason === undefined ? {} : { reason } }
  }

  let withTools = true
  for (let step = 1;; step++) {
    const refused = yield* options.mayRequest ?? Effect.succeed(undefined)
    if (refused !== undefined) return outcome("budget", refused)
    if (options.compaction !== undefined) yield* compact(options.compaction)
    yield* tellNews(step)
    yield* emit({ type: "request", step })
    progress.steps = step

    const response: Response = { text: "", characters: 0, requests: new Set(), tickets: [], finish: undefined }
    const results: ReadonlyArray<ToolResult> = yield* Effect.onError(
      takeStep(step, response, withTools),
      () => Dispatch.abandon({ session, journal }, response.tickets, "The turn ended before this call was started.")
    )
    const said = saidIn(response)
    if (said.text !== "" || said.calls.length > 0) progress.messages.push(said)
    if (results.length > 0) progress.messages.push({ role: "tool", results: results.map(resultOf) })
    for (const result of results) progress.calls.push(result)
    progress.text = said.text

    const stopped = ending(response, withTools, step >= limits.steps)
    if (stopped !== undefined) return outcome(stopped)
    withTools = !suppressed(results)
  }
})

const limitsOf = (limits: Limits = {}): Required<Limits> => ({
  steps: Math.max(1, limits.steps ?? 50),
  callsPerResponse: Math.max(1, limits.callsPerResponse ?? 100),
  calls: Math.max(1, limits.calls ?? 10_000),
  responseCharacters: limits.responseCharacters ?? 4 * 1024 * 1024
})

const saidIn = ({ text, tickets }: Response) => ({
  role: "assistant" as const,
  text: text.toWellFormed(),
  calls: tickets.map(({ call }) => callOf(call))
})

const ending = ({ finish, tickets }: Response, withTools: boolean, last: boolean): Stopped | undefined => {
  if (finish === undefined) return "call_limit"
  if (tickets.length > 0) return withTools ? last ? "step_limit" : undefined : "storm"
  return finish.reason === "length" || finish.reason === "content_filter" ? finish.reason : "done"
}

/** Whether nothing of a response ran, since it went round in circles. */
const suppressed = (results: ReadonlyArray<ToolResult>): boolean =>
  results.some(({ code }) => code === "tool_storm") &&
  results.every(({ code }) => code === "tool_storm" || code === "tool_not_started")

const toolsOff = new CallNotCompleted({
  code: "tool_storm",
  reason: "Every call before this one was a repetition, and there were no tools any more. The turn is over."
})

const endingOf = (exit: Exit.Exit<TurnOutcome, ModelError>, progress: Progress): TurnHooks.TurnEnding => {
  const { calls, steps, usage } = progress
  const counts = { steps, usage: { ...usage }, calls: calls.length }
  if (Exit.isSuccess(exit)) return { status: "completed", reason: exit.value.stopped, ...counts }
  const failure = Option.getOrUndefined(Cause.failureOption(exit.cause))
  return failure === undefined && Cause.isInterrupted(exit.cause)
    ? { status: "interrupted", reason: null, ...counts }
    : { status: "failed", reason: failure?.code ?? "defect", ...counts }
}

const cut = (reason: FinishReason): boolean => reason === "length" || reason === "content_filter"

const callIds = (messages: ReadonlyArray<Message>): ReadonlyArray<CallId> =>
  messages.flatMap((message) => message.role === "assistant" ? message.calls.map(({ callId }) => callId) : [])

const partsOf = (prompt: string | ReadonlyArray<ContentPart> = []): ReadonlyArray<ContentPart> =>
  typeof prompt === "string" ? [text(prompt.toWellFormed())] : contentOf(prompt) ?? prompt

const plainText = (content: ReadonlyArray<ContentPart>): string =>
  content.flatMap((part) => part.type === "text" ? [part.text] : []).join("\n")
