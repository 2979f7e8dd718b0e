/**
 * Approvals in the state file: a question outlives its process, and any process with the file can answer it.
 *
 * @since 0.1.0
 */
import * as Arr from "effect/Array"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type { StateUnavailable } from "../../src/contract/ToolFailure.ts"
import type { ApprovalGate, Options } from "../../src/gate/ApprovalGate.ts"
import { layer as gateLayer } from "../../src/gate/ApprovalGate.ts"
import { ApprovalQuestion, type ApprovalRecord, ApprovalStatus } from "../../src/gate/ApprovalRecord.ts"
import type { Armed, Resolution } from "../../src/gate/ApprovalStore.ts"
import { ApprovalStore, maxPending, superseded } from "../../src/gate/ApprovalStore.ts"
import type { EventJournal } from "../../src/journal/EventJournal.ts"
import { Database, type Row, type Run } from "./Database.ts"
import { unavailable } from "./internal/commitQueue.ts"

/** How soon an asker hears of a decision made by another process. */
const pollInterval: Duration.DurationInput = "50 millis"

const COLUMNS = "id, digest, status, created_at, deadline, decided_at, principal, reason, question"

const RESOLVE = `UPDATE approval SET status = ?, principal = ?, reason = ?, decided_at = ?
  WHERE id = ? AND status = ? RETURNING ${COLUMNS}`

const GET = `SELECT ${COLUMNS} FROM approval WHERE id = ?`

const INSERT = `INSERT INTO approval (id, operation_id, digest, status, created_at, deadline, question)
  SELECT ?, ?, ?, 'pending', ?, ?, ?
  WHERE (SELECT count(*) FROM approval WHERE status = 'pending' AND (deadline IS NULL OR deadline > ?)) < ${maxPending}
  RETURNING 1`

const HOLDING = `SELECT ${COLUMNS} FROM approval
  WHERE operation_id = ? AND status IN ('pending', 'allowed', 'denied') AND used = 0 ORDER BY number DESC LIMIT 1`

const CONSUME = "UPDATE approval SET used = 1 WHERE id = ? AND status = 'allowed'"

const decodeRow = Schema.decodeUnknown(Schema.Struct({
  id: Schema.String,
  status: ApprovalStatus,
  created_at: Schema.Number,
  deadline: Schema.NullOr(Schema.Number),
  decided_at: Schema.NullOr(Schema.Number),
  principal: Schema.NullOr(Schema.String),
  reason: Schema.NullOr(Schema.String),
  question: Schema.parseJson(ApprovalQuestion)
}))

const recordOf = (row: Row): Effect.Effect<ApprovalRecord, StateUnavailable> =>
  Effect.mapBoth(decodeRow(row), {
    onSuccess: ({ created_at, decided_at, ...rest }): ApprovalRecord => ({
      ...rest,
      createdAt: created_at,
      decidedAt: decided_at
    }),
    onFailure: () => unavailable(`approval ${String(row["id"])} is damaged`)
  })

const change = (run: Run, id: unknown, from: ApprovalStatus, to: Resolution) =>
  run(RESOLVE, [to.status, to.principal, to.reason, to.at, String(id), from])

const makeStore: Effect.Effect<typeof ApprovalStore.Service, never, Database> = Effect.gen(function*() {
  const database = yield* Database
  return {
    arm: (question, fresh, at) =>
      database.commit((run) =>
        Effect.gen(function*() {
          const row = (yield* run(HOLDING, [question.operationId]))[0]
          if (row !== undefined) {
            if (row["status"] === "denied" || row["digest"] === question.digest) return { tag: "Found", row } as const
            const from = row["status"] === "pending" ? "pending" : "allowed"
            return { tag: "Superseded", row: (yield* change(run, row["id"], from, superseded(at)))[0] ?? row } as const
          }
          if (fresh === undefined) return undefined
          const { createdAt, deadline, id } = fresh
          const text = JSON.stringify(fresh.question)
          const rows = yield* run(INSERT, [id, question.operationId, question.digest, createdAt, deadline, text, at])
          return rows.length === 0 ? undefined : { tag: "Created", row: undefined } as const
        })
      ).pipe(Effect.flatMap((armed): Effect.Effect<Armed, StateUnavailable> => {
        if (armed?.row !== undefined) {
          return Effect.map(recordOf(armed.row), (record) => ({ _tag: armed.tag, record }))
        }
        return Effect.succeed(
          armed === undefined || fresh === undefined ? { _tag: "None" } : { _tag: "Created", record: fresh }
        )
      })),
    resolve: (id, resolution) =>
      database.commit((run) =>
        Effect.flatMap(change(run, id, "pending", resolution), (rows) =>
          rows.length > 0
            ? Effect.succeed({ row: rows[0], changed: true })
            : Effect.map(run(GET, [id]), (found) => ({ row: found[0], changed: false })))
      ).pipe(Effect.flatMap(({ changed, row }) =>
        row === undefined
          ? Effect.succeed(undefined)
          : Effect.map(recordOf(row), (record) => ({ record, changed }))
      )),
    consume: (id) => Effect.sync(() => database.defer((run) => Effect.asVoid(run(CONSUME, [id])))),
    get: (id) =>
      Effect.flatMap(
        database.read(GET, [id]),
        ([row]) => row === undefined ? Effect.succeed(undefined) : recordOf(row)
      ),
    pending: database.read(`SELECT ${COLUMNS} FROM approval WHERE status = 'pending' ORDER BY number`, []).pipe(
      Effect.flatMap(Effect.forEach((row) => Effect.option(recordOf(row)))),
      // Who waits for the answer to a damaged one hears of the damage; it must not hide the others.
      Effect.map(Arr.getSomes)
    ),
    pollInterval
  }
})

/** Needs the state file, and a journal to announce questions and answers in. */
export const layer = (options?: Options): Layer.Layer<ApprovalGate, never, Database | EventJournal> =>
  Layer.provide(gateLayer(options), Layer.effect(ApprovalStore, makeStore))
