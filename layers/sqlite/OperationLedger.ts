/**
 * The ledger in the state file: survives its process, and is shared by all processes that open the file.
 *
 * An owner is a row with the identity of a process. A dead owner is found out when somebody meets what it left; then its
 * `started` operations become `unknown` (or free again, when read-only) and its recorded outcomes are taken over.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { RawOutcome } from "../../src/contract/RawOutcome.ts"
import { CallId } from "../../src/contract/ToolCall.ts"
import type { StateUnavailable } from "../../src/contract/ToolFailure.ts"
import { ToolResult } from "../../src/contract/ToolResult.ts"
import { ThreadId, TurnId } from "../../src/contract/Turn.ts"
import type { Claim, Claimed, LedgerEntry, Operation, Peek, Recorded } from "../../src/host/OperationLedger.ts"
import {
  ClaimDetails,
  claimLost,
  LedgerState,
  notRecorded,
  OperationId,
  OperationLedger,
  ownerClosed,
  ownerDied,
  reconciledResult,
  ReconcileRefused
} from "../../src/host/OperationLedger.ts"
import { Owner, ProcessIdentity } from "../../src/process/ProcessIdentity.ts"
import { Database, type Job, type Row } from "./Database.ts"
import { unavailable } from "./internal/commitQueue.ts"

const LOOK = `SELECT o.original_hash, o.state, o.reason, o.token, o.owner, o.details, o.outcome, o.result,
  w.record AS owner_record FROM operation o LEFT JOIN owner w ON w.id = o.owner WHERE o.id = ? AND o.state <> 'released'`

const CLAIM = `INSERT INTO operation
  (id, thread_id, turn_id, call_id, tool_name, original_hash, state, token, owner, read_only, started_at, updated_at, details)
  VALUES (?, ?, ?, ?, ?, ?, 'started', 1, ?, ?, ?, ?, ?)
  ON CONFLICT (id) DO UPDATE SET original_hash = excluded.original_hash, state = 'started', token = operation.token + 1,
    owner = excluded.owner, read_only = excluded.read_only, started_at = excluded.started_at,
    updated_at = excluded.updated_at, details = excluded.details WHERE operation.state = 'released' RETURNING token`

const UNCLAIM = "UPDATE operation SET state = 'released', owner = 0 WHERE id = ? AND token = ? AND state = 'started'"

const TAKE_OVER = `UPDATE operation SET owner = ?, token = token + 1, updated_at = ?
  WHERE id = ? AND token = ? AND state = 'outcome' RETURNING token`

const GIVE_BACK = "UPDATE operation SET owner = 0 WHERE id = ? AND token = ? AND state = 'outcome'"

const OUTCOME = `UPDATE operation SET state = 'outcome', outcome = ?, updated_at = ?
  WHERE id = ? AND token = ? AND state = 'started' RETURNING 1`

const SETTLE = `UPDATE operation SET state = 'settled', result = ?, outcome = NULL, updated_at = ?
  WHERE id = ? AND token = ? AND state IN ('started', 'outcome') RETURNING 1`

const ABANDON = `UPDATE operation SET owner = 0, updated_at = ?,
  reason = CASE WHEN state = 'started' AND read_only = 0 THEN ? ELSE reason END,
  state = CASE WHEN state = 'outcome' THEN state WHEN read_only = 1 THEN 'released' ELSE 'unknown' END
  WHERE id = ? AND token = ? AND state IN ('started', 'outcome')`

const BURY = `UPDATE operation SET updated_at = ?, reason = CASE WHEN read_only = 1 THEN NULL ELSE ? END,
  state = CASE WHEN read_only = 1 THEN 'released' ELSE 'unknown' END WHERE owner = ? AND state = 'started'`

const MARK_DAMAGED = `UPDATE operation SET state = 'unknown', reason = ?, owner = 0, updated_at = ?
  WHERE id = ? AND token = ? AND state = ?`

const RECONCILE = `UPDATE operation SET state = 'settled', result = ?, updated_at = ?
  WHERE id = ? AND state = 'unknown' RETURNING 1`

const ENTRY = "id, thread_id, turn_id, call_id, tool_name, state, reason, started_at, updated_at"

const EntryRow = Schema.Struct({
  id: OperationId,
  thread_id: ThreadId,
  turn_id: TurnId,
  call_id: CallId,
  tool_name: Schema.String,
  state: LedgerState,
  reason: Schema.NullOr(Schema.String),
  started_at: Schema.Number,
  updated_at: Schema.Number
})

const LookRow = Schema.Struct({
  original_hash: Schema.String,
  state: LedgerState,
  reason: Schema.NullOr(Schema.String),
  token: Schema.Int,
  owner: Schema.Int,
  details: Schema.String,
  outcome: Schema.NullOr(Schema.String),
  result: Schema.NullOr(Schema.String),
  owner_record: Schema.NullOr(Schema.String)
})

/** Decodes what the file holds; whatever does not decode is a damaged row, never a crash. */
const reader = <A, I>(schema: Schema.Schema<A, I>) => {
  const decode = Schema.decodeUnknown(schema)
  return (value: unknown, what: string): Effect.Effect<A, StateUnavailable> =>
    Effect.mapError(decode(value), () => unavailable(`the record of ${what} is damaged`))
}
const readLook = reader(LookRow)
const readEntry = reader(EntryRow)
const readResult = reader(Schema.parseJson(ToolResult))
const readOutcome = reader(Schema.parseJson(RawOutcome))
const readDetails = reader(Schema.parseJson(ClaimDetails))
const readOwner = reader(Schema.Struct({ id: Schema.Int, record: Schema.parseJson(Owner) }))
const readToken = reader(Schema.Struct({ token: Schema.Int }))

