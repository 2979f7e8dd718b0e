/**
 * A bounded mailbox and one message at a time.
 *
 * An actor with nothing to do has no fiber. Whoever gives it a message, or ends the one before, hands the next one to `fork`,
 * which decides when its fiber starts.
 *
 * @since 0.1.0
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import type { Task } from "./DelegationSemaphore.ts"

export interface Options<M, A> {
  /** Messages that may wait. */
  readonly capacity: number
  /**
   * Handles one message. It runs where interruption is disabled, so that what it has done is never taken for undone: it allows
   * interruption itself, where it may be cut short.
   */
  readonly run: (message: M) => Effect.Effect<A>
  /** What became of a message whose handling was cut short, or never started. Runs once, and cannot be interrupted. */
  readonly cut: (message: M) => Effect.Effect<A>
  /** Runs an effect in a fiber of its own, now or later; nothing of it is left when it is cancelled. */
  readonly fork: (effect: Effect.Effect<void>) => Effect.Effect<Pick<Task<void, never>, "cancel">>
}

export interface Actor<in M, out A> {
  /**
   * Puts a message in the mailbox and waits for its outcome. Interrupting it takes the message back, or interrupts its
   * handling, and returns when that is over.
   */
  readonly ask: (message: M) => Effect.Effect<A, "full" | "stopped">
  /** Puts a message in the mailbox. */
  readonly tell: (message: M) => Effect.Effect<void, "full" | "stopped">
  /** Cuts short what is being handled, or is next; says whether there was anything. */
  readonly interrupt: Effect.Effect<boolean>
  /** Takes no more messages, cuts short what is there, and returns when nothing runs any more. */
  readonly stop: Effect.Effect<void>
}

interface Envelope<M, A> {
  readonly message: M
  readonly outcome: Deferred.Deferred<A>
  /** There once the message was handed over. */
  readonly task: Deferred.Deferred<Pick<Task<void, never>, "cancel">>
  over: boolean
}

export const make = <M, A>(options: Options<M, A>): Effect.Effect<Actor<M, A>> =>
  Effect.map(Deferred.make<void>(), (stopped) => {
    let mailbox: Array<Envelope<M, A>> = []
    let current: Envelope<M, A> | undefined
    let open = true

    const end = (envelope: Envelope<M, A>, exit: Exit.Exit<A>): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (envelope.over) return Effect.void
        envelope.over = true
        const outcome = Exit.isSuccess(exit) ? Effect.succeed(exit.value) : options.cut(envelope.message)
        return Effect.flatMap(outcome, (value) => {
          if (current === envelope) current = undefined
          return Effect.zipRight(Deferred.succeed(envelope.outcome, value), next)
        })
      })

    const next: Effect.Effect<void> = Effect.suspend(() => {
      if (current !== undefined || !open) return Effect.void
      const envelope = mailbox.shift()
      if (envelope === undefined) return Effect.void
      current = envelope
      const handling = Effect.uninterruptible(
        Effect.onExit(Effect.suspend(() => options.run(envelope.message)), (exit) => end(envelope, exit))
      )
      return Effect.flatMap(
        options.fork(Effect.asVoid(handling)),
        (task) => Deferred.succeed(envelope.task, task)
      )
    })

    const cut = (envelope: Envelope<M, A>): Effect.Effect<void> =>
      Effect.flatMap(Deferred.await(envelope.task), ({ cancel }) => cancel).pipe(
        // It may have been cancelled before its fiber began.
        Effect.zipRight(end(envelope, Exit.interrupt(FiberId.none))),
        Effect.uninterruptible
      )

    const withdraw = (envelope: Envelope<M, A>): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (current === envelope) return cut(envelope)
        const waiting = mailbox.indexOf(envelope)
        // Neither: it has ended, or somebody who stops the actor is about to end it.
        if (waiting === -1) return Effect.asVoid(Deferred.await(envelope.outcome))
        mailbox.splice(waiting, 1)
        return Effect.void
      })

    const put = (message: M): Effect.Effect<Envelope<M, A>, "full" | "stopped"> =>
      Effect.flatMap(
        Effect.all([Deferred.make<A>(), Deferred.make<Pick<Task<void, never>, "cancel">>()]),
        ([outcome, task]) => {
          if (!open) return Effect.fail("stopped" as const)
          if (mailbox.length >= options.capacity) return Effect.fail("full" as const)
          const envelope: Envelope<M, A> = { message, outcome, task, over: false }
          mailbox.push(envelope)
          return Effect.as(next, envelope)
        }
      )

    return {
      ask: (message) =>
        Effect.uninterruptibleMask((restore) =>
          Effect.flatMap(
            put(message),
            (envelope) => Effect.onInterrupt(restore(Deferred.await(envelope.outcome)), () => withdraw(envelope))
          )
        ),
      tell: (message) => Effect.uninterruptible(Effect.asVoid(put(message))),
      interrupt: Effect.suspend(() => current === undefined ? Effect.succeed(false) : Effect.as(cut(current), true)),
      stop: Effect.suspend(() => {
        if (!open) return Deferred.await(stopped)
        open = false
        const waiting = mailbox
        mailbox = []
        const interrupted = Exit.interrupt(FiberId.none)
        return Effect.forEach(waiting, (envelope) => end(envelope, interrupted), { discard: true }).pipe(
          Effect.zipRight(Effect.suspend(() => current === undefined ? Effect.void : cut(current))),
          Effect.zipRight(Deferred.succeed(stopped, undefined)),
          Effect.asVoid,
          Effect.uninterruptible
        )
      })
    }
  })
