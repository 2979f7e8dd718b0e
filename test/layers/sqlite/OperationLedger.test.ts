import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { Database } from "../../../layers/sqlite/Database.ts"
import * as SqliteLedger from "../../../layers/sqlite/OperationLedger.ts"
import type { Json } from "../../../src/contract/Json.ts"
import { ProcessIdentity } from "../../../src/process/ProcessIdentity.ts"
import {
  details,
  laws,
  operation,
  outcome,
  restartLaws,
  result
} from "../../../src/testing/contract/OperationLedger.ts"
import { identity, Restart, restartable, temporaryDatabase } from "./support.ts"

const nobodyDied: ReadonlySet<string> = new Set()
const owner = (token: string) =>
  SqliteLedger.make.pipe(Effect.provideService(ProcessIdentity, identity(token, nobodyDied)))

describe("OperationLedger in the state file", () => {
  const layer = SqliteLedger.layer.pipe(
    Layer.provide(Layer.succeed(ProcessIdentity, identity("self", nobodyDied))),
    Layer.provide(temporaryDatabase)
  )
  for (const { law, name } of laws) it.effect(name, () => Effect.provide(law, layer))

  const restart = Effect.flatten(Restart)
  for (const { law, name } of restartLaws(restart)) {
    it.effect(name, () => Effect.provide(law, Layer.provide(restartable, temporaryDatabase)))
  }

  it.scoped("one owner's operation is live to another, and nobody else records it", () =>
    Effect.gen(function*() {
      const [one, two] = yield* Effect.all([owner("one"), owner("two")])
      yield* one.claim(operation("a"), details())
      assert.strictEqual((yield* two.claim(operation("a"), details()))._tag, "Live")
      assert.strictEqual((yield* two.peek(operation("a")))._tag, "Live")
      assert.strictEqual(
        (yield* Effect.flip(two.reconcile(operation("a").id, "completed"))).code,
        "operation_not_unknown"
      )
    }).pipe(Effect.provide(temporaryDatabase)))

  it.scoped("an owner that closes gives up what it held, though its process lives on", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const one = yield* Scope.extend(owner("one"), scope)
      yield* one.claim(operation("run"), details())
      yield* one.claim(operation("read"), details({ readOnly: true }))
      const done = yield* one.claim(operation("done"), details())
      if (done._tag === "Claimed") yield* one.outcome(done.claim, outcome)
      yield* Scope.close(scope, Exit.void)
      const two = yield* owner("two")
      assert.strictEqual((yield* two.peek(operation("run")))._tag, "Unknown")
      assert.strictEqual((yield* two.peek(operation("read")))._tag, "Absent")
      assert.strictEqual((yield* two.peek(operation("done")))._tag, "Outcome")
    }).pipe(Effect.provide(temporaryDatabase)))

  it.scoped("what cannot be written as JSON is state_unavailable, and says whether the tool had run", () =>
    Effect.gen(function*() {
      const ledger = yield* owner("one")
      const circle: Record<string, Json> = {}
      circle["self"] = circle
      const refused = yield* Effect.flip(ledger.claim(operation("a"), { ...details(), arguments: circle }))
      assert.deepStrictEqual([refused.code, refused.executed], ["state_unavailable", false])
      assert.strictEqual((yield* ledger.peek(operation("a")))._tag, "Absent")
      const claimed = yield* ledger.claim(operation("a"), details())
      if (claimed._tag !== "Claimed") return assert.fail(claimed._tag)
      const unrecorded = yield* Effect.flip(ledger.outcome(claimed.claim, { ...outcome, output: circle }))
      assert.deepStrictEqual([unrecorded.code, unrecorded.executed], ["state_unavailable", true])
      yield* ledger.settle(claimed.claim, result(operation("a")))
    }).pipe(Effect.provide(temporaryDatabase)))

  it.scoped("a damaged outcome or result is unknown and for the host to settle, and harms no other", () =>
    Effect.gen(function*() {
      const database = yield* Database
      const ledger = yield* owner("one")
      for (const name of ["a", "b", "c"]) {
        const claimed = yield* ledger.claim(operation(name), details())
        if (claimed._tag === "Claimed") yield* ledger.settle(claimed.claim, result(operation(name)))
      }
      const damage = (name: string, text: string) =>
        database.commit((run) => run("UPDATE operation SET result = ? WHERE id = ?", [text, operation(name).id]))
      yield* damage("a", "{\"id\":")
      yield* damage("b", "{\"id\":7}")
      const unknown = { _tag: "Unknown", reason: "its record is damaged" } as const
      assert.deepStrictEqual(yield* ledger.peek(operation("a")), unknown)
      assert.deepStrictEqual(yield* ledger.claim(operation("b"), details()), unknown)
      assert.deepStrictEqual(yield* ledger.claim(operation("b"), details()), unknown)
      assert.strictEqual((yield* ledger.peek(operation("c")))._tag, "Settled")
      assert.deepStrictEqual((yield* ledger.list({ state: "unknown" })).map((entry) => entry.callId), ["b", "a"])
      yield* ledger.reconcile(operation("a").id, "completed")
      assert.strictEqual((yield* ledger.peek(operation("a")))._tag, "Settled")
      for (const [name, column] of [["d", "outcome"], ["e", "details"]] as const) {
        const claimed = yield* ledger.claim(operation(name), details())
        if (claimed._tag !== "Claimed") return assert.fail(claimed._tag)
        yield* ledger.outcome(claimed.claim, outcome)
        yield* database.commit((run) => run(`UPDATE operation SET ${column} = '7' WHERE id = ?`, [operation(name).id]))
        assert.strictEqual((yield* ledger.peek(operation(name)))._tag, "Live")
        yield* ledger.abandon(claimed.claim, "interrupted")
        assert.deepStrictEqual(yield* ledger.peek(operation(name)), unknown)
        const late = yield* Effect.flip(ledger.settle(claimed.claim, result(operation(name))))
        assert.isTrue(late.executed)
      }
    }).pipe(Effect.provide(temporaryDatabase)))

  it.scopedLive("a claim interrupted at any moment leaves the operation free or claimed by nobody", () =>
    Effect.gen(function*() {
      const ledger = yield* owner("one")
      for (let index = 0; index < 60; index++) {
        const entered = yield* Deferred.make<void>()
        const fiber = yield* Effect.fork(
          Effect.zipRight(Deferred.succeed(entered, undefined), ledger.claim(operation(`n${index}`), details()))
        )
        yield* Deferred.await(entered)
        for (let turn = 0; turn < index % 6; turn++) yield* Effect.yieldNow()
        if (index % 2 === 1) yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        const exit = yield* Fiber.interrupt(fiber)
        const peek = yield* ledger.peek(operation(`n${index}`))
        assert.strictEqual(peek._tag, Exit.isSuccess(exit) ? "Live" : "Absent")
      }
    }).pipe(Effect.provide(temporaryDatabase)))
})
