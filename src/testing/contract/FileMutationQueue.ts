/**
 * What every `FileMutationQueue` does, as data: run each law with a Layer of your own.
 *
 * @since 0.1.0
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import type { FileError, LockCode } from "../../file/FileError.ts"
import { FileMutationQueue } from "../../file/FileMutationQueue.ts"

/** Succeeds when the law holds; fails with what does not. */
export interface Law {
  readonly name: string
  readonly law: Effect.Effect<void, string | FileError<LockCode>, FileMutationQueue>
}

const check = (holds: boolean, otherwise: string): Effect.Effect<void, string> =>
  holds ? Effect.void : Effect.fail(otherwise)

/** Lets every other fiber come to its next wait. */
const settle = Effect.repeatN(Effect.yieldNow(), 50)

/** Holds `path` until told otherwise; completes once it does. */
const hold = Effect.fnUntraced(function*(path: string) {
  const queue = yield* FileMutationQueue
  const entered = yield* Deferred.make<void>()
  const gate = yield* Deferred.make<void>()
  const fiber = yield* Effect.fork(
    queue.withFile(path, Effect.zipRight(Deferred.succeed(entered, undefined), Deferred.await(gate)))
  )
  yield* Deferred.await(entered)
  return { release: Effect.zipRight(Deferred.succeed(gate, undefined), Fiber.join(fiber)) }
})

export const laws: ReadonlyArray<Law> = [
  {
    name: "serves one file in the order of asking, one at a time",
    law: Effect.gen(function*() {
      const queue = yield* FileMutationQueue
      const { release } = yield* hold("/laws/one")
      const order: Array<number> = []
      let inside = 0
      let peak = 0
      const fibers = []
      for (let index = 0; index < 5; index++) {
        fibers.push(
          yield* Effect.fork(queue.withFile(
            "/laws/one",
            Effect.gen(function*() {
              inside++
              peak = Math.max(peak, inside)
              order.push(index)
              yield* Effect.yieldNow()
              inside--
            })
          ))
        )
        yield* settle
      }
      yield* release
      yield* Fiber.joinAll(fibers)
      yield* check(order.join() === "0,1,2,3,4", `the order was ${order.join()}`)
      yield* check(peak === 1, `${peak} were inside at once`)
    })
  },
  {
    name: "does not hold up another file",
    law: Effect.gen(function*() {
      const queue = yield* FileMutationQueue
      const { release } = yield* hold("/laws/busy")
      yield* queue.withFile("/laws/free", Effect.void)
      yield* release
    })
  },
  {
    name: "lets an interrupted waiter leave the line without running",
    law: Effect.gen(function*() {
      const queue = yield* FileMutationQueue
      const { release } = yield* hold("/laws/left")
      let ran = false
      const gone = yield* Effect.fork(queue.withFile(
        "/laws/left",
        Effect.sync(() => {
          ran = true
        })
      ))
      yield* settle
      yield* Fiber.interrupt(gone)
      yield* release
      yield* queue.withFile("/laws/left", Effect.void)
      yield* check(!ran, "the interrupted waiter ran")
    })
  },
  {
    name: "frees the file after a failure, a defect and an interruption",
    law: Effect.gen(function*() {
      const queue = yield* FileMutationQueue
      yield* Effect.exit(queue.withFile("/laws/freed", Effect.fail("no")))
      yield* Effect.exit(queue.withFile("/laws/freed", Effect.die("a bug")))
      const fiber = yield* Effect.fork(queue.withFile("/laws/freed", Effect.never))
      yield* settle
      yield* Fiber.interrupt(fiber)
      yield* queue.withFile("/laws/freed", Effect.void)
    })
  },
  {
    name: "takes several files without a deadlock, in whatever order they are named, and one named twice",
    law: Effect.gen(function*() {
      const queue = yield* FileMutationQueue
      let inside = 0
      let peak = 0
      const work = Effect.gen(function*() {
        inside++
        peak = Math.max(peak, inside)
        yield* Effect.yieldNow()
        inside--
      })
      const orders = [["/laws/a", "/laws/b", "/laws/a"], ["/laws/b", "/laws/a"], ["/laws/c", "/laws/b", "/laws/a"]]
      yield* Effect.forEach([...orders, ...orders, ...orders], (paths) => queue.withFiles(paths, work), {
        concurrency: "unbounded",
        discard: true
      })
      yield* check(peak === 1, `${peak} were inside at once`)
    })
  },
  {
    name: "lets any of its waiters leave at once, and serves the others in the order of asking",
    law: Effect.gen(function*() {
      const queue = yield* FileMutationQueue
      const { release } = yield* hold("/laws/leave")
      const order: Array<number> = []
      const fibers = []
      for (let index = 0; index < 20; index++) {
        fibers.push(yield* Effect.fork(queue.withFile("/laws/leave", Effect.sync(() => order.push(index)))))
        yield* settle
      }
      const leaving = yield* Effect.map(Random.shuffle(Array.from(fibers.keys())), (all) => [...all].slice(0, 8))
      for (const index of leaving) {
        yield* Effect.fromNullable(fibers[index]).pipe(Effect.orDie, Effect.flatMap(Fiber.interrupt))
      }
      const { waiting } = yield* queue.metrics
      yield* check(waiting === 12, `${waiting} wait instead of 12`)
      yield* release
      yield* Effect.forEach(fibers, Fiber.await)
      const staying = Array.from(fibers.keys()).filter((index) => !leaving.includes(index))
      yield* check(order.join() === staying.join(), `${order.join()} instead of ${staying.join()}`)
    })
  },
  {
    name: "says how many wait and what is held",
    law: Effect.gen(function*() {
      const queue = yield* FileMutationQueue
      const one = yield* hold("/laws/counted")
      const other = yield* hold("/laws/counted too")
      const waiter = yield* Effect.fork(queue.withFile("/laws/counted", Effect.void))
      const gone = yield* Effect.fork(queue.withFile("/laws/counted", Effect.void))
      yield* settle
      yield* Fiber.interrupt(gone)
      const busy = yield* queue.metrics
      yield* check(busy.waiting === 1 && busy.held === 2, `${busy.waiting} waited for ${busy.held}`)
      yield* one.release
      yield* other.release
      yield* Fiber.join(waiter)
      const idle = yield* queue.metrics
      yield* check(idle.waiting === 0 && idle.held === 0, `${idle.waiting} waited for ${idle.held} in the end`)
      yield* check(idle.longestWaitMs >= 0, `the longest wait was ${idle.longestWaitMs}`)
    })
  },
  {
    name: "gives back what the effect gives, and fails as it fails",
    law: Effect.gen(function*() {
      const queue = yield* FileMutationQueue
      yield* check((yield* queue.withFile("/laws/value", Effect.succeed(7))) === 7, "the value was lost")
      yield* check((yield* queue.withFiles([], Effect.succeed(8))) === 8, "holding nothing did not run")
      const failed = yield* Effect.flip(queue.withFiles(["/laws/value"], Effect.fail("as told")))
      yield* check(failed === "as told", "the failure was lost")
    })
  }
]
