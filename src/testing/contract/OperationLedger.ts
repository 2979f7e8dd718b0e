/**
 * What every `OperationLedger` does.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { RawOutcome } from "../../contract/RawOutcome.ts"
import { CallId } from "../../contract/ToolCall.ts"
import type { ToolResult } from "../../contract/ToolResult.ts"
import { ThreadId, TurnId } from "../../contract/Turn.ts"
import type { Claim, ClaimDetails, Operation } from "../../host/OperationLedger.ts"
import { OperationId, OperationLedger } from "../../host/OperationLedger.ts"
import { equal, expect, type Law, law } from "./Law.ts"

/** An operation to test with; equal names, equal operations. */
export const operation = (
  name: string,
  options: { readonly hash?: string; readonly thread?: string } = {}
): Operation => ({
  id: OperationId.make(`op_${name}`),
  threadId: ThreadId.make(options.thread ?? "thread"),
  turnId: TurnId.make("turn"),
  callId: CallId.make(name),
  toolName: "append",
  originalHash: options.hash ?? "hash"
})

export const details = (options: { readonly readOnly?: boolean } = {}): ClaimDetails => ({
  kind: "file_change",
  arguments: { path: "a.txt", deep: [{ text: "\u{1F600} \u2028 \"" }] },
  digest: "digest",
  readOnly: options.readOnly ?? false,
  approval: { id: "appr_1", decision: "allow", principal: "ann" },
  startedAt: 1000.5
})

export const outcome: RawOutcome = {
  isError: false,
  code: null,
  output: { bytes: 12, lines: [1, null, "x"] },
  content: [{ type: "text", text: "done" }, { type: "resource", uri: "spill:1" }]
}

export const result = (of: Operation, text = "done"): ToolResult => ({
  id: `item_${of.threadId}_${of.turnId}_${of.callId}`,
  callId: of.callId,
  toolName: of.toolName,
  toolKind: "file_change",
  isError: false,
  code: null,
  output: { text },
  content: [{ type: "text", text }, { type: "image", mediaType: "image/png", data: "AAAA" }],
  executed: true,
  replayed: false,
  approval: null,
  effectiveArguments: { path: "a.txt" },
  startedAt: 1000,
  finishedAt: 1001
})

const claimed = Effect.fnUntraced(function*(of: Operation, options?: { readonly readOnly?: boolean }) {
  const ledger = yield* OperationLedger
  const answer = yield* ledger.claim(of, details(options))
  if (answer._tag === "Claimed") return answer.claim
  return yield* Effect.dieMessage(`the claim of ${of.id} was answered ${answer._tag}`)
})

const peekIs = Effect.fnUntraced(function*(of: Operation, tag: string) {
  const ledger = yield* OperationLedger
  const peek = yield* ledger.peek(of)
  yield* expect(peek._tag === tag, `${of.id} should be ${tag}, but is ${peek._tag}`)
  return peek
})

const cannotRecord = Effect.fnUntraced(function*(of: Operation, claim: Claim) {
  const ledger = yield* OperationLedger
  for (const record of [ledger.outcome(claim, outcome), ledger.settle(claim, result(of, "late"))]) {
    const refused = yield* Effect.flip(record)
    yield* expect(refused.code === "state_unavailable" && refused.executed, "a holder without a claim recorded")
  }
})

