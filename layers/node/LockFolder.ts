/**
 * Locks between processes, as files of one private folder.
 *
 * Every member writes a record of who it is, once. To lock is to link that record under the lock's name: the system lets
 * one link succeed, and what is there is whole from the first moment. So a record that cannot be read is none of ours, or
 * one that a power cut emptied: its owner is dead. Nothing is synced, for no lock outlives the boot it names.
 *
 * The calls are synchronous: on a local folder they take a few microseconds, through the thread pool thirty times as long;
 * and no other fiber of this process comes in between.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import type { Sha256 } from "../../src/contract/Digest.ts"
import { type FileError, fileError, quote } from "../../src/file/FileError.ts"
import { Owner } from "../../src/process/ProcessIdentity.ts"

/** Where locks are, and the names of those who can judge one another. */
export interface Space {
  readonly folder: string
  readonly prefix: string
  readonly sha256: Sha256
}

/** One that takes part, while its scope is open. */
export interface Member {
  readonly space: Space
  readonly owner: Owner
  readonly record: string
  /** Of the record, and open all the time: its inode is nobody else's meanwhile, even when the folder is emptied. */
  readonly descriptor: number
  readonly device: bigint
  readonly inode: bigint
}

export type Unavailable = FileError<"lock_unavailable">

const codeOf = (cause: unknown): string => cause instanceof Error && "code" in cause ? String(cause.code) : "unknown"

export const unavailable = (folder: string, why: string): Unavailable =>
  fileError("lock_unavailable", `Locks cannot be taken in ${quote(folder)}: ${why.slice(0, 300)}`)

const inside = <A>(space: Space, run: () => A): Effect.Effect<A, Unavailable> =>
  Effect.try({
    try: run,
    catch: (cause) => unavailable(space.folder, String(cause instanceof Error ? cause.message : cause))
  })

/** For what nothing depends on. */
const quietly = <A>(run: () => A): A | undefined => {
  try {
    return run()
  } catch {
    return undefined
  }
}

/**
 * The names are shared by the processes of one boot of one machine, in one pid namespace. To any other, as over a home on
 * the network or in a container, a live owner would look dead.
 */
export const make = (folder: string, self: Owner, sha256: Sha256): Space => {
  const pids = quietly(() => Fs.readlinkSync("/proc/self/ns/pid")) ?? ""
  return { folder, prefix: sha256(JSON.stringify([self.bootId ?? Os.hostname(), pids])).slice(0, 16), sha256 }
}

/** Of a file, by its physical path: what `tryTake`, `release` and the marks are given. */
export const nameOf = ({ folder, prefix, sha256 }: Space, text: string): string =>
  Path.join(folder, `${prefix}.${sha256(text).slice(0, 32)}`)

const lockOf = (name: string): string => `${name}.lock`
const markOf = (name: string): string => `${name}.want`

const prepare = (folder: string): void => {
  Fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (process.getuid === undefined) return
  const info = Fs.statSync(folder)
  if (info.uid !== process.getuid()) throw new Error("the folder belongs to somebody else")
  if ((info.mode & 0o022) !== 0) throw new Error("others can write to the folder")
}

/** Makes the folder when it is missing. The token of `owner` must be new. */
export const join = (space: Space, owner: Owner): Effect.Effect<Member, Unavailable, Scope.Scope> => {
  const record = Path.join(space.folder, `${space.prefix}.${owner.token}.owner`)
  return Effect.acquireRelease(
    inside(space, (): Member => {
      prepare(space.folder)
      const descriptor = Fs.openSync(record, "wx", 0o600)
      try {
        const bytes = Buffer.from(JSON.stringify(owner))
        // Half a record would be that of a dead owner.
        if (Fs.writeSync(descriptor, bytes) < bytes.length) throw new Error("a record does not fit on the disk")
        const { dev: device, ino: inode } = Fs.fstatSync(descriptor, { bigint: true })
        return { space, owner, record, descriptor, device, inode }
      } catch (cause) {
        leave(record, descriptor)
        throw cause
      }
    }),
    ({ descriptor }) => Effect.sync(() => leave(record, descriptor))
  )
}

