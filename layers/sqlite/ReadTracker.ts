/**
 * What threads have read, in the state file: a read in one process licenses an edit in the next.
 *
 * Rows ride on the commits of other services; what a crash loses has to be read again.
 *
 * @since 0.1.0
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { make as makeOver, maxFiles, maxThreads, ReadTracker, type SeenStore } from "../../src/file/ReadTracker.ts"
import { Database } from "./Database.ts"

const GET = "SELECT hash, partial FROM seen WHERE thread_id = ? AND path = ?"
const KNOWN = "SELECT 1 FROM seen WHERE thread_id = ? LIMIT 1"
/** `used` counts up: a clock would give many rows the same instant, and the newest could go first. */
const PUT = `INSERT INTO seen (thread_id, path, hash, partial, used)
  VALUES (?, ?, ?, ?, (SELECT coalesce(max(used), 0) + 1 FROM seen))
  ON CONFLICT (thread_id, path) DO UPDATE SET hash = excluded.hash, partial = excluded.partial, used = excluded.used`
const TRIM = `DELETE FROM seen WHERE thread_id = ? AND path NOT IN
  (SELECT path FROM seen WHERE thread_id = ? ORDER BY used DESC LIMIT ?)`
const TRIM_THREADS = `DELETE FROM seen WHERE thread_id NOT IN
  (SELECT thread_id FROM seen GROUP BY thread_id ORDER BY max(used) DESC LIMIT ?)`
const CLEAR = "DELETE FROM seen WHERE thread_id = ?"

const store = Effect.map(Database, (database): SeenStore => ({
  get: (threadId, path) =>
    database.flush.pipe(
      Effect.zipRight(database.read(GET, [threadId, path])),
      Effect.map(([row]) =>
        typeof row?.["hash"] === "string" ? { hash: row["hash"], partial: row["partial"] !== 0 } : undefined
      ),
      // A state file that cannot be read remembers nothing; the call it stops says so by its own code.
      Effect.catchAll(() => Effect.succeed(undefined))
    ),
  put: (threadId, path, seen) =>
    Effect.sync(() =>
      database.defer((run) =>
        Effect.gen(function*() {
          const known = yield* run(KNOWN, [threadId])
          yield* run(PUT, [threadId, path, seen.hash, seen.partial ? 1 : 0])
          yield* run(TRIM, [threadId, threadId, maxFiles])
          if (known.length === 0) yield* run(TRIM_THREADS, [maxThreads])
        })
      )
    ),
  clear: (threadId) => Effect.sync(() => database.defer((run) => Effect.asVoid(run(CLEAR, [threadId]))))
}))

export const make: Effect.Effect<ReadTracker["Type"], never, Database | FileSystem.FileSystem> = Effect.flatMap(
  store,
  makeOver
)

export const layer: Layer.Layer<ReadTracker, never, Database | FileSystem.FileSystem> = Layer.effect(ReadTracker, make)
