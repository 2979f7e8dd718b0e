import * as Reactivity from "@effect/experimental/Reactivity"
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import * as SqlClient from "@effect/sql/SqlClient"
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import * as Path from "node:path"
import * as Database from "../../../layers/sqlite/Database.ts"
import { applicationId } from "../../../layers/sqlite/internal/header.ts"
import { steps } from "../../../layers/sqlite/internal/schema.ts"
import { bundle, startCommand } from "../../support/childProcess.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { commitsIn, temporaryDatabase } from "./support.ts"

const snapshotOf = (folder: string) =>
  Object.fromEntries(
    Fs.readdirSync(folder).sort().map((name) => [name, Fs.readFileSync(Path.join(folder, name), "hex")])
  )

/** A state file as this version leaves it. */
const written = (filename: string) => Effect.scoped(Effect.asVoid(Database.make({ filename })))

const other = (filename: string) =>
  Effect.provide(SqliteClient.make({ filename, disableWAL: true }), Reactivity.layer).pipe(
    Effect.flatMap((client) => client.reserve),
    Effect.map((connection) => (sql: string) => Effect.orDie(connection.execute(sql, [], undefined)))
  )

const event = "INSERT INTO event (thread_id, at, event) VALUES (?, ?, ?)"
const count = Effect.flatMap(
  Database.Database,
  (database) => Effect.map(database.read("SELECT count(*) AS n FROM event", []), (rows) => rows[0]?.["n"])
)

