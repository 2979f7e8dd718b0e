import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Fs from "node:fs"
import * as Path from "node:path"
import * as NodeIdentity from "../../../layers/node/ProcessIdentity.ts"
import * as SqliteGate from "../../../layers/sqlite/ApprovalGate.ts"
import * as Database from "../../../layers/sqlite/Database.ts"
import * as SqliteJournal from "../../../layers/sqlite/EventJournal.ts"
import * as SqliteLedger from "../../../layers/sqlite/OperationLedger.ts"
import { ThreadId } from "../../../src/contract/Turn.ts"
import { ApprovalGate } from "../../../src/gate/ApprovalGate.ts"
import { OperationLedger } from "../../../src/host/OperationLedger.ts"
import { EventJournal } from "../../../src/journal/EventJournal.ts"
import { allow, opened, question } from "../../../src/testing/contract/ApprovalGate.ts"
import { operation } from "../../../src/testing/contract/OperationLedger.ts"
import { bundle, start } from "../../support/childProcess.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

const ledger = (filename: string) =>
  SqliteLedger.layer.pipe(Layer.provide(Database.layer({ filename })), Layer.provide(NodeIdentity.layer()))
const gate = (filename: string) =>
  SqliteGate.layer({ approver: "external" }).pipe(
    Layer.provideMerge(SqliteJournal.layer),
    Layer.provide(Database.layer({ filename }))
  )

describe("two hosts with one state file", () => {
  it.scopedLive("R03: of two that claim the same call at once, fifty times, one executes", () =>
    Effect.gen(function*() {
      const folder = yield* temporaryFolder
      const counter = Path.join(folder, "counter")
      const script = yield* bundle("claimer.ts")
      const hosts = yield* Effect.all([1, 2].map(() => start(script, Path.join(folder, "state.db"), counter)))
      for (const host of hosts) assert.strictEqual(yield* host.line, "ready")
      for (let index = 0; index < 50; index++) {
        yield* Effect.all(hosts.map((host) => host.send(`n${index}`)))
        const answers = yield* Effect.all(hosts.map((host) => host.line))
        assert.strictEqual(answers.filter((answer) => answer === "Claimed").length, 1)
        assert.match(answers.find((answer) => answer !== "Claimed") ?? "", /^(Live|Settled)$/)
      }
      assert.strictEqual(Fs.readFileSync(counter, "utf8").length, 50)
    }))

  it.scopedLive("R01: what a killed host had started is unknown to the next, run once, and can be reconciled", () =>
    Effect.gen(function*() {
      const folder = yield* temporaryFolder
      const [filename, counter] = [Path.join(folder, "state.db"), Path.join(folder, "counter")]
      const script = yield* bundle("claimer.ts")
      const host = yield* start(script, filename, counter, "hold")
      yield* host.line
      yield* host.send("a")
      assert.strictEqual(yield* host.line, "Claimed")
      yield* Effect.gen(function*() {
        const next = yield* OperationLedger
        assert.strictEqual((yield* next.peek(operation("a")))._tag, "Live")
        yield* host.kill("SIGSTOP")
        assert.strictEqual((yield* next.peek(operation("a")))._tag, "Live")
        yield* host.kill("SIGKILL")
        yield* host.ended
        assert.strictEqual((yield* next.peek(operation("a")))._tag, "Unknown")
        assert.deepStrictEqual((yield* next.list({ state: "unknown" })).map((entry) => entry.callId), ["a"])
        yield* next.reconcile(operation("a").id, "completed")
        assert.strictEqual((yield* next.peek(operation("a")))._tag, "Settled")
      }).pipe(Effect.provide(ledger(filename)))
      assert.strictEqual(Fs.readFileSync(counter, "utf8"), ".")
    }))

  it.scopedLive("R01: what a killed host had finished goes on in the next without a second run", () =>
    Effect.gen(function*() {
      const folder = yield* temporaryFolder
      const [filename, counter] = [Path.join(folder, "state.db"), Path.join(folder, "counter")]
      const script = yield* bundle("claimer.ts")
      const host = yield* start(script, filename, counter, "outcome")
      yield* host.line
      yield* host.send("a")
      yield* host.line
      yield* host.kill("SIGKILL")
      yield* host.ended
      const peek = yield* Effect.flatMap(OperationLedger, (next) => next.peek(operation("a"))).pipe(
        Effect.provide(ledger(filename))
      )
      assert.strictEqual(peek._tag, "Outcome")
    }))

  it.scopedLive("A06: a question outlives its killed host under its id, and an answer to it is used by the next", () =>
    Effect.gen(function*() {
      const filename = Path.join(yield* temporaryFolder, "state.db")
      const script = yield* bundle("asker.ts")
      yield* Effect.gen(function*() {
        const here = yield* ApprovalGate
        const host = yield* start(script, filename, "ask", "digest")
        yield* host.line
        const [record] = yield* opened(1)
        yield* host.kill("SIGKILL")
        yield* host.ended
        assert.deepStrictEqual((yield* here.pending).map(({ id }) => id), [record?.id])
        const again = yield* start(script, filename, "ask", "digest")
        yield* again.line
        yield* here.decide(record?.id ?? "", allow)
        const answer = { id: record?.id, decision: "allow", principal: "ann" }
        assert.deepStrictEqual(JSON.parse(yield* again.line), answer)
        const later = yield* start(script, filename, "ask", "digest")
        yield* later.line
        assert.deepStrictEqual(JSON.parse(yield* later.line), answer)
        const changed = yield* start(script, filename, "ask", "another digest")
        yield* changed.line
        assert.strictEqual(JSON.parse(yield* changed.line).code, "approval_superseded")
      }).pipe(Effect.provide(gate(filename)))
    }))

  it.scopedLive("A03: of an allow and a deny from two processes one wins, the other hears that, and it is announced once", () =>
    Effect.gen(function*() {
      const filename = Path.join(yield* temporaryFolder, "state.db")
      const script = yield* bundle("asker.ts")
      const deciders = yield* Effect.all(["allow", "deny"].map((word) => start(script, filename, "decide", word)))
      for (const decider of deciders) yield* decider.line
      yield* Effect.gen(function*() {
        const here = yield* ApprovalGate
        for (let index = 0; index < 20; index++) {
          const asker = yield* Effect.fork(Effect.either(here.authorize(question(`op_${index}`))))
          const [record] = yield* opened(1)
          yield* Effect.all(deciders.map((decider) => decider.send(record?.id ?? "")))
          const answers = yield* Effect.all(
            deciders.map((decider) => Effect.map(decider.line, (line) => JSON.parse(line)))
          )
          const allowed = answers[0] === "allowed"
          assert.deepStrictEqual(answers, allowed ? ["allowed", "already_decided"] : ["already_decided", "denied"])
          assert.strictEqual((yield* Fiber.join(asker))._tag, allowed ? "Right" : "Left")
        }
        for (const decider of deciders) yield* Effect.zipRight(decider.end, decider.ended)
        const journal = yield* EventJournal
        const events = yield* journal.entries(ThreadId.make("thread"))
        assert.strictEqual(events.filter(({ event }) => event._tag === "approval_resolved").length, 20)
      }).pipe(Effect.provide(gate(filename)))
    }))
})
