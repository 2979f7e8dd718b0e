import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as fc from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as FiberRef from "effect/FiberRef"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import * as DelegationSemaphore from "../../src/agent/DelegationSemaphore.ts"
import { laws } from "../../src/testing/contract/DelegationSemaphore.ts"
import { count } from "../support/counts.ts"

type Semaphore = typeof DelegationSemaphore.DelegationSemaphore.Service
type Slot = DelegationSemaphore.Slot

const until = (semaphore: Semaphore, wanted: (state: DelegationSemaphore.State) => boolean) =>
  Effect.repeat(Effect.zipRight(Effect.yieldNow(), semaphore.state), {
    until: (now) => wanted(now)
  })

const idle = (limit: number): DelegationSemaphore.State => ({ limit, running: 0, lent: 0, waiting: 0 })

/** A tree of agents, each in a slot and each waiting for its children; only leaves work. */
const trees = (semaphore: Semaphore, roots: number, depth: number) =>
  Effect.gen(function*() {
    let running = 0
    let peak = 0
    let leaves = 0
    const leaf = Effect.acquireUseRelease(
      Effect.sync(() => peak = Math.max(peak, ++running)),
      () => Effect.sleep("1 second"),
      () => Effect.sync(() => (running--, leaves++))
    )
    const agent = (level: number) => (slot: Slot): Effect.Effect<void> =>
      level === 0
        ? leaf
        : Effect.scoped(Effect.gen(function*() {
          const children = yield* Effect.forEach([1, 2], () => semaphore.fork(agent(level - 1)))
          yield* slot.lend(Effect.forEach(children, (child) => child.await, { discard: true }))
        }))
    const fiber = yield* Effect.fork(Effect.scoped(Effect.flatMap(
      Effect.forEach(Array.from({ length: roots }), () => semaphore.fork(agent(depth))),
      Effect.forEach((task) => task.await)
    )))
    yield* TestClock.adjust("10 minutes")
    const exits = yield* Fiber.join(fiber)
    assert.isTrue(exits.every(Exit.isSuccess))
    return { peak, leaves }
  })

