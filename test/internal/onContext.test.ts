import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import { onContext } from "../../src/internal/onContext.ts"

class Secret extends Context.Tag("test/Secret")<Secret, string>() {}
class Own extends Context.Tag("test/Own")<Own, string>() {}

const own = Context.make(Own, "own")

/** As the channel calls it. */
const run = <A, E>(effect: Effect.Effect<A, E, Own>): Effect.Effect<A, E> =>
  Effect.uninterruptibleMask((restore) => onContext(restore(effect), own))

const seen = Effect.all([Effect.serviceOption(Secret), Effect.serviceOption(Own)])
const underSecret = Effect.provideService(Secret, "secret")

describe("onContext", () => {
  it.effect("shows an effect its own services and none of its caller's, also in fibers that it forks", () =>
    Effect.gen(function*() {
      const [direct, forked] = yield* run(Effect.all([seen, Effect.flatMap(Effect.fork(seen), Fiber.join)]))
      assert.deepStrictEqual(direct, [Option.none(), Option.some("own")])
      assert.deepStrictEqual(forked, direct)
    }).pipe(underSecret))

  const endings = {
    success: Effect.void,
    failure: Effect.fail("no"),
    defect: Effect.die("no"),
    "interruption of itself": Effect.interrupt
  }
  for (const [ending, effect] of Object.entries(endings)) {
    it.effect(`gives its caller's services back after ${ending}`, () =>
      Effect.gen(function*() {
        yield* Effect.exit(run(effect))
        assert.deepStrictEqual(yield* seen, [Option.some("secret"), Option.none()])
      }).pipe(underSecret))
  }

  it.effect("keeps the span it is traced under", () =>
    Effect.gen(function*() {
      const outer = yield* Effect.currentSpan
      assert.strictEqual((yield* Effect.option(run(Effect.orDie(Effect.currentSpan)))).pipe(Option.getOrThrow), outer)
    }).pipe(Effect.withSpan("outer")))

  it.effect("can be interrupted from outside, and finalizers of its caller see their own services", () =>
    Effect.gen(function*() {
      const entered = yield* Deferred.make<void>()
      const left = yield* Deferred.make<Option.Option<string>>()
      const fiber = yield* run(Effect.zipRight(Deferred.succeed(entered, undefined), Effect.never)).pipe(
        Effect.ensuring(Effect.flatMap(Effect.serviceOption(Secret), (secret) => Deferred.succeed(left, secret))),
        Effect.fork
      )
      yield* Deferred.await(entered)
      assert.isTrue(Exit.isInterrupted(yield* Fiber.interrupt(fiber)))
      assert.deepStrictEqual(yield* Deferred.await(left), Option.some("secret"))
    }).pipe(underSecret))
})
