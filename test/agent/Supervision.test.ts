import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import { AgentSystem } from "../../src/agent/AgentSystem.ts"
import { DelegationSemaphore } from "../../src/agent/DelegationSemaphore.ts"
import * as ToolCall from "../../src/contract/ToolCall.ts"
import type { TurnSpecInput } from "../../src/contract/Turn.ts"
import { ToolHost } from "../../src/host/ToolHost.ts"
import { EventJournal } from "../../src/journal/EventJournal.ts"
import * as ScriptedModel from "../../src/testing/ScriptedModel.ts"
import { lastResults, layer, root } from "../support/agentPlane.ts"
import { probe } from "../support/plane.ts"

/** A turn of a thread outside any agent, for as long as `use` runs. */
const inTurn = <A, E, R>(
  spec: Partial<TurnSpecInput>,
  use: (session: Effect.Effect.Success<ReturnType<ToolHost["Type"]["openTurn"]>>) => Effect.Effect<A, E, R>
) =>
  Effect.scoped(Effect.gen(function*() {
    const session = yield* Effect.orDie((yield* ToolHost).openTurn({ workspace: "/", threadId: "plain", ...spec }))
    return yield* use(session)
  }))

const call = (toolName: string, args: Readonly<Record<string, unknown>>) => ToolCall.make({ toolName, arguments: args })

/** A child that calls the probe in each of its turns, and says what came of it. */
const digging: Parameters<typeof layer>[0] = ({ opening, request }) => {
  if (!opening.startsWith("dig")) return { text: "?" }
  const last = request.messages.at(-1)
  return last?.role === "tool" ? { text: lastResults(request).join() } : { calls: [{ toolName: "probe" }] }
}

describe("what a parent tells a live child", () => {
  const shovel = () => probe({ name: "probe", policy: "auto", kind: "file_change", body: Effect.succeed("dug") })

  for (
    const [name, spec] of [
      ["whose tool is denied", { tools: { deny: ["probe"] } }],
      ["in a read-only sandbox", { sandboxMode: "read-only" }],
      ["in plan mode", { threadMode: "plan" }]
    ] as const
  ) {
    it.scoped(`has at most the rights of the parent's own turn, ${name}, and the child keeps its own for the next`, () => {
      const { provider, runs } = shovel()
      return Effect.gen(function*() {
        const system = yield* AgentSystem
        const child = yield* inTurn({}, (session) =>
          Effect.gen(function*() {
            const agent = yield* system.spawn(yield* session.turn, { detached: true })
            assert.strictEqual((yield* agent.ask("dig")).summary, "dug")
            return agent
          }))
        yield* inTurn({ ...spec, tools: "tools" in spec ? spec.tools : {} }, (session) =>
          Effect.gen(function*() {
            const turn = yield* session.turn
            const again = yield* system.resume(turn, child.id)
            assert.notStrictEqual((yield* again.ask("dig")).summary, "dug")
            const reached = yield* system.reach(turn, child.id)
            assert.notStrictEqual((yield* reached?.ask("dig") ?? Effect.die("gone")).summary, "dug")
          }))
        assert.strictEqual(runs.count, 1)
        yield* inTurn({}, (session) =>
          Effect.gen(function*() {
            const again = yield* system.resume(yield* session.turn, child.id)
            assert.strictEqual((yield* again.ask("dig")).summary, "dug")
          }))
      }).pipe(Effect.provide(layer(digging, [provider])))
    })
  }

  it.scoped("holds for one turn when it says so, as a plan does", () => {
    const { provider, runs } = shovel()
    return Effect.gen(function*() {
      const agent = yield* root()
      assert.match((yield* agent.ask("dig", { threadMode: "plan" })).summary, /plan_mode_blocked/)
      assert.strictEqual((yield* agent.ask("dig")).summary, "dug")
      assert.strictEqual(runs.count, 1)
    }).pipe(Effect.provide(layer(digging, [provider])))
  })
})

describe("a child spawned with an old turn", () => {
  it.scoped("has what its parent was left with meanwhile", () => {
    const { provider, runs } = probe({ name: "probe", policy: "auto" })
    return Effect.gen(function*() {
      const system = yield* AgentSystem
      const agent = yield* root()
      const turn = yield* inTurn({ threadId: agent.threadId, lineage: [agent.id] }, (session) => session.turn)
      yield* agent.narrow({ blockedTools: ["probe"] })
      const child = yield* system.spawn(turn)
      assert.match((yield* child.ask("dig")).summary, /tool_not_advertised/)
      assert.strictEqual(runs.count, 0)
    }).pipe(Effect.provide(layer(digging, [provider])))
  })

  it.scoped("is refused when its parent is over, and counts against its parent's tree", () =>
    Effect.gen(function*() {
      const system = yield* AgentSystem
      const agent = yield* root()
      const turn = yield* inTurn({ threadId: agent.threadId, lineage: [agent.id] }, (session) => session.turn)
      yield* system.spawn(turn)
      assert.strictEqual((yield* Effect.flip(system.spawn(turn))).code, "delegation_limit")
      yield* agent.stop
      assert.match((yield* Effect.flip(system.spawn(turn))).message, /has been stopped/)
    }).pipe(Effect.provide(layer(() => ({}), [], { agents: { budget: { children: 1 } } }))))
})

