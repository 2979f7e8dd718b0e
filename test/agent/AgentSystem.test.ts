import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import { type AgentRecord, noUsage } from "../../src/agent/AgentReport.ts"
import { type AgentEvent, AgentSystem } from "../../src/agent/AgentSystem.ts"
import { DelegationSemaphore } from "../../src/agent/DelegationSemaphore.ts"
import { names, ThreadId, type Turn, TurnId } from "../../src/contract/Turn.ts"
import * as ApprovalGate from "../../src/gate/ApprovalGate.ts"
import { EventJournal } from "../../src/journal/EventJournal.ts"
import * as ScriptedModel from "../../src/testing/ScriptedModel.ts"
import { delegate, lastResults, layer, root } from "../support/agentPlane.ts"
import { probe } from "../support/plane.ts"

/** The first value that satisfies, looked for again and again without any clock. */
const eventually = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  satisfies: (value: A) => boolean
): Effect.Effect<A, E, R> =>
  Effect.flatMap(
    effect,
    (value) =>
      satisfies(value) ? Effect.succeed(value) : Effect.zipRight(Effect.yieldNow(), eventually(effect, satisfies))
  )

const usage = { inputTokens: 10, outputTokens: 5 }

/** All that happens to agents while `use` runs, from the moment it starts. */
const watching = Effect.gen(function*() {
  const events: Array<AgentEvent> = []
  const system = yield* AgentSystem
  const ready = yield* Deferred.make<void>()
  yield* system.events.pipe(
    Stream.onStart(Deferred.succeed(ready, undefined)),
    Stream.runForEach((event) => Effect.sync(() => void events.push(event))),
    Effect.forkScoped
  )
  yield* Deferred.await(ready)
  yield* Effect.yieldNow()
  return events
})

const statuses = (events: ReadonlyArray<AgentEvent>, label: string): ReadonlyArray<string> =>
  events.flatMap((event) => event.type === "status" && event.record.label === label ? [event.record.status] : [])

const idle = Effect.flatMap(
  DelegationSemaphore,
  ({ state }) => Effect.map(state, ({ lent, running, waiting }) => lent + running + waiting === 0)
)

const outside = (threadId: string, workspace: string): Turn => ({
  threadId: ThreadId.make(threadId),
  turnId: TurnId.make("turn"),
  workspace,
  roots: [workspace],
  threadMode: "agent",
  plan: undefined,
  sandboxMode: "workspace-write",
  approvalPolicy: "on-request",
  providers: names(undefined),
  tools: names(undefined),
  skills: names(undefined),
  clientSurface: "api",
  model: { inputModalities: ["text"] },
  lineage: []
})

describe("a root agent", () => {
  it.scoped("reports a turn with its words and its usage, and keeps its conversation for the next", () =>
    Effect.gen(function*() {
      const agent = yield* root()
      const first = yield* agent.ask("Hello")
      assert.deepInclude(first, { status: "completed", summary: "Hello to turn 1", agentId: agent.id })
      assert.deepStrictEqual(first.usage, { ...noUsage, ...usage, requests: 1 })
      const second = yield* agent.ask("Again")
      assert.strictEqual(second.summary, "Hello to turn 2")
      const { turns, usage: total } = yield* agent.record
      assert.deepStrictEqual([turns, total.inputTokens], [2, 20])
    }).pipe(Effect.provide(layer(({ opening, said }) => ({ text: `${opening} to turn ${said + 1}`, usage })))))

  it.scoped("hands the error of its model on as the report, and goes on with the next message", () =>
    Effect.gen(function*() {
      const agent = yield* root()
      const broken = yield* agent.ask("break")
      assert.strictEqual(broken.status, "failed")
      assert.deepStrictEqual(broken.error, { code: "model_unavailable", error: "down" })
      assert.strictEqual((yield* agent.ask("mend")).status, "completed")
    }).pipe(
      Effect.provide(layer(({ request }) =>
        JSON.stringify(request.messages.at(-1)).includes("break")
          ? { error: { code: "model_unavailable", reason: "down" } }
          : { text: "well" }
      ))
    ))

  it.scoped("goes on with a thread that was left before", () =>
    Effect.gen(function*() {
      const system = yield* AgentSystem
      const scope = yield* Scope.make()
      const { workspace } = yield* root()
      const spec = { workspace, threadId: "long" }
      const before = yield* Scope.extend(system.start({ spec }), scope)
      yield* before.ask("First")
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* Effect.flip(before.ask("Late"))).code, "agent_stopped")
      const after = yield* system.start({ spec })
      assert.strictEqual((yield* after.ask("Second")).summary, "First, 1 said before")
    }).pipe(Effect.provide(layer(({ opening, said }) => ({ text: `${opening}, ${said} said before` })))))
})