const leave = (record: string, descriptor: number): void => {
  quietly(() => Fs.unlinkSync(record))
  quietly(() => Fs.closeSync(descriptor))
}

/** What is at a path. Two looks with one `id` saw the same thing of the same owner. */
interface Seen {
  readonly id: string
  /** `undefined` when there is no readable record. */
  readonly owner: Owner | undefined
  readonly info: Fs.BigIntStats
}

const statOf = (path: string): Fs.BigIntStats | undefined => Fs.lstatSync(path, { bigint: true, throwIfNoEntry: false })

const decode = Schema.decodeUnknownOption(Schema.parseJson(Owner))
const { O_NOFOLLOW = 0, O_NONBLOCK = 0, O_RDONLY } = Fs.constants

/** `undefined` when it is gone, or a link by now. */
const textOf = (path: string): string | undefined => {
  let descriptor: number | undefined
  try {
    descriptor = Fs.openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
    return Fs.readFileSync(descriptor, "utf8")
  } catch (cause) {
    const code = codeOf(cause)
    if (code === "ENOENT" || code === "ELOOP") return undefined
    throw cause
  } finally {
    if (descriptor !== undefined) Fs.closeSync(descriptor)
  }
}

/** Throws what keeps it from being read, such as too many open files: an owner that is not seen is not dead. */
const look = (path: string): Seen | undefined => {
  const info = statOf(path)
  if (info === undefined) return undefined
  const text = info.isFile() && info.size <= 4096n ? textOf(path) : ""
  if (text === undefined) return undefined
  const owner = Option.getOrUndefined(decode(text))
  return { id: owner?.token ?? `${info.dev}:${info.ino}:${info.mtimeNs}`, owner, info }
}

const isRecordOf = (member: Member, info: Fs.BigIntStats | undefined): boolean =>
  info !== undefined && info.ino === member.inode && info.dev === member.device

const removeOwn = (member: Member, path: string): void => {
  if (isRecordOf(member, statOf(path))) Fs.unlinkSync(path)
}

const link = (member: Member, path: string): "taken" | "lost" | "busy" => {
  try {
    Fs.linkSync(member.record, path)
    return "taken"
  } catch (cause) {
    const code = codeOf(cause)
    if (code === "EEXIST") return "busy"
    if (code === "ENOENT") return "lost"
    throw cause
  }
}

export type Lives = (owner: Owner) => Effect.Effect<boolean>

/** The lock is ours; our record is gone, so join anew; or who has it, alive. */
export type Answer = "taken" | "lost" | Owner

/**
 * Tries once to take a lock; what a dead owner left is cleared away before. To be called where interruption is disabled:
 * only `lives` may be interruptible.
 */
export const tryTake = (member: Member, name: string, lives: Lives): Effect.Effect<Answer, Unavailable> =>
  Effect.gen(function*() {
    const path = lockOf(name)
    while (true) {
      const linked = yield* inside(member.space, () => link(member, path))
      if (linked !== "busy") return linked
      const seen = yield* inside(member.space, () => look(path))
      if (seen === undefined) continue
      // Ours already: it could not be removed when it was released.
      if (seen.id === member.owner.token) return "taken"
      if (seen.owner !== undefined && (yield* lives(seen.owner))) return seen.owner
      const cleared = yield* clear(member, name, seen, lives)
      if (cleared !== "taken") return cleared
    }
  })

/**
 * Removes the lock of a dead owner, as that was `seen`; answers `taken` when it is gone.
 *
 * Between a look and the removal another waiter may have removed it too, and somebody else taken the lock, who would then be
 * robbed. So only the holder of the guard may remove it, a lock whose name says which lock and which dead owner. The guard's
 * holder looks again: what it finds of the dead owner stays as it is, for the dead do not act and nobody else has the guard.
 * The guard is a lock like any other, so that of a holder who died is cleared in the same way.
 */
