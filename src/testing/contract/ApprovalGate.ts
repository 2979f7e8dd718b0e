/**
 * What every `ApprovalGate` does. The laws want a gate with an `external` approver and a time to live of one minute, and run
 * under the test clock.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import { CallId } from "../../contract/ToolCall.ts"
import { AgentId, ThreadId, TurnId } from "../../contract/Turn.ts"
import type { ApprovalQuestion, ApprovalRecord, Decision } from "../../gate/ApprovalGate.ts"
import { ApprovalGate } from "../../gate/ApprovalGate.ts"
import { EventJournal } from "../../journal/EventJournal.ts"
import { equal, expect, type Law, law } from "./Law.ts"

/** A question to test with. */
export const question = (
  operationId: string,
  options: { readonly digest?: string; readonly agent?: string } = {}
): ApprovalQuestion => ({
  operationId,
  digest: options.digest ?? "digest",
  threadId: ThreadId.make("thread"),
  turnId: TurnId.make("turn"),
  callId: CallId.make("call_1"),
  toolName: "write",
  kind: "file_change",
  arguments: { path: "a.txt", content: "\u{1F600}" },
  reasons: ["outside_write", "rule"],
  notes: [],
  outsideTargets: ["/elsewhere/a.txt"],
  workspace: "/work",
  approvalPolicy: "on-request",
  sandboxMode: "workspace-write",
  lineage: options.agent === undefined ? [] : [AgentId.make(options.agent)]
})

export const allow: Decision = { decision: "allow", principal: "ann" }
export const deny: Decision = { decision: "deny", principal: "bob", reason: "not today" }

const ask = (asked: ApprovalQuestion) =>
  Effect.flatMap(ApprovalGate, (gate) => Effect.fork(Effect.either(gate.authorize(asked))))

/** Waits until that many questions are open. */
export const opened = (count: number): Effect.Effect<ReadonlyArray<ApprovalRecord>, string, ApprovalGate> =>
  Effect.flatMap(ApprovalGate, (gate) => gate.pending).pipe(
    Effect.tap(() => Effect.yieldNow()),
    Effect.repeat({ until: (records) => records.length === count, times: 100_000 }),
    Effect.filterOrFail((records) => records.length === count, (records) => `${records.length} are open, not ${count}`),
    Effect.mapError(String)
  )

const openedOne = Effect.flatMap(
  opened(1),
  ([record]) => record === undefined ? Effect.fail("none is open") : Effect.succeed(record)
)

const codeOf = <A, E extends { readonly code: string }>(answer: Either.Either<A, E>): string =>
  Either.isLeft(answer) ? answer.left.code : "allowed"

const story = Effect.flatMap(EventJournal, (journal) => journal.entries(ThreadId.make("thread"))).pipe(
  Effect.map((entries) =>
    entries.map(({ event }) =>
      event._tag === "approval_resolved" ? `${event.decision} by ${event.principal}` : event._tag
    )
  )
)

