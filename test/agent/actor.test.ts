import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Actor from "../../src/agent/actor.ts"

/** An actor that writes down what it does; `hold` keeps a message until it is let go. */
const make = (options: { readonly capacity?: number; readonly lazy?: boolean } = {}) =>
  Effect.gen(function*() {
    const scope = yield* Effect.scope
    const log: Array<string> = []
    const gates = new Map<string, Deferred.Deferred<void>>()
    const waiting: Array<{ readonly start: Effect.Effect<void>; readonly cancelled: { value: boolean } }> = []
    const gate = (message: string) =>
      Effect.flatMap(Deferred.make<void>(), (made) => Effect.as(Effect.sync(() => gates.set(message, made)), made))
    const actor = yield* Actor.make<string, string>({
      capacity: options.capacity ?? 4,
      run: (message) =>
        Effect.interruptible(Effect.gen(function*() {
          log.push(`start ${message}`)
          if (message.startsWith("hold")) yield* Effect.flatMap(gate(message), Deferred.await)
          log.push(`done ${message}`)
          return `answer to ${message}`
        })),
      cut: (message) => Effect.sync(() => (log.push(`cut ${message}`), `no answer to ${message}`)),
      fork: (self) =>
        options.lazy === true
          ? Effect.sync(() => {
            const cancelled = { value: false }
            waiting.push({ start: Effect.asVoid(Effect.forkIn(self, scope)), cancelled })
            return { cancel: Effect.sync(() => void (cancelled.value = true)) }
          })
          : Effect.map(Effect.forkIn(self, scope), (fiber) => ({ cancel: Effect.asVoid(Fiber.interrupt(fiber)) }))
    })
    const letGo = (message: string) =>
      Effect.suspend(() => {
        const found = gates.get(message)
        return found === undefined ? Effect.void : Effect.asVoid(Deferred.succeed(found, undefined))
      })
    const started = (message: string): Effect.Effect<void> =>
      Effect.suspend(() =>
        log.includes(`start ${message}`) ? Effect.void : Effect.zipRight(Effect.yieldNow(), started(message))
      )
    return { actor, log, letGo, started, waiting }
  })

