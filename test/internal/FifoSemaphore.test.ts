import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as fc from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as FifoSemaphore from "../../src/internal/FifoSemaphore.ts"

const untilWaiting = (semaphore: FifoSemaphore.FifoSemaphore, count: number) =>
  Effect.repeat(Effect.zipRight(Effect.yieldNow(), semaphore.waiting), { until: (waiting) => waiting === count })

describe("FifoSemaphore", () => {
  it.effect("serves waiters in the order in which they came, and lets nobody overtake", () =>
    Effect.gen(function*() {
      const semaphore = yield* FifoSemaphore.make(1)
      const gate = yield* Deferred.make<void>()
      const order: Array<string> = []
      const record = (name: string) => Effect.sync(() => void order.push(name))
      const holder = yield* Effect.fork(
        Effect.zipRight(
          semaphore.withPermit(Deferred.await(gate)),
          semaphore.withPermit(record("holder again"))
        )
      )
      yield* Effect.yieldNow()
      const fibers = []
      for (const name of ["first", "second", "third"]) {
        fibers.push(yield* Effect.fork(semaphore.withPermit(Effect.zipRight(Effect.yieldNow(), record(name)))))
        yield* untilWaiting(semaphore, fibers.length)
      }
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.joinAll([holder, ...fibers])
      assert.deepStrictEqual(order, ["first", "second", "third", "holder again"])
    }))

  it.effect("lets as many in as it has permits", () =>
    Effect.gen(function*() {
      const semaphore = yield* FifoSemaphore.make(3)
      let running = 0
      let peak = 0
      const work = Effect.sync(() => {
        running++
        peak = Math.max(peak, running)
      }).pipe(Effect.zipRight(Effect.yieldNow()), Effect.zipRight(Effect.sync(() => running--)))
      yield* Effect.forEach(Array.from({ length: 50 }), () => semaphore.withPermit(work), { concurrency: "unbounded" })
      assert.deepStrictEqual([peak, running], [3, 0])
    }))

  it.effect("forgets a waiter that is interrupted and gives its place to the next", () =>
    Effect.gen(function*() {
      const semaphore = yield* FifoSemaphore.make(1)
      const gate = yield* Deferred.make<void>()
      const holder = yield* Effect.fork(semaphore.withPermit(Deferred.await(gate)))
      yield* Effect.yieldNow()
      const gone = yield* Effect.fork(semaphore.withPermit(Effect.die("must not run")))
      yield* untilWaiting(semaphore, 1)
      const next = yield* Effect.fork(semaphore.withPermit(Effect.succeed("served")))
      yield* untilWaiting(semaphore, 2)
      yield* Fiber.interrupt(gone)
      assert.strictEqual(yield* semaphore.waiting, 1)
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual(yield* Fiber.join(next), "served")
      yield* Fiber.join(holder)
    }))

  it.effect("passes the permit on when a waiter is interrupted in the moment it is served", () =>
    Effect.gen(function*() {
      const semaphore = yield* FifoSemaphore.make(1)
      const gate = yield* Deferred.make<void>()
      const holder = yield* Effect.fork(semaphore.withPermit(Deferred.await(gate)))
      yield* Effect.yieldNow()
      const unlucky = yield* Effect.fork(semaphore.withPermit(Effect.void))
      yield* untilWaiting(semaphore, 1)
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(holder)
      yield* Fiber.interrupt(unlucky)
      assert.isTrue(Exit.isSuccess(yield* Effect.exit(semaphore.withPermit(Effect.void))))
    }))

  it.effect("has all its permits after failures, defects and interruptions at random", () =>
    Effect.gen(function*() {
      const random = fc.sample(fc.array(fc.nat(30), { minLength: 40, maxLength: 40 }), { numRuns: 150, seed: 7 })
      for (const round of random) {
        const semaphore = yield* FifoSemaphore.make(2)
        const fibers = yield* Effect.forEach(round, (steps) =>
          Effect.fork(semaphore.withPermit(
            Effect.repeatN(Effect.yieldNow(), steps).pipe(
              Effect.zipRight(steps % 5 === 0 ? Effect.fail("no") : steps % 7 === 0 ? Effect.die("bug") : Effect.void)
            )
          )))
        for (const [index, fiber] of fibers.entries()) {
          if ((round[index] ?? 0) % 2 === 0) yield* Effect.fork(Fiber.interrupt(fiber))
          if ((round[index] ?? 0) % 3 === 0) yield* Effect.yieldNow()
        }
        yield* Effect.forEach(fibers, Fiber.await)
        assert.strictEqual(yield* semaphore.waiting, 0)
        const gate = yield* Deferred.make<void>()
        const inside = yield* Effect.forEach([1, 2], () => Effect.fork(semaphore.withPermit(Deferred.await(gate))))
        yield* Effect.yieldNow()
        assert.strictEqual(yield* semaphore.waiting, 0)
        const third = yield* Effect.fork(semaphore.withPermit(Effect.void))
        yield* untilWaiting(semaphore, 1)
        yield* Deferred.succeed(gate, undefined)
        yield* Fiber.joinAll([...inside, third])
      }
    }))

  it.effect("stays linear with thousands of waiters", () =>
    Effect.gen(function*() {
      const semaphore = yield* FifoSemaphore.make(1)
      const order: Array<number> = []
      const started = performance.now()
      yield* Effect.forEach(
        Array.from({ length: 4000 }, (_, index) => index),
        (index) => semaphore.withPermit(Effect.zipRight(Effect.yieldNow(), Effect.sync(() => order.push(index)))),
        { concurrency: "unbounded" }
      )
      assert.isTrue(order.every((value, index) => value === index))
      assert.isBelow(performance.now() - started, 5000)
    }))
})