describe("a child", () => {
  it.scoped("does its task on the child stack, and its answer is the result of the call", () =>
    Effect.gen(function*() {
      const events = yield* watching
      const agent = yield* root()
      const report = yield* agent.ask("Go")
      assert.match(report.summary, /the child found 42/)
      yield* eventually(Effect.sync(() => statuses(events, "digger")), (all) => all.includes("completed"))
      assert.deepStrictEqual(statuses(events, "digger"), ["idle", "queued", "running", "completed"])
      // The parent's own usage; the child's is on the child's account.
      assert.strictEqual(report.usage.requests, 2)
      assert.isTrue(yield* idle)
      assert.strictEqual(yield* (yield* AgentSystem).find("nobody"), undefined)
    }).pipe(
      Effect.provide(layer(({ opening, request, said }) => {
        if (opening === "dig") return { text: "the child found 42", usage }
        return said === 0 ? { calls: [delegate("dig", { label: "digger" })] } : { text: lastResults(request).join() }
      }))
    ))

  it.scoped("starts with the base prompt, its profile's and its own, and without its parent's conversation", () =>
    Effect.gen(function*() {
      yield* (yield* root()).ask("the parent's secret")
      const { requests } = yield* ScriptedModel.ScriptedModel
      const child = (yield* requests).find((request) => ScriptedModel.openingOf(request) === "dig")
      assert.strictEqual(child?.messages.length, 1)
      assert.notInclude(JSON.stringify(child), "secret")
      const [base, ...rest] = child?.system?.split("\n\n") ?? []
      assert.strictEqual(base, "Base.")
      assert.strictEqual(rest.at(-1), "Only in the garden.")
      assert.isAbove(rest.length, 1)
      const names = child?.tools.map(({ name }) => name) ?? []
      assert.notIncludeMembers(names, ["computer_use", "user_input", "create_goal"])
    }).pipe(
      Effect.provide(layer(
        ({ opening, said }) =>
          opening === "dig" || said > 0
            ? { text: "done" }
            : { calls: [delegate("dig", { profile: "explore", systemPrompt: "Only in the garden." })] },
        [],
        { agents: { system: "Base." } }
      ))
    ))

  it.scoped("may be asked to fail: its parent gets a coded result with what is known", () =>
    Effect.gen(function*() {
      const report = yield* (yield* root()).ask("Go")
      assert.match(report.summary, /^agent_failed: .*the model is down/)
    }).pipe(
      Effect.provide(layer(({ opening, request, said }) => {
        if (opening === "dig") return { error: { code: "model_unavailable", reason: "the model is down" } }
        return said === 0 ? { calls: [delegate("dig")] } : { text: lastResults(request).join() }
      }))
    ))

  it.scoped("carries evidence when it is asked for", () =>
    Effect.gen(function*() {
      const report = yield* (yield* root()).ask("Go")
      assert.match(report.summary, /What its calls found:\n- look .*<data name="call">seen<\/data>/)
    }).pipe(
      Effect.provide(layer(
        ({ opening, request, said }) => {
          if (opening === "dig") return said === 0 ? { calls: [{ toolName: "look" }] } : { text: "found" }
          return said === 0
            ? { calls: [delegate("dig", { returnFormat: "evidence" })] }
            : { text: lastResults(request).join() }
        },
        [probe({ name: "look", policy: "auto", body: Effect.succeed("seen") }).provider]
      ))
    ))

  it.scoped("is refused by name when there is no such profile, or nothing to resume", () =>
    Effect.gen(function*() {
      const report = yield* (yield* root()).ask("Go")
      assert.match(report.summary, /arguments_invalid/)
      assert.match(report.summary, /agent_unknown: This thread has no agent "agent_lost"/)
      const { spawn } = yield* AgentSystem
      const refused = yield* Effect.flip(spawn(outside("t", "/"), { profile: "explorer" }))
      assert.match(refused.message, /There is no profile "explorer"\. Did you mean explore\?/)
    }).pipe(
      Effect.provide(layer(({ request, said }) =>
        said === 0
          ? { calls: [delegate("dig", { profile: "nobody" }), delegate("dig", { resume: "agent_lost" })] }
          : { text: lastResults(request).join() }
      ))
    ))

  it.scoped("takes a blank resume for a new child", () =>
    Effect.gen(function*() {
      assert.match((yield* (yield* root()).ask("Go")).summary, /dug/)
    }).pipe(
      Effect.provide(layer(({ opening, request, said }) =>
        opening === "dig"
          ? { text: "dug" }
          : said === 0
          ? { calls: [delegate("dig", { resume: " " })] }
          : { text: lastResults(request).join() }
      ))
    ))

  it.scoped("goes on with its own conversation when it is resumed, and a fork with its parent's finished turns", () =>
    Effect.gen(function*() {
      const agent = yield* root()
      yield* agent.ask("remember the cat")
      const system = yield* AgentSystem
      const [child] = yield* system.list(agent.threadId)
      assert.strictEqual(child?.status, "completed")
      const report = yield* agent.ask(`resume ${child?.agentId}`)
      assert.match(report.summary, /dig, 2 messages before/)
      const fork = yield* agent.ask("fork")
      assert.match(fork.summary, /remember the cat/)
      assert.notMatch(fork.summary, /"fork"/)
    }).pipe(
      Effect.provide(layer(({ opening, request }) => {
        const last = request.messages.at(-1)
        if (last?.role === "tool") return { text: lastResults(request).join() }
        const words = last?.role === "user"
          ? last.content.map((part) => part.type === "text" ? part.text : "").join()
          : ""
        if (words === "what was said") return { text: JSON.stringify(request.messages.slice(0, -1)) }
        if (opening === "dig") return { text: `dig, ${request.messages.length - 1} messages before` }
        if (words === "fork") return { calls: [{ toolName: "subagent_fork", arguments: { prompt: "what was said" } }] }
        return words.startsWith("resume ")
          ? { calls: [delegate("dig on", { resume: words.slice(7) })] }
          : { calls: [delegate("dig")] }
      }))
    ))

  it.scoped("that is detached outlives the turn, tells its parent when it is done, and ends with its parent", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const events = yield* watching
      const system = yield* AgentSystem
      const { workspace } = yield* root()
      const agent = yield* Scope.extend(system.start({ spec: { workspace } }), scope)
      assert.match((yield* agent.ask("Go")).summary, /has its task/)
      yield* eventually(Effect.sync(() => statuses(events, "digger")), (all) => all.includes("completed"))
      assert.match(
        (yield* agent.ask("News?")).summary,
        /The agent "digger" .* has ended a turn: completed\. It said: "deep"/
      )
      const [child] = yield* system.list(agent.threadId)
      assert.isDefined(yield* system.find(child?.agentId ?? ""))
      yield* Scope.close(scope, Exit.void)
      assert.isUndefined(yield* system.find(child?.agentId ?? ""))
    }).pipe(
      Effect.provide(layer(({ opening, request }) => {
        if (opening === "dig") return { text: "deep" }
        const last = request.messages.at(-1)
        if (last?.role === "tool") return { text: lastResults(request).join() }
        return request.messages.length === 1
          ? { calls: [delegate("dig", { label: "digger", detach: true })] }
          : { text: JSON.stringify(request.messages.slice(-2)).replaceAll("\\\\\\\"", "\"").replaceAll("\\\"", "\"") }
      }))
    ))
})

