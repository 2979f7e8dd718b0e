/**
 * Permits handed out first come, first served, exactly, whatever gets interrupted.
 *
 * A release hands its permit to the oldest waiter, so nobody overtakes and a release costs the same however many wait.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

export interface FifoSemaphore {
  /** Runs an effect while holding one permit. A waiter that is interrupted leaves the line. */
  readonly withPermit: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** How many wait in line. */
  readonly waiting: Effect.Effect<number>
}

interface Waiter {
  granted: boolean
  resume: (effect: Effect.Effect<void>) => void
}

export const make = (permits: number): Effect.Effect<FifoSemaphore> => Effect.sync(() => unsafeMake(permits))

/** As `make`, at once: for a registry that must not be left between looking up a key and filling it. */
export const unsafeMake = (permits: number): FifoSemaphore => {
  let free = permits
  const line = new Set<Waiter>()

  const release = (): void => {
    for (const next of line) {
      line.delete(next)
      next.granted = true
      return next.resume(Effect.void)
    }
    free++
  }

  const wait = (restore: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>) => {
    const waiter: Waiter = { granted: false, resume: () => undefined }
    const queued = Effect.async<void>((resume) => {
      waiter.resume = resume
      line.add(waiter)
    })
    // Outside `restore`: an interruption that arrives after the grant must still find somebody to pass the permit on.
    return Effect.onExit(restore(queued), (exit) =>
      Effect.sync(() => {
        if (Exit.isSuccess(exit)) return
        if (waiter.granted) release()
        else line.delete(waiter)
      }))
  }

  return {
    withPermit: (effect) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.zipRight(
          Effect.suspend(() => {
            if (free === 0) return wait(restore)
            free--
            return Effect.void
          }),
          Effect.ensuring(restore(effect), Effect.sync(release))
        )
      ),
    waiting: Effect.sync(() => line.size)
  }
}
