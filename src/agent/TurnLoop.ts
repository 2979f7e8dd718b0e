/**
 * One turn of an agent: ask the model, run what it asks for, tell it the results, until it asks for nothing more.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { CatalogChanged, Event } from "../contract/Event.ts"
import { type ContentPart, text, type ToolResult } from "../contract/ToolResult.ts"
import type { Turn } from "../contract/Turn.ts"
import type { TurnSession } from "../host/ToolHost.ts"
import { EventJournal } from "../journal/EventJournal.ts"
import * as Dispatch from "./Dispatch.ts"
import { finished, type FinishReason, type Message, Model, ModelError, type ModelPart, type Usage } from "./Model.ts"

export interface Limits {
  /** Model requests of a turn; default 50. */
  readonly steps?: number
  /** Calls of one response; default 100. */
  readonly callsPerResponse?: number
  /** Characters of one response: text, reasoning and arguments that come as text; default 4 Mi. */
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

export type Options = Input & {
  readonly session: TurnSession
  /** Sent as it is; nothing is ever added to it. */
  readonly system?: string | undefined
  readonly limits?: Limits | undefined
  /** Awaited before the turn goes on. */
  readonly onEvent?: ((event: TurnEvent) => Effect.Effect<void>) | undefined
}

/**
 * Why a turn ended: the model asked for nothing more (`done`), its last response was cut (`length`, `content_filter`), or a
 * limit was met.
 */
export type Stopped = "done" | "length" | "content_filter" | "step_limit" | "call_limit"

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
}

/** One response while it arrives. */
interface Response {
  text: string
  characters: number
  readonly tickets: Array<Dispatch.Ticket>
  finish: { readonly reason: FinishReason; readonly usage: Usage } | undefined
}

/**
 * Runs a turn to its end.
 *
 * Each model request carries the session's catalog and the conversation so far. A response that was cut has its calls
 * marked `truncated`, so that the channel refuses them (field case N01). A response with more calls than `limits` allows is
 * cut there, none of its calls runs and the turn stops. A change of the live tools, which the session records, is told to
 * the model as a message, once.
 *
 * Fails with the model's error; a stream without `finish`, or beyond `limits`, is `model_output_malformed`. Calls that had
 * arrived by then are settled as `tool_not_started`.
 *
 * Interrupting it interrupts the request or the running calls. Before the interruption completes, each call id that the
 * model issued has one outcome in the journal: its own, `tool_interrupted` or `tool_not_started` (field case N04).
 */