export const laws: ReadonlyArray<Law<OperationLedger>> = [
  law(
    "an operation that nobody claimed is absent, and looking does not claim it",
    Effect.gen(function*() {
      yield* peekIs(operation("a"), "Absent")
      yield* peekIs(operation("a"), "Absent")
      yield* claimed(operation("a"))
    })
  ),
  law(
    "of many concurrent claimants exactly one gets the claim, the others see it live",
    Effect.gen(function*() {
      const ledger = yield* OperationLedger
      const answers = yield* Effect.all(Array.from({ length: 20 }, () => ledger.claim(operation("a"), details())), {
        concurrency: "unbounded"
      })
      const tags = answers.map((answer) => answer._tag).sort()
      yield* equal(tags, ["Claimed", ...Array.from({ length: 19 }, () => "Live")], "answers")
    })
  ),
  law(
    "a started operation and one with an outcome are live while their owner lives",
    Effect.gen(function*() {
      const ledger = yield* OperationLedger
      const claim = yield* claimed(operation("a"))
      yield* peekIs(operation("a"), "Live")
      yield* ledger.outcome(claim, outcome)
      yield* peekIs(operation("a"), "Live")
    })
  ),
  law(
    "a settled result comes back as it was, to a peek and to a claim",
    Effect.gen(function*() {
      const ledger = yield* OperationLedger
      const claim = yield* claimed(operation("a"))
      yield* ledger.outcome(claim, outcome)
      yield* ledger.settle(claim, result(operation("a")))
      const settled = { _tag: "Settled", result: result(operation("a")) }
      yield* equal(yield* ledger.peek(operation("a")), settled, "peek")
      yield* equal(yield* ledger.claim(operation("a"), details()), settled, "claim")
    })
  ),
  law(
    "the same operation with other arguments is a conflict in every state",
    Effect.gen(function*() {
      const ledger = yield* OperationLedger
      const other = operation("a", { hash: "other" })
      const claim = yield* claimed(operation("a"))
      yield* peekIs(other, "Conflict")
      yield* ledger.outcome(claim, outcome)
      yield* equal((yield* ledger.claim(other, details()))._tag, "Conflict", "claim beside an outcome")
      yield* ledger.settle(claim, result(operation("a")))
      yield* peekIs(other, "Conflict")
      yield* ledger.abandon(yield* claimed(operation("b")), "interrupted")
      yield* peekIs(operation("b", { hash: "other" }), "Conflict")
    })
  ),
  law(
    "an abandoned operation is unknown with its reason and cannot be claimed or recorded",
    Effect.gen(function*() {
      const ledger = yield* OperationLedger
      const claim = yield* claimed(operation("a"))
      yield* ledger.abandon(claim, "interrupted")
      const unknown = { _tag: "Unknown", reason: "interrupted" }
      yield* equal(yield* ledger.peek(operation("a")), unknown, "peek")
      yield* equal(yield* ledger.claim(operation("a"), details()), unknown, "claim")
      yield* cannotRecord(operation("a"), claim)
    })
  ),
  law(
    "an abandoned read-only operation is free again, and its old holder cannot record over the new one",
    Effect.gen(function*() {
      const ledger = yield* OperationLedger
      const old = yield* claimed(operation("a"), { readOnly: true })
      yield* ledger.abandon(old, "interrupted")
      yield* peekIs(operation("a", { hash: "any" }), "Absent")
      const fresh = yield* claimed(operation("a", { hash: "any" }), { readOnly: true })
      yield* expect(fresh.token > old.token, "the token did not grow")
      yield* cannotRecord(operation("a"), old)
      yield* ledger.abandon(old, "again")
      yield* ledger.settle(fresh, result(operation("a")))
    })
  ),
  law(
    "an abandoned outcome stays and goes to the next who looks, with a larger token",
    Effect.gen(function*() {
      const ledger = yield* OperationLedger
      const old = yield* claimed(operation("a"))
      yield* ledger.outcome(old, outcome)
      yield* ledger.abandon(old, "interrupted")
      const peek = yield* ledger.peek(operation("a"))
      if (peek._tag !== "Outcome") return yield* expect(false, `not taken over: ${peek._tag}`)
      yield* equal(peek.outcome, outcome, "outcome")
      yield* equal(peek.details, details(), "details")
      yield* expect(peek.claim.token > old.token, "the token did not grow")
      yield* peekIs(operation("a"), "Live")
      yield* cannotRecord(operation("a"), old)
      yield* ledger.settle(peek.claim, result(operation("a")))
      yield* peekIs(operation("a"), "Settled")
    })
  ),
  law(
    "an outcome and a result are recorded once",
    Effect.gen(function*() {
      const ledger = yield* OperationLedger
      const claim = yield* claimed(operation("a"))
      yield* ledger.outcome(claim, outcome)
      yield* Effect.flip(ledger.outcome(claim, outcome))
      yield* ledger.settle(claim, result(operation("a"), "first"))
      yield* cannotRecord(operation("a"), claim)
      yield* ledger.abandon(claim, "late")
      yield* equal(yield* ledger.peek(operation("a")), {
        _tag: "Settled",
        result: result(operation("a"), "first")
      }, "peek")
    })
  ),
  law(
    "a token that was never given records nothing",
    Effect.gen(function*() {
      const ledger = yield* OperationLedger
      const claim = yield* claimed(operation("a"))
      yield* cannotRecord(operation("a"), { operationId: claim.operationId, token: claim.token + 1 })
      yield* cannotRecord(operation("b"), { operationId: operation("b").id, token: claim.token })
      yield* ledger.outcome(claim, outcome)
    })
  ),
  law(
    "the host's word settles an unknown operation once, and nothing else",
    Effect.gen(function*() {
      const ledger = yield* OperationLedger
      const id = operation("a").id
      yield* equal((yield* Effect.flip(ledger.reconcile(id, "completed"))).code, "operation_not_found", "absent")
      const claim = yield* claimed(operation("a"))
      yield* equal((yield* Effect.flip(ledger.reconcile(id, "completed"))).code, "operation_not_unknown", "live")
      yield* ledger.abandon(claim, "interrupted")
      yield* equal((yield* ledger.reconcile(id, "failed")).state, "settled", "state")
      const failed = yield* ledger.peek(operation("a"))
      yield* expect(
        failed._tag === "Settled" && failed.result.code === "tool_execution_failed",
        "not settled as failed"
      )
      yield* equal((yield* Effect.flip(ledger.reconcile(id, "completed"))).code, "operation_not_unknown", "again")
      yield* ledger.abandon(yield* claimed(operation("b")), "interrupted")
      yield* ledger.reconcile(operation("b").id, "completed")
      const completed = yield* ledger.peek(operation("b"))
      yield* expect(completed._tag === "Settled" && !completed.result.isError, "not settled as completed")
    })
  ),
  law(
    "the list is newest first, filtered and cut",
    Effect.gen(function*() {
      const ledger = yield* OperationLedger
      const a = yield* claimed(operation("a"))
      yield* ledger.abandon(yield* claimed(operation("b", { thread: "other" })), "interrupted")
      yield* claimed(operation("c"))
      yield* ledger.abandon(yield* claimed(operation("d"), { readOnly: true }), "interrupted")
      yield* ledger.outcome(a, outcome)
      const ids = (entries: ReadonlyArray<{ readonly callId: string }>) => entries.map((entry) => entry.callId)
      yield* equal(ids(yield* ledger.list()), ["c", "b", "a"], "all")
      yield* equal(ids(yield* ledger.list({ limit: 1 })), ["c"], "limit")
      yield* equal(ids(yield* ledger.list({ threadId: ThreadId.make("thread") })), ["c", "a"], "thread")
      yield* equal((yield* ledger.list({ state: "unknown" })).map((entry) => entry.reason), ["interrupted"], "unknown")
      yield* equal(ids(yield* ledger.list({ state: "outcome" })), ["a"], "outcome")
    })
  )
]