const clear = (member: Member, name: string, seen: Seen, lives: Lives): Effect.Effect<Answer, Unavailable> => {
  // Without the folder, which others may call by another name.
  const guard = nameOf(member.space, `${Path.basename(name)}\n${seen.id}`)
  return Effect.acquireUseRelease(
    tryTake(member, guard, lives),
    (answer) =>
      inside(member.space, () => {
        const path = lockOf(name)
        if (answer === "taken" && look(path)?.id === seen.id) Fs.rmSync(path, { recursive: true, force: true })
        return answer
      }),
    (answer) => Effect.sync(() => answer === "taken" ? release(member, guard) : undefined)
  )
}

/** Frees a lock, if it is this member's. One that cannot be removed is taken by `tryTake` again, or falls with this process. */
export const release = (member: Member, name: string): void => {
  quietly(() => removeOwn(member, lockOf(name)))
}

/** Milliseconds for which a mark counts that is not renewed. */
const markMs = 250

const freshMark = (member: Member, name: string): Seen | undefined => {
  const seen = quietly(() => look(markOf(name)))
  if (seen === undefined || isRecordOf(member, seen.info)) return undefined
  // A link has the times of the record, and that those of its owner's last sign of life.
  return Math.abs(Date.now() - Number(seen.info.mtimeMs)) < markMs ? seen : undefined
}

/**
 * Who waits at the head of the line of processes: whoever comes later lets it go first. It is a courtesy: nothing but fairness
 * depends on it, and one who stopped or died without a word is waited for a moment only.
 */
export const ahead = (member: Member, name: string): Owner | undefined => freshMark(member, name)?.owner

/** Goes to the head of the line, or stays there; false when another is there. To be repeated while waiting. */
export const mark = (member: Member, name: string): boolean =>
  quietly(() => {
    const path = markOf(name)
    const now = new Date()
    Fs.futimesSync(member.descriptor, now, now)
    if (isRecordOf(member, statOf(path))) return true
    if (freshMark(member, name) !== undefined) return false
    Fs.rmSync(path, { recursive: true, force: true })
    return link(member, path) === "taken"
  }) ?? false

export const unmark = (member: Member, name: string): void => {
  quietly(() => removeOwn(member, markOf(name)))
}

/** Files that a sweep looks at, at most. */
const swept = 256
const youngMs = 60_000
const oldMs = 30 * 24 * 3_600_000

/**
 * Removes what the dead left: locks as whoever wants them would, records and marks when nobody is behind them. Of another
 * boot or machine, or in another container, nobody can be judged: what is there goes when it is a month old. To link a record
 * is to change it, so a lock is as old as the last one that its owner took.
 */
export const sweep = (member: Member, lives: Lives): Effect.Effect<void, Unavailable> =>
  Effect.gen(function*() {
    const { space } = member
    const names = yield* inside(space, () => Fs.readdirSync(space.folder))
    const from = Math.floor(Math.random() * names.length)
    for (const name of [...names.slice(from), ...names.slice(0, from)].slice(0, swept)) {
      const [, prefix, kind] = /^([0-9a-f]{16})\.[0-9a-f-]+\.(lock|want|owner)$/.exec(name) ?? []
      const path = Path.join(space.folder, name)
      const seen = prefix === undefined ? undefined : yield* inside(space, () => look(path))
      if (seen === undefined || kind === undefined) continue
      const now = yield* Clock.currentTimeMillis
      if (prefix !== space.prefix) {
        if (now - Number(seen.info.ctimeMs) > oldMs) quietly(() => Fs.rmSync(path, { recursive: true, force: true }))
      } else if (seen.owner !== undefined && (yield* lives(seen.owner))) {
        continue
      } else if (kind === "lock") {
        yield* Effect.uninterruptible(clear(member, path.slice(0, -".lock".length), seen, lives))
      } else if (seen.owner !== undefined || now - Number(seen.info.ctimeMs) > youngMs) {
        // A record that cannot be read may be one that is being written.
        quietly(() => Fs.rmSync(path, { recursive: true, force: true }))
      }
    }
  })
