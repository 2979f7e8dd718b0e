/**
 * What every `DelegationSemaphore` does, as data: run each law with a Layer of your own. A law sets the limit it needs.
 *
 * @since 0.1.0
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { DelegationSemaphore, type State } from "../../agent/DelegationSemaphore.ts"
import { equal, expect, type Law, law } from "./Law.ts"

/** The moment at which the numbers are as wanted. */
const until = (wanted: (state: State) => boolean) =>
  Effect.flatMap(
    DelegationSemaphore,
    ({ state }) => Effect.repeat(Effect.zipRight(Effect.yieldNow(), state), { until: (now) => wanted(now) })
  )

const limited = (limit: number) => Effect.tap(DelegationSemaphore, (semaphore) => semaphore.resize(limit))

const idle = (limit: number) =>
  Effect.flatMap(
    DelegationSemaphore,
    (semaphore) =>
      Effect.flatMap(semaphore.state, (state) =>
        equal(state, { limit, running: 0, lent: 0, waiting: 0 }, "the numbers at the end"))
  )

/** Holds a slot until told otherwise; completes once it does. */
const hold = Effect.gen(function*() {
  const semaphore = yield* DelegationSemaphore
  const entered = yield* Deferred.make<void>()
  const gate = yield* Deferred.make<void>()
  const fiber = yield* Effect.fork(
    semaphore.withSlot(() => Effect.zipRight(Deferred.succeed(entered, undefined), Deferred.await(gate)))
  )
  yield* Deferred.await(entered)
  return { release: Effect.zipRight(Deferred.succeed(gate, undefined), Fiber.join(fiber)) }
})