const entryOf = (row: typeof EntryRow.Type): LedgerEntry => ({
  id: row.id,
  threadId: row.thread_id,
  turnId: row.turn_id,
  callId: row.call_id,
  toolName: row.tool_name,
  state: row.state,
  reason: row.reason,
  startedAt: row.started_at,
  updatedAt: row.updated_at
})

const damaged = "its record is damaged"

const tokenOf = (rows: ReadonlyArray<Row>): number | undefined => {
  const token = rows[0]?.["token"]
  return typeof token === "number" ? token : undefined
}

/** How often a look is repeated when others keep changing what was seen. */
const maxLooks = 8

export const make: Effect.Effect<
  typeof OperationLedger.Service,
  StateUnavailable,
  Database | ProcessIdentity | Scope.Scope
> = Effect.gen(function*() {
  const database = yield* Database
  const identity = yield* ProcessIdentity
  const now = Clock.currentTimeMillis

  const bury = (owner: number, reason: string) =>
    Effect.flatMap(
      now,
      (at) =>
        database.commit((run) =>
          Effect.zipRight(run(BURY, [at, reason, owner]), run("DELETE FROM owner WHERE id = ?", [owner]))
        )
    )

  const me = yield* Effect.acquireRelease(
    database.commit((run) =>
      run("INSERT INTO owner (record) VALUES (?) RETURNING id AS token", [JSON.stringify(identity.self)])
    )
      .pipe(Effect.flatMap((rows) => readToken(rows[0], "this process")), Effect.map((row) => row.token)),
    (owner) => Effect.ignore(bury(owner, ownerClosed))
  )

  const isAlive = (owner: number, record: string | null): Effect.Effect<boolean, StateUnavailable> =>
    owner === me
      ? Effect.succeed(true)
      : record === null
      ? Effect.succeed(false)
      : Effect.flatMap(readOwner({ id: owner, record }, `owner ${owner}`), (row) => identity.alive(row.record))

  const buryTheDead = Effect.gen(function*() {
    const rows = yield* database.read("SELECT id, record FROM owner WHERE id <> ?", [me])
    for (const row of rows) {
      const owner = yield* readOwner(row, "an owner")
      if (!(yield* identity.alive(owner.record))) yield* bury(owner.id, ownerDied)
    }
  })
  yield* buryTheDead

  /**
   * Runs a job that grants a claim. When its caller is interrupted while the job is being committed nobody would hold what
   * was granted, so it is undone.
   */
  const grant = (operation: Operation, job: Job<ReadonlyArray<Row>>, undo: string) =>
    Effect.suspend(() => {
      let granted: number | undefined
      return database.commit((run) => Effect.tap(job(run), (rows) => Effect.sync(() => (granted = tokenOf(rows)))))
        .pipe(
          Effect.map((rows): Claim | undefined => {
            const token = tokenOf(rows)
            return token === undefined ? undefined : { operationId: operation.id, token }
          }),
          Effect.onInterrupt(() =>
            Effect.suspend(() => {
              const token = granted
              return token === undefined
                ? Effect.void
                : Effect.ignore(database.commit((run) => run(undo, [operation.id, token])))
            })
          )
        )
    })

  const look = (operation: Operation, looks: number): Effect.Effect<Peek, StateUnavailable> =>
    Effect.flatMap(
      database.read(LOOK, [operation.id]),
      (rows) => rows.length === 0 ? Effect.succeed<Peek>({ _tag: "Absent" }) : judge(operation, rows[0], looks)
    )

  /** The tool ran, but what it came to cannot be read: from now on that is for the host to say. */
  const markDamaged = (id: OperationId, row: typeof LookRow.Type) =>
    now.pipe(
      Effect.flatMap((at) => database.commit((run) => run(MARK_DAMAGED, [damaged, at, id, row.token, row.state]))),
      // Not marked it is found damaged again.
      Effect.ignore,
      Effect.as<Peek>({ _tag: "Unknown", reason: damaged })
    )

  const judge = Effect.fnUntraced(function*(operation: Operation, raw: unknown, looks: number) {
    const row = yield* readLook(raw, operation.id)
    const open = row.state === "started" || row.state === "outcome"
    const alive = open && (yield* isAlive(row.owner, row.owner_record))
    if (row.state === "started" && !alive) {
      if (looks === 0) return { _tag: "Live" } satisfies Peek
      yield* bury(row.owner, ownerDied)
      return yield* look(operation, looks - 1)
    }
    if (row.original_hash !== operation.originalHash) return { _tag: "Conflict" } satisfies Peek
    if (row.state === "settled") {
      const result = yield* Effect.option(readResult(row.result, operation.id))
      if (Option.isNone(result)) return yield* markDamaged(operation.id, row)
      return { _tag: "Settled", result: result.value } satisfies Peek
    }
    if (row.state === "unknown") return { _tag: "Unknown", reason: row.reason ?? "" } satisfies Peek
    if (alive || looks === 0) return { _tag: "Live" } satisfies Peek
    const left = yield* Effect.option(
      Effect.zip(readOutcome(row.outcome, operation.id), readDetails(row.details, operation.id))
    )
    if (Option.isNone(left)) return yield* markDamaged(operation.id, row)
    const [outcome, details] = left.value
    const at = yield* now
    const claim = yield* grant(operation, (run) => run(TAKE_OVER, [me, at, operation.id, row.token]), GIVE_BACK)
    return claim === undefined
      ? yield* look(operation, looks - 1)
      : { _tag: "Outcome", outcome, details, claim } satisfies Peek
  })

  const claim = (
    operation: Operation,
    details: ClaimDetails,
    tries: number
  ): Effect.Effect<Claimed, StateUnavailable> =>
    Effect.flatMap(now, (at) => {
      const row = () => [
        operation.id,
        operation.threadId,
        operation.turnId,
        operation.callId,
        operation.toolName,
        operation.originalHash,
        me,
        details.readOnly ? 1 : 0,
        details.startedAt,
        at,
        JSON.stringify(details)
      ]
      return Effect.flatMap(grant(operation, (run) => run(CLAIM, row()), UNCLAIM), (granted) => {
        if (granted !== undefined) return Effect.succeed<Claimed>({ _tag: "Claimed", claim: granted })
        return Effect.flatMap(look(operation, maxLooks), (peek): Effect.Effect<Claimed, StateUnavailable> =>
          peek._tag !== "Absent"
            ? Effect.succeed(peek)
            : tries > 0
            ? claim(operation, details, tries - 1)
            : Effect.succeed({ _tag: "Live" }))
      })
    })

  /** Records for a holder; `lost` when it holds no more. Whatever keeps the row from disk, the tool has run by now. */
  const record = (job: (at: number) => Job<ReadonlyArray<Row>>, recorded: Recorded) =>
    now.pipe(
      Effect.flatMap((at) => database.commit(job(at))),
      Effect.mapError(({ reason }) => notRecorded(reason, recorded)),
      Effect.flatMap((rows) => rows.length === 0 ? Effect.fail(claimLost(recorded)) : Effect.void)
    )

  return {
    peek: (operation) => look(operation, maxLooks),
    claim: (operation, details) => claim(operation, details, maxLooks),
    outcome: ({ operationId, token }, outcome) =>
      record(
        (at) => (run) => run(OUTCOME, [JSON.stringify(outcome), at, operationId, token]),
        { executed: true, output: outcome.output }
      ),
    settle: ({ operationId, token }, result) =>
      record((at) => (run) => run(SETTLE, [JSON.stringify(result), at, operationId, token]), result),
    abandon: ({ operationId, token }, reason) =>
      Effect.flatMap(
        now,
        (at) => Effect.asVoid(database.commit((run) => run(ABANDON, [at, reason, operationId, token])))
      ),
    reconcile: (id, outcome) =>
      Effect.gen(function*() {
        yield* buryTheDead
        const rows = yield* database.read(
          `SELECT ${ENTRY}, details FROM operation WHERE id = ? AND state <> 'released'`,
          [id]
        )
        if (rows.length === 0) return yield* new ReconcileRefused({ code: "operation_not_found", operationId: id })
        const entry = entryOf(yield* readEntry(rows[0], id))
        const refused = new ReconcileRefused({ code: "operation_not_unknown", operationId: id })
        if (entry.state !== "unknown") return yield* refused
        const at = yield* now
        const details = yield* readDetails(rows[0]?.["details"], id)
        const result = reconciledResult(entry, details, outcome, at)
        const done = yield* database.commit((run) => run(RECONCILE, [JSON.stringify(result), at, id]))
        return done.length === 0 ? yield* refused : { ...entry, state: "settled", updatedAt: at }
      }),
    list: ({ threadId = null, state = null, limit = 100 } = {}) =>
      buryTheDead.pipe(
        Effect.zipRight(database.read(
          `SELECT ${ENTRY} FROM operation WHERE state <> 'released' AND (? IS NULL OR thread_id = ?)
            AND (? IS NULL OR state = ?) ORDER BY number DESC LIMIT ?`,
          [threadId, threadId, state, state, Math.max(0, limit)]
        )),
        Effect.flatMap(Effect.forEach((row) => Effect.map(readEntry(row, "an operation"), entryOf)))
      )
  }
})

/** Needs the state file and the identity of this process. Closing the scope gives up what this process still holds. */
export const layer: Layer.Layer<OperationLedger, StateUnavailable, Database | ProcessIdentity> = Layer.scoped(
  OperationLedger,
  make
)
