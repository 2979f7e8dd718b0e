import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "effect/FastCheck"
import * as OperationLedger from "../../src/host/OperationLedger.ts"
import { details, laws, operation, outcome, restartLaws, result } from "../../src/testing/contract/OperationLedger.ts"
import * as CrashPoints from "../../src/testing/CrashPoints.ts"

describe("OperationLedger in memory", () => {
  for (const { law, name } of laws) it.effect(name, () => Effect.provide(law, OperationLedger.layerMemory()))

  const restart = Effect.flatMap(CrashPoints.CrashPoints, (points) => points.restart)
  for (const { law, name } of restartLaws(restart)) it.effect(name, () => Effect.provide(law, CrashPoints.layer()))

  const settle = (ledger: typeof OperationLedger.OperationLedger.Service, name: string) =>
    Effect.gen(function*() {
      const claimed = yield* ledger.claim(operation(name), details())
      if (claimed._tag === "Claimed") yield* ledger.settle(claimed.claim, result(operation(name)))
      return claimed._tag
    })

  it.effect("forgets the oldest settled operations first and never an unknown one", () =>
    Effect.gen(function*() {
      const ledger = yield* OperationLedger.make({ keep: 3 })
      const unknown = yield* ledger.claim(operation("unknown"), details())
      if (unknown._tag === "Claimed") yield* ledger.abandon(unknown.claim, "interrupted")
      for (let index = 0; index < 10; index++) yield* settle(ledger, `n${index}`)
      assert.deepStrictEqual((yield* ledger.list()).map((entry) => entry.callId), ["n9", "n8", "n7", "unknown"])
      assert.strictEqual(yield* settle(ledger, "n6"), "Claimed")
      assert.strictEqual(yield* settle(ledger, "n9"), "Settled")
      assert.strictEqual((yield* ledger.peek(operation("unknown")))._tag, "Unknown")
    }))

  it.effect("refuses a claim when too many are open, before anything runs, and takes one when there is room again", () =>
    Effect.gen(function*() {
      const ledger = yield* OperationLedger.make({ maxOpen: 2, keep: 5 })
      for (let index = 0; index < 9; index++) yield* settle(ledger, `s${index}`)
      const first = yield* ledger.claim(operation("a"), details())
      yield* ledger.claim(operation("b"), details())
      const refused = yield* Effect.flip(ledger.claim(operation("c"), details()))
      assert.deepStrictEqual([refused.code, refused.executed], ["state_unavailable", false])
      if (first._tag === "Claimed") yield* ledger.settle(first.claim, result(operation("a")))
      assert.strictEqual((yield* ledger.claim(operation("c"), details()))._tag, "Claimed")
    }))

  it.effect("agrees with a plain model over any history", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(
          fc.array(
            fc.record({
              name: fc.constantFrom("a", "b"),
              step: fc.constantFrom("claim", "outcome", "settle", "abandon")
            })
          ),
          (steps) =>
            Effect.runPromise(Effect.gen(function*() {
              const ledger = yield* OperationLedger.make()
              const states = new Map<string, string>()
              const claims = new Map<string, OperationLedger.Claim>()
              // An outcome that was given up goes to whoever asks for it next; the claim before is fenced off then.
              const givenUp = new Set<string>()
              const fenced = new Set<string>()
              for (const { name, step } of steps) {
                const state = states.get(name)
                const claim = claims.get(name) ?? { operationId: operation(name).id, token: 0 }
                if (step === "claim") {
                  const claimed = yield* ledger.claim(operation(name), details())
                  assert.strictEqual(claimed._tag === "Claimed", state === undefined)
                  if (givenUp.has(name)) fenced.add(name)
                  if (claimed._tag !== "Claimed") continue
                  claims.set(name, claimed.claim)
                  states.set(name, "started")
                } else if (step === "outcome") {
                  const exit = yield* Effect.either(ledger.outcome(claim, outcome))
                  assert.strictEqual(exit._tag === "Right", state === "started")
                  if (exit._tag === "Right") states.set(name, "outcome")
                } else if (step === "settle") {
                  const exit = yield* Effect.either(ledger.settle(claim, result(operation(name))))
                  const open = state === "started" || (state === "outcome" && !fenced.has(name))
                  assert.strictEqual(exit._tag === "Right", open)
                  if (exit._tag === "Right") states.set(name, "settled")
                } else {
                  yield* ledger.abandon(claim, "interrupted")
                  if (state === "started") states.set(name, "unknown")
                  if (state === "outcome") givenUp.add(name)
                }
              }
              const listed = (yield* ledger.list()).map((entry) => [entry.callId, entry.state] as const)
              assert.deepStrictEqual(new Map(listed), states)
            }))
        )
      )
    ))
})

describe("R01: the effect is done, its record lost", () => {
  /** A tool that counts its runs in a world outside the ledger, called as a host calls it. */
  const call = (world: { runs: number }) =>
    Effect.gen(function*() {
      const ledger = yield* OperationLedger.OperationLedger
      const peek = yield* ledger.peek(operation("a"))
      if (peek._tag !== "Absent") return peek._tag
      const claimed = yield* ledger.claim(operation("a"), details())
      if (claimed._tag !== "Claimed") return claimed._tag
      world.runs++
      yield* ledger.outcome(claimed.claim, outcome)
      yield* ledger.settle(claimed.claim, result(operation("a")))
      return "Settled"
    })

  const after: ReadonlyArray<readonly [CrashPoints.Point, string, number]> = [
    ["before_claim", "Settled", 1],
    ["after_claim", "Unknown", 0],
    ["before_outcome", "Unknown", 1],
    ["after_outcome", "Outcome", 1],
    ["before_settle", "Outcome", 1],
    ["after_settle", "Settled", 1]
  ]
  for (const [point, expected, runs] of after) {
    it.effect(`a crash at ${point} leaves it ${expected}, run ${runs} times`, () =>
      Effect.gen(function*() {
        const points = yield* CrashPoints.CrashPoints
        const world = { runs: 0 }
        yield* points.crashAt(point)
        yield* Effect.flip(call(world))
        yield* points.restart
        assert.strictEqual(yield* call(world), expected)
        assert.strictEqual(world.runs, runs)
      }).pipe(Effect.provide(CrashPoints.layer())))
  }
})