describe("a budget", () => {
  it.scoped("lets agents nest as deep as it says, and no deeper, on every route (D04)", () =>
    Effect.gen(function*() {
      const events = yield* watching
      const report = yield* (yield* root()).ask("deeper")
      assert.match(report.summary, /depth_exceeded/)
      yield* Effect.yieldNow()
      const spawned = new Set(events.flatMap((event) => event.type === "status" ? [event.record.lineage.length] : []))
      assert.deepStrictEqual([...spawned], [1, 2, 3, 4])
    }).pipe(
      Effect.provide(layer(
        ({ request, said }) => said === 0 ? { calls: [delegate("deeper")] } : { text: lastResults(request).join() },
        [],
        { agents: { budget: { depth: 3 } } }
      ))
    ))

  it.scoped("lets a tree have so many children, and refuses the next (D03)", () =>
    Effect.gen(function*() {
      const report = yield* (yield* root()).ask("Go")
      assert.strictEqual(report.summary.split("delegation_limit").length - 1, 146)
      assert.strictEqual(report.summary.split("dug").length - 1, 4)
    }).pipe(
      Effect.provide(layer(
        ({ opening, request, said }) => {
          if (opening === "dig") return { text: "dug" }
          if (said > 0) return { text: lastResults(request).map((one) => /delegation_limit|dug/.exec(one)?.[0]).join() }
          return { calls: Array.from({ length: 75 }, () => [delegate("dig"), delegate("dig")]).flat() }
        },
        [],
        { agents: { budget: { children: 4 }, limits: { callsPerResponse: 200 } } }
      ))
    ))

  it.scoped("of tokens is the whole tree's: what is over it asks no more of a model", () =>
    Effect.gen(function*() {
      const agent = yield* root()
      const report = yield* agent.ask("Go")
      assert.strictEqual(report.error?.code, "delegation_limit")
      assert.match(report.error?.error ?? "", /30 tokens .* used up \(30\)/)
      const [child] = yield* (yield* AgentSystem).list(agent.threadId)
      assert.deepInclude(child?.report, { status: "failed" })
    }).pipe(
      Effect.provide(layer(
        ({ opening }) =>
          opening === "dig" ? { calls: [{ toolName: "nothing" }], usage } : { calls: [delegate("dig")], usage },
        [],
        { agents: { budget: { tokens: 30 } } }
      ))
    ))

  it.scoped("of time ends a child that takes longer", () =>
    Effect.gen(function*() {
      const agent = yield* root()
      const started = yield* Deferred.make<void>()
      yield* Effect.yieldNow()
      const asking = yield* Effect.fork(agent.ask("Go"))
      yield* eventually(Effect.map((yield* DelegationSemaphore).state, ({ running }) => running), (running) =>
        running === 1)
      yield* TestClock.adjust("2 minutes")
      assert.match((yield* Fiber.join(asking)).summary, /agent_failed: .*time that this agent had is over/)
      assert.isTrue(yield* idle)
      yield* Deferred.succeed(started, undefined)
    }).pipe(
      Effect.provide(layer(
        ({ opening, request, said }) =>
          opening === "dig"
            ? { calls: [{ toolName: "hang" }] }
            : said === 0
            ? { calls: [delegate("dig")] }
            : { text: lastResults(request).join() },
        [probe({ name: "hang", policy: "auto", body: Effect.never }).provider],
        { agents: { budget: { time: "1 minute" } } }
      ))
    ))
})

