import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as fc from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Ref from "effect/Ref"
import * as ToolCall from "../../src/contract/ToolCall.ts"
import { ApprovalGate } from "../../src/gate/ApprovalGate.ts"
import type * as HookGate from "../../src/gate/HookGate.ts"
import { OperationLedger } from "../../src/host/OperationLedger.ts"
import { ToolHost } from "../../src/host/ToolHost.ts"
import { EventJournal } from "../../src/journal/EventJournal.ts"
import { count } from "../support/counts.ts"
import { probe, Test, workspace } from "../support/plane.ts"

type Place = "pre hook" | "guard" | "approval" | "wrapper" | "handler" | "post hook" | "nowhere"
const places: ReadonlyArray<Place> = ["pre hook", "guard", "approval", "wrapper", "handler", "post hook", "nowhere"]

/** A plane whose call hangs at one place, having said that it got there; finalizers and finalize calls are counted. */
const hanging = (place: Place) =>
  Effect.gen(function*() {
    const entered = yield* Deferred.make<void>()
    const opened = yield* Ref.make(0)
    const closed = yield* Ref.make(0)
    const finalized = { count: 0 }
    const stop = (here: Place): Effect.Effect<void> =>
      here === place
        ? Effect.acquireUseRelease(
          Ref.update(opened, (n) => n + 1),
          () => Effect.zipRight(Deferred.succeed(entered, undefined), Effect.never),
          () => Effect.zipRight(Effect.yieldNow(), Ref.update(closed, (n) => n + 1))
        )
        : Effect.yieldNow()
    const hooks: ReadonlyArray<HookGate.Hook> = [
      { phase: "PreToolUse", name: "pre", run: () => Effect.as(stop("pre hook"), undefined) },
      { phase: "Guard", name: "guard", run: () => Effect.as(stop("guard"), undefined) },
      { phase: "Around", name: "around", run: (_call, _turn, next) => Effect.zipRight(stop("wrapper"), next) },
      { phase: "PostToolUse", name: "post", run: () => Effect.as(stop("post hook"), undefined) }
    ]
    const tool = probe({
      policy: "on-request",
      body: Effect.as(stop("handler"), "done"),
      finalize: (content) => {
        finalized.count++
        return content
      }
    })
    const approver = {
      name: "approver",
      review: () => Effect.as(stop("approval"), { decision: "allow", principal: "approver" } as const)
    }
    const plane = Test.layer([tool.provider], { hooks, approvals: { approver } })
    return { entered, opened, closed, finalized, tool, plane }
  })

const ids = { threadId: "t", turnId: "u" }
const call = ToolCall.make({ callId: "c", toolName: "probe" })