/** What holds when the owner dies without a word and another takes its place, which `restart` brings about. */
export const restartLaws = <R>(restart: Effect.Effect<void, never, R>): ReadonlyArray<Law<OperationLedger | R>> => [
  law(
    "what a dead owner started is unknown, and is neither claimed nor recorded again",
    Effect.gen(function*() {
      const ledger = yield* OperationLedger
      const claim = yield* claimed(operation("a"))
      yield* restart
      yield* equal((yield* ledger.list({ state: "unknown" })).map((entry) => entry.callId), ["a"], "list")
      yield* peekIs(operation("a"), "Unknown")
      yield* equal((yield* ledger.claim(operation("a"), details()))._tag, "Unknown", "claim")
      yield* cannotRecord(operation("a"), claim)
      yield* ledger.reconcile(operation("a").id, "completed")
      yield* peekIs(operation("a"), "Settled")
    })
  ),
  law(
    "what a dead owner only read is free again, and the old holder cannot record",
    Effect.gen(function*() {
      const ledger = yield* OperationLedger
      const old = yield* claimed(operation("a"), { readOnly: true })
      yield* restart
      yield* peekIs(operation("a"), "Absent")
      const fresh = yield* claimed(operation("a"), { readOnly: true })
      yield* expect(fresh.token > old.token, "the token did not grow")
      yield* cannotRecord(operation("a"), old)
      yield* ledger.outcome(fresh, outcome)
    })
  ),
  law(
    "exactly one takes over what a dead owner had finished",
    Effect.gen(function*() {
      const ledger = yield* OperationLedger
      const old = yield* claimed(operation("a"))
      yield* ledger.outcome(old, outcome)
      yield* restart
      const peeks = yield* Effect.all(Array.from({ length: 5 }, () => ledger.peek(operation("a"))), {
        concurrency: "unbounded"
      })
      yield* equal(peeks.map((peek) => peek._tag).sort(), ["Live", "Live", "Live", "Live", "Outcome"], "peeks")
      yield* cannotRecord(operation("a"), old)
    })
  ),
  law(
    "a settled result outlives its owner",
    Effect.gen(function*() {
      const ledger = yield* OperationLedger
      yield* ledger.settle(yield* claimed(operation("a")), result(operation("a")))
      yield* restart
      yield* equal(yield* ledger.peek(operation("a")), { _tag: "Settled", result: result(operation("a")) }, "peek")
    })
  )
]
