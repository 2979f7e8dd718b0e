import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import { type Agent, AgentSystem } from "../../src/agent/AgentSystem.ts"
import { DelegationSemaphore } from "../../src/agent/DelegationSemaphore.ts"
import { names, type Turn, TurnId } from "../../src/contract/Turn.ts"
import type { ScriptedTurn } from "../../src/testing/ScriptedModel.ts"
import { delegate, layer } from "../support/agentPlane.ts"
import { count } from "../support/counts.ts"
import { probe } from "../support/plane.ts"
import { temporaryFolder } from "../support/temporaryFolder.ts"

const operations = count({ quick: 300, soak: 10_000 })
const perEpisode = 100
const depth = 3
const budget = 3
/** What the budget is ever resized to. */
const most = 5

/** A turn of that agent's, as far as a spawn looks at it. */
const turnOf = ({ lineage, threadId }: Agent, workspace: string): Turn => ({
  threadId,
  turnId: TurnId.make("turn"),
  workspace,
  roots: [workspace],
  threadMode: "agent",
  plan: undefined,
  sandboxMode: "workspace-write",
  approvalPolicy: "auto",
  providers: names(undefined),
  tools: names(undefined),
  skills: names(undefined),
  clientSurface: "api",
  model: { inputModalities: ["text"] },
  lineage
})

/** Handlers that were entered, and those that were left again, whatever ended them. */
const handlers = () => {
  const counts = { entered: 0, left: 0 }
  const counted = (body: Effect.Effect<void>) =>
    Effect.acquireUseRelease(
      Effect.sync(() => void counts.entered++),
      () => Effect.as(body, "done"),
      // A clean-up that takes its time.
      () => Effect.zipRight(Effect.yieldNow(), Effect.sync(() => void counts.left++))
    )
  const yields = Effect.repeatN(Effect.yieldNow(), 20)
  return {
    counts,
    providers: [
      { ...probe({ name: "work", policy: "auto", body: counted(yields) }).provider, id: "work" },
      { ...probe({ name: "hang", policy: "auto", body: counted(Effect.never) }).provider, id: "hang" }
    ]
  }
}

/** Answers with anything: more children, work, work without an end, words, or a failure. */
const wild = (random: Random.Random) => ({ said }: { readonly said: number }): ScriptedTurn => {
  const next = () => Effect.runSync(random.next)
  if (said > 6) return { text: "enough" }
  const dice = next()
  if (dice < 0.1) return { error: { code: "model_unavailable", reason: "down" } }
  if (dice < 0.35) {
    const children = 1 + Math.floor(next() * 3)
    return { calls: Array.from({ length: children }, () => delegate("dig", { label: "dug", detach: next() < 0.3 })) }
  }
  if (dice < 0.65) return { calls: [{ toolName: "work", arguments: { path: String(next()) } }] }
  if (dice < 0.7) return { calls: [{ toolName: "hang" }] }
  return { text: "done" }
}

const episode = (random: Random.Random) => {
  const { counts, providers } = handlers()
  return Effect.gen(function*() {
    const system = yield* AgentSystem
    const semaphore = yield* DelegationSemaphore
    const workspace = yield* temporaryFolder
    const scope = yield* Scope.make()
    const started = { spec: { workspace, approvalPolicy: "auto" } } as const
    const roots = yield* Effect.all([1, 2].map(() => Scope.extend(system.start(started), scope)))
    const agents = [...roots]
    const asking: Array<Fiber.Fiber<unknown, unknown>> = []

    const act = Effect.gen(function*() {
      const agent = agents[yield* Random.nextIntBetween(0, agents.length)]
      if (agent === undefined || (yield* system.find(agent.id)) === undefined) return
      const dice = yield* Random.nextIntBetween(0, 100)
      if (dice < 25) {
        const options = { label: "spawned", detached: yield* Random.nextBoolean }
        const spawned = yield* Effect.either(system.spawn(turnOf(agent, workspace), options))
        if (Either.isRight(spawned)) agents.push(spawned.right)
        else assert.deepInclude(spawned.left, { code: "depth_exceeded" })
      } else if (dice < 60) asking.push(yield* Effect.forkIn(agent.ask("dig"), scope))
      else if (dice < 65) yield* Effect.ignore(agent.tell("dig"))
      else if (dice < 75) yield* agent.interrupt
      else if (dice < 79) yield* roots.includes(agent) ? Effect.void : agent.stop
      else if (dice < 81) yield* agent.narrow({ blockedTools: ["work"] })
      else if (dice < 85) yield* semaphore.resize(yield* Random.nextIntBetween(1, most + 1))
      else if (dice < 88) {
        const fiber = asking.at(yield* Random.nextIntBetween(0, asking.length + 1))
        if (fiber !== undefined) yield* Fiber.interruptFork(fiber)
      } else yield* Effect.sleep(yield* Random.nextIntBetween(1, 20))
      assert.isAtMost((yield* semaphore.state).running, most)
    })
    yield* Effect.repeatN(act, perEpisode - 1)

    yield* semaphore.resize(budget)
    yield* Effect.forEach(roots, ({ stop }) => stop, { concurrency: "unbounded" })
    assert.deepStrictEqual(yield* semaphore.state, { limit: budget, running: 0, lent: 0, waiting: 0 })
    assert.strictEqual(counts.left, counts.entered)
    for (const fiber of asking) yield* Fiber.await(fiber)
    const below = yield* Effect.forEach(roots, ({ threadId }) => system.list(threadId))
    const known = new Map(below.flat().map((record) => [record.agentId, record]))
    for (const { id, record } of agents) known.set(id, yield* record)
    for (const { agentId, report, status, turns } of known.values()) {
      assert.include(turns === 0 ? ["idle"] : ["completed", "failed", "interrupted"], status)
      assert.strictEqual(report?.status, turns === 0 ? undefined : status)
      assert.isUndefined(yield* system.find(agentId))
    }
    yield* Scope.close(scope, Exit.void)
    return { known: known.size, entered: counts.entered }
  }).pipe(
    Effect.scoped,
    Effect.withRandom(random),
    Effect.provide(layer(wild(random), providers, { agents: { budget: { depth }, concurrency: budget } }))
  )
}

describe("a tree of agents to which anything happens", { timeout: 600_000 }, () => {
  it.live("holds no slot and runs nothing once it is stopped, and each agent's end is recorded", () =>
    Effect.gen(function*() {
      const seed = Math.floor(Math.random() * 2 ** 31)
      const rounds = Array.from({ length: Math.ceil(operations / perEpisode) }, (_, round) => round)
      const ended = yield* Effect.forEach(rounds, (round) =>
        episode(Random.make(`${seed}/${round}`)).pipe(
          Effect.timeout("60 seconds"),
          Effect.tapErrorCause(() => Effect.logError(`seed ${seed}, round ${round}`))
        ))
      // It was a tree, and it worked.
      assert.isAbove(Math.max(...ended.map(({ known }) => known)), 10)
      assert.isAbove(Math.max(...ended.map(({ entered }) => entered)), 3)
    }))
})
