/**
 * One writer a file, in the order of asking (seed 4.3).
 *
 * The key is a physical path, so two spellings of a file share one line, also when it does not exist yet. Two hard links
 * are two paths, and so two lines.
 *
 * @since 0.1.0
 */
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as FifoSemaphore from "../internal/FifoSemaphore.ts"
import type { FileError, LockCode } from "./FileError.ts"

export class FileMutationQueue extends Context.Tag("portcullis/FileMutationQueue")<FileMutationQueue, {
  /**
   * Runs `effect` while holding the file. First come, first served; other files are not held up. A waiter that is
   * interrupted leaves the line at once. Not reentrant: an effect that asks for the file it holds waits for ever.
   *
   * Where other processes are kept out too: `file_locked` when others held the file for as long as this one may wait
   * (`details.holder` says who), `lock_unavailable` when the lock itself cannot be taken. Then `effect` did not run.
   */
  readonly withFile: <A, E, R>(
    physicalPath: string,
    effect: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | FileError<LockCode>, R>
  /** As `withFile`, holding all of them; taken in one order everywhere, so two calls never wait for each other. */
  readonly withFiles: <A, E, R>(
    physicalPaths: ReadonlyArray<string>,
    effect: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | FileError<LockCode>, R>
  readonly metrics: Effect.Effect<Metrics>
}>() {}

/** How busy the lines of this process are. */
export interface Metrics {
  /** Effects that wait for a file. */
  readonly waiting: number
  /** Files that are held. */
  readonly held: number
  /** Milliseconds of the longest wait so far, ended or not. */
  readonly longestWaitMs: number
}

/** What keeps other processes from one file while a line of this process works on it. */
export interface Lock {
  /**
   * Returns once the lock is taken. Called where interruption is disabled: only what is given to `restore` can be
   * interrupted, and then nothing is left behind. `asked` is when the waiter asked, as `milliseconds` counts.
   */
  readonly take: (asked: number, restore: FifoSemaphore.Restore) => Effect.Effect<void, FileError<LockCode>>
  /** In one step, for nobody of this process may come between; so it says nothing when it fails. */
  readonly release: () => void
}

/** By a clock that is never set, so that no wait looks longer than it was. */
export const milliseconds = (clock: Clock.Clock): number => Number(clock.unsafeCurrentTimeNanos() / 1000n) / 1000

interface Line {
  readonly permits: FifoSemaphore.Permits
  readonly lock: Lock
  /** When the lock was taken; `undefined` while it is not held. */
  takenAt: number | undefined
  /** Effects that hold the file or wait for it. */
  users: number
}

const unlock = (line: Line): void => {
  if (line.takenAt === undefined) return
  line.takenAt = undefined
  line.lock.release()
}

/**
 * Lines over a lock a file. One lock serves a burst: it stays while the line is not empty, at most `turnMs` milliseconds and
 * the effect that runs then, so that other processes get their turn. It keeps a line a file that is held or waited for, and none else.
 */
export const makeOver = (lockOf: (physicalPath: string) => Lock, turnMs: number): FileMutationQueue["Type"] => {
  const lines = new Map<string, Line>()
  /** When each waiter asked; the oldest first. */
  const waits = new Set<{ readonly asked: number }>()
  let held = 0
  let longest = 0

  const join = (path: string): Line => {
    const line = lines.get(path) ??
      {
        permits: FifoSemaphore.makePermits(1, FifoSemaphore.nothing),
        lock: lockOf(path),
        takenAt: undefined,
        users: 0
      }
    line.users++
    lines.set(path, line)
    return line
  }

  // One look at how it ended instead of nested finalizers: it is on the way of every write. Nothing can be interrupted but
  // what is restored, so whatever happens in between is seen there.
  const withFile: FileMutationQueue["Type"]["withFile"] = (path, effect) =>
    Effect.clockWith((clock) =>
      Effect.uninterruptibleMask((restore) => {
        const line = join(path)
        const wait = { asked: milliseconds(clock) }
        waits.add(wait)
        let stage: "waits" | "locks" | "runs" = "waits"

        const arrive = (now: number): void => {
          waits.delete(wait)
          longest = Math.max(longest, now - wait.asked)
        }
        const run = Effect.suspend(() => {
          const now = milliseconds(clock)
          line.takenAt ??= now
          arrive(now)
          stage = "runs"
          held++
          return restore(effect)
        })
        const work = Effect.suspend(() => {
          stage = "locks"
          return line.takenAt === undefined ? Effect.zipRight(line.lock.take(wait.asked, restore), run) : run
        })
        return Effect.flatMap(
          Effect.exit(Effect.zipRight(FifoSemaphore.enter(line.permits, restore), work)),
          (exit) => {
            const now = milliseconds(clock)
            if (stage === "runs") held--
            else arrive(now)
            // The last one out unlocks, also one that leaves the line while it waits for its turn.
            line.users--
            if (line.users === 0) lines.delete(path)
            if (line.users === 0 || stage !== "waits" && now - (line.takenAt ?? now) >= turnMs) unlock(line)
            if (stage !== "waits") line.permits.release()
            return exit
          }
        )
      })
    )

  const withFiles = <A, E, R>(
    paths: ReadonlyArray<string>,
    effect: Effect.Effect<A, E, R>
  ): Effect.Effect<A, E | FileError<LockCode>, R> => {
    const inOrder = [...new Set(paths)].sort()
    const from = (index: number): Effect.Effect<A, E | FileError<LockCode>, R> => {
      const path = inOrder[index]
      return path === undefined ? effect : withFile(path, from(index + 1))
    }
    return from(0)
  }

  const metrics = Effect.clockWith((clock) =>
    Effect.sync(() => {
      const [oldest] = waits
      const now = milliseconds(clock)
      return {
        waiting: waits.size,
        held,
        longestWaitMs: Math.max(longest, oldest === undefined ? 0 : now - oldest.asked)
      }
    })
  )

  return { withFile, withFiles, metrics }
}

/** Of a file that no other process writes. */
const unshared: Lock = { take: () => Effect.void, release: FifoSemaphore.nothing }

/** Serves this process only. */
export const make: Effect.Effect<FileMutationQueue["Type"]> = Effect.sync(() => makeOver(() => unshared, Infinity))

export const layerInProcess: Layer.Layer<FileMutationQueue> = Layer.effect(FileMutationQueue, make)
