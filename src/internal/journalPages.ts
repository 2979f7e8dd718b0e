/** A journal's stream out of pages that are read again and again, so that no reader is ever pushed or waited for. */
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"

/** Some entries of a thread, and how far the reader has seen the journal when it has read them. */
export interface Page<Entry> {
  readonly entries: ReadonlyArray<Entry>
  readonly seen: number
}

/**
 * A stream out of pages: reads on as long as there is more, then waits for the signal and reads again. What a reader missed
 * while it was slow it reads then, so nothing is pushed and nobody waits for it.
 */
export const streamPages = <Entry, E>(options: {
  readonly after: number
  readonly read: (after: number) => Effect.Effect<Page<Entry>, E>
  /** Returns when there may be something after `seen`. */
  readonly wait: (seen: number) => Effect.Effect<void>
}): Stream.Stream<Entry, E> =>
  Stream.paginateChunkEffect(options.after, (after) =>
    Effect.map(
      Effect.repeat(
        Effect.flatMap(
          options.read(after),
          (page) => page.entries.length > 0 ? Effect.succeed(page) : Effect.as(options.wait(page.seen), page)
        ),
        { until: (page) => page.entries.length > 0 }
      ),
      (page) => [Chunk.unsafeFromArray(page.entries), Option.some(page.seen)] as const
    ))

/** Wakes whoever waits, once. */
export interface Signal {
  readonly raise: () => void
  /** Returns at once when `ready()`, else with the next `raise`. */
  readonly wait: (ready: () => boolean) => Effect.Effect<void>
}

export const makeSignal = (): Signal => {
  let waiting = new Set<() => void>()
  return {
    raise: () => {
      if (waiting.size === 0) return
      const woken = waiting
      waiting = new Set()
      for (const wake of woken) wake()
    },
    wait: (ready) =>
      Effect.async<void>((resume) => {
        if (ready()) return resume(Effect.void)
        const wake = () => resume(Effect.void)
        waiting.add(wake)
        return Effect.sync(() => waiting.delete(wake))
      })
  }
}
