import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "effect/FastCheck"
import * as Dispatch from "../../src/agent/Dispatch.ts"
import * as StormBreaker from "../../src/agent/StormBreaker.ts"
import type { Lane } from "../../src/catalog/Catalog.ts"
import { Digest } from "../../src/contract/Digest.ts"
import type { ApprovalPolicy, ToolKind } from "../../src/contract/Policy.ts"
import * as ToolCall from "../../src/contract/ToolCall.ts"
import * as FifoSemaphore from "../../src/internal/FifoSemaphore.ts"
import { fakeSession, type FakeTool, memoryJournal } from "../support/session.ts"

interface Asked {
  readonly toolName: string
  readonly callId?: string
  readonly arguments?: unknown
  readonly claimedKind?: ToolKind
}

const issueAll = (asked: ReadonlyArray<Asked>, issued: Dispatch.Issued = new Map()): ReadonlyArray<Dispatch.Ticket> => {
  const response = new Set<string>()
  return asked.map((call) => Dispatch.issue(ToolCall.make(call), response, issued))
}

/** Runs calls of tools that take a while, and tells which ran together. */
const groups = Effect.fnUntraced(function*(
  asked: ReadonlyArray<Asked>,
  policy: () => ApprovalPolicy,
  lane: ((name: string) => Lane) | undefined
) {
  const memory = memoryJournal()
  const running = new Set<string>()
  const seen: Array<string> = []
  const slow: FakeTool = {
    run: (_, call) =>
      Effect.gen(function*() {
        running.add(call.callId)
        yield* Effect.yieldNow()
        yield* Effect.yieldNow()
        seen.push(Array.from(running).sort().join("+"))
        yield* Effect.yieldNow()
        yield* Effect.yieldNow()
        running.delete(call.callId)
        return call.callId
      })
  }
  const results = yield* Dispatch.run({
    session: fakeSession({
      memory,
      tools: { read: slow, write: slow, delegate_task: slow },
      approvalPolicy: policy,
      ...lane === undefined ? {} : { lane }
    }),
    journal: memory.journal
  }, issueAll(asked))
  assert.deepStrictEqual(results.map(({ callId }) => callId as string), asked.map(({ callId }) => callId ?? ""))
  return Array.from(new Set(seen))
})

const reads = ["a", "b", "c", "d"].map((callId) => ({ toolName: "read", callId }))
const safe = (name: string): Lane => name === "read" ? "read_only" : name === "delegate_task" ? "delegation" : "serial"

