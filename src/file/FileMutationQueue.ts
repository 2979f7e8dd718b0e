/**
 * One writer a file, in the order of asking (seed 4.3).
 *
 * The key is a physical path, so two spellings of a file share one line, also when it does not exist yet.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as FifoSemaphore from "../internal/FifoSemaphore.ts"

export class FileMutationQueue extends Context.Tag("portcullis/FileMutationQueue")<FileMutationQueue, {
  /**
   * Runs `effect` while holding the file. First come, first served; other files are not held up. A waiter that is
   * interrupted leaves the line. Not reentrant: an effect that asks for the file it holds waits for ever.
   */
  readonly withFile: <A, E, R>(physicalPath: string, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** As `withFile`, holding all of them; taken in one order everywhere, so two calls never wait for each other. */
  readonly withFiles: <A, E, R>(
    physicalPaths: ReadonlyArray<string>,
    effect: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E, R>
}>() {}

interface Line {
  readonly semaphore: FifoSemaphore.FifoSemaphore
  users: number
}

/** Serves this process only. It keeps a line a file that is held or waited for, and none else. */
export const make: Effect.Effect<FileMutationQueue["Type"]> = Effect.sync(() => {
  const lines = new Map<string, Line>()

  const enter = (path: string): Effect.Effect<Line> =>
    Effect.sync(() => {
      const line = lines.get(path) ?? { semaphore: FifoSemaphore.unsafeMake(1), users: 0 }
      line.users++
      lines.set(path, line)
      return line
    })

  const leave = (path: string) => (line: Line): Effect.Effect<void> =>
    Effect.sync(() => {
      line.users--
      if (line.users === 0) lines.delete(path)
    })

  const withFile: FileMutationQueue["Type"]["withFile"] = (path, effect) =>
    Effect.acquireUseRelease(enter(path), (line) => line.semaphore.withPermit(effect), leave(path))

  return {
    withFile,
    withFiles: (paths, effect) => [...new Set(paths)].sort().reduceRight((held, path) => withFile(path, held), effect)
  }
})

export const layerInProcess: Layer.Layer<FileMutationQueue> = Layer.effect(FileMutationQueue, make)