describe("opening the state file", () => {
  it.scoped("creates folders for their owner alone, and the file too", () =>
    Effect.gen(function*() {
      const folder = Path.join(yield* temporaryFolder, "a", "b")
      yield* Database.make({ filename: Path.join(folder, "state.db") })
      assert.strictEqual(Fs.statSync(Path.dirname(folder)).mode & 0o777, 0o700)
      assert.strictEqual(Fs.statSync(folder).mode & 0o777, 0o700)
      for (const name of Fs.readdirSync(folder)) {
        assert.strictEqual(Fs.statSync(Path.join(folder, name)).mode & 0o777, 0o600)
      }
    }))

  const refused: ReadonlyArray<
    readonly [string, Database.DatabaseRefused["code"], (filename: string) => Effect.Effect<void>]
  > = [
    [
      "a newer format",
      "database_newer",
      (filename) =>
        Effect.zipRight(
          Effect.orDie(written(filename)),
          Effect.sync(() => {
            const handle = Fs.openSync(filename, "r+")
            Fs.writeSync(handle, Buffer.from([0, 0, 0, 99]), 0, 4, 60)
            Fs.closeSync(handle)
          })
        )
    ],
    ["a text", "database_broken", (filename) => Effect.sync(() => Fs.writeFileSync(filename, "notes\n".repeat(100)))],
    ["a few bytes", "database_broken", (filename) => Effect.sync(() => Fs.writeFileSync(filename, "SQLite"))],
    [
      "a truncated file",
      "database_broken",
      (filename) => Effect.zipRight(Effect.orDie(written(filename)), Effect.sync(() => Fs.truncateSync(filename, 8192)))
    ],
    [
      "a file with a torn first page",
      "database_broken",
      (filename) => Effect.zipRight(Effect.orDie(written(filename)), Effect.sync(() => Fs.truncateSync(filename, 1000)))
    ],
    [
      "somebody else's database",
      "database_foreign",
      (filename) =>
        Effect.orDie(
          Effect.scoped(Effect.flatMap(other(filename), (run) => Effect.asVoid(run("CREATE TABLE mine (x)"))))
        )
    ],
    ["a folder", "database_unavailable", (filename) => Effect.sync(() => Fs.mkdirSync(filename))]
  ]
  for (const [what, code, prepare] of refused) {
    it.scoped(`refuses ${what} as ${code} and changes nothing`, () =>
      Effect.gen(function*() {
        const folder = yield* temporaryFolder
        const filename = Path.join(folder, "state.db")
        yield* prepare(filename)
        const before = code === "database_unavailable" ? {} : snapshotOf(folder)
        const error = yield* Effect.flip(Effect.scoped(Database.make({ filename })))
        assert.strictEqual(error.code, code)
        if (code !== "database_unavailable") assert.deepStrictEqual(snapshotOf(folder), before)
      }))
  }

  it.scoped("an existing file of ours that others can reach is closed to them, with its log", () =>
    Effect.gen(function*() {
      const filename = Path.join(yield* temporaryFolder, "state.db")
      const names = [filename, `${filename}-wal`, `${filename}-shm`]
      const { commit } = yield* Database.make({ filename })
      yield* commit((run) => run(event, ["t", 1, "{}"]))
      for (const name of names) Fs.chmodSync(name, 0o666)
      yield* Database.make({ filename })
      assert.deepStrictEqual(names.map((name) => Fs.statSync(name).mode & 0o777), [0o600, 0o600, 0o600])
      const empty = Path.join(yield* temporaryFolder, "empty.db")
      Fs.writeFileSync(empty, "")
      Fs.chmodSync(empty, 0o644)
      yield* written(empty)
      assert.strictEqual(Fs.statSync(empty).mode & 0o777, 0o600)
    }))

  const isRoot = process.getuid?.() === 0
  it.scoped.skipIf(!isRoot)(
    "refuses another user's file while others can reach it, and leaves its mode alone",
    () =>
      Effect.gen(function*() {
        const filename = Path.join(yield* temporaryFolder, "state.db")
        yield* written(filename)
        Fs.chownSync(filename, 12345, 12345)
        yield* written(filename)
        Fs.chmodSync(filename, 0o666)
        assert.strictEqual((yield* Effect.flip(written(filename))).code, "database_unavailable")
        assert.strictEqual(Fs.statSync(filename).mode & 0o777, 0o666)
      })
  )

  for (let format = 1; format < steps.length; format++) {
    it.scoped(`brings a file of format ${format} to this one, and keeps what it holds`, () =>
      Effect.gen(function*() {
        const filename = Path.join(yield* temporaryFolder, "state.db")
        yield* Effect.scoped(Effect.gen(function*() {
          const run = yield* other(filename)
          for (const statement of steps.slice(0, format).flat()) yield* run(statement)
          yield* run(
            "INSERT INTO approval (id, operation_id, digest, status, created_at, question) VALUES ('a', 'o', 'd', 'allowed', 1, '{}')"
          )
          yield* run(`PRAGMA application_id = ${applicationId}`)
          yield* run(`PRAGMA user_version = ${format}`)
        }))
        const { read } = yield* Database.make({ filename, retention: "36500 days" })
        assert.deepStrictEqual((yield* read("SELECT id, used FROM approval", [])).map((row) => ({ ...row })), [
          { id: "a", used: 0 }
        ])
        assert.deepStrictEqual(yield* read("SELECT key FROM document", []), [])
        assert.deepStrictEqual((yield* read("PRAGMA user_version", []))[0]?.["user_version"], steps.length)
      }))
  }

  it.scoped("takes an empty file for a new one, and opens what it wrote again", () =>
    Effect.gen(function*() {
      const filename = Path.join(yield* temporaryFolder, "state.db")
      Fs.writeFileSync(filename, "")
      yield* written(filename)
      yield* written(filename)
    }))

  it.scopedLive("many may create one file at once", () =>
    Effect.gen(function*() {
      const filename = Path.join(yield* temporaryFolder, "state.db")
      yield* Effect.all(Array.from({ length: 8 }, () => Database.make({ filename })), { concurrency: "unbounded" })
    }))

  it.scopedLive("what is over and old goes when the file is opened, old questions too, what is unknown stays", () =>
    Effect.gen(function*() {
      const filename = Path.join(yield* temporaryFolder, "state.db")
      const fill = Effect.gen(function*() {
        const { commit } = yield* Database.Database
        for (const [state, at] of [["settled", 1], ["unknown", 1], ["settled", Date.now()]] as const) {
          yield* commit((run) =>
            run(
              `INSERT INTO operation (id, thread_id, turn_id, call_id, tool_name, original_hash, state, token, owner, read_only,
                started_at, updated_at, details) VALUES (?, 't', 't', 'c', 't', 'h', ?, 1, 0, 0, 1, ?, '{}')`,
              [`${state}${at}`, state, at]
            )
          )
        }
        for (const at of [1, Date.now()]) {
          yield* commit((run) =>
            run(
              `INSERT INTO approval (id, operation_id, digest, status, created_at, question)
                VALUES (?, 'o', 'd', 'pending', ?, '{}')`,
              [at === 1 ? "old question" : "question", at]
            )
          )
        }
        for (const text of ["old", "the last"]) yield* commit((run) => run(event, ["t", 1, text]))
      })
      const layer = Database.layer({ filename })
      yield* Effect.provide(fill, layer)
      const left = yield* Effect.flatMap(
        Database.Database,
        ({ read }) =>
          read(
            "SELECT state FROM operation UNION ALL SELECT event FROM event UNION ALL SELECT id FROM approval ORDER BY 1",
            []
          )
      ).pipe(Effect.provide(layer))
      // The last event stays, old as it is: the next sequence number is counted from it.
      assert.deepStrictEqual(left.map((row) => row["state"]), ["question", "settled", "the last", "unknown"])
    }))
})