describe("Dispatch", () => {
  it.effect("runs calls one after the other when the catalog says nothing of them", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* groups(reads, () => "auto", undefined), ["a", "b", "c", "d"])
    }))

  it.effect("runs at most three parallel-safe calls together", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* groups(reads, () => "auto", safe), ["a+b+c", "d"])
    }))

  it.effect("never mixes lanes, and never goes past a call that cannot join", () =>
    Effect.gen(function*() {
      const mixed = [...reads.slice(0, 2), { toolName: "write", callId: "w" }, ...reads.slice(2)]
      assert.deepStrictEqual(yield* groups(mixed, () => "on-request", safe), ["a+b", "w", "c+d"])
    }))

  it.effect("runs a row of delegations all at once, however many, and never with a read", () =>
    Effect.gen(function*() {
      const tasks = Array.from({ length: 7 }, (_, index) => ({ toolName: "delegate_task", callId: `t${index}` }))
      const asked = [...reads.slice(0, 1), ...tasks, ...reads.slice(1)]
      assert.deepStrictEqual(yield* groups(asked, () => "on-request", safe), [
        "a",
        "t0+t1+t2+t3+t4+t5+t6",
        "b+c+d"
      ])
      assert.deepStrictEqual(
        yield* groups(tasks.map((task) => ({ ...task, claimedKind: "command_execution" })), () => "auto", safe),
        ["t0+t1+t2+t3+t4+t5+t6"]
      )
      for (const policy of ["always", "untrusted", "never"] as const) {
        assert.deepStrictEqual(yield* groups(tasks, () => policy, safe), tasks.map(({ callId }) => callId))
      }
    }))

  it.effect("hands a thousand delegations back in the order of the calls, whatever order they end in", () =>
    Effect.gen(function*() {
      const memory = memoryJournal()
      const seen: Array<string> = []
      const tasks = issueAll(Array.from({ length: 1000 }, (_, index) => ({
        toolName: "delegate_task",
        callId: `t${index}`
      })))
      let running = 0
      let peak = 0
      const slots = yield* FifoSemaphore.make(4)
      const task: FakeTool = {
        run: (_, call) =>
          slots.withPermit(Effect.gen(function*() {
            peak = Math.max(peak, ++running)
            yield* Effect.repeatN(Effect.yieldNow(), Number(call.callId.slice(1)) % 7)
            running--
            return call.callId
          }))
      }
      const results = yield* Dispatch.run({
        session: fakeSession({ memory, tools: { delegate_task: task }, lane: safe }),
        journal: memory.journal,
        onSettled: ({ callId }) => Effect.sync(() => void seen.push(callId))
      }, tasks)
      const ids = tasks.map(({ call }) => call.callId as string)
      assert.deepStrictEqual(results.map(({ callId }) => callId as string), ids)
      assert.deepStrictEqual(seen, ids)
      // The lane knows no number: the budget of whoever runs the tasks holds.
      assert.strictEqual(peak, 4)
    }))

  it.effect("holds a repetition back, says what repeats, and gives it an outcome in its place", () =>
    Effect.gen(function*() {
      const memory = memoryJournal()
      let runs = 0
      const results = yield* Dispatch.run(
        {
          session: fakeSession({
            memory,
            tools: {
              look: { run: () => Effect.sync(() => (runs++, "same")) },
              read: { run: () => Effect.succeed("ok") }
            }
          }),
          journal: memory.journal,
          storms: StormBreaker.make(yield* Digest, () => 0)
        },
        issueAll([..."abcd"].map((callId) => ({ toolName: "look", callId })).concat({ toolName: "read", callId: "e" }))
      )
      assert.strictEqual(runs, 3)
      assert.deepStrictEqual(results.map(({ code }) => code), [null, null, null, "tool_storm", null])
      assert.include(JSON.stringify(results[3]?.content), "look was called 3 times")
      assert.strictEqual(memory.events.length, 5)
    }))

  it.effect("keeps a call that claims more than tool_call to itself", () =>
    Effect.gen(function*() {
      const claims: ReadonlyArray<Asked> = [
        { toolName: "read", callId: "a", claimedKind: "tool_call" },
        { toolName: "read", callId: "b", claimedKind: "file_change" },
        { toolName: "read", callId: "c" }
      ]
      assert.deepStrictEqual(yield* groups(claims, () => "auto", safe), ["a", "b", "c"])
    }))

  it.effect("runs nothing together under the policies always, untrusted and never", () =>
    Effect.gen(function*() {
      for (const policy of ["always", "untrusted", "never"] as const) {
        assert.deepStrictEqual(yield* groups(reads, () => policy, safe), ["a", "b", "c", "d"])
      }
    }))

  it.effect("goes by the policy as it is when a batch begins", () =>
    Effect.gen(function*() {
      let asked = 0
      assert.deepStrictEqual(yield* groups(reads, () => asked++ === 0 ? "auto" : "always", safe), ["a+b+c", "d"])
    }))

  it.effect("runs a call that was delivered twice once, and gives the second an outcome of its own", () =>
    Effect.gen(function*() {
      const memory = memoryJournal()
      let runs = 0
      const tickets = issueAll([
        { toolName: "deploy", callId: "c", arguments: { to: "prod", from: "main" } },
        { toolName: "deploy", callId: "c", arguments: { from: "main", to: "prod" } }
      ])
      const results = yield* Dispatch.run({
        session: fakeSession({ memory, tools: { deploy: { run: () => Effect.sync(() => ++runs) } } }),
        journal: memory.journal
      }, tickets)
      assert.strictEqual(runs, 1)
      assert.deepStrictEqual(results.map(({ callId, code }) => [callId as string, code]), [["c", null], [
        "c_2",
        "tool_not_started"
      ]])
      assert.strictEqual(memory.events.length, 2)
    }))

  it.effect("runs two different calls of one id, each under an id of its own", () =>
    Effect.gen(function*() {
      const memory = memoryJournal()
      const tickets = issueAll([
        { toolName: "read", callId: "c", arguments: { path: "a" } },
        { toolName: "read", callId: "c", arguments: { path: "b" } }
      ])
      const results = yield* Dispatch.run({
        session: fakeSession({ memory, tools: { read: { run: (args) => Effect.succeed(args) } } }),
        journal: memory.journal
      }, tickets)
      assert.deepStrictEqual(results.map(({ callId, output }) => [callId as string, output]), [
        ["c", { path: "a" }],
        ["c_2", { path: "b" }]
      ])
    }))

  it("gives every call of a turn an id of its own, the same ids each time", () => {
    const id = fc.stringMatching(/^[a-c]{1,2}(_2)?$/)
    fc.assert(fc.property(fc.array(fc.array(id, { maxLength: 8 }), { maxLength: 5 }), (responses) => {
      const once = () => {
        const issued: Dispatch.Issued = new Map()
        return responses.flatMap((ids) => issueAll(ids.map((callId) => ({ toolName: "read", callId })), issued))
          .map(({ call }) => call.callId as string)
      }
      const ids = once()
      assert.strictEqual(new Set(ids).size, ids.length)
      assert.deepStrictEqual(once(), ids)
    }))
  })

  it("numbers ten thousand calls of one id without looking at them all each time", () => {
    const issued: Dispatch.Issued = new Map()
    const ids = new Set(
      Array.from(
        { length: 10_000 },
        () => Dispatch.issue(ToolCall.make({ toolName: "read", callId: "c" }), new Set(), issued).call.callId
      )
    )
    assert.strictEqual(ids.size, 10_000)
    assert.isTrue(ids.has(ToolCall.CallId.make("c_10000")))
  })

  it("keeps a long id within bounds when it is repeated", () => {
    const long = "x".repeat(200)
    const [, second] = issueAll([{ toolName: "a", callId: long }, { toolName: "b", callId: long }])
    assert.isAtMost(second?.call.callId.length ?? 999, 200)
  })

  it.effect("lets an outcome stand that the journal has already", () =>
    Effect.gen(function*() {
      const memory = memoryJournal()
      const session = fakeSession({ memory, tools: { read: { run: () => Effect.succeed("ok") } } })
      const tickets = issueAll([{ toolName: "read", callId: "a" }, { toolName: "read", callId: "b" }])
      const [first] = tickets
      if (first !== undefined) first.started = true
      yield* session.execute(ToolCall.make({ toolName: "read", callId: "a" }))
      yield* Dispatch.abandon({ session, journal: memory.journal }, tickets, "It was over.")
      assert.deepStrictEqual(
        memory.events.flatMap((event) =>
          event._tag === "call_settled" ? [[event.result.callId as string, event.result.code]] : []
        ),
        [["a", null], ["b", "tool_not_started"]]
      )
    }))
})
