/**
 * The fan-out budget: how many agents run at once, first come, first served (seed 7.2; decisions, "nesting").
 *
 * An agent that waits for its children lends its slot, so no depth of nesting can deadlock a budget of one.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import type * as FiberRefs from "effect/FiberRefs"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as FifoSemaphore from "../internal/FifoSemaphore.ts"
import { makeSignal } from "../internal/journalPages.ts"

/** The slot that an effect runs in. */
export interface Slot {
  /**
   * Gives the slot back while `effect` runs, and takes it again before it returns, ahead of everybody who was never admitted.
   * Several at once lend it once: it comes back with the end of the last. Interruption while it is taken back leaves nothing
   * taken. Outside the slot's own effect it only runs `effect`.
   */
  readonly lend: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/** Something that was handed in to run in a slot. */
export interface Task<A, E> {
  /** How it ended; an interruption when it was cancelled, in the line or in its slot. */
  readonly await: Effect.Effect<Exit.Exit<A, E>>
  /** Leaves the line, or interrupts; returns when nothing of it runs any more. */
  readonly cancel: Effect.Effect<void>
}

/** A moment's numbers: `running` slots held, `lent` admitted but waiting for others, `waiting` in line. */
export interface State {
  readonly limit: number
  readonly running: number
  readonly lent: number
  readonly waiting: number
}

export class DelegationSemaphore extends Context.Tag("portcullis/DelegationSemaphore")<DelegationSemaphore, {
  /** Runs an effect in a slot, in the caller's fiber. A waiter that is interrupted leaves the line. */
  readonly withSlot: <A, E, R>(run: (slot: Slot) => Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /**
   * Joins the line and returns; the effect gets a fiber of its own only when its slot is there, as if its owner forked it then.
   * While it waits it is a record of some hundred bytes.
   *
   * Closing the scope cancels it, at the place of the scope's first `fork`: what was acquired in the scope before that is
   * released after it, what was acquired later before it. What a task uses, acquire first or in a scope outside.
   */
  readonly fork: <A, E, R>(
    run: (slot: Slot) => Effect.Effect<A, E, R>
  ) => Effect.Effect<Task<A, E>, never, R | Scope.Scope>
  /** More slots admit waiters at once; fewer take nothing away, they are not given out again. At least 1. */
  readonly resize: (limit: number) => Effect.Effect<void>
  readonly state: Effect.Effect<State>
  /** The numbers now, then after every change; a slow reader sees the newest. */
  readonly changes: Stream.Stream<State>
}>() {}

type Service = typeof DelegationSemaphore.Service

/** What was forked in one scope and has not ended. */
interface Group {
  readonly members: Set<Member>
  closed: boolean
  /** Of whoever forked last: many forks in a row have the same. */
  owner: Owner | undefined
}

/** The references that a task's fiber starts with, and the way to fork with them. */
interface Owner {
  readonly refs: FiberRefs.FiberRefs
  readonly fork: <A, E>(effect: Effect.Effect<A, E>) => Fiber.RuntimeFiber<A, E>
}

const sameRefs = (left: FiberRefs.FiberRefs, right: FiberRefs.FiberRefs): boolean => {
  if (left.locals.size !== right.locals.size) return false
  for (const [ref, stack] of left.locals) {
    const other = right.locals.get(ref)
    // Looking at a fiber's references writes its flags among them.
    if (other !== stack && (other === undefined || !Object.is(other[0][1], stack[0][1]))) return false
  }
  return true
}

interface Member {
  /** Whether it was still in line; it has ended then. */
  readonly leave: (by: FiberId.FiberId) => boolean
  /** Interrupts what is not in line any more, and returns when nothing of it runs; at once when its own fiber asks. */
  readonly stop: (by: FiberId.FiberId) => Effect.Effect<void>
}

/** The slot of somebody who holds a permit: it stays held but while lenders are at it or it waits for its return. */
class Held implements Slot {
  readonly permits: FifoSemaphore.Permits
  readonly place: FifoSemaphore.Waiter
  readonly changedLent: (by: 1 | -1) => void
  lenders = 0
  ended = false