describe("committing", () => {
  it.scopedLive("a hundred concurrent writers share a few commits on disk", () =>
    Effect.gen(function*() {
      const filename = Path.join(yield* temporaryFolder, "state.db")
      const { commit } = yield* Database.make({ filename })
      const once = commit((run) => run(event, ["t", 1, "{}"]))
      yield* once
      const before = commitsIn(`${filename}-wal`)
      yield* Effect.all(Array.from({ length: 100 }, () => Effect.repeatN(once, 2)), { concurrency: "unbounded" })
      const commits = commitsIn(`${filename}-wal`) - before
      assert.isAtLeast(commits, 3)
      assert.isAtMost(commits, 9)
    }))

  it.scopedLive("a job that fails or dies is undone alone", () =>
    Effect.gen(function*() {
      const { commit } = yield* Database.Database
      const good = commit((run) => run(event, ["t", 1, "{}"]))
      const half = commit((run) => Effect.zipRight(run(event, ["t", 1, "half"]), run(event, [null, 1, "{}"])))
      const dying = commit((run) => Effect.zipRight(run(event, ["t", 1, "dying"]), Effect.dieMessage("bug")))
      const exits = yield* Effect.all([good, half, good, dying, good].map(Effect.exit), { concurrency: "unbounded" })
      assert.deepStrictEqual(exits.map(Exit.isSuccess), [true, false, true, false, true])
      const codes = exits.map((exit) => Exit.isFailure(exit) && Option.getOrNull(Cause.failureOption(exit.cause))?.code)
      assert.deepStrictEqual(codes, [false, "state_unavailable", false, "state_unavailable", false])
      assert.strictEqual(yield* count, 3)
      yield* good
    }).pipe(Effect.provide(temporaryDatabase)))

  it.scopedLive("jobs run in the order of their calls, deferred ones among them", () =>
    Effect.gen(function*() {
      const { commit, defer, read } = yield* Database.Database
      for (let index = 0; index < 10; index++) defer((run) => Effect.asVoid(run(event, ["t", index, "{}"])), () => {})
      yield* commit((run) => run(event, ["t", 10, "{}"]))
      const rows = yield* read("SELECT at FROM event ORDER BY sequence", [])
      assert.deepStrictEqual(rows.map((row) => row["at"]), Array.from({ length: 11 }, (_, index) => index))
    }).pipe(Effect.provide(temporaryDatabase)))

  it.scopedLive("what was deferred is written by itself, soon, and at the latest when the file is closed", () =>
    Effect.gen(function*() {
      const filename = Path.join(yield* temporaryFolder, "state.db")
      const scope = yield* Scope.make()
      const database = yield* Scope.extend(Database.make({ filename }), scope)
      yield* Effect.async<void>((resume) =>
        database.defer((run) => Effect.asVoid(run(event, ["t", 1, "{}"])), () => resume(Effect.void))
      ).pipe(Effect.timeout("1 second"))
      for (let index = 0; index < 1000; index++) {
        database.defer((run) => Effect.asVoid(run(event, ["t", Date.now(), "{}"])), () => {})
      }
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* Effect.flip(database.commit(() => Effect.void))).code, "state_unavailable")
      assert.strictEqual(yield* Effect.provide(count, Database.layer({ filename })), 1000)
    }))

  it.scopedLive("a deferred job that fails or throws is counted in a warning with its reason, and the others are written", () =>
    Effect.gen(function*() {
      const warnings: Array<string> = []
      const logger = Logger.make<unknown, void>(({ logLevel, message }) => {
        warnings.push(`${logLevel.label}: ${String(message)}`)
      })
      const filename = Path.join(yield* temporaryFolder, "state.db")
      const layer = Layer.provide(Database.layer({ filename }), Logger.replace(Logger.defaultLogger, logger))
      yield* Effect.gen(function*() {
        const { commit, defer } = yield* Database.Database
        defer((run) => Effect.asVoid(run(event, [null, 1, "{}"])))
        defer(() => {
          throw new Error("x".repeat(10_000))
        })
        defer((run) => Effect.asVoid(run(event, ["t", 1, "{}"])))
        yield* commit((run) => run(event, ["t", 1, "{}"]))
        assert.strictEqual(yield* count, 2)
        yield* Effect.repeat(Effect.yieldNow(), { until: () => warnings.length > 0, times: 10_000 })
        yield* commit((run) => run(event, ["t", 1, "{}"]))
      }).pipe(Effect.provide(layer))
      assert.match(
        warnings.join("\n"),
        /^WARN: 2 deferred rows could not be written and are lost: SQLITE_ERROR: x{500}$/
      )
    }))

  it.scopedLive("a reader never sees half a job", () =>
    Effect.gen(function*() {
      const { commit } = yield* Database.Database
      const pair = commit((run) => Effect.zipRight(run(event, ["t", 1, "{}"]), run(event, ["t", 2, "{}"])))
      const writers = yield* Effect.fork(
        Effect.all(Array.from({ length: 600 }, () => pair), { concurrency: "unbounded", discard: true })
      )
      let looks = 0
      while (Exit.isExit(writers.unsafePoll()) === false) {
        assert.strictEqual(Number(yield* count) % 2, 0)
        looks++
        yield* Effect.yieldNow()
      }
      assert.isAbove(looks, 2)
      assert.strictEqual(yield* count, 1200)
    }).pipe(Effect.provide(temporaryDatabase)))
})