describe("Actor", () => {
  it.scoped("handles one message at a time, in the order of their arrival", () =>
    Effect.gen(function*() {
      const { actor, letGo, log, started } = yield* make()
      const first = yield* Effect.fork(actor.ask("hold 1"))
      yield* started("hold 1")
      const second = yield* Effect.fork(actor.ask("2"))
      yield* actor.tell("3").pipe(Effect.delay("1 millis"), Effect.fork)
      yield* Effect.yieldNow()
      assert.deepStrictEqual(log, ["start hold 1"])
      yield* letGo("hold 1")
      assert.strictEqual(yield* Fiber.join(first), "answer to hold 1")
      assert.strictEqual(yield* Fiber.join(second), "answer to 2")
    }))

  it.scoped("refuses a message when its mailbox is full, and takes the next one when there is room", () =>
    Effect.gen(function*() {
      const { actor, letGo, started } = yield* make({ capacity: 2 })
      yield* actor.tell("hold 1")
      yield* started("hold 1")
      yield* actor.tell("2")
      yield* actor.tell("3")
      assert.strictEqual(yield* Effect.flip(actor.tell("4")), "full")
      yield* letGo("hold 1")
      yield* started("3")
      yield* actor.tell("5")
      yield* started("5")
    }))

  it.scoped("takes a waiting message back when its asker is interrupted, and goes on with the others", () =>
    Effect.gen(function*() {
      const { actor, letGo, log, started } = yield* make()
      yield* actor.tell("hold 1")
      yield* started("hold 1")
      const asker = yield* Effect.fork(actor.ask("2"))
      yield* Effect.yieldNow()
      yield* actor.tell("3")
      yield* Fiber.interrupt(asker)
      yield* letGo("hold 1")
      yield* started("3")
      assert.isFalse(log.includes("start 2"))
      assert.isFalse(log.includes("cut 2"))
    }))

  it.scoped("interrupts what its interrupted asker had started, and has it cut before the interruption is over", () =>
    Effect.gen(function*() {
      const { actor, log, started } = yield* make()
      const asker = yield* Effect.fork(actor.ask("hold 1"))
      yield* started("hold 1")
      yield* Fiber.interrupt(asker)
      assert.deepStrictEqual(log, ["start hold 1", "cut hold 1"])
      assert.strictEqual(yield* actor.ask("2"), "answer to 2")
    }))

  it.scoped("interrupts the current message alone, and says whether there was one", () =>
    Effect.gen(function*() {
      const { actor, log, started } = yield* make()
      assert.isFalse(yield* actor.interrupt)
      const first = yield* Effect.fork(actor.ask("hold 1"))
      yield* started("hold 1")
      const second = yield* Effect.fork(actor.ask("2"))
      yield* Effect.yieldNow()
      assert.isTrue(yield* actor.interrupt)
      assert.strictEqual(yield* Fiber.join(first), "no answer to hold 1")
      assert.strictEqual(yield* Fiber.join(second), "answer to 2")
      assert.deepStrictEqual(log, ["start hold 1", "cut hold 1", "start 2", "done 2"])
    }))

  it.scoped("cuts a message whose fiber never began", () =>
    Effect.gen(function*() {
      const { actor, log, waiting } = yield* make({ lazy: true })
      const asker = yield* Effect.fork(actor.ask("1"))
      yield* Effect.yieldNow()
      assert.strictEqual(waiting.length, 1)
      assert.isTrue(yield* actor.interrupt)
      assert.strictEqual(yield* Fiber.join(asker), "no answer to 1")
      assert.isTrue(waiting[0]?.cancelled.value)
      assert.deepStrictEqual(log, ["cut 1"])
    }))

  it.scoped("answers every asker when it is stopped, takes nothing more, and may be stopped twice at once", () =>
    Effect.gen(function*() {
      const { actor, log, started } = yield* make()
      const askers = yield* Effect.forEach(["hold 1", "2", "3"], (message) => Effect.fork(actor.ask(message)))
      yield* started("hold 1")
      yield* Effect.all([actor.stop, actor.stop], { concurrency: "unbounded" })
      assert.deepStrictEqual(yield* Effect.forEach(askers, Fiber.join), [
        "no answer to hold 1",
        "no answer to 2",
        "no answer to 3"
      ])
      assert.strictEqual(yield* Effect.flip(actor.ask("4")), "stopped")
      assert.deepStrictEqual(log.filter((line) => line.startsWith("start")), ["start hold 1"])
    }))

  it.scoped("lets go of an asker that is interrupted while the actor is being stopped, once its message has ended", () =>
    Effect.gen(function*() {
      const scope = yield* Effect.scope
      const cutting = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      const cut: Array<string> = []
      const actor = yield* Actor.make<string, string>({
        capacity: 4,
        run: () => Effect.interruptible(Effect.never),
        cut: (message) =>
          Effect.zipRight(Deferred.succeed(cutting, undefined), Deferred.await(goOn)).pipe(
            Effect.as(message),
            Effect.tap(() => Effect.sync(() => cut.push(message)))
          ),
        fork: (self) =>
          Effect.map(Effect.forkIn(self, scope), (fiber) => ({ cancel: Effect.asVoid(Fiber.interrupt(fiber)) }))
      })
      const askers = yield* Effect.forEach(
        ["1", "2", "3"],
        (message) => Effect.zipLeft(Effect.fork(actor.ask(message)), Effect.yieldNow())
      )
      const stopping = yield* Effect.fork(actor.stop)
      yield* Deferred.await(cutting)
      const interrupting = yield* Effect.fork(Effect.forEach(askers, Fiber.interrupt, { concurrency: "unbounded" }))
      yield* Effect.repeatN(Effect.yieldNow(), 20)
      yield* Deferred.succeed(goOn, undefined)
      const exits = yield* Fiber.join(interrupting)
      assert.isTrue(exits.every(Exit.isInterrupted))
      yield* Fiber.join(stopping)
      assert.deepStrictEqual([...cut].sort(), ["1", "2", "3"])
    }))

  it.scoped("keeps the answer of what was done before its interruption arrived", () =>
    Effect.gen(function*() {
      const scope = yield* Effect.scope
      const saving = yield* Deferred.make<void>()
      const saved = yield* Deferred.make<void>()
      let cuts = 0
      const actor = yield* Actor.make<string, string>({
        capacity: 1,
        run: (message) =>
          Effect.as(Effect.zipRight(Deferred.succeed(saving, undefined), Deferred.await(saved)), message),
        cut: () => Effect.sync(() => `${++cuts}`),
        fork: (self) =>
          Effect.map(Effect.forkIn(self, scope), (fiber) => ({ cancel: Effect.asVoid(Fiber.interrupt(fiber)) }))
      })
      const asker = yield* Effect.fork(actor.ask("done"))
      yield* Deferred.await(saving)
      const interrupting = yield* Effect.fork(actor.interrupt)
      yield* Effect.yieldNow()
      yield* Deferred.succeed(saved, undefined)
      yield* Fiber.join(interrupting)
      assert.strictEqual(yield* Fiber.join(asker), "done")
      assert.strictEqual(cuts, 0)
    }))

  it.effect("loses no answer and leaves nothing running under random interruption", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      let running = 0
      let ended = 0
      const actor = yield* Actor.make<number, number>({
        capacity: 1000,
        run: (message) =>
          Effect.acquireUseRelease(
            Effect.sync(() => void running++),
            () =>
              Effect.interruptible(
                Effect.as(Effect.forEach(Array.from({ length: message % 3 }), () => Effect.yieldNow()), message)
              ),
            () => Effect.sync(() => void running--)
          ),
        cut: (message) => Effect.succeed(-message),
        fork: (self) =>
          Effect.map(Effect.forkIn(self, scope), (fiber) => ({ cancel: Effect.asVoid(Fiber.interrupt(fiber)) }))
      })
      const askers = yield* Effect.forEach(
        Array.from({ length: 300 }, (_, index) => index + 1),
        (index) => Effect.fork(Effect.ensuring(actor.ask(index), Effect.sync(() => void ended++)))
      )
      yield* Effect.yieldNow()
      for (const [index, asker] of askers.entries()) {
        if (index % 4 === 0) yield* Fiber.interrupt(asker)
        if (index % 11 === 0) yield* actor.interrupt
      }
      const exits = yield* Effect.forEach(askers, Fiber.await)
      exits.forEach((exit, index) => {
        if (Exit.isSuccess(exit)) assert.strictEqual(Math.abs(exit.value), index + 1)
        else assert.strictEqual(index % 4, 0)
      })
      assert.strictEqual(running, 0)
      assert.strictEqual(ended, 300)
      yield* Scope.close(scope, Exit.void)
    }))
})