describe("DelegationSemaphore", () => {
  for (const { law, name } of laws) it.scoped(name, () => Effect.provide(law, DelegationSemaphore.layer()))

  it.scoped("finishes a tree of depth five with one slot, one leaf at a time", () =>
    Effect.gen(function*() {
      const semaphore = yield* DelegationSemaphore.make(1)
      assert.deepStrictEqual(yield* trees(semaphore, 1, 5), { peak: 1, leaves: 32 })
      assert.deepStrictEqual(yield* semaphore.state, idle(1))
    }))

  it.scoped("finishes two parents that hold every slot, and runs no more leaves than slots", () =>
    Effect.gen(function*() {
      const semaphore = yield* DelegationSemaphore.make(2)
      assert.deepStrictEqual(yield* trees(semaphore, 2, 3), { peak: 2, leaves: 16 })
      assert.deepStrictEqual(yield* semaphore.state, idle(2))
    }))

  // A fiber that yields often lets others run between any two of its steps.
  for (const opsBeforeYield of [17, 29, 2048]) {
    it.scoped(
      `is exact after interruptions, resizes, lends and failures at random, yielding every ${opsBeforeYield}`,
      () =>
        Effect.gen(function*() {
          const operations = count({ quick: 250, soak: 5000 })
          const plan = fc.sample(fc.record({ kind: fc.nat(9), steps: fc.nat(12), target: fc.nat(1_000_000) }), {
            numRuns: operations,
            seed: 11 + opsBeforeYield
          })
          const semaphore = yield* DelegationSemaphore.make(2)
          const scope = yield* Scope.make()
          const asked: Array<number> = []
          const admitted: Array<number> = []
          const cancels: Array<Effect.Effect<unknown>> = []
          const ends: Array<Effect.Effect<unknown>> = []
          const work = (index: number, kind: number, steps: number) => (slot: Slot) => {
            const pause = Effect.repeatN(Effect.yieldNow(), steps)
            const end = kind === 0 ? Effect.fail("no") : kind === 1 ? Effect.die("a bug") : Effect.void
            const lending = kind < 3
              ? slot.lend(pause)
              : kind < 5
              ? Effect.ensuring(slot.lend(pause), slot.lend(pause))
              : kind < 7
              ? Effect.race(slot.lend(pause), slot.lend(Effect.zipRight(Effect.yieldNow(), slot.lend(pause))))
              : pause
            return Effect.sync(() => admitted.push(index)).pipe(
              Effect.zipRight(pause),
              Effect.zipRight(lending),
              Effect.zipRight(pause),
              Effect.zipRight(end)
            )
          }
          for (const [index, { kind, steps, target }] of plan.entries()) {
            const run = work(index, kind, steps)
            if (target % 3 === 0) {
              const fiber = yield* Effect.fork(semaphore.withSlot(run))
              ends.push(Fiber.await(fiber))
              cancels.push(Fiber.interrupt(fiber))
            } else {
              asked.push(index)
              const task = yield* Scope.extend(semaphore.fork(run), scope)
              ends.push(task.await)
              cancels.push(task.cancel)
            }
            const victim = cancels[target % cancels.length]
            if (target % 2 === 0 && victim !== undefined) ends.push(Fiber.await(yield* Effect.fork(victim)))
            if (target % 5 === 0) yield* semaphore.resize(1 + target % 7)
            if (target % 4 === 0) yield* Effect.repeatN(Effect.yieldNow(), steps)
          }
          yield* Effect.forEach(ends, (end) => end, { discard: true })
          yield* semaphore.resize(3)
          assert.deepStrictEqual(yield* semaphore.state, idle(3))
          // What is admitted at once may overtake in its first steps when these yield.
          if (opsBeforeYield === 2048) {
            const forked = new Set(asked)
            const order = admitted.filter((index) => forked.has(index))
            assert.deepStrictEqual(order, [...order].sort((left, right) => left - right))
          }
          yield* Scope.close(scope, Exit.void)
        }).pipe(Effect.withMaxOpsBeforeYield(opsBeforeYield)),
      300_000
    )
  }

  it.scoped("starts a thousand tasks in the order in which they were forked, one at a time", () =>
    Effect.scoped(Effect.gen(function*() {
      const semaphore = yield* DelegationSemaphore.make(1)
      const order: Array<number> = []
      const gate = yield* Deferred.make<void>()
      yield* semaphore.fork(() => Deferred.await(gate))
      const tasks = yield* Effect.forEach(
        Array.from({ length: 1000 }, (_, index) => index),
        (index) => semaphore.fork(() => Effect.zipRight(Effect.yieldNow(), Effect.sync(() => order.push(index))))
      )
      assert.deepStrictEqual([order.length, (yield* semaphore.state).waiting], [0, 1000])
      yield* Deferred.succeed(gate, undefined)
      yield* Effect.forEach(tasks, (task) => task.await, { discard: true })
      assert.deepStrictEqual(order, Array.from({ length: 1000 }, (_, index) => index))
    })))

  it.scoped("cancels a hundred in line at once, and none of them runs", () =>
    Effect.scoped(Effect.gen(function*() {
      const semaphore = yield* DelegationSemaphore.make(1)
      let ran = 0
      const first = yield* semaphore.fork(() => Effect.never)
      const tasks = yield* Effect.forEach(Array.from({ length: 100 }), () =>
        semaphore.fork(() => Effect.sync(() => ran++)))
      yield* Effect.forEach(tasks, (task) =>
        task.cancel, { concurrency: "unbounded", discard: true })
      assert.deepStrictEqual(yield* semaphore.state, { limit: 1, running: 1, lent: 0, waiting: 0 })
      yield* first.cancel
      assert.deepStrictEqual([ran, yield* semaphore.state], [0, idle(1)])
    })))

  it.scoped("gives a task the services and references of its owner, not those of who made room for it", () =>
    Effect.scoped(Effect.gen(function*() {
      const Name = Context.GenericTag<string>("test/Name")
      const semaphore = yield* DelegationSemaphore.make(1)
      const reference = yield* FiberRef.make("nobody's")
      const gate = yield* Deferred.make<void>()
      const as = (name: string) => <A, E, R>(effect: Effect.Effect<A, E, R>) =>
        Effect.provideService(Effect.locally(effect, reference, name), Name, name)
      yield* as("first")(semaphore.fork(() => Deferred.await(gate)))
      const task = yield* as("second")(semaphore.fork(() => Effect.all([Name, FiberRef.get(reference)])))
      yield* Deferred.succeed(gate, undefined)
      assert.deepStrictEqual(yield* task.await, Exit.succeed<[string, string]>(["second", "second"]))
    })))

  it.scoped("cancels what was forked where interruption is disabled, and in a scope that is closed already", () =>
    Effect.gen(function*() {
      const semaphore = yield* DelegationSemaphore.make(1)
      const scope = yield* Scope.make()
      const task = yield* Effect.uninterruptible(Scope.extend(semaphore.fork(() => Effect.never), scope))
      yield* until(semaphore, ({ running }) => running === 1)
      yield* task.cancel
      yield* Scope.close(scope, Exit.void)
      const late = yield* Scope.extend(semaphore.fork(() => Effect.die("must not run")), scope)
      assert.isTrue(Exit.isInterrupted(yield* late.await))
      assert.deepStrictEqual(yield* semaphore.state, idle(1))
    }))

  it.scoped("releases what was acquired before the first fork after every task of the scope", () =>
    Effect.gen(function*() {
      const semaphore = yield* DelegationSemaphore.make(1)
      const events: Array<string> = []
      const note = (event: string) => Effect.sync(() => events.push(event))
      yield* Effect.scoped(Effect.gen(function*() {
        yield* Effect.addFinalizer(() => note("resource released"))
        yield* Effect.flatMap(semaphore.fork(() => note("first ran")), (task) => task.await)
        const started = yield* Deferred.make<void>()
        yield* semaphore.fork(() =>
          Effect.ensuring(Effect.zipRight(Deferred.succeed(started, undefined), Effect.never), note("second stopped"))
        )
        yield* Deferred.await(started)
      }))
      assert.deepStrictEqual(events, ["first ran", "second stopped", "resource released"])
    }))

  it.scoped("goes on after a lender that gave up waiting, and holds its slot again when there is one", () =>
    Effect.scoped(Effect.gen(function*() {
      const semaphore = yield* DelegationSemaphore.make(1)
      const [other, end] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const task = yield* semaphore.fork((slot) =>
        Effect.zipRight(Effect.timeoutOption(slot.lend(Effect.never), "1 second"), Deferred.await(end))
      )
      yield* until(semaphore, ({ lent }) => lent === 1)
      yield* semaphore.fork(() => Deferred.await(other))
      yield* TestClock.adjust("1 second")
      yield* until(semaphore, ({ running, waiting }) => running === 1 && waiting === 1)
      yield* Deferred.succeed(other, undefined)
      yield* until(semaphore, ({ running, waiting }) => running === 1 && waiting === 0)
      yield* Deferred.succeed(end, undefined)
      assert.isTrue(Exit.isSuccess(yield* task.await))
      assert.deepStrictEqual(yield* semaphore.state, idle(1))
    })))

  it.scoped("only runs the effect when a slot is lent that has ended", () =>
    Effect.gen(function*() {
      const semaphore = yield* DelegationSemaphore.make(1)
      const slot = yield* semaphore.withSlot(Effect.succeed)
      assert.strictEqual(yield* slot.lend(Effect.succeed(7)), 7)
      assert.deepStrictEqual(yield* semaphore.state, idle(1))
    }))

  it.scoped("lets a task end itself", () =>
    Effect.scoped(Effect.gen(function*() {
      const semaphore = yield* DelegationSemaphore.make(1)
      const self = yield* Deferred.make<Effect.Effect<void>>()
      const task = yield* semaphore.fork(() => Effect.zipRight(Effect.flatten(Deferred.await(self)), Effect.never))
      yield* Deferred.succeed(self, task.cancel)
      assert.isTrue(Exit.isInterrupted(yield* task.await))
    })))

  it.scoped("takes a limit of less than one, or none at all, for one", () =>
    Effect.gen(function*() {
      for (const limit of [0, -3, Number.NaN]) {
        const semaphore = yield* DelegationSemaphore.make(limit)
        assert.strictEqual(yield* semaphore.withSlot(() => Effect.succeed("ran")), "ran")
        yield* semaphore.resize(limit)
        assert.deepStrictEqual(yield* semaphore.state, idle(1))
      }
    }))
})