  constructor(
    permits: FifoSemaphore.Permits,
    place: FifoSemaphore.Waiter,
    changedLent: (by: 1 | -1) => void
  ) {
    this.permits = permits
    this.place = place
    this.changedLent = changedLent
  }

  lend<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.uninterruptibleMask((restore) =>
      Effect.suspend(() =>
        this.ended
          ? restore(effect)
          : (this.give(), Effect.ensuring(restore(effect), this.takeBack(restore)))
      )
    )
  }

  give(): void {
    if (this.lenders++ > 0) return
    this.changedLent(1)
    // A lender that waits for the return goes on, as one that ended before the last.
    if (this.permits.leave(this.place)) this.place.grant()
    else this.permits.release()
  }

  takeBack(restore: FifoSemaphore.Restore): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (--this.lenders > 0 || this.ended) return Effect.void
      this.changedLent(-1)
      if (this.permits.take()) return Effect.void
      this.permits.join(this.place, true)
      // Interrupted here, the slot keeps its place: what else goes on in it is to hold a permit again.
      return restore(FifoSemaphore.out(this.place))
    })
  }

  close(): void {
    this.ended = true
    if (this.lenders > 0) this.changedLent(-1)
    else if (!this.permits.leave(this.place)) this.permits.release()
  }
}

/** A task from `fork` on. There may be very many in line, so it is one flat record and makes the rest when it is asked. */
class Forked<A, E> extends FifoSemaphore.Waiter implements Task<A, E>, Member {
  readonly permits: FifoSemaphore.Permits
  readonly group: Group
  /** It is its own place in the line, also when it takes its slot back. */
  readonly slot: Held
  fiber: Fiber.RuntimeFiber<A, E> | undefined = undefined
  exit: Exit.Exit<A, E> | undefined = undefined
  awaited: Deferred.Deferred<Exit.Exit<A, E>> | undefined = undefined

  constructor(permits: FifoSemaphore.Permits, group: Group, changedLent: (by: 1 | -1) => void) {
    super()
    this.permits = permits
    this.group = group
    this.slot = new Held(permits, this, changedLent)
  }

  get await(): Effect.Effect<Exit.Exit<A, E>> {
    return Effect.suspend(() => {
      if (this.exit !== undefined) return Effect.succeed(this.exit)
      this.awaited ??= Deferred.unsafeMake(FiberId.none)
      return Deferred.await(this.awaited)
    })
  }

  get cancel(): Effect.Effect<void> {
    return Effect.fiberIdWith((by) => {
      if (this.leave(by)) return Effect.void
      return this.isIn(by) ? Effect.interrupt : this.stop(by)
    })
  }

  isIn(fiber: FiberId.FiberId): boolean {
    return this.fiber !== undefined && Equal.equals(this.fiber.id(), fiber)
  }

  leave(by: FiberId.FiberId): boolean {
    // With a fiber it is in line to take its slot back, if it is at all.
    const left = this.fiber === undefined && this.permits.leave(this)
    if (left) this.end(Exit.interrupt(by))
    return left
  }

  stop(by: FiberId.FiberId): Effect.Effect<void> {
    if (this.fiber === undefined || this.isIn(by)) return Effect.void
    this.fiber.unsafeInterruptAsFork(by)
    return Effect.asVoid(this.await)
  }

  started(fiber: Fiber.RuntimeFiber<A, E>): void {
    this.fiber = fiber
    // Not a finalizer of its own: this way it also closes when it was interrupted before it began.
    fiber.addObserver((exit) => {
      this.slot.close()
      this.end(exit)
    })
  }

  end(exit: Exit.Exit<A, E>): void {
    this.exit = exit
    // A task may be kept for its exit long after; what it ran is not.
    this.fiber = undefined
    this.grant = FifoSemaphore.nothing
    this.group.members.delete(this)
    if (this.awaited !== undefined) Deferred.unsafeDone(this.awaited, Effect.succeed(exit))
  }
}

const atLeastOne = (limit: number): number => limit >= 1 ? Math.floor(limit) : 1

