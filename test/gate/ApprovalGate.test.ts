import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import { ThreadId } from "../../src/contract/Turn.ts"
import * as ApprovalGate from "../../src/gate/ApprovalGate.ts"
import * as ApprovalStore from "../../src/gate/ApprovalStore.ts"
import * as EventJournal from "../../src/journal/EventJournal.ts"
import { allow, laws, opened, question } from "../../src/testing/contract/ApprovalGate.ts"

const journal = EventJournal.layerMemory()
const external: ApprovalGate.Options = { approver: "external", timeToLive: "1 minute" }
const layer = (options?: ApprovalGate.Options) => ApprovalGate.layerMemory(options).pipe(Layer.provideMerge(journal))

const authorize = (operationId = "op_a") =>
  Effect.flatMap(ApprovalGate.ApprovalGate, (gate) => gate.authorize(question(operationId)))
const pending = Effect.flatMap(ApprovalGate.ApprovalGate, (gate) => gate.pending)
const events = Effect.flatMap(EventJournal.EventJournal, (journal) => journal.entries(ThreadId.make("thread"))).pipe(
  Effect.map((entries) => entries.map(({ event }) => event._tag === "approval_resolved" ? event.decision : event._tag))
)

const reviewer = (review: ApprovalGate.Approver["review"]): ApprovalGate.Options => ({
  approver: { name: "reviewer", review },
  timeToLive: "1 minute"
})