export const laws: ReadonlyArray<Law<ApprovalGate | EventJournal>> = [
  law(
    "a question is a record before it is announced, and an allowance names who gave it",
    Effect.gen(function*() {
      const gate = yield* ApprovalGate
      const asker = yield* ask(question("op_a"))
      const record = yield* openedOne
      yield* equal(record.question, question("op_a"), "question")
      yield* equal([record.status, record.deadline], ["pending", record.createdAt + 60_000], "record")
      yield* equal(yield* gate.get(record.id), record, "get")
      yield* gate.decide(record.id, allow)
      const answer = yield* Fiber.join(asker)
      yield* equal(Either.getOrNull(answer), { id: record.id, decision: "allow", principal: "ann" }, "answer")
      yield* equal((yield* gate.get(record.id)).status, "allowed", "status")
      yield* equal(yield* gate.pending, [], "pending")
      yield* equal(yield* story, ["approval_requested", "allow by ann"], "journal")
    })
  ),
  law(
    "a no fails with who said it and why, and holds when the call comes again, however it changed",
    Effect.gen(function*() {
      const gate = yield* ApprovalGate
      const asker = yield* ask(question("op_a"))
      yield* gate.decide((yield* openedOne).id, deny)
      const answer = yield* Effect.flip(Effect.flatten(Fiber.join(asker)))
      yield* expect(answer._tag === "ApprovalRefused" && answer.principal === "bob", "bob is not named")
      yield* equal(answer.code, "approval_denied", "answer")
      yield* expect(answer.message.includes("bob") && answer.message.includes("not today"), answer.message)
      for (const digest of ["digest", "other"]) {
        const again = yield* Effect.flip(gate.authorize(question("op_a", { digest })))
        yield* equal(again.code, "approval_denied", "again")
      }
      yield* equal(yield* story, ["approval_requested", "deny by bob"], "journal")
    })
  ),
  law(
    "the same decision twice is fine, another one hears who decided and when",
    Effect.gen(function*() {
      const gate = yield* ApprovalGate
      const asker = yield* ask(question("op_a"))
      const { id } = yield* openedOne
      const first = yield* gate.decide(id, allow)
      yield* equal(yield* gate.decide(id, { decision: "allow", principal: "somebody else" }), first, "again")
      const refused = yield* Effect.flip(gate.decide(id, deny))
      yield* equal(refused.code, "already_decided", "code")
      yield* expect(
        refused.code === "already_decided" && refused.by === "ann" && refused.at === first.decidedAt,
        "by, at"
      )
      yield* Fiber.join(asker)
      yield* equal((yield* gate.get(id)).status, "allowed", "status")
    })
  ),
  law(
    "of conflicting decisions in one tick exactly one wins, and the asker hears that one",
    Effect.gen(function*() {
      const gate = yield* ApprovalGate
      for (let index = 0; index < 20; index++) {
        const asker = yield* ask(question(`op_${index}`))
        const { id } = yield* openedOne
        const both = index % 2 === 0 ? [allow, deny] : [deny, allow]
        const answers = yield* Effect.all(both.map((decision) => Effect.either(gate.decide(id, decision))), {
          concurrency: "unbounded"
        })
        yield* equal(answers.filter(Either.isRight).length, 1, "winners")
        const { status } = yield* gate.get(id)
        yield* equal(codeOf(yield* Fiber.join(asker)), status === "allowed" ? "allowed" : "approval_denied", "answer")
      }
      yield* equal((yield* story).length, 40, "one request and one answer each")
    })
  ),
  law(
    "interrupting the asker cancels the question before the interruption completes, and a late answer is refused",
    Effect.gen(function*() {
      const gate = yield* ApprovalGate
      const asker = yield* ask(question("op_a"))
      const { id } = yield* openedOne
      const exit = yield* Fiber.interrupt(asker)
      yield* expect(Exit.isInterrupted(exit), "not interrupted")
      yield* equal((yield* gate.get(id)).status, "cancelled", "status")
      yield* equal(yield* gate.pending, [], "pending")
      const late = yield* Effect.flip(gate.decide(id, allow))
      yield* equal(late.code, "already_decided", "late answer")
      yield* equal(yield* story, ["approval_requested", "cancelled by portcullis"], "journal")
    })
  ),
  law(
    "a question nobody answers expires at its deadline and not before",
    Effect.gen(function*() {
      const gate = yield* ApprovalGate
      const asker = yield* ask(question("op_a"))
      const { id } = yield* openedOne
      yield* TestClock.adjust("59 seconds")
      yield* equal((yield* gate.get(id)).status, "pending", "before")
      yield* TestClock.adjust("1 second")
      yield* equal(codeOf(yield* Fiber.join(asker)), "approval_expired", "answer")
      yield* equal((yield* gate.get(id)).status, "expired", "status")
      yield* equal((yield* Effect.flip(gate.decide(id, allow))).code, "already_decided", "late answer")
      yield* equal(yield* gate.pending, [], "pending")
      const again = yield* ask(question("op_a"))
      yield* expect((yield* openedOne).id !== id, "the expired question came back")
      yield* Fiber.interrupt(again)
    })
  ),
  law(
    "an allowance is used again for the same operation and digest, without a question",
    Effect.gen(function*() {
      const gate = yield* ApprovalGate
      const asker = yield* ask(question("op_a"))
      yield* gate.decide((yield* openedOne).id, allow)
      const first = yield* Fiber.join(asker)
      const again = yield* Effect.either(gate.authorize(question("op_a")))
      yield* equal(Either.getOrNull(again), Either.getOrNull(first), "answer")
      yield* equal(yield* story, ["approval_requested", "allow by ann"], "journal")
    })
  ),
  law(
    "an open question is superseded when the call changed, for both that ask, and the new call may ask anew",
    Effect.gen(function*() {
      const gate = yield* ApprovalGate
      const asker = yield* ask(question("op_a"))
      const { id } = yield* openedOne
      const changed = yield* Effect.either(gate.authorize(question("op_a", { digest: "other" })))
      yield* equal([codeOf(changed), codeOf(yield* Fiber.join(asker))], [
        "approval_superseded",
        "approval_superseded"
      ], "answers")
      yield* equal((yield* gate.get(id)).status, "superseded", "status")
      yield* equal((yield* Effect.flip(gate.decide(id, allow))).code, "already_decided", "late answer")
      const anew = yield* ask(question("op_a", { digest: "other" }))
      yield* gate.decide((yield* openedOne).id, allow)
      yield* equal(codeOf(yield* Fiber.join(anew)), "allowed", "anew")
    })
  ),
  law(
    "an allowance does not cover a changed call, and is gone then",
    Effect.gen(function*() {
      const gate = yield* ApprovalGate
      const asker = yield* ask(question("op_a"))
      const { id } = yield* openedOne
      yield* gate.decide(id, allow)
      yield* Fiber.join(asker)
      const changed = yield* Effect.flip(gate.authorize(question("op_a", { digest: "other" })))
      yield* equal(changed.code, "approval_superseded", "answer")
      yield* equal((yield* gate.get(id)).status, "superseded", "status")
    })
  ),
  law(
    "two owners of the same call id have a question each, and each answer reaches its owner",
    Effect.gen(function*() {
      const gate = yield* ApprovalGate
      const parent = yield* ask(question("op_parent"))
      const [first] = yield* opened(1)
      const child = yield* ask(question("op_child", { agent: "child" }))
      const open = yield* opened(2)
      yield* equal(open.map((record) => record.question.operationId), ["op_parent", "op_child"], "oldest first")
      yield* equal(open[0], first, "the first is as it was")
      yield* gate.decide(open[1]?.id ?? "", deny)
      yield* equal(codeOf(yield* Fiber.join(child)), "approval_denied", "child")
      yield* equal((yield* gate.pending).length, 1, "still open")
      yield* gate.decide(open[0]?.id ?? "", allow)
      yield* equal(codeOf(yield* Fiber.join(parent)), "allowed", "parent")
    })
  ),
  law(
    "two that ask about the same call share one question, which lasts until the last of them is gone",
    Effect.gen(function*() {
      const gate = yield* ApprovalGate
      const one = yield* ask(question("op_a"))
      const { id } = yield* openedOne
      const two = yield* ask(question("op_a"))
      yield* Effect.yieldNow()
      // Decisions and questions are taken in order: once this one is answered, the second asker has its place.
      yield* Effect.flip(gate.decide("appr_none", allow))
      yield* Fiber.interrupt(one)
      yield* equal((yield* gate.get(id)).status, "pending", "status")
      yield* gate.decide(id, allow)
      yield* equal(codeOf(yield* Fiber.join(two)), "allowed", "answer")
      yield* equal(yield* story, ["approval_requested", "allow by ann"], "journal")
    })
  ),
  law(
    "an allowed answer is found again until it is consumed; then its operation is asked anew",
    Effect.gen(function*() {
      const gate = yield* ApprovalGate
      const first = yield* ask(question("op_a"))
      const { id } = yield* openedOne
      yield* gate.consume(id)
      yield* gate.decide(id, allow)
      yield* Fiber.join(first)
      yield* equal((yield* gate.authorize(question("op_a"))).id, id, "not used yet")
      yield* gate.consume(id)
      yield* gate.consume(id)
      const second = yield* ask(question("op_a", { digest: "other" }))
      const fresh = yield* openedOne
      yield* expect(fresh.id !== id, "the used answer came back")
      yield* equal((yield* gate.get(id)).status, "allowed", "status of the used one")
      yield* gate.consume(id)
      yield* gate.decide(fresh.id, deny)
      yield* equal(codeOf(yield* Fiber.join(second)), "approval_denied", "second answer")
    })
  ),
  law(
    "only an allowance is consumed: a no holds on, and what there is not is no matter",
    Effect.gen(function*() {
      const gate = yield* ApprovalGate
      const asker = yield* ask(question("op_a"))
      const { id } = yield* openedOne
      yield* gate.decide(id, deny)
      yield* Fiber.join(asker)
      yield* gate.consume(id)
      yield* gate.consume("appr_none")
      yield* equal((yield* Effect.flip(gate.authorize(question("op_a")))).code, "approval_denied", "again")
    })
  ),
  law(
    "a decision about nothing is refused",
    Effect.gen(function*() {
      const gate = yield* ApprovalGate
      yield* equal((yield* Effect.flip(gate.decide("appr_none", allow))).code, "approval_not_found", "decide")
      yield* equal((yield* Effect.flip(gate.get("appr_none"))).code, "approval_not_found", "get")
    })
  )
]
