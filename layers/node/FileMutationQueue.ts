/**
 * `FileMutationQueue` that keeps the user's other processes out too, by lock files in a private folder.
 *
 * A live owner is never robbed, however long it takes; a dead one, also one whose pid is somebody else's by now, holds nobody
 * up (decisions, Files: lock). Among processes, the one that has waited at the head of the line goes next.
 *
 * Limits: the folder must allow hard links. Machines that share a home do not keep each other out, and neither do
 * containers.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Os from "node:os"
import * as Path from "node:path"
import { Digest } from "../../src/contract/Digest.ts"
import { fileError, quote } from "../../src/file/FileError.ts"
import { FileMutationQueue, type Lock, makeOver, milliseconds } from "../../src/file/FileMutationQueue.ts"
import { type Owner, ProcessIdentity } from "../../src/process/ProcessIdentity.ts"
import * as LockFolder from "./LockFolder.ts"

export interface Options {
  /** Absolute; made when missing, private. All who shall keep each other out name the same. Default `lockDirectory()`. */
  readonly directory?: string
  /** For how many milliseconds other processes may keep a file from a waiter. Default 60,000. */
  readonly limitMs?: number
}

/** The user's own, whatever state file and workspace a process has: `portcullis/locks` in the state directory (XDG). */
export const lockDirectory = (): string => {
  const given = process.env["XDG_STATE_HOME"] ?? ""
  return Path.join(Path.isAbsolute(given) ? given : Path.join(Os.homedir(), ".local", "state"), "portcullis", "locks")
}

/** Milliseconds for which a burst of this process keeps one lock. */
const turnMs = 100
/** Milliseconds between two tries; while the same holder stays, those behind the head of the line try less and less often. */
const pollMs = 25
const maxPollMs = 250
/** Milliseconds for which a holder that was found alive is not looked for again: it may cost starting a process. */
const judgedMs = 100

const locked = (physicalPath: string, { pid }: Owner, waitedMs: number) =>
  fileError(
    "file_locked",
    `Process ${pid}, which is still there, holds ${quote(physicalPath)} or is before this one in line; gave up after ` +
      `${waitedMs} ms. Try again later.`,
    { holder: { pid }, waitedMs }
  )

/**
 * A queue that touches the folder when a file is first asked for: what is wrong with it (not ours, writable by others, out of
 * reach) is then `lock_unavailable`. The limit counts while other processes have the file, not while the line of this process
 * moves, and for each file anew. Closing the scope takes our record away: a file that is held then is still
 * freed in the end, and nobody gets one any more.
 */
export const make = (
  options: Options = {}
): Effect.Effect<FileMutationQueue["Type"], never, ProcessIdentity | Scope.Scope> =>
  Effect.gen(function*() {
    const { directory, limitMs = 60_000 } = options
    const identity = yield* ProcessIdentity
    const scope = yield* Effect.scope
    const space = LockFolder.make(directory ?? lockDirectory(), identity.self, yield* Digest)
    let member: LockFolder.Member | undefined
    let closed = false
    let swept = false
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        closed = true
        member = undefined
      })
    )

    // Two queues of one process are two owners.
    const join = Effect.suspend(() =>
      LockFolder.join(space, { ...identity.self, token: globalThis.crypto.randomUUID() })
    )
    // As a member of its own: a lock that it has is not ours.
    const sweep = Effect.ignore(
      Effect.scoped(Effect.flatMap(join, (sweeper) => LockFolder.sweep(sweeper, identity.alive)))
    )

    const current = Effect.gen(function*() {
      if (closed) return yield* LockFolder.unavailable(space.folder, "the queue is closed")
      member ??= yield* Scope.extend(join, scope)
      if (!swept) {
        swept = true
        yield* Effect.forkIn(Effect.interruptible(sweep), scope)
      }
      return member
    })

    const lockOf = (physicalPath: string): Lock => {
      const name = LockFolder.nameOf(space, physicalPath)
      let holding: LockFolder.Member | undefined
      /** Since when others have it, while this process wants it. */
      let blockedSince: number | undefined

      const take: Lock["take"] = Effect.fnUntraced(function*(asked, restore) {
        const clock = yield* Effect.clock
        let judged = { token: "", until: 0 }
        let last = ""
        let pause = pollMs
        let mine: LockFolder.Member | undefined

        const lives = (owner: Owner): Effect.Effect<boolean> =>
          owner.token === judged.token && milliseconds(clock) < judged.until
            ? Effect.succeed(true)
            : Effect.tap(restore(identity.alive(owner)), (alive) => {
              if (alive) judged = { token: owner.token, until: milliseconds(clock) + judgedMs }
            })

        const wait = Effect.gen(function*() {
          for (let losses = 0;;) {
            const self = yield* current
            const answer = LockFolder.ahead(self, name) ?? (yield* LockFolder.tryTake(self, name, lives))
            if (answer === "taken") {
              holding = self
              blockedSince = undefined
              return
            }
            if (answer === "lost") {
              if (member === self) member = undefined
              if (++losses > 3) return yield* LockFolder.unavailable(space.folder, "what is written there disappears")
              continue
            }
            const now = milliseconds(clock)
            blockedSince ??= now
            const waited = now - Math.max(asked, blockedSince)
            if (waited >= limitMs) return yield* locked(physicalPath, answer, Math.round(waited))
            mine = self
            const first = LockFolder.mark(self, name)
            pause = first || answer.token !== last ? pollMs : Math.min(pause * 1.5, maxPollMs)
            last = answer.token
            yield* restore(Effect.sleep(Math.min(pause, limitMs - waited)))
          }
        })
        return yield* Effect.ensuring(
          wait,
          Effect.sync(() => {
            if (mine !== undefined) LockFolder.unmark(mine, name)
          })
        )
      })

      return {
        take,
        release: () => {
          if (holding !== undefined) LockFolder.release(holding, name)
          holding = undefined
        }
      }
    }
    return makeOver(lockOf, turnMs)
  })

export const layer = (options?: Options): Layer.Layer<FileMutationQueue, never, ProcessIdentity> =>
  Layer.scoped(FileMutationQueue, make(options))
