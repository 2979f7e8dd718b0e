import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import * as FileMutationQueue from "../../src/file/FileMutationQueue.ts"
import { laws } from "../../src/testing/contract/FileMutationQueue.ts"

describe("FileMutationQueue in process", () => {
  for (const { law, name } of laws) {
    it.effect(name, () => Effect.provide(law, FileMutationQueue.layerInProcess))
  }

  it.effect("tells the longest wait so far, also one that has not ended or ended in an interruption", () =>
    Effect.gen(function*() {
      const queue = yield* FileMutationQueue.make
      const gate = yield* Deferred.make<void>()
      const longest = Effect.map(queue.metrics, ({ longestWaitMs }) => longestWaitMs)
      const holder = yield* Effect.fork(queue.withFile("/f", Deferred.await(gate)))
      yield* TestClock.adjust("1 second")
      const first = yield* Effect.fork(queue.withFile("/f", Effect.void))
      yield* TestClock.adjust("2 seconds")
      const second = yield* Effect.fork(queue.withFile("/f", Effect.void))
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual(yield* longest, 5000)
      yield* Fiber.interrupt(first)
      assert.strictEqual(yield* longest, 5000)
      yield* TestClock.adjust("4 seconds")
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.joinAll([holder, second])
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(yield* longest, 7000)
    }))
})

describe("FileMutationQueue over locks", () => {
  /** A lock that says what is done with it. */
  const recording = () => {
    const said: Array<string> = []
    const lockOf = (path: string): FileMutationQueue.Lock => ({
      take: () => Effect.sync(() => void said.push(`take ${path}`)),
      release: () => void said.push(`release ${path}`)
    })
    return { said, queue: FileMutationQueue.makeOver(lockOf, 100) }
  }

  it.effect("takes one lock for a burst, and gives it back when the line is empty", () =>
    Effect.gen(function*() {
      const { queue, said } = recording()
      yield* Effect.all([1, 2, 3].map(() => queue.withFile("/f", Effect.yieldNow())), { concurrency: 3 })
      yield* queue.withFile("/f", Effect.void)
      assert.deepStrictEqual(said, ["take /f", "release /f", "take /f", "release /f"])
    }))

  it.effect("gives the lock back in the midst of a burst when its turn is over", () =>
    Effect.gen(function*() {
      const { queue, said } = recording()
      const fiber = yield* Effect.fork(
        Effect.all([1, 2, 3, 4].map(() => queue.withFile("/f", Effect.sleep(60))), { concurrency: 4 })
      )
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(said, ["take /f", "release /f", "take /f", "release /f"])
    }))

  it.effect("gives the lock back when the last of the line leaves it, instead of running", () =>
    Effect.gen(function*() {
      const { queue, said } = recording()
      const gate = yield* Deferred.make<void>()
      const holder = yield* Effect.fork(queue.withFile("/f", Deferred.await(gate)))
      yield* Effect.yieldNow()
      const waiter = yield* Effect.fork(queue.withFile("/f", Effect.never))
      yield* Effect.yieldNow()
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(holder)
      yield* Fiber.interrupt(waiter)
      assert.deepStrictEqual(said, ["take /f", "release /f"])
    }))

  it.effect("does not run what could not be locked, and lets the next one try", () =>
    Effect.gen(function*() {
      let tries = 0
      const queue = FileMutationQueue.makeOver(() => ({
        take: () => ++tries === 1 ? Effect.die("no lock") : Effect.void,
        release: () => undefined
      }), 100)
      const ran: Array<number> = []
      const exits = yield* Effect.all(
        [1, 2].map((index) => Effect.exit(queue.withFile("/f", Effect.sync(() => ran.push(index))))),
        { concurrency: 2 }
      )
      assert.deepStrictEqual(exits.map(({ _tag }) => _tag), ["Failure", "Success"])
      assert.deepStrictEqual(ran, [2])
      assert.deepStrictEqual((yield* queue.metrics).waiting, 0)
    }))
})
