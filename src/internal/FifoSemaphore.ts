/**
 * Permits handed out first come, first served, exactly, whatever gets interrupted.
 *
 * A release hands its permit to the oldest waiter, so nobody overtakes. The lines are linked lists: to join, to leave from
 * anywhere and to be served cost the same however many wait.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

export interface FifoSemaphore {
  /** Runs an effect while holding one permit. A waiter that is interrupted leaves the line. */
  readonly withPermit: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** How many wait in line. */
  readonly waiting: Effect.Effect<number>
}

export const nothing = (): void => undefined

/** A place in a line. Out of every line it is its own neighbour. */
export class Waiter {
  before: Waiter = this
  after: Waiter = this
  /** Called when the permit is there. It runs in whatever fiber gave the permit, so it only notes or resumes. */
  grant: () => void = nothing
}

export const inLine = (waiter: Waiter): boolean => waiter.after !== waiter

/** The bare mechanism: who takes a permit has to see to it that it comes back. */
export interface Permits {
  readonly limit: () => number
  readonly held: () => number
  readonly waiting: () => number
  /** Whether a permit was free; it is held then. */
  readonly take: () => boolean
  /** Joins the line, or the one that is served before it. Only right after `take` found nothing. */
  readonly join: (waiter: Waiter, ahead: boolean) => void
  /** Whether the waiter was still in line. */
  readonly leave: (waiter: Waiter) => boolean
  readonly release: () => void
  /** More permits serve the line at once; fewer are not handed out again when they come back. */
  readonly resize: (limit: number) => void
}

/** `onChange` hears of every change of a number, after it. */
export const makePermits = (permits: number, onChange: () => void): Permits => {
  let limit = permits
  let held = 0
  let waiting = 0
  const first = new Waiter()
  const second = new Waiter()

  const leave = (waiter: Waiter): boolean => {
    if (!inLine(waiter)) return false
    waiter.before.after = waiter.after
    waiter.after.before = waiter.before
    waiter.before = waiter
    waiter.after = waiter
    waiting--
    return true
  }

  const serve = (): void => {
    while (held < limit && waiting > 0) {
      const next = inLine(first) ? first.after : second.after
      leave(next)
      held++
      next.grant()
    }
    onChange()
  }

  return {
    limit: () => limit,
    held: () => held,
    waiting: () => waiting,
    take: () => {
      if (held >= limit) return false
      held++
      onChange()
      return true
    },
    join: (waiter, ahead) => {
      const line = ahead ? first : second
      waiter.before = line.before
      waiter.after = line
      line.before.after = waiter
      line.before = waiter
      waiting++
      onChange()
    },
    leave: (waiter) => {
      const left = leave(waiter)
      if (left) onChange()
      return left
    },
    release: () => {
      held--
      serve()
    },
    resize: (to) => {
      limit = to
      serve()
    }
  }
}

export type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Returns when the waiter is out of the line. */
export const out = (waiter: Waiter): Effect.Effect<void> =>
  Effect.async<void>((resume) => {
    if (!inLine(waiter)) return resume(Effect.void)
    waiter.grant = () => resume(Effect.void)
  })

/**
 * Takes a permit, waiting for it interruptibly. To be called where interruption is disabled.
 *
 * To find nothing and to join is one step: a fiber may be made to yield between any two.
 */
export const enter = (permits: Permits, restore: Restore): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (permits.take()) return Effect.void
    const waiter = new Waiter()
    permits.join(waiter, false)
    // Outside `restore`: an interruption that arrives after the grant must still find somebody to pass the permit on.
    return Effect.onExit(
      restore(out(waiter)),
      (exit) =>
        Effect.sync(() => {
          if (Exit.isFailure(exit) && !permits.leave(waiter)) permits.release()
        })
    )
  })

export const make = (permits: number): Effect.Effect<FifoSemaphore> => Effect.sync(() => unsafeMake(permits))

/** As `make`, at once: for a registry that must not be left between looking up a key and filling it. */
export const unsafeMake = (limit: number): FifoSemaphore => {
  const permits = makePermits(limit, nothing)
  const release = Effect.sync(permits.release)
  return {
    withPermit: (effect) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.zipRight(enter(permits, restore), Effect.ensuring(restore(effect), release))
      ),
    waiting: Effect.sync(permits.waiting)
  }
}