describe("rights", () => {
  it.scoped("of a live child can be narrowed while it waits for an approval: the answer comes too late", () =>
    Effect.gen(function*() {
      const system = yield* AgentSystem
      const gate = yield* ApprovalGate.ApprovalGate
      const agent = yield* root()
      const asking = yield* Effect.fork(agent.ask("Go"))
      const [question] = yield* eventually(gate.pending, (pending) => pending.length === 1)
      const child = yield* system.find(question?.question.lineage.at(-1) ?? "")
      yield* child?.narrow({ blockedTools: ["mow"] }) ?? Effect.void
      yield* gate.decide(question?.id ?? "", { decision: "allow", principal: "me" })
      assert.match((yield* Fiber.join(asking)).summary, /tool_not_advertised/)
    }).pipe(
      Effect.provide(layer(
        ({ opening, request, said }) =>
          opening === "dig"
            ? said === 0 ? { calls: [{ toolName: "mow" }] } : { text: lastResults(request).join() }
            : said === 0
            ? { calls: [delegate("dig")] }
            : { text: lastResults(request).join() },
        [probe({ name: "mow" }).provider],
        { approvals: { approver: "external" } }
      ))
    ))

  it.scoped("stay taken away in the next turn, and in those of its children", () =>
    Effect.gen(function*() {
      const agent = yield* root()
      yield* agent.narrow({ toolPolicy: "readOnly", allowedTools: ["delegate_task"] })
      const names = new Set<string>()
      yield* agent.ask("Go")
      const { requests } = yield* ScriptedModel.ScriptedModel
      for (const { tools } of yield* requests) for (const { name } of tools) names.add(name)
      assert.deepStrictEqual([...names], [])
    }).pipe(Effect.provide(layer(() => ({ text: "nothing to do it with" }), [probe({ name: "mow" }).provider]))))
})

