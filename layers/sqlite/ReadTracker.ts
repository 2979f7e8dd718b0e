/**
 * What threads have read, in the state file: a read in one process licenses an edit in the next.
 *
 * Rows ride on the commits of other services; what a crash loses has to be read again.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { FileAccess } from "../../src/file/FileAccess.ts"
import { make as makeOver, maxFiles, maxThreads, ReadTracker, type SeenStore } from "../../src/file/ReadTracker.ts"
import { Database } from "./Database.ts"

/**
 * The column `partial` holds one more than the first byte not seen, or 0 when all of the file is known. Rows of older
 * versions hold the first line not seen, which claims no more: every line above it has a byte at least.
 */
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

const unseenIn = (partial: number): number | null => partial === 0 ? null : partial - 1

const store = Effect.map(Database, (database): SeenStore => ({
  get: (threadId, path) =>
    database.flush.pipe(
      Effect.zipRight(database.read(GET, [threadId, path])),
      Effect.map(([row]) =>
        typeof row?.["hash"] === "string" ? { hash: row["hash"], unseen: unseenIn(Number(row["partial"])) } : undefined
      ),
      // A state file that cannot be read remembers nothing; the call it stops says so by its own code.
      Effect.catchAll(() => Effect.succeed(undefined))
    ),
  put: (threadId, path, seen) =>
    Effect.sync(() =>
      database.defer((run) =>
        Effect.gen(function*() {
          const known = yield* run(KNOWN, [threadId])
          yield* run(PUT, [threadId, path, seen.hash, seen.unseen === null ? 0 : seen.unseen + 1])
          yield* run(TRIM, [threadId, threadId, maxFiles])
          if (known.length === 0) yield* run(TRIM_THREADS, [maxThreads])
        })
      )
    ),
  clear: (threadId) => Effect.sync(() => database.defer((run) => Effect.asVoid(run(CLEAR, [threadId]))))
}))

export const make: Effect.Effect<ReadTracker["Type"], never, Database | FileAccess> = Effect.flatMap(
  store,
  makeOver
)

export const layer: Layer.Layer<ReadTracker, never, Database | FileAccess> = Layer.effect(ReadTracker, make)
