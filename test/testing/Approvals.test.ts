import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { ApprovalGate } from "../../src/gate/ApprovalGate.ts"
import * as EventJournal from "../../src/journal/EventJournal.ts"
import * as Approvals from "../../src/testing/Approvals.ts"
import { allow, opened, question } from "../../src/testing/contract/ApprovalGate.ts"

const authorize = (name: string) =>
  Effect.flatMap(
    ApprovalGate,
    (gate) =>
      Effect.match(gate.authorize(question(name)), {
        onFailure: (error) => error.code,
        onSuccess: ({ principal }) => principal
      })
  )

describe("scripted approvals", () => {
  it.effect("answer in order, keep what they were asked, and run out as an absent approver", () =>
    Effect.gen(function*() {
      const approvals = yield* Approvals.Approvals
      assert.strictEqual(yield* authorize("op_a"), "script")
      assert.strictEqual(yield* authorize("op_a"), "script")
      assert.strictEqual(yield* authorize("op_b"), "approval_denied")
      assert.strictEqual(yield* authorize("op_c"), "approval_unavailable")
      yield* approvals.script(allow)
      assert.strictEqual(yield* authorize("op_d"), "ann")
      const asked = yield* approvals.asked
      assert.deepStrictEqual(asked.map((question) => question.operationId), ["op_a", "op_b", "op_c", "op_d"])
    }).pipe(Effect.provide(Layer.provide(Approvals.layer(["allow", "deny"]), EventJournal.layerMemory()))))

  it.effect("can leave a question open for somebody else", () =>
    Effect.gen(function*() {
      const gate = yield* ApprovalGate
      const asker = yield* Effect.fork(authorize("op_a"))
      const [record] = yield* opened(1)
      yield* gate.decide(record?.id ?? "", allow)
      assert.strictEqual(yield* Fiber.join(asker), "ann")
    }).pipe(Effect.provide(Layer.provide(Approvals.layer(["wait"]), EventJournal.layerMemory()))))
})