describe("an approval of a grandchild (A01)", () => {
  it.scoped("is asked once, with its lineage from the root, and resumes the grandchild alone", () =>
    Effect.gen(function*() {
      const gate = yield* ApprovalGate.ApprovalGate
      const agent = yield* root()
      const asking = yield* Effect.fork(agent.ask("root"))
      const pending = yield* eventually(gate.pending, (all) => all.length === 1)
      const lineage = pending[0]?.question.lineage ?? []
      assert.strictEqual(lineage.length, 3)
      assert.strictEqual(lineage[0], agent.id)
      const labels = (yield* (yield* AgentSystem).list(agent.threadId))
        .map(({ agentId, label }) => [label, lineage.indexOf(agentId)])
      assert.deepStrictEqual(labels, [["child", 1], ["grandchild", 2]])
      yield* gate.decide(pending[0]?.id ?? "", { decision: "allow", principal: "me" })
      assert.match((yield* Fiber.join(asking)).summary, /mown/)
    }).pipe(
      Effect.provide(layer(
        ({ opening, request, said }) => {
          if (said > 0) return { text: lastResults(request).join() }
          if (opening === "root") return { calls: [delegate("child", { label: "child" })] }
          return opening === "child"
            ? { calls: [delegate("grandchild", { label: "grandchild" })] }
            : { calls: [{ toolName: "mow" }] }
        },
        [probe({ name: "mow", body: Effect.succeed("mown") }).provider],
        { approvals: { approver: "external" }, agents: { budget: { depth: 2 }, concurrency: 1 } }
      ))
    ))

  it.scoped("and one of its parent under the same call id are two, and each answer resumes its own (A05)", () =>
    Effect.gen(function*() {
      const gate = yield* ApprovalGate.ApprovalGate
      const agent = yield* root()
      const parent = yield* Effect.fork(agent.ask("root"))
      const pending = yield* eventually(gate.pending, (all) => all.length === 2)
      assert.deepStrictEqual(pending.map(({ question }) => question.callId), ["call_1", "call_1"])
      for (const { id, question } of pending) {
        yield* gate.decide(id, { decision: question.lineage.length === 1 ? "deny" : "allow", principal: "me" })
      }
      const { summary } = yield* Fiber.join(parent)
      assert.match(summary, /approval_denied/)
      const [child] = yield* eventually(
        (yield* AgentSystem).list(agent.threadId),
        ([child]) => child?.status === "completed"
      )
      assert.strictEqual(child?.report?.summary, "mown")
    }).pipe(
      Effect.provide(layer(
        ({ opening, request, said }) => {
          if (opening === "child") {
            return said === 0
              ? { calls: [{ toolName: "mow", callId: "call_1" }] }
              : { text: lastResults(request).join() }
          }
          if (said === 0) return { calls: [delegate("child", { detach: true })] }
          return said === 1 ? { calls: [{ toolName: "mow", callId: "call_1" }] } : { text: lastResults(request).join() }
        },
        [probe({ name: "mow", body: Effect.succeed("mown") }).provider],
        { approvals: { approver: "external" } }
      ))
    ))
})

