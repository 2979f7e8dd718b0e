/**
 * Documents of threads in the state file. They go with its retention, but only those of threads in which nothing was written
 * since, neither a document nor an event.
 *
 * @since 0.1.0
 */
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { admit, type Document, RevisionConflict, ThreadStore } from "../../src/agent/ThreadStore.ts"
import { Json } from "../../src/contract/Json.ts"
import type { StateUnavailable } from "../../src/contract/ToolFailure.ts"
import type { ThreadId } from "../../src/contract/Turn.ts"
import { Database, type Row, type Run } from "./Database.ts"
import { unavailable } from "./internal/commitQueue.ts"

const GET = "SELECT key, revision, value FROM document WHERE thread_id = ? AND key = ?"
const REVISION = "SELECT revision FROM document WHERE thread_id = ? AND key = ?"
const PUT = `INSERT INTO document (thread_id, key, revision, written_at, value) VALUES (?, ?, 1, ?, ?)
  ON CONFLICT (thread_id, key) DO UPDATE
  SET revision = revision + 1, written_at = excluded.written_at, value = excluded.value`
const LIST = `SELECT key, revision, value FROM document
  WHERE thread_id = ? AND key >= ? AND key < ? AND key > ? ORDER BY key LIMIT ?`

/** Stands behind every character of a key. */
const beyond = "\x7f"

const decodeRow = Schema.decodeUnknown(Schema.Struct({
  key: Schema.String,
  revision: Schema.Number,
  value: Schema.parseJson(Json)
}))

const documentOf = (row: Row): Effect.Effect<Document, StateUnavailable> =>
  Effect.mapError(decodeRow(row), () => unavailable(`the document ${String(row["key"])} is damaged`))

const write = (run: Run, threadId: ThreadId, key: string, at: number, text: string) =>
  Effect.asVoid(run(PUT, [threadId, key, at, text]))

export const make: Effect.Effect<ThreadStore["Type"], never, Database> = Effect.map(Database, (database) => ({
  get: (threadId, key) =>
    Effect.zipRight(database.flush, database.read(GET, [threadId, key])).pipe(
      Effect.flatMap(([row]) => row === undefined ? Effect.succeed(undefined) : documentOf(row))
    ),
  put: Effect.fnUntraced(function*(threadId, key, value, expected) {
    const admitted = yield* admit(key, value)
    const at = yield* Clock.currentTimeMillis
    const found = yield* database.commit((run) =>
      Effect.flatMap(run(REVISION, [threadId, key]), ([row]) => {
        const revision = Number(row?.["revision"] ?? 0)
        const done = revision === expected ? write(run, threadId, key, at, admitted.text) : Effect.void
        return Effect.as(done, revision)
      })
    )
    if (found !== expected) return yield* new RevisionConflict({ code: "revision_conflict", key, expected, found })
    return { key, value: admitted.value, revision: found + 1 }
  }),
  note: (threadId, key, value) =>
    Effect.map(Clock.currentTimeMillis, (at) => {
      const admitted = admit(key, value)
      if (Either.isRight(admitted)) database.defer((run) => write(run, threadId, key, at, admitted.right.text))
    }),
  list: (threadId, prefix, { after = "", limit = 1000 } = {}) =>
    database.flush.pipe(
      Effect.zipRight(database.read(LIST, [threadId, prefix, prefix + beyond, after, Math.max(0, limit)])),
      Effect.flatMap(Effect.forEach((row) => Effect.option(documentOf(row)))),
      Effect.map(Arr.getSomes)
    )
}))

/** Needs the state file. */
export const layer: Layer.Layer<ThreadStore, never, Database> = Layer.effect(ThreadStore, make)