export const laws: ReadonlyArray<Law<DelegationSemaphore>> = [
  law(
    "admits in the order of asking, by both ways of asking, never more at once than the limit",
    Effect.scoped(Effect.gen(function*() {
      const semaphore = yield* limited(1)
      const { release } = yield* hold
      const order: Array<number> = []
      const note = (index: number) => () => Effect.zipRight(Effect.yieldNow(), Effect.sync(() => order.push(index)))
      const fibers = []
      for (let index = 0; index < 6; index++) {
        if (index % 2 === 0) yield* semaphore.fork(note(index))
        else fibers.push(yield* Effect.fork(semaphore.withSlot(note(index))))
        yield* until(({ waiting }) => waiting === index + 1)
      }
      yield* release
      yield* Fiber.joinAll(fibers)
      yield* until(({ running, waiting }) => running + waiting === 0)
      yield* equal(order, [0, 1, 2, 3, 4, 5], "the order")
    }))
  ),
  law(
    "takes a lent slot back ahead of everybody who was never admitted",
    Effect.scoped(Effect.gen(function*() {
      const semaphore = yield* limited(1)
      const order: Array<string> = []
      const note = (name: string) => Effect.sync(() => order.push(name))
      const gate = yield* Deferred.make<void>()
      const lender = yield* semaphore.fork((slot) => Effect.zipRight(slot.lend(Deferred.await(gate)), note("lender")))
      yield* until(({ lent }) => lent === 1)
      const { release } = yield* hold
      const stranger = yield* semaphore.fork(() => note("stranger"))
      yield* Deferred.succeed(gate, undefined)
      yield* until(({ lent, waiting }) => lent === 0 && waiting === 2)
      yield* release
      yield* lender.await
      yield* stranger.await
      yield* equal(order, ["lender", "stranger"], "the order")
      yield* idle(1)
    }))
  ),
  law(
    "lends a slot once however many of its fibers lend it, until the last of them ends",
    Effect.scoped(Effect.gen(function*() {
      const semaphore = yield* limited(1)
      const [one, two] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const lender = yield* semaphore.fork((slot) =>
        Effect.all([slot.lend(Deferred.await(one)), slot.lend(Deferred.await(two))], { concurrency: "unbounded" })
      )
      yield* until(({ lent, running }) => lent === 1 && running === 0)
      yield* Deferred.succeed(one, undefined)
      yield* (yield* hold).release
      yield* Effect.flatMap(semaphore.state, ({ lent, running }) => equal([lent, running], [1, 0], "lent and running"))
      yield* Deferred.succeed(two, undefined)
      yield* expect(Exit.isSuccess(yield* lender.await), "the lender did not end well")
      yield* idle(1)
    }))
  ),
  law(
    "keeps every slot after failures, defects and interruptions, in the slot, while it is lent and on its way back",
    Effect.gen(function*() {
      const semaphore = yield* limited(2)
      yield* Effect.exit(semaphore.withSlot(() => Effect.fail("no")))
      yield* Effect.exit(semaphore.withSlot((slot) => slot.lend(Effect.die("a bug"))))
      for (const lending of [false, true]) {
        const fiber = yield* Effect.fork(semaphore.withSlot((slot) => lending ? slot.lend(Effect.never) : Effect.never))
        yield* until(({ lent, running }) => lent + running === 1)
        yield* Fiber.interrupt(fiber)
      }
      yield* semaphore.resize(1)
      const gate = yield* Deferred.make<void>()
      const returning = yield* Effect.fork(semaphore.withSlot((slot) => slot.lend(Deferred.await(gate))))
      yield* until(({ lent }) => lent === 1)
      const { release } = yield* hold
      yield* Deferred.succeed(gate, undefined)
      yield* until(({ waiting }) => waiting === 1)
      yield* Fiber.interrupt(returning)
      yield* release
      yield* idle(1)
    })
  ),
  law(
    "lets a task that is cancelled in line leave it without running, and says so to who awaits it",
    Effect.scoped(Effect.gen(function*() {
      const semaphore = yield* limited(1)
      const { release } = yield* hold
      let ran = false
      const task = yield* semaphore.fork(() =>
        Effect.sync(() => {
          ran = true
        })
      )
      yield* task.cancel
      yield* expect(Exit.isInterrupted(yield* task.await), "the exit is no interruption")
      yield* release
      yield* idle(1)
      yield* expect(!ran, "the cancelled task ran")
    }))
  ),
  law(
    "interrupts what runs and cancels what waits when the scope closes, and returns after their finalizers",
    Effect.gen(function*() {
      const semaphore = yield* limited(1)
      const scope = yield* Scope.make()
      let ended = 0
      const work = Effect.ensuring(Effect.never, Effect.zipRight(Effect.yieldNow(), Effect.sync(() => ended++)))
      const tasks = yield* Effect.forEach([1, 2, 3], () => Scope.extend(semaphore.fork(() => work), scope))
      yield* until(({ running, waiting }) => running === 1 && waiting === 2)
      yield* Effect.repeatN(Effect.yieldNow(), 10)
      yield* Scope.close(scope, Exit.void)
      yield* equal(ended, 1, "finalizers that ran")
      for (const task of tasks) yield* expect(Exit.isInterrupted(yield* task.await), "the exit is no interruption")
      yield* idle(1)
    })
  ),
  law(
    "admits waiters when it grows, and takes nothing away when it shrinks",
    Effect.scoped(Effect.gen(function*() {
      const semaphore = yield* limited(3)
      const gate = yield* Deferred.make<void>()
      const tasks = yield* Effect.forEach([1, 2, 3, 4, 5], () => semaphore.fork(() => Deferred.await(gate)))
      yield* semaphore.resize(1)
      yield* Effect.flatMap(semaphore.state, ({ running }) => equal(running, 3, "running after shrinking"))
      yield* semaphore.resize(4)
      yield* Effect.flatMap(
        semaphore.state,
        ({ running, waiting }) => equal([running, waiting], [4, 1], "after growing")
      )
      yield* Deferred.succeed(gate, undefined)
      for (const task of tasks) yield* task.await
      yield* idle(4)
    }))
  ),
  law(
    "shows its numbers now and after a change",
    Effect.gen(function*() {
      const semaphore = yield* limited(2)
      const seen = yield* Deferred.make<void>()
      const watcher = yield* semaphore.changes.pipe(
        Stream.tap(({ running }) => running === 0 ? Deferred.succeed(seen, undefined) : Effect.void),
        Stream.filter(({ running }) => running === 1),
        Stream.runHead,
        Effect.fork
      )
      yield* Deferred.await(seen)
      const { release } = yield* hold
      yield* equal(
        Option.getOrUndefined(yield* Fiber.join(watcher)),
        { limit: 2, running: 1, lent: 0, waiting: 0 },
        "seen"
      )
      yield* release
    })
  )
]
