/**
 * What every `AgentSystem` does, over any host that has `provider`, with `model` for its model.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import type { AgentRecord } from "../../agent/AgentReport.ts"
import { type Agent, AgentSystem } from "../../agent/AgentSystem.ts"
import type { Model } from "../../agent/Model.ts"
import { ToolHost } from "../../host/ToolHost.ts"
import * as Tool from "../../tool/Tool.ts"
import * as ToolProvider from "../../tool/ToolProvider.ts"
import * as ScriptedModel from "../ScriptedModel.ts"
import { equal, expect, type Law, law } from "./Law.ts"

/** One tool that never ends by itself, and one that ends at once. */
export const provider = ToolProvider.make({
  id: "agent-laws",
  kind: "built-in",
  tools: [
    Tool.make("hold", {
      description: "Never ends.",
      policy: "auto",
      parameters: Schema.Struct({}),
      success: Schema.String,
      handler: () => Effect.never
    }),
    Tool.make("touch", {
      description: "Ends at once.",
      policy: "auto",
      parameters: Schema.Struct({}),
      success: Schema.String,
      handler: () => Effect.succeed("touched")
    })
  ]
})

/** Calls the tool that the last message names, and repeats what came of it; repeats any other message. */
export const model: Layer.Layer<Model | ScriptedModel.ScriptedModel> = ScriptedModel.layer(({ messages }) => {
  const last = messages.at(-1)
  const words = last === undefined || last.role === "assistant"
    ? ""
    : (last.role === "user" ? last.content : last.results.flatMap(({ content }) => content))
      .flatMap((part) => part.type === "text" ? [part.text] : []).join("\n")
  return last?.role === "user" && (words === "hold" || words === "touch")
    ? { calls: [{ toolName: words }] }
    : { text: words, usage: { inputTokens: 1, outputTokens: 1 } }
})

type Laws = ReadonlyArray<Law<AgentSystem | ToolHost | Scope.Scope>>

/** `workspace` is a folder that exists. */
export const laws = (workspace: string): Laws => {
  const start = (threadId?: string) =>
    Effect.flatMap(
      AgentSystem,
      (system) => system.start({ spec: { workspace, ...(threadId === undefined ? {} : { threadId }) } })
    )

  /** A child, spawned as a tool of its parent would. */
  const childOf = Effect.fnUntraced(function*({ lineage, threadId }: Agent) {
    const system = yield* AgentSystem
    const session = yield* (yield* ToolHost).openTurn({ workspace, threadId, lineage: [...lineage] })
    return yield* system.spawn(yield* session.turn, { label: "child" })
  })

  const until = (agent: Agent, wanted: (record: AgentRecord) => boolean): Effect.Effect<void> =>
    Effect.flatMap(
      Effect.zipRight(Effect.yieldNow(), agent.record),
      (record) => wanted(record) ? Effect.void : until(agent, wanted)
    )

  return [
    law(
      "a message is answered with the report of its turn, which the record counts",
      Effect.gen(function*() {
        const agent = yield* start()
        const report = yield* agent.ask("hello")
        yield* equal([report.agentId, report.status, report.summary], [agent.id, "completed", "hello"], "report")
        const { status, turns, usage } = yield* agent.record
        yield* equal([status, turns, usage.requests], ["completed", 1, 1], "record")
      })
    ),
    law(
      "messages are taken one at a time, in the order of their coming",
      Effect.gen(function*() {
        const agent = yield* start()
        const asking = yield* Effect.forEach(
          ["1", "2", "3", "4"],
          (word) => Effect.zipLeft(Effect.fork(agent.ask(word)), Effect.yieldNow())
        )
        const reports = yield* Effect.forEach(asking, Fiber.join)
        yield* equal(reports.map(({ summary }) => summary), ["1", "2", "3", "4"], "answers")
        yield* equal((yield* agent.record).turns, 4, "turns")
      })
    ),
    law(
      "a child stands under its parent: its lineage starts at the root, and its parent's thread lists it",
      Effect.gen(function*() {
        const agent = yield* start()
        const child = yield* childOf(agent)
        yield* equal(child.lineage, [agent.id, child.id], "lineage")
        yield* child.ask("hello")
        const listed = yield* (yield* AgentSystem).list(agent.threadId)
        yield* equal(listed.map(({ agentId, status }) => [agentId, status]), [[child.id, "completed"]], "list")
      })
    ),
    law(
      "whatever ends a parent ends its children: none is found, none takes a message, each has a last status",
      Effect.gen(function*() {
        const system = yield* AgentSystem
        const scope = yield* Scope.make()
        const agent = yield* Scope.extend(start(), scope)
        const children = yield* Effect.all([childOf(agent), childOf(agent)])
        const asking = yield* Effect.forEach(children, (child) => Effect.fork(child.ask("hold")))
        yield* Effect.forEach(children, (child) => until(child, ({ status }) => status === "running"))
        yield* Scope.close(scope, Exit.void)
        for (const child of children) {
          yield* expect((yield* system.find(child.id)) === undefined, "it is still found")
          yield* equal((yield* Effect.flip(child.ask("late"))).code, "agent_stopped", "late message")
        }
        const reports = yield* Effect.forEach(asking, Fiber.join)
        yield* equal(reports.map(({ status }) => status), ["interrupted", "interrupted"], "reports")
        const listed = yield* system.list(agent.threadId)
        yield* equal(listed.map(({ status }) => status), ["interrupted", "interrupted"], "records")
      })
    ),
    law(
      "an asker that is interrupted ends the turn that it started, and the agent takes the next message",
      Effect.gen(function*() {
        const agent = yield* start()
        const asking = yield* Effect.fork(agent.ask("hold"))
        yield* until(agent, ({ status }) => status === "running")
        yield* Fiber.interrupt(asking)
        yield* equal((yield* agent.record).status, "interrupted", "status")
        yield* equal((yield* agent.ask("next")).summary, "next", "next")
      })
    ),
    law(
      "what is taken from an agent is taken from those below it, for good",
      Effect.gen(function*() {
        const agent = yield* start()
        const child = yield* childOf(agent)
        yield* equal((yield* child.ask("touch")).summary, "touched", "before")
        yield* agent.narrow({ blockedTools: ["touch"] })
        for (const held of [agent, child]) {
          yield* expect((yield* held.ask("touch")).summary.includes("tool_not_advertised"), "it is not refused")
        }
      })
    ),
    law(
      "a thread has one live agent, and another one when that is over",
      Effect.gen(function*() {
        const agent = yield* start("law-thread")
        yield* equal((yield* Effect.flip(start("law-thread"))).code, "agent_busy", "second")
        yield* agent.stop
        yield* equal((yield* (yield* start("law-thread")).ask("after")).summary, "after", "after")
      })
    )
  ]
}