export const run: (options: Options) => Effect.Effect<TurnOutcome, ModelError, Model | EventJournal> = Effect.fn(
  "TurnLoop.run"
)(function*(options: Options) {
  const { session } = options
  const model = yield* Model
  const journal = yield* EventJournal
  const emit = options.onEvent ?? (() => Effect.void)
  const steps = Math.max(1, options.limits?.steps ?? 50)
  const maxCalls = Math.max(1, options.limits?.callsPerResponse ?? 100)
  const maxCharacters = options.limits?.responseCharacters ?? 4 * 1024 * 1024

  const messages: Array<Message> = [...options.messages ?? []]
  const used = callIds(messages)
  const calls: Array<ToolResult> = []
  const usage = { inputTokens: 0, outputTokens: 0 }

  const record = (event: (at: Stamp) => Event): Effect.Effect<void> =>
    Effect.flatMap(
      Effect.all([session.turn, Clock.currentTimeMillis]),
      ([{ threadId, turnId }, at]) => journal.append(event({ threadId, turnId, at }))
    )

  const receive = (response: Response, part: ModelPart): Effect.Effect<boolean, ModelError> => {
    switch (part.type) {
      case "text":
        response.text += part.delta
        response.characters += part.delta.length
        break
      case "reasoning":
        response.characters += part.delta.length
        break
      case "tool_call":
        if (typeof part.call.arguments === "string") response.characters += part.call.arguments.length
        response.tickets.push(Dispatch.issue(part.call, response.tickets, used))
        break
      case "finish":
        response.finish = part
    }
    return response.characters > maxCharacters
      ? Effect.fail(
        new ModelError({
          code: "model_output_malformed",
          reason: `The model's response exceeds ${maxCharacters} characters.`,
          retryAfterMs: null
        })
      )
      : Effect.succeed(response.tickets.length <= maxCalls)
  }

  const ask = (step: number, response: Response): Effect.Effect<void, ModelError> =>
    finished(model.respond({ system: options.system, messages: [...messages], tools: session.catalog.tools })).pipe(
      Stream.runForEachWhile((part) =>
        Effect.zipLeft(Effect.suspend(() => receive(response, part)), emit({ type: "part", step, part }))
      ),
      Effect.ensuring(Effect.suspend(() =>
        response.text === ""
          ? Effect.void
          : record((at) => ({ _tag: "model_message", ...at, text: response.text.toWellFormed() }))
      ))
    )

  const takeStep = Effect.fnUntraced(function*(step: number, response: Response) {
    const { tickets } = response
    yield* ask(step, response)
    if (response.finish === undefined) {
      yield* Dispatch.abandon(
        { session, journal },
        tickets,
        `The response held more than ${maxCalls} calls; none was run.`
      )
    } else {
      if (cut(response.finish.reason)) {
        for (const [index, ticket] of tickets.entries()) {
          tickets[index] = { ...ticket, call: { ...ticket.call, truncated: true } }
        }
      }
      yield* Dispatch.run({
        session,
        journal,
        onSettled: (result) => emit({ type: "settled", step, result })
      }, tickets)
    }
    return tickets.flatMap(({ result }) => result === undefined ? [] : [result])
  })

  if (options.prompt !== undefined) {
    const content = typeof options.prompt === "string" ? [text(options.prompt)] : options.prompt
    messages.push({ role: "user", content })
    yield* record((at) => ({ _tag: "user_message", ...at, text: plainText(content).toWellFormed() }))
  }

  for (let step = 1;; step++) {
    const change = yield* session.drift
    if (change !== undefined) {
      messages.push({ role: "user", content: [text(driftNote(change))] })
      yield* emit({ type: "catalog_changed", step, change })
    }
    yield* emit({ type: "request", step })

    const response: Response = { text: "", characters: 0, tickets: [], finish: undefined }
    const results = yield* Effect.onError(
      takeStep(step, response),
      () => Dispatch.abandon({ session, journal }, response.tickets, "The turn ended before this call was started.")
    )
    const said = response.text.toWellFormed()
    const asked = response.tickets.map(({ call }) => call)
    if (said !== "" || asked.length > 0) messages.push({ role: "assistant", text: said, calls: asked })
    if (results.length > 0) messages.push({ role: "tool", results: results.map(forModel) })
    calls.push(...results)
    usage.inputTokens += response.finish?.usage.inputTokens ?? 0
    usage.outputTokens += response.finish?.usage.outputTokens ?? 0

    const stopped = ending(response, step >= steps)
    if (stopped !== undefined) return { text: said, steps: step, usage, calls, messages, stopped }
  }
})

type Stamp = Pick<Turn, "threadId" | "turnId"> & { readonly at: number }

const ending = ({ finish, tickets }: Response, last: boolean): Stopped | undefined => {
  if (finish === undefined) return "call_limit"
  if (tickets.length > 0) return last ? "step_limit" : undefined
  return finish.reason === "length" || finish.reason === "content_filter" ? finish.reason : "done"
}

const cut = (reason: FinishReason): boolean => reason === "length" || reason === "content_filter"

const callIds = (messages: ReadonlyArray<Message>): Set<string> =>
  new Set(messages.flatMap((message) => message.role === "assistant" ? message.calls.map(({ callId }) => callId) : []))

const forModel = ({ callId, content, isError, toolName }: ToolResult) => ({ callId, toolName, isError, content })

const plainText = (content: ReadonlyArray<ContentPart>): string =>
  content.flatMap((part) => part.type === "text" ? [part.text] : []).join("\n")

const namesShown = 12

/** Names may come from outside: they are quoted, in plain ASCII, short and few. */
const driftNote = ({ deferred, fingerprint, grade, toolCount, toolNames }: typeof CatalogChanged.Type): string => {
  const shown = toolNames.slice(0, namesShown).map((name) => ascii(JSON.stringify(name.slice(0, 64))))
  const more = toolCount - shown.length
  return `Note from the host: the available tools changed (${grade}), to ${toolCount} tools with fingerprint ${fingerprint}. ` +
    (deferred ? "This turn keeps the tools it has; the change applies from the next turn. " : "") +
    `Names: ${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}.`
}

const ascii = (value: string): string =>
  value.replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`)
