/**
 * The one file that durable services share.
 *
 * Writers hand in jobs; one fiber puts all that are waiting into one immediate transaction and answers them after its
 * commit, so a hundred concurrent calls cost few disk syncs. The connection is private: a host's own transaction neither
 * contains our rows nor rolls them back.
 *
 * @since 0.1.0
 */
import * as Reactivity from "@effect/experimental/Reactivity"
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import { SqlError } from "@effect/sql/SqlError"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Path from "node:path"
import type { StateUnavailable } from "../../src/contract/ToolFailure.ts"
import type { CommitQueue, Row, Run, Value } from "./internal/commitQueue.ts"
import { codeOf, describe, make as makeQueue, retryBusy, unavailable } from "./internal/commitQueue.ts"
import { applicationId, DatabaseRefused, prepareFile } from "./internal/header.ts"
import { steps, sweep } from "./internal/schema.ts"

export type { Job, Row, Run, Value } from "./internal/commitQueue.ts"
export { DatabaseRefused } from "./internal/header.ts"

export interface Options {
  /** Created when missing: the file with mode 0600, folders with 0700. A file open to others is closed to them. */
  readonly filename: string
  /** `full` survives a power cut, `normal` only the death of the process. Default `full`. */
  readonly synchronous?: "full" | "normal"
  /** How long settled operations, approvals and events are kept; they go when the file is opened. Default 30 days. */
  readonly retention?: Duration.DurationInput
}

export class Database extends Context.Tag("portcullis/sqlite/Database")<
  Database,
  CommitQueue & {
    /** Runs one reading statement, never inside an open transaction. */
    readonly read: (
      sql: string,
      parameters: ReadonlyArray<Value>
    ) => Effect.Effect<ReadonlyArray<Row>, StateUnavailable>
  }
>() {}

const immediately = <A>(run: Run, body: Effect.Effect<A, SqlError>): Effect.Effect<A, SqlError> =>
  retryBusy(run("BEGIN IMMEDIATE", [])).pipe(
    Effect.zipRight(
      Effect.zipLeft(body, run("COMMIT", [])).pipe(
        Effect.tapErrorCause(() => Effect.ignore(run("ROLLBACK", [])))
      )
    ),
    Effect.uninterruptible
  )

/**
 * Brings the file to this version's format. The format is written before the switch to a write-ahead log, so it always
 * stands in the main file, where the next opener reads it before it touches anything.
 */
const setUp = Effect.fnUntraced(function*(run: Run, options: Options) {
  yield* run("PRAGMA busy_timeout = 0", [])
  yield* run("PRAGMA trusted_schema = OFF", [])
  const oldest = (yield* Clock.currentTimeMillis) - Duration.toMillis(options.retention ?? Duration.days(30))
  yield* immediately(
    run,
    Effect.gen(function*() {
      const rows = yield* run("PRAGMA user_version", [])
      const found = Number(rows[0]?.["user_version"])
      if (found > steps.length) return yield* failed(`another process has just brought it to format ${found}`)
      for (const statement of steps.slice(found).flat()) yield* run(statement, [])
      for (const statement of sweep) yield* run(statement, [oldest])
      if (found < steps.length) {
        yield* run(`PRAGMA application_id = ${applicationId}`, [])
        yield* run(`PRAGMA user_version = ${steps.length}`, [])
      }
    })
  )
  const mode = yield* retryBusy(run("PRAGMA journal_mode = WAL", []))
  if (mode[0]?.["journal_mode"] !== "wal") return yield* failed("its file system has no shared memory")
  yield* run(`PRAGMA synchronous = ${options.synchronous === "normal" ? "NORMAL" : "FULL"}`, [])
})

const failed = (reason: string) => new SqlError({ cause: new Error(reason) })

/**
 * Opens the file. Fails without changing it when it is of a newer format, of another program, damaged or out of reach.
 * Closing the scope writes what was deferred.
 */
export const make = (options: Options): Effect.Effect<typeof Database.Service, DatabaseRefused, Scope.Scope> =>
  Effect.gen(function*() {
    const filename = Path.resolve(options.filename)
    yield* prepareFile(filename, steps.length)
    const refuse = (error: SqlError) =>
      new DatabaseRefused({
        code: /^SQLITE_(CORRUPT|NOTADB)/.test(codeOf(error)) ? "database_broken" : "database_unavailable",
        filename,
        reason: describe(error)
      })
    const opened = Effect.gen(function*() {
      const client = yield* Effect.provideServiceEffect(
        SqliteClient.make({ filename, disableWAL: true }),
        Reactivity.Reactivity,
        Reactivity.make
      ).pipe(
        // The driver throws from its constructor.
        Effect.catchAllDefect((cause) => Effect.fail(new SqlError({ cause })))
      )
      const connection = yield* client.reserve
      const run: Run = (sql, parameters) => connection.execute(sql, parameters, undefined)
      yield* setUp(run, options)
      return run
    })
    const run = yield* Effect.mapError(opened, refuse)
    const queue = yield* makeQueue(run)
    return {
      ...queue,
      // A caller's own context could ask the driver for big integers, and the cached statement would keep giving them.
      read: (sql, parameters) =>
        retryBusy(run(sql, parameters)).pipe(
          Effect.mapError((error) => unavailable(describe(error))),
          Effect.mapInputContext((_: Context.Context<never>) => Context.empty())
        )
    }
  })

export const layer = (options: Options): Layer.Layer<Database, DatabaseRefused> => Layer.scoped(Database, make(options))