describe("ApprovalGate in memory", () => {
  for (const { law, name } of laws) it.effect(name, () => Effect.provide(law, layer(external)))

  it.effect("A02: without an approver a question is unavailable at once, and leaves no record and no announcement", () =>
    Effect.gen(function*() {
      const refused = yield* Effect.flip(authorize())
      assert.strictEqual(refused.code, "approval_unavailable")
      assert.deepStrictEqual(yield* pending, [])
      assert.deepStrictEqual(yield* events, [])
    }).pipe(Effect.provide(layer())))

  it.effect("an approver that answers is the principal's voice", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* authorize()).principal, "ann")
      assert.deepStrictEqual(yield* events, ["approval_requested", "allow"])
    }).pipe(Effect.provide(layer(reviewer(() => Effect.succeed(allow))))))

  const useless: ReadonlyArray<readonly [string, ApprovalGate.Approver["review"]]> = [
    ["dies", () => Effect.dieMessage("bug")],
    ["throws", () => {
      throw new Error("bug")
    }],
    ["interrupts itself", () => Effect.interrupt],
    [
      "answers outside the closed set",
      () => Effect.succeed(JSON.parse("{\"decision\":\"allow always\",\"principal\":\"x\"}"))
    ],
    ["answers with a bare true", () => Effect.succeed(JSON.parse("true"))]
  ]
  for (const [what, review] of useless) {
    it.effect(`an approver that ${what} has not approved, and leaves nothing open`, () =>
      Effect.gen(function*() {
        assert.strictEqual((yield* Effect.flip(authorize())).code, "approval_unavailable")
        assert.deepStrictEqual(yield* pending, [])
        assert.deepStrictEqual(yield* events, ["approval_requested", "unavailable"])
      }).pipe(Effect.provide(layer(reviewer(review)))))
  }

  it.effect("an approver that passes leaves the question to others", () =>
    Effect.gen(function*() {
      const gate = yield* ApprovalGate.ApprovalGate
      const asker = yield* Effect.fork(authorize())
      const [record] = yield* opened(1)
      yield* gate.decide(record?.id ?? "", allow)
      assert.strictEqual((yield* Fiber.join(asker)).principal, "ann")
    }).pipe(Effect.provide(layer(reviewer(() => Effect.succeed(undefined))))))

  it.effect("A09: an approver that is still thinking is stopped by the deadline and by the asker's end", () =>
    Effect.gen(function*() {
      let started = 0
      let stopped = 0
      const entered = yield* Deferred.make<void>()
      const thinking = Effect.sync(() => started++).pipe(
        Effect.zipRight(Deferred.succeed(entered, undefined)),
        Effect.zipRight(Effect.never),
        Effect.onInterrupt(() => Effect.sync(() => stopped++))
      )
      yield* Effect.gen(function*() {
        const expiring = yield* Effect.fork(Effect.flip(authorize("op_a")))
        yield* Deferred.await(entered)
        yield* TestClock.adjust("1 minute")
        assert.strictEqual((yield* Fiber.join(expiring)).code, "approval_expired")
        const leaving = yield* Effect.fork(authorize("op_b"))
        yield* Effect.repeat(Effect.yieldNow(), { until: () => started === 2 })
        yield* Fiber.interrupt(leaving)
        yield* Effect.repeat(Effect.yieldNow(), { until: () => stopped === 2, times: 1000 })
        assert.strictEqual(stopped, 2)
        assert.deepStrictEqual(yield* pending, [])
      }).pipe(Effect.provide(layer(reviewer(() => thinking))))
    }))

  it.effect("closing the gate ends the wait and leaves the record open for the next gate, which finds it under its id", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const first = yield* Scope.extend(ApprovalGate.make(external), scope)
      const asker = yield* Effect.fork(Effect.flip(first.authorize(question("op_a"))))
      const [record] = yield* Effect.provideService(opened(1), ApprovalGate.ApprovalGate, first)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* Fiber.join(asker)).code, "state_unavailable")
      const second = yield* ApprovalGate.make(external)
      const again = yield* Effect.fork(second.authorize(question("op_a")))
      yield* Effect.repeatN(Effect.yieldNow(), 20)
      assert.deepStrictEqual((yield* second.pending).map(({ id }) => id), [record?.id])
      yield* second.decide(record?.id ?? "", allow)
      assert.strictEqual((yield* Fiber.join(again)).id, record?.id)
    }).pipe(Effect.scoped, Effect.provide(ApprovalStore.layerMemory()), Effect.provide(journal)))

  for (
    const [what, trouble] of [["dies", Effect.dieMessage("bug")], ["interrupts itself", Effect.interrupt]] as const
  ) {
    it.effect(`a store that ${what} while an asker waits ends the wait as state_unavailable`, () =>
      Effect.gen(function*() {
        const store = yield* ApprovalStore.make()
        let looks = 0
        const failing: typeof store = {
          ...store,
          pollInterval: "1 second",
          get: (id) => Effect.suspend(() => looks++ === 0 ? store.get(id) : trouble)
        }
        const gate = yield* Effect.provideService(ApprovalGate.make(external), ApprovalStore.ApprovalStore, failing)
        const asker = yield* Effect.fork(Effect.flip(gate.authorize(question("op_a"))))
        yield* Effect.provideService(opened(1), ApprovalGate.ApprovalGate, gate)
        yield* TestClock.adjust("1 second")
        assert.strictEqual((yield* Fiber.join(asker)).code, "state_unavailable")
        assert.strictEqual((yield* Effect.flip(gate.authorize(question("op_b")))).code, "state_unavailable")
      }).pipe(Effect.scoped, Effect.provide(journal)))
  }

  it.effect("questions whose deadline passed unseen do not count among the open ones, and expire", () =>
    Effect.gen(function*() {
      const store = yield* ApprovalStore.ApprovalStore
      for (let index = 0; index < ApprovalStore.maxPending; index++) {
        const asked = question(`op_${index}`)
        const record = { status: "pending", createdAt: 0, decidedAt: null, principal: null, reason: null } as const
        yield* store.arm(
          asked,
          { ...record, id: `appr_${index}`, question: asked, deadline: index === 0 ? null : 10 },
          0
        )
      }
      const gate = yield* ApprovalGate.make(external)
      assert.strictEqual((yield* Effect.flip(gate.authorize(question("op_more")))).code, "approval_unavailable")
      yield* TestClock.adjust("10 millis")
      const asker = yield* Effect.fork(gate.authorize(question("op_more")))
      yield* Effect.yieldNow()
      const open = yield* gate.pending
      assert.deepStrictEqual(open.map((record) => record.question.operationId), ["op_0", "op_more"])
      assert.strictEqual((yield* gate.get("appr_1")).status, "expired")
      yield* Fiber.interrupt(asker)
    }).pipe(Effect.scoped, Effect.provide(ApprovalStore.layerMemory()), Effect.provide(journal)))

  it.effect("forgets the oldest answers beyond what it keeps, and refuses to open more than a thousand questions", () =>
    Effect.gen(function*() {
      const gate = yield* ApprovalGate.ApprovalGate
      const askers = yield* Effect.fork(
        Effect.all(Array.from({ length: ApprovalStore.maxPending }, (_, index) => authorize(`op_${index}`)), {
          concurrency: "unbounded"
        })
      )
      const open = yield* opened(ApprovalStore.maxPending)
      assert.strictEqual((yield* Effect.flip(authorize("op_more"))).code, "approval_unavailable")
      for (const { id } of open) yield* gate.decide(id, allow)
      yield* Fiber.join(askers)
      assert.strictEqual((yield* Effect.flip(gate.get(open[0]?.id ?? ""))).code, "approval_not_found")
      assert.strictEqual((yield* gate.get(open.at(-1)?.id ?? "")).status, "allowed")
    }).pipe(Effect.provide(layer({ ...external, keep: 10 }))))
})