describe("a thread", () => {
  it.scoped("has one live agent: nobody starts or resumes a second one under its hands", () =>
    Effect.gen(function*() {
      const system = yield* AgentSystem
      const agent = yield* root({ threadId: "one" })
      const second = yield* Effect.flip(system.start({ spec: { workspace: agent.workspace, threadId: "one" } }))
      assert.strictEqual(second.code, "agent_busy")
      yield* inTurn({}, (session) =>
        Effect.gen(function*() {
          const turn = yield* session.turn
          const child = yield* system.spawn(turn)
          yield* child.ask("dig")
          yield* child.stop
          const both = yield* Effect.all([1, 2].map(() => Effect.either(system.resume(turn, child.id))), {
            concurrency: "unbounded"
          })
          const ids = new Set(both.flatMap((one) => one._tag === "Right" ? [one.right.id] : []))
          assert.strictEqual(ids.size, 1)
          assert.strictEqual((yield* system.list(turn.threadId)).length, 1)
        }))
    }).pipe(Effect.provide(layer(() => ({ text: "dug" })))))

  it.scoped("of more than a thousand children lists the last thousand", () =>
    Effect.gen(function*() {
      const system = yield* AgentSystem
      yield* inTurn({}, (session) =>
        Effect.gen(function*() {
          const turn = yield* session.turn
          for (let index = 0; index < 1020; index++) {
            const child = yield* system.spawn(turn, { label: `${index}` })
            yield* child.stop
          }
          const labels = (yield* system.list(turn.threadId)).map(({ label }) => label)
          assert.deepStrictEqual([labels.length, labels[0], labels.at(-1)], [1000, "20", "1019"])
        }))
    }).pipe(Effect.provide(layer(() => ({})))))
})

describe("a detached child", () => {
  it.scoped("that is resumed in the foreground lives on, and one resumed to be detached is told of", () =>
    Effect.gen(function*() {
      const system = yield* AgentSystem
      yield* inTurn({}, (session) =>
        Effect.gen(function*() {
          const started = yield* session.execute(call("delegate_task", { prompt: "dig", detach: true }))
          const { agentId } = started.output as { readonly agentId: string }
          const done = Effect.flatMap(system.list((yield* session.turn).threadId), ([record]) =>
            record?.status === "completed" ? Effect.void : Effect.fail("not yet"))
          yield* Effect.eventually(Effect.zipRight(Effect.yieldNow(), done))
          const again = yield* session.execute(call("delegate_task", { prompt: "dig on", resume: agentId }))
          assert.isFalse(again.isError, JSON.stringify(again.output))
          assert.isDefined(yield* system.find(agentId))
        }))
    }).pipe(Effect.provide(layer(() => ({ text: "dug" })))))

  it.scoped("goes when room is needed and it is idle, and can be resumed", () =>
    Effect.gen(function*() {
      const system = yield* AgentSystem
      yield* inTurn({}, (session) =>
        Effect.gen(function*() {
          const turn = yield* session.turn
          const first = yield* system.spawn(turn, { detached: true })
          yield* first.ask("dig")
          const others = yield* Effect.forEach([1, 2, 3, 4, 5], () => system.spawn(turn))
          assert.isUndefined(yield* system.find(first.id))
          assert.strictEqual((yield* Effect.flip(system.spawn(turn))).code, "delegation_limit")
          yield* Effect.forEach(others, (other) => other.stop)
          assert.strictEqual((yield* (yield* system.resume(turn, first.id)).ask("dig")).summary, "dug, 3")
        }))
    }).pipe(
      Effect.provide(
        layer(({ request }) => ({ text: `dug, ${request.messages.length}` }), [], { agents: { live: 5 } })
      )
    ))

  it.scoped("is told of to its parent, also when there are more than a notice for each can say", () =>
    Effect.gen(function*() {
      const system = yield* AgentSystem
      const agent = yield* root()
      const turn = yield* inTurn({ threadId: agent.threadId, lineage: [agent.id] }, (session) => session.turn)
      yield* Effect.forEach(
        Array.from({ length: 120 }),
        () => Effect.flatMap(system.spawn(turn, { detached: true }), (child) => child.tell("dig"))
      )
      const { state } = yield* DelegationSemaphore
      yield* Effect.repeat(Effect.zipRight(Effect.yieldNow(), state), {
        until: ({ running, waiting }) => running + waiting === 0
      })
      yield* agent.ask("News?")
      const { requests } = yield* ScriptedModel.ScriptedModel
      const news = JSON.stringify((yield* requests).at(-1)?.messages)
      assert.strictEqual(news.split("has ended a turn").length - 1, 100)
      assert.include(news, "20 more of your agents have ended a turn")
    }).pipe(Effect.provide(layer(() => ({ text: "dug" })))))
})

