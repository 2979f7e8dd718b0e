/** A turn session and a journal in memory: enough of the channel to test what stands on it. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Lane } from "../../src/catalog/Catalog.ts"
import type { CatalogChanged, Event } from "../../src/contract/Event.ts"
import type { Json, JsonObject } from "../../src/contract/Json.ts"
import type { ApprovalPolicy } from "../../src/contract/Policy.ts"
import type { ToolCall } from "../../src/contract/ToolCall.ts"
import { type ContentPart, text, type ToolResult } from "../../src/contract/ToolResult.ts"
import { names, ThreadId, type Turn, TurnId } from "../../src/contract/Turn.ts"
import type { TurnSession } from "../../src/host/ToolHost.ts"
import type { EventJournal } from "../../src/journal/EventJournal.ts"
import type { ToolSpec } from "../../src/tool/Tool.ts"

export interface MemoryJournal {
  readonly journal: EventJournal["Type"]
  readonly events: Array<Event>
}

export const memoryJournal = (): MemoryJournal => {
  const events: Array<Event> = []
  const numbered = () => events.map((event, index) => ({ sequence: index + 1, event }))
  return {
    events,
    journal: {
      append: (event) => Effect.sync(() => void events.push(event)),
      entries: (_, { after = 0, limit = 1000 } = {}) => Effect.sync(() => numbered().slice(after, after + limit)),
      stream: () => Stream.suspend(() => Stream.fromIterable(numbered()))
    }
  }
}

export interface Refused {
  readonly code: string
  readonly message: string
  readonly details?: Json
}

export interface FakeTool {
  readonly parameters?: JsonObject
  readonly run: (args: JsonObject, call: ToolCall) => Effect.Effect<Json, Refused>
  readonly render?: (output: Json) => ReadonlyArray<ContentPart>
}

export interface FakeOptions {
  readonly memory: MemoryJournal
  readonly tools: Readonly<Record<string, FakeTool>>
  readonly approvalPolicy?: () => ApprovalPolicy
  readonly lane?: (toolName: string) => Lane
  readonly interactive?: (toolName: string) => boolean
  /** Default `turn`. */
  readonly turnId?: string
  readonly drift?: () => typeof CatalogChanged.Type | undefined
}

export const fakeTurn = (approvalPolicy: ApprovalPolicy, turnId = "turn"): Turn => ({
  threadId: ThreadId.make("thread"),
  turnId: TurnId.make(turnId),
  workspace: "/",
  roots: ["/"],
  threadMode: "agent",
  plan: undefined,
  sandboxMode: "workspace-write",
  approvalPolicy,
  providers: names(undefined),
  tools: names(undefined),
  skills: names(undefined),
  clientSurface: "api",
  model: { inputModalities: ["text"] },
  lineage: []
})

const answer = (options: FakeOptions, call: ToolCall): Effect.Effect<Json, Refused> => {
  const tool = Object.hasOwn(options.tools, call.toolName) ? options.tools[call.toolName] : undefined
  if (tool === undefined) {
    return Effect.fail({ code: "tool_unknown", message: `There is no tool ${call.toolName.toWellFormed()}.` })
  }
  if (call.truncated === true) return Effect.fail({ code: "arguments_truncated", message: "The response was cut off." })
  if (typeof call.arguments !== "object" || call.arguments === null || Array.isArray(call.arguments)) {
    return Effect.fail({ code: "arguments_invalid", message: "Not an object." })
  }
  return tool.run(call.arguments as JsonObject, call)
}

/** Settles as the channel does: an outcome and its event together, and nothing at all when it is interrupted. */
export const fakeSession = (options: FakeOptions): TurnSession => {
  const turn = Effect.sync(() => fakeTurn(options.approvalPolicy?.() ?? "on-request", options.turnId))
  const tools = Object.entries(options.tools).map(([name, tool]): ToolSpec => ({
    name,
    description: `Does ${name}.`,
    parameters: tool.parameters ?? { type: "object" }
  }))
  return {
    turn,
    catalog: {
      tools,
      fingerprint: { fingerprint: "0000000000000000", toolCount: tools.length, toolNames: [], toolHashes: new Map() },
      lane: options.lane ?? (() => "serial"),
      interactive: options.interactive ?? (() => false),
      explain: () => []
    },
    execute: (call) =>
      Effect.flatMap(Effect.either(answer(options, call)), (outcome) => {
        const failed = outcome._tag === "Left"
        const output: Json = failed
          ? {
            code: outcome.left.code,
            error: outcome.left.message,
            ...outcome.left.details === undefined ? {} : { details: outcome.left.details }
          }
          : outcome.right
        const result: ToolResult = {
          id: `item_thread_turn_${call.callId}`,
          callId: call.callId,
          toolName: call.toolName.toWellFormed(),
          toolKind: "tool_call",
          isError: failed,
          code: failed ? outcome.left.code : null,
          output,
          content: failed
            ? [text(outcome.left.message)]
            : options.tools[call.toolName]?.render?.(outcome.right) ?? [text(JSON.stringify(outcome.right))],
          executed: !failed,
          replayed: false,
          approval: null,
          effectiveArguments: null,
          startedAt: 0,
          finishedAt: 0
        }
        return Effect.as(
          options.memory.journal.append({
            _tag: "call_settled",
            threadId: ThreadId.make("thread"),
            turnId: TurnId.make(options.turnId ?? "turn"),
            at: 0,
            result
          }),
          result
        )
      }),
    setMode: () => turn,
    narrow: () => turn,
    forget: Effect.void,
    drift: Effect.sync(() => options.drift?.())
  }
}
