import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Path from "node:path"
import * as SqliteGate from "../../../layers/sqlite/ApprovalGate.ts"
import * as Database from "../../../layers/sqlite/Database.ts"
import * as SqliteJournal from "../../../layers/sqlite/EventJournal.ts"
import { ApprovalGate } from "../../../src/gate/ApprovalGate.ts"
import { maxPending } from "../../../src/gate/ApprovalStore.ts"
import { allow, laws, opened, question } from "../../../src/testing/contract/ApprovalGate.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { commitsIn, temporaryDatabase } from "./support.ts"

const over = <E>(database: Layer.Layer<Database.Database, E>, timeToLive: "1 minute" | "50 millis" = "1 minute") =>
  SqliteGate.layer({ approver: "external", timeToLive }).pipe(
    Layer.provideMerge(SqliteJournal.layer),
    Layer.provide(database)
  )

describe("ApprovalGate in the state file", () => {
  for (const { law, name } of laws) it.effect(name, () => Effect.provide(law, over(temporaryDatabase)))

  it.scopedLive("a decision made through another opener of the file reaches the asker", () =>
    Effect.gen(function*() {
      const filename = Path.join(yield* temporaryFolder, "state.db")
      const open = Effect.map(Layer.build(Layer.fresh(over(Database.layer({ filename })))), (context) => context)
      const [here, there] = yield* Effect.all([open, open])
      const asker = yield* Effect.fork(
        Effect.provide(Effect.flatMap(ApprovalGate, (gate) => gate.authorize(question("op_a"))), here)
      )
      const [record] = yield* Effect.provide(opened(1), there)
      yield* Effect.provide(Effect.flatMap(ApprovalGate, (gate) => gate.decide(record?.id ?? "", allow)), there)
      assert.strictEqual((yield* Fiber.join(asker)).principal, "ann")
    }))

  it.scopedLive("an answer that no claim has used outlives its process, one that was used does not come back", () =>
    Effect.gen(function*() {
      const layer = over(Database.layer({ filename: Path.join(yield* temporaryFolder, "state.db") }))
      const inNext = <A, E>(body: (gate: ApprovalGate["Type"]) => Effect.Effect<A, E, ApprovalGate>) =>
        Effect.provide(Effect.flatMap(ApprovalGate, body), Layer.fresh(layer))
      const id = yield* inNext((gate) =>
        Effect.gen(function*() {
          const asker = yield* Effect.fork(gate.authorize(question("op_a")))
          const [record] = yield* opened(1)
          yield* gate.decide(record?.id ?? "", allow)
          return (yield* Fiber.join(asker)).id
        })
      )
      const again = yield* inNext((gate) => Effect.zipLeft(gate.authorize(question("op_a")), gate.consume(id)))
      assert.strictEqual(again.id, id)
      yield* inNext((gate) =>
        Effect.gen(function*() {
          const asker = yield* Effect.fork(gate.authorize(question("op_a")))
          const [record] = yield* opened(1)
          assert.notStrictEqual(record?.id, id)
          assert.strictEqual((yield* gate.get(id)).status, "allowed")
          yield* Fiber.interrupt(asker)
        })
      )
    }))

  it.scopedLive("using up an answer costs no commit of its own", () =>
    Effect.gen(function*() {
      const filename = Path.join(yield* temporaryFolder, "state.db")
      const database = yield* Database.make({ filename })
      const gate = Context.get(
        yield* Layer.build(over(Layer.succeed(Database.Database, database))),
        ApprovalGate
      )
      const asker = yield* Effect.fork(gate.authorize(question("op_a")))
      const [record] = yield* Effect.provideService(opened(1), ApprovalGate, gate)
      yield* gate.decide(record?.id ?? "", allow)
      yield* Fiber.join(asker)
      yield* database.flush
      const before = commitsIn(`${filename}-wal`)
      yield* gate.consume(record?.id ?? "")
      yield* database.commit((run) => run("INSERT INTO event (thread_id, at, event) VALUES ('t', 1, '{}')", []))
      assert.strictEqual(commitsIn(`${filename}-wal`) - before, 1)
      const rows = yield* database.read("SELECT used FROM approval", [])
      assert.deepStrictEqual(rows.map((row) => row["used"]), [1])
    }))

  /** Questions of a process that is gone. */
  const leaveOpen = (database: typeof Database.Database.Service, count: number, deadline: number) =>
    database.commit((run) =>
      run(
        `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
        INSERT INTO approval (id, operation_id, digest, status, created_at, deadline, question)
        SELECT 'old_' || i, 'old_' || i, 'digest', 'pending', 0, ?, ? FROM n`,
        [count, deadline, JSON.stringify(question("op_old"))]
      )
    )

  it.scopedLive("questions left open by a process that is gone do not count once their deadline has passed", () =>
    Effect.gen(function*() {
      const database = yield* Database.Database
      const gate = Context.get(yield* Layer.build(over(Layer.succeed(Database.Database, database))), ApprovalGate)
      yield* leaveOpen(database, maxPending, Date.now() - 1)
      const asker = yield* Effect.fork(gate.authorize(question("op_a")))
      yield* Effect.provideService(opened(1), ApprovalGate, gate)
      assert.strictEqual((yield* gate.get("old_1")).status, "expired")
      yield* Fiber.interrupt(asker)
    }).pipe(Effect.provide(temporaryDatabase)))

  it.scopedLive("a damaged question hides no other", () =>
    Effect.gen(function*() {
      const database = yield* Database.Database
      const gate = Context.get(yield* Layer.build(over(Layer.succeed(Database.Database, database))), ApprovalGate)
      yield* leaveOpen(database, 3, Date.now() + 60_000)
      yield* database.commit((run) => run("UPDATE approval SET question = '{' WHERE id = 'old_2'", []))
      assert.deepStrictEqual((yield* gate.pending).map(({ id }) => id), ["old_1", "old_3"])
    }).pipe(Effect.provide(temporaryDatabase)))

  it.scopedLive("A09: a deadline of 50 ms expires in real time", () =>
    Effect.gen(function*() {
      const gate = yield* ApprovalGate
      const refused = yield* Effect.flip(gate.authorize(question("op_a")))
      assert.strictEqual(refused.code, "approval_expired")
      assert.deepStrictEqual(yield* gate.pending, [])
    }).pipe(Effect.provide(over(temporaryDatabase, "50 millis"))))
})