describe("the record of a child", () => {
  it.scoped("holds what its model's vendor says, cut to a length", () =>
    Effect.gen(function*() {
      const system = yield* AgentSystem
      yield* inTurn({}, (session) =>
        Effect.gen(function*() {
          const turn = yield* session.turn
          const child = yield* system.spawn(turn)
          const report = yield* child.ask("dig")
          assert.isAtMost(report.error?.error.length ?? 0, 2000)
          yield* child.stop
          const [record] = yield* system.list(turn.threadId)
          assert.deepStrictEqual([record?.status, record?.turns], ["failed", 1])
        }))
    }).pipe(Effect.provide(layer(() => ({ error: { code: "model_refused", reason: "x".repeat(1_200_000) } })))))

  it.scoped("keeps the time that it was given when it is resumed", () =>
    Effect.gen(function*() {
      const system = yield* AgentSystem
      yield* inTurn({}, (session) =>
        Effect.gen(function*() {
          const turn = yield* session.turn
          const child = yield* system.spawn(turn)
          yield* TestClock.adjust("2 minutes")
          assert.strictEqual((yield* child.ask("dig")).error?.code, "delegation_limit")
          yield* child.stop
          const again = yield* system.resume(turn, child.id)
          assert.strictEqual((yield* again.ask("dig")).error?.code, "delegation_limit")
        }))
    }).pipe(Effect.provide(layer(() => ({ text: "dug" }), [], { agents: { budget: { time: "1 minute" } } }))))

  it.scoped("of a fork remembers what it started from when it is resumed", () =>
    Effect.gen(function*() {
      const system = yield* AgentSystem
      const agent = yield* root()
      yield* agent.ask("remember the cat")
      const turn = yield* inTurn({ threadId: agent.threadId, lineage: [agent.id] }, (session) => session.turn)
      const fork = yield* system.spawn(turn, { fork: true })
      yield* fork.ask("one")
      yield* fork.stop
      const again = yield* system.resume(turn, fork.id)
      yield* again.ask("two")
      const { requests } = yield* ScriptedModel.ScriptedModel
      const seen = JSON.stringify((yield* requests).at(-1)?.messages)
      for (const words of ["remember the cat", "one", "two"]) assert.include(seen, words)
    }).pipe(Effect.provide(layer(() => ({ text: "dug" })))))
})

describe("an agent that is stopped while others wait", () => {
  it.scoped("ends with its system: nothing runs, and nobody waits", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const counts = { running: 0 }
      const hanging = probe({
        name: "probe",
        policy: "auto",
        body: Effect.acquireUseRelease(
          Effect.sync(() => void counts.running++),
          () => Effect.never,
          () => Effect.sync(() => void counts.running--)
        )
      })
      const ask = yield* Effect.gen(function*() {
        const system = yield* AgentSystem
        const session = yield* Effect.orDie((yield* ToolHost).openTurn({ workspace: "/", threadId: "plain" }))
        const turn = yield* session.turn
        const children = yield* Effect.forEach(Array.from({ length: 100 }), () => system.spawn(turn))
        const asking = yield* Effect.forEach(children, (child) => Effect.fork(Effect.exit(child.ask("dig"))))
        yield* Effect.repeat(Effect.yieldNow(), { until: () => counts.running === 8 })
        return asking
      }).pipe(
        Effect.provide(
          yield* Effect.provideService(Layer.build(layer(digging, [hanging.provider])), Scope.Scope, scope)
        ),
        Effect.provideService(Scope.Scope, scope)
      )
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(counts.running, 0)
      for (const fiber of ask) assert.isTrue(Exit.isSuccess(yield* Fiber.await(fiber)))
    }))
})

describe("the journal of a thread", () => {
  it.scoped("has one outcome for each call, whatever was interrupted", () =>
    Effect.gen(function*() {
      const agent = yield* root()
      const asking = yield* Effect.fork(agent.ask("dig"))
      const journal = yield* EventJournal
      yield* Effect.repeat(Effect.zipRight(Effect.yieldNow(), journal.entries(agent.threadId)), {
        until: (entries) => entries.some(({ event }) => event._tag === "call_started")
      })
      yield* Fiber.interrupt(asking)
      yield* agent.ask("dig on")
      const entries = yield* journal.entries(agent.threadId)
      const asked = entries.flatMap(({ event }) =>
        event._tag === "model_message" ? event.calls?.map(({ callId }) => callId) ?? [] : []
      )
      const settled = entries.flatMap(({ event }) => event._tag === "call_settled" ? [event.result.callId] : [])
      assert.deepStrictEqual([...settled].sort(), [...asked].sort())
    }).pipe(
      Effect.provide(
        layer(({ said }) => said === 0 ? { calls: [{ toolName: "probe" }, { toolName: "probe" }] } : { text: "done" }, [
          probe({ name: "probe", policy: "auto", body: Effect.never }).provider
        ])
      )
    ))
})