describe("an interruption from outside", () => {
  for (const place of places.filter((name) => name !== "nowhere")) {
    it.scopedLive(`while the call is in the ${place} stays an interruption and leaves the right trace`, () =>
      Effect.gen(function*() {
        const { root } = yield* workspace
        const at = yield* hanging(place)
        yield* Effect.gen(function*() {
          const host = yield* ToolHost
          const running = yield* Effect.fork(host.execute(call, { workspace: root, ...ids }))
          yield* Deferred.await(at.entered)
          const exit = yield* Fiber.interrupt(running)
          assert.isTrue(Exit.isFailure(exit) && Cause.isInterruptedOnly(exit.cause))
          assert.strictEqual(yield* Ref.get(at.closed), 1, "its finalizer had run when the interruption completed")
          const ledger = yield* OperationLedger
          const states = (yield* ledger.list()).map(({ state }) => state)
          const claimed = place === "wrapper" || place === "handler" || place === "post hook"
          assert.deepStrictEqual(states, claimed ? [place === "post hook" ? "outcome" : "unknown"] : [])
          const ended = place === "wrapper" || place === "handler"
          assert.strictEqual(at.finalized.count, ended ? 1 : 0)
          const gate = yield* ApprovalGate
          assert.lengthOf(yield* gate.pending, 0)
          const journal = yield* EventJournal
          const settled = (yield* journal.entries((yield* turnOf(host, root)).threadId))
            .filter(({ event }) => event._tag === "call_settled")
          assert.lengthOf(settled, ended ? 1 : 0, "an outcome that waits for its hooks has no item yet")
        }).pipe(Effect.provide(at.plane))
      }).pipe(Effect.provide(NodeFileSystem.layer)))
  }

  it.scopedLive(
    "at any moment never becomes a result, and its finalizers run exactly once",
    () =>
      Effect.gen(function*() {
        const { root } = yield* workspace
        const rounds = fc.sample(fc.tuple(fc.constantFrom(...places), fc.nat({ max: 60 })), {
          numRuns: count({ quick: 60, soak: 2000 }),
          seed: 7
        })
        for (const [place, moments] of rounds) {
          const at = yield* hanging(place)
          yield* Effect.gen(function*() {
            const host = yield* ToolHost
            const session = yield* host.openTurn({ workspace: root, ...ids })
            const running = yield* Effect.fork(session.execute(call))
            for (let moment = 0; moment < moments; moment++) yield* Effect.yieldNow()
            const before = yield* Fiber.poll(running)
            const exit = yield* Fiber.interrupt(running)
            assert.strictEqual(yield* Ref.get(at.opened), yield* Ref.get(at.closed))
            if (Exit.isSuccess(exit)) {
              assert.isFalse(exit.value.isError, "a call that was done stays done")
            } else {
              assert.isTrue(Cause.isInterruptedOnly(exit.cause))
              assert.strictEqual(before._tag, "None")
            }
            assert.isAtMost(at.finalized.count, 1)
            const ledger = yield* OperationLedger
            for (const entry of yield* ledger.list()) assert.notStrictEqual(entry.state, "started")
            assert.lengthOf(yield* (yield* ApprovalGate).pending, 0)
            assert.isAtMost(at.tool.runs.count, 1)
          }).pipe(Effect.scoped, Effect.provide(at.plane))
        }
      }).pipe(Effect.provide(NodeFileSystem.layer)),
    300_000
  )
})

describe("a call that was interrupted after its tool had run", () => {
  it.scopedLive("goes on with the hooks and is settled, without running the tool again", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const entered = yield* Deferred.make<void>()
      const hang = { now: true }
      const seen: Array<unknown> = []
      const { provider, runs } = probe({ policy: "auto" })
      const hooks: ReadonlyArray<HookGate.Hook> = [{
        phase: "PostToolUse",
        name: "post",
        run: (_call, outcome) => {
          seen.push(outcome.output)
          return hang.now
            ? Effect.zipRight(Deferred.succeed(entered, undefined), Effect.never)
            : Effect.succeed({ output: "reviewed" })
        }
      }]
      yield* Effect.gen(function*() {
        const host = yield* ToolHost
        const spec = { workspace: root, ...ids }
        const running = yield* Effect.fork(host.execute(call, spec))
        yield* Deferred.await(entered)
        yield* Fiber.interrupt(running)
        hang.now = false
        const result = yield* host.execute(call, spec)
        assert.deepInclude(result, { isError: false, output: "reviewed", replayed: false, executed: true })
        assert.deepStrictEqual(seen, ["done", "done"])
        assert.strictEqual(runs.count, 1)
        assert.isTrue((yield* host.execute(call, spec)).replayed)
        assert.lengthOf(seen, 2, "a replay meets no hook")
      }).pipe(Effect.provide(Test.layer([provider], { hooks })))
    }).pipe(Effect.provide(NodeFileSystem.layer)))
})

const turnOf = (host: ToolHost["Type"], root: string) =>
  Effect.scoped(Effect.flatMap(host.openTurn({ workspace: root, ...ids }), (session) => session.turn)).pipe(
    Effect.orDie
  )