describe("the end of a parent (D06)", () => {
  it.scoped("is the end of its children: those that run, that wait for an answer, and that wait for a slot", () =>
    Effect.gen(function*() {
      const system = yield* AgentSystem
      const gate = yield* ApprovalGate.ApprovalGate
      const agent = yield* root()
      const hanging = yield* Queue.unbounded<string>()
      yield* Queue.offer(hanging, "made")
      const asking = yield* Effect.fork(agent.ask("Go"))
      yield* eventually(gate.pending, (pending) => pending.length === 1)
      yield* eventually((yield* DelegationSemaphore).state, ({ running, waiting }) => running === 2 && waiting === 2)
      yield* Fiber.interrupt(asking)
      assert.isTrue(yield* idle)
      assert.deepStrictEqual(yield* gate.pending, [])
      const children = yield* system.list(agent.threadId)
      assert.deepStrictEqual(children.map(({ label, status }) => [label, status]), [
        ["asks", "interrupted"],
        ["hangs", "interrupted"],
        ["waits", "interrupted"],
        ["waits", "interrupted"]
      ])
      for (const { agentId, report } of children) {
        assert.strictEqual(report?.status, "interrupted")
        assert.isUndefined(yield* system.find(agentId))
      }
      // The root itself goes on.
      assert.strictEqual((yield* agent.ask("Still there?")).status, "completed")
    }).pipe(
      Effect.provide(layer(
        ({ opening, said }) => {
          if (opening === "asks") return { calls: [{ toolName: "mow" }] }
          if (opening === "hangs") return { calls: [{ toolName: "hang" }] }
          return opening === "Go" && said === 0
            ? { calls: ["asks", "hangs", "waits", "waits"].map((label) => delegate(label, { label })) }
            : { text: "done" }
        },
        [
          probe({ name: "mow" }).provider,
          { ...probe({ name: "hang", policy: "auto", body: Effect.never }).provider, id: "hanging" }
        ],
        { approvals: { approver: "external" }, agents: { concurrency: 2 } }
      ))
    ))

  it.scoped("is not that of its siblings: one child is stopped and the others go on", () =>
    Effect.gen(function*() {
      const system = yield* AgentSystem
      const semaphore = yield* DelegationSemaphore
      const agent = yield* root()
      const asking = yield* Effect.fork(agent.ask("Go"))
      yield* eventually(semaphore.state, ({ running }) => running === 2)
      const children = yield* system.list(agent.threadId)
      const of = (wanted: string): AgentRecord | undefined => children.find(({ label }) => label === wanted)
      yield* (yield* system.find(of("first")?.agentId ?? ""))?.stop ?? Effect.void
      assert.strictEqual((yield* semaphore.state).running, 1)
      yield* (yield* system.find(of("second")?.agentId ?? ""))?.interrupt ?? Effect.void
      assert.match((yield* Fiber.join(asking)).summary, /agent_interrupted: first .*agent_interrupted: second/s)
    }).pipe(
      Effect.provide(layer(
        ({ opening, request, said }) =>
          opening !== "Go"
            ? { calls: [{ toolName: "hang" }] }
            : said === 0
            ? { calls: ["first", "second"].map((label) => delegate(label, { label })) }
            : { text: lastResults(request).join() },
        [probe({ name: "hang", policy: "auto", body: Effect.never }).provider]
      ))
    ))

  it.scoped("comes also from inside its own turn without waiting for itself", () => {
    const own: { stop: Effect.Effect<void> } = { stop: Effect.void }
    const stopping = probe({
      name: "stop",
      policy: "auto",
      body: Effect.as(Effect.suspend(() => own.stop), "never read")
    })
    return Effect.gen(function*() {
      const system = yield* AgentSystem
      const agent = yield* root()
      own.stop = agent.stop
      assert.strictEqual((yield* agent.ask("Go")).status, "interrupted")
      yield* eventually(system.find(agent.id), (found) => found === undefined)
    }).pipe(Effect.provide(layer(() => ({ calls: [{ toolName: "stop" }] }), [stopping.provider])))
  })
})

describe("what an agent does", () => {
  it.scoped("is in the journal of its parent's thread: each change of status, with its lineage", () =>
    Effect.gen(function*() {
      const agent = yield* root()
      yield* agent.ask("Go")
      const entries = yield* (yield* EventJournal).entries(agent.threadId)
      const changes = entries.flatMap(({ event }) =>
        event._tag === "agent_changed" ? [`${event.label} ${event.status} ${event.lineage.length}`] : []
      )
      assert.deepStrictEqual(changes, [
        "root idle 1",
        "root running 1",
        "digger idle 2",
        "digger queued 2",
        "digger running 2",
        "digger completed 2",
        "root completed 1"
      ])
    }).pipe(
      Effect.provide(
        layer(({ opening, said }) =>
          opening === "Go" && said === 0 ? { calls: [delegate("dig", { label: "digger" })] } : { text: "done" }
        )
      )
    ))
})
