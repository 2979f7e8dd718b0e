/**
 * Reaching a file so that no name can lead elsewhere while it is used: what file tools need beyond `FileSystem`.
 *
 * @since 0.1.0
 */
import { type PlatformError, SystemError } from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"

/** What a file or directory is, as its open handle says. */
export interface Info {
  readonly type: FileSystem.File.Type
  readonly device: number
  /** 0 where the platform tells none. */
  readonly inode: number
  readonly links: number
  /** Permission bits, with set-id and sticky. */
  readonly mode: number
  /** Bytes. */
  readonly size: number
  readonly modifiedMs: number
  /** -1 where the platform tells none. */
  readonly uid: number
  readonly gid: number
}

/** Whose a file is, and who may use it. */
export type Rights = Pick<Info, "mode" | "uid" | "gid">

/**
 * An open regular file, for one operation at a time. Its operations are not interruptible: an interruption waits for the
 * one under way.
 */
export interface OpenFile {
  /** As it is now. */
  readonly info: Effect.Effect<Info, PlatformError>
  /** The bytes from an offset on: fewer than `length` only where the file ends. */
  readonly read: (offset: number, length: number) => Effect.Effect<Uint8Array, PlatformError>
  /**
   * Makes `bytes` all that the file holds, gives it these rights if any are given, and syncs it. A reader may see a part.
   * A file that cannot grow, as on a full disk, stays as it was.
   */
  readonly overwrite: (bytes: Uint8Array, rights?: Rights) => Effect.Effect<void, PlatformError>
}

/** A directory that is held: it stays the same one whatever happens to its name. */
export interface Held {
  readonly info: Info
  /** Names an entry of this very directory, for `FileSystem`. Only good while the directory is held. */
  readonly at: (name: string) => string
}

export class FileAccess extends Context.Tag("portcullis/FileAccess")<FileAccess, {
  /**
   * Opens an existing regular file without following a link at the end of its path and without waiting: a link, a
   * directory, a FIFO, a socket or a device fails with the reason `BadResource`, told by the open handle. Default for
   * reading; with `write` also for writing.
   */
  readonly open: (
    physical: string,
    options?: { readonly write?: boolean }
  ) => Effect.Effect<OpenFile, PlatformError, Scope.Scope>
  /**
   * Makes a new, empty file: `AlreadyExists` when there is anything of that name, a dangling link too. `mode` is before
   * the umask, default 0o666.
   */
  readonly create: (physical: string, mode?: number) => Effect.Effect<OpenFile, PlatformError, Scope.Scope>
  /** Holds a directory, without following a link at the end of its path. Anything else is `BadResource`. */
  readonly hold: (physical: string) => Effect.Effect<Held, PlatformError, Scope.Scope>
}>() {}

/** What the platform-neutral `FileSystem` says of a file. */
export const infoOf = (info: FileSystem.File.Info): Info => ({
  type: info.type,
  device: info.dev,
  inode: Option.getOrElse(info.ino, () => 0),
  links: Option.getOrElse(info.nlink, () => 1),
  mode: info.mode & 0o7777,
  size: Number(info.size),
  modifiedMs: Option.match(info.mtime, { onNone: () => 0, onSome: (date) => date.getTime() }),
  uid: Option.getOrElse(info.uid, () => -1),
  gid: Option.getOrElse(info.gid, () => -1)
})

/** Whether two looks were at one and the same file or directory. */
export const sameFile = (one: Info, other: Info): boolean => one.device === other.device && one.inode === other.inode

export const badResource = (method: string, path: string, description: string): PlatformError =>
  new SystemError({ reason: "BadResource", module: "FileSystem", method, pathOrDescriptor: path, description })

/**
 * Over any `FileSystem`: names are looked at before they are opened and compared with the handle afterwards, and a held
 * directory is known by its name. So this is for where nobody swaps names meanwhile: who does it between the two looks is
 * noticed, but not who swaps a directory on the way and back again, or swaps what is given rights just then; and a FIFO
 * put in place of a file in that instant makes the opening wait. `layers/node` has one that keeps all of them out where
 * descriptors have names (Linux); elsewhere a held directory goes by its name there, too.
 */
export const makePortable: Effect.Effect<FileAccess["Type"], never, FileSystem.FileSystem | Path.Path> = Effect.gen(
  function*() {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path

    const look = (method: string, physical: string, type: FileSystem.File.Type): Effect.Effect<Info, PlatformError> =>
      Effect.gen(function*() {
        const link = yield* Effect.option(fs.readLink(physical))
        if (Option.isSome(link)) return yield* Effect.fail(badResource(method, physical, "is a link"))
        const info = infoOf(yield* fs.stat(physical))
        if (info.type !== type) return yield* Effect.fail(badResource(method, physical, `is no ${type}`))
        return info
      })

    const openFile = (physical: string, file: FileSystem.File): OpenFile => {
      const put = (from: number, bytes: Uint8Array): Effect.Effect<void, PlatformError> =>
        // Writing no bytes at all would count as a failed write.
        bytes.length === 0 ? Effect.void : Effect.zipRight(file.seek(from, "start"), file.writeAll(bytes))
      const own = ({ gid, mode, uid }: Rights): Effect.Effect<void, PlatformError> =>
        Effect.gen(function*() {
          const now = infoOf(yield* file.stat)
          // By name, as nothing else is: at least not that of another file, nor of a link to one.
          if (!sameFile(yield* look("chmod", physical, "File"), now)) {
            return yield* Effect.fail(badResource("chmod", physical, "was replaced while it was written"))
          }
          if (uid >= 0 && gid >= 0 && (now.uid !== uid || now.gid !== gid)) yield* fs.chown(physical, uid, gid)
          yield* fs.chmod(physical, mode)
        })
      return {
        info: Effect.uninterruptible(Effect.map(file.stat, infoOf)),
        read: (offset, length) =>
          Effect.gen(function*() {
            yield* file.seek(offset, "start")
            const bytes = new Uint8Array(length)
            let filled = 0
            while (filled < length) {
              const got = Number(yield* file.read(bytes.subarray(filled)))
              if (got === 0) break
              filled += got
            }
            return filled === length ? bytes : bytes.subarray(0, filled)
          }).pipe(Effect.uninterruptible),
        overwrite: (bytes, rights) =>
          Effect.gen(function*() {
            const { size } = infoOf(yield* file.stat)
            yield* Effect.onError(put(size, bytes.subarray(size)), () => Effect.ignore(file.truncate(size)))
            yield* put(0, bytes.subarray(0, size))
            yield* file.truncate(bytes.length)
            if (rights !== undefined) yield* own(rights)
            yield* file.sync
          }).pipe(Effect.uninterruptible)
      }
    }

    return {
      open: Effect.fnUntraced(function*(physical, options) {
        const seen = yield* look("open", physical, "File")
        const file = openFile(physical, yield* fs.open(physical, { flag: options?.write === true ? "r+" : "r" }))
        if (!sameFile(yield* file.info, seen)) {
          return yield* Effect.fail(badResource("open", physical, "was replaced while it was opened"))
        }
        return file
      }),
      create: (physical, mode = 0o666) =>
        Effect.map(fs.open(physical, { flag: "wx+", mode }), (file) => openFile(physical, file)),
      hold: (physical) =>
        Effect.map(look("hold", physical, "Directory"), (info) => ({ info, at: (name) => path.join(physical, name) }))
    }
  }
)

export const layerPortable: Layer.Layer<FileAccess, never, FileSystem.FileSystem | Path.Path> = Layer.effect(
  FileAccess,
  makePortable
)