/** A budget of `limit` slots in this process, at least 1. What still runs in one when the scope closes is interrupted. */
export const make = (limit: number): Effect.Effect<Service, never, Scope.Scope> =>
  Effect.map(FiberSet.make<unknown, unknown>(), (fibers) => {
    const signal = makeSignal()
    let version = 0
    const changed = () => {
      version++
      signal.raise()
    }
    const permits = FifoSemaphore.makePermits(atLeastOne(limit), changed)
    const groups = new WeakMap<Scope.Scope, Group>()
    let lent = 0
    let starts: Array<() => void> = []
    const forker = FiberSet.runtime(fibers)
    const changedLent = (by: 1 | -1) => {
      lent += by
      changed()
    }

    const stopAll = (group: Group) =>
      Effect.fiberIdWith((by) => {
        group.closed = true
        group.members.forEach((member) => member.leave(by))
        return Effect.forEach([...group.members], (member) => member.stop(by), { discard: true })
      })

    /**
     * A fiber starts within the one that gives the permit, as if its owner forked it. One at a time: a task that ends at once
     * would start the next within itself, and that one the next.
     */
    const begin = (start: () => void) => {
      starts.push(start)
      if (starts.length > 1) return
      for (let index = 0; index < starts.length; index++) starts[index]?.()
      starts = []
    }

    const newGroup = (scope: Scope.Scope): Effect.Effect<Group> =>
      Effect.uninterruptible(Effect.suspend(() => {
        const group: Group = { members: new Set(), closed: false, owner: undefined }
        groups.set(scope, group)
        return Effect.as(Scope.addFinalizer(scope, stopAll(group)), group)
      }))

    const enqueue = <A, E, R>(
      run: (slot: Slot) => Effect.Effect<A, E, R>,
      group: Group,
      { fork }: Owner
    ): Task<A, E> => {
      const task = new Forked<A, E>(permits, group, changedLent)
      if (group.closed) {
        task.end(Exit.interrupt(FiberId.none))
        return task
      }
      group.members.add(task)
      // All that it requires is in its owner's references, which no type can say.
      const effect = Effect.interruptible(Effect.suspend(() => run(task.slot))) as Effect.Effect<A, E>
      task.grant = () => {
        // From now on it stands in line to take its slot back, if at all.
        task.grant = FifoSemaphore.nothing
        begin(() => task.started(fork(effect)))
      }
      if (permits.take()) task.grant()
      else permits.join(task, false)
      return task
    }

    const forkIn = <A, E, R>(
      run: (slot: Slot) => Effect.Effect<A, E, R>,
      group: Group
    ): Effect.Effect<Task<A, E>, never, R> =>
      Effect.flatMap(Effect.getFiberRefs, (refs) => {
        if (group.owner !== undefined && sameRefs(group.owner.refs, refs)) {
          return Effect.succeed(enqueue(run, group, group.owner))
        }
        return Effect.map(forker(), (fork) => enqueue(run, group, group.owner = { refs, fork }))
      })

    const state = (): State => ({
      limit: permits.limit(),
      running: permits.held(),
      lent,
      waiting: permits.waiting()
    })

    return {
      withSlot: (run) =>
        Effect.uninterruptibleMask((restore) =>
          Effect.zipRight(
            FifoSemaphore.enter(permits, restore),
            Effect.suspend(() => {
              const slot = new Held(permits, new FifoSemaphore.Waiter(), changedLent)
              return Effect.ensuring(restore(Effect.suspend(() => run(slot))), Effect.sync(() => slot.close()))
            })
          )
        ),
      fork: (run) =>
        Effect.flatMap(Effect.scope, (scope) => {
          const group = groups.get(scope)
          return group === undefined
            ? Effect.flatMap(newGroup(scope), (made) => forkIn(run, made))
            : forkIn(run, group)
        }),
      resize: (to) => Effect.sync(() => permits.resize(atLeastOne(to))),
      state: Effect.sync(state),
      changes: Stream.paginateEffect(
        -1,
        (seen) => Effect.map(signal.wait(() => version > seen), () => [state(), Option.some(version)] as const)
      )
    }
  })

export interface Options {
  /** Slots, at least 1. Default 8. */
  readonly limit?: number
}

/** A budget of this process. */
export const layer = (options: Options = {}): Layer.Layer<DelegationSemaphore> =>
  Layer.scoped(DelegationSemaphore, make(options.limit ?? 8))