describe("a busy file", () => {
  it.scopedLive("delays writers without stopping the thread, and a withdrawn job never runs", () =>
    Effect.gen(function*() {
      const filename = Path.join(yield* temporaryFolder, "state.db")
      const database = yield* Database.make({ filename })
      const blocker = yield* other(filename)
      yield* blocker("BEGIN IMMEDIATE")
      const stays = yield* Effect.fork(database.commit((run) => run(event, ["stays", 1, "{}"])))
      const goes = yield* Effect.fork(database.commit((run) => run(event, ["goes", 1, "{}"])))
      yield* Effect.sleep("100 millis")
      assert.isTrue(Exit.isInterrupted(yield* Fiber.interrupt(goes)))
      yield* blocker("COMMIT")
      yield* Fiber.join(stays)
      const rows = yield* database.read("SELECT thread_id FROM event", [])
      assert.deepStrictEqual(rows.map((row) => row["thread_id"]), ["stays"])
    }))

  it.scopedLive("that stays busy is state_unavailable after five seconds, with the thread free all the while", () =>
    Effect.gen(function*() {
      const filename = Path.join(yield* temporaryFolder, "state.db")
      const database = yield* Database.make({ filename })
      const blocker = yield* other(filename)
      yield* blocker("BEGIN IMMEDIATE")
      let ticks = 0
      const ticking = yield* Effect.fork(
        Effect.forever(Effect.zipRight(Effect.sleep("20 millis"), Effect.sync(() => ticks++)))
      )
      const error = yield* Effect.flip(database.commit((run) => run(event, ["t", 1, "{}"])))
      yield* Fiber.interrupt(ticking)
      assert.deepStrictEqual([error.code, error.executed], ["state_unavailable", false])
      assert.isAbove(ticks, 100)
      yield* blocker("ROLLBACK")
      yield* database.commit((run) => run(event, ["t", 1, "{}"]))
    }))
})

describe("beside a host's own use of SQLite", () => {
  it.scopedLive("a host's rolled back transaction keeps our rows, and its wish for big integers is not ours", () =>
    Effect.gen(function*() {
      const folder = yield* temporaryFolder
      const database = yield* Database.make({ filename: Path.join(folder, "state.db") })
      const host = SqliteClient.layer({ filename: Path.join(folder, "host.db") })
      yield* Effect.gen(function*() {
        const sql = yield* SqlClient.SqlClient
        yield* Effect.ignore(sql.withTransaction(Effect.zipRight(
          database.commit((run) => run(event, ["t", 1, "{}"])),
          Effect.fail("host changed its mind")
        )))
      }).pipe(Effect.provide(host))
      const read = Effect.map(database.read("SELECT count(*) AS n FROM event", []), (rows) => rows[0]?.["n"])
      assert.strictEqual(yield* Effect.provideService(read, SqlClient.SafeIntegers, true), 1)
      assert.strictEqual(yield* read, 1)
    }))
})

describe("a full disk", () => {
  it.scopedLive("makes a claim fail before the side effect and leaves what was recorded", () =>
    Effect.gen(function*() {
      const script = yield* bundle("fullDisk.ts")
      const filename = Path.join(yield* temporaryFolder, "state.db")
      const limited = "ulimit -f 2000; exec \"$0\" \"$1\" \"$2\""
      const child = yield* startCommand(["bash", "-c", limited, process.execPath, script, filename])
      assert.deepStrictEqual(JSON.parse(yield* child.line), ["state_unavailable", false, "Absent", "Live", true])
      assert.strictEqual(yield* child.ended, 0)
      yield* Effect.provide(count, Layer.orDie(Database.layer({ filename })))
    }))
})
