/**
 * Putting a file's new bytes on disk so that a reader sees the old file or the new one, never a part (decisions, Files:
 * publish).
 *
 * @since 0.1.0
 */
import type { PlatformError } from "@effect/platform/Error"
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { SandboxBlocked } from "../contract/ToolFailure.ts"
import type { WriteGrant } from "../tool/ToolInvocation.ts"
import { type ChangeCode, type FileError, fileError, fromPlatform, quote } from "./FileError.ts"
import { admit } from "./TextFile.ts"

export interface Published {
  /** There was no such file before. */
  readonly created: boolean
  /**
   * The file was overwritten where it is: it has other hard links, lies outside the workspace under a grant, or its
   * directory takes no new files. Then a reader may see a part.
   */
  readonly inPlace: boolean
}

export interface Target {
  /** Link-free: what links lead to is written, the links stay. */
  readonly physical: string
  readonly display: string
  /** The only file that may be written under this name. */
  readonly grant: WriteGrant | undefined
}

/**
 * Writes `bytes` to a temporary file beside the target, syncs it, gives it the mode and owner of the file it replaces
 * and renames it; a new file never takes the place of one that appeared meanwhile. The directory must exist. Nothing is
 * left behind by a failure. It cannot be interrupted half-way: an interruption waits until it is done.
 */
export const publish = (
  fs: FileSystem.FileSystem,
  path: Path.Path,
  target: Target,
  bytes: Uint8Array
): Effect.Effect<Published, FileError<ChangeCode> | SandboxBlocked> => {
  const { display, physical } = target
  const failed = fromPlatform(display)

  // Writing no bytes at all would count as a failed write.
  const fill = (file: FileSystem.File): Effect.Effect<void, PlatformError> =>
    (bytes.length === 0 ? Effect.void : file.writeAll(bytes)).pipe(
      Effect.zipRight(file.truncate(bytes.length)),
      Effect.zipRight(file.sync)
    )

  const overwrite = Effect.gen(function*() {
    const file = yield* Effect.mapError(fs.open(physical, { flag: "r+" }), failed)
    const info = yield* Effect.mapError(file.stat, failed)
    yield* admit(info, display, Number.POSITIVE_INFINITY)
    if (target.grant !== undefined && !isGranted(info, target.grant)) {
      return yield* new SandboxBlocked({
        code: "sandbox_write_blocked",
        reason: `${quote(display)} is no longer the file that was approved.`,
        path: display
      })
    }
    yield* Effect.mapError(fill(file), failed)
    return { created: false, inPlace: true }
  }).pipe(Effect.scoped)

  /** A rename would also replace a file that somebody else created meanwhile; a link does not. */
  const appear = (temporary: string): Effect.Effect<void, PlatformError> =>
    Effect.matchEffect(fs.link(temporary, physical), {
      onSuccess: () => fs.remove(temporary),
      onFailure: (error) => isTaken(error) ? Effect.fail(error) : fs.rename(temporary, physical)
    })

  const replace = Effect.fnUntraced(function*(before: FileSystem.File.Info | undefined) {
    const temporary = path.join(path.dirname(physical), `.portcullis-${globalThis.crypto.randomUUID()}.tmp`)
    const created = fs.open(temporary, { flag: "wx", ...(before === undefined ? {} : { mode: 0o600 }) })
    const filled = Effect.scoped(Effect.flatMap(created, (file) => Effect.zipRight(fill(file), file.stat)))
    yield* Effect.onError(
      Effect.gen(function*() {
        const info = yield* filled
        if (before === undefined) return yield* appear(temporary)
        yield* keepOwner(fs, temporary, info, before)
        yield* fs.chmod(temporary, before.mode & 0o7777)
        yield* fs.rename(temporary, physical)
      }),
      () => Effect.ignore(fs.remove(temporary, { force: true }))
    )
    return { created: before === undefined, inPlace: false }
  })

  return Effect.gen(function*() {
    const before = yield* Effect.catchAll(
      fs.stat(physical),
      (error) =>
        error._tag === "SystemError" && error.reason === "NotFound"
          ? Effect.succeed(undefined)
          : Effect.fail(failed(error))
    )
    if (target.grant !== undefined) return yield* overwrite
    if (before === undefined) {
      return yield* Effect.mapError(replace(before), (error) =>
        isTaken(error)
          ? fileError("path_changed", `${quote(display)} was created by somebody else meanwhile. Read it first.`)
          : failed(error))
    }
    yield* admit(before, display, Number.POSITIVE_INFINITY)
    yield* Effect.mapError(fs.access(physical, { writable: true }), failed)
    if (Option.getOrElse(before.nlink, () => 1) > 1) return yield* overwrite
    return yield* Effect.catchAll(replace(before), (error) => unmovable(error) ? overwrite : Effect.fail(failed(error)))
  }).pipe(
    // A write cannot be called back: closing its descriptor under it could make it write into another file.
    Effect.uninterruptible
  )
}

const isTaken = (error: PlatformError): boolean => error._tag === "SystemError" && error.reason === "AlreadyExists"

const isGranted = (info: FileSystem.File.Info, grant: WriteGrant): boolean =>
  info.dev === grant.device && Option.contains(info.ino, grant.inode) && Option.contains(info.nlink, 1)

const keepOwner = (
  fs: FileSystem.FileSystem,
  temporary: string,
  ours: FileSystem.File.Info,
  theirs: FileSystem.File.Info
): Effect.Effect<void, PlatformError> => {
  const uid = Option.getOrElse(theirs.uid, () => -1)
  const gid = Option.getOrElse(theirs.gid, () => -1)
  return Option.contains(ours.uid, uid) && Option.contains(ours.gid, gid) || uid < 0 || gid < 0
    ? Effect.void
    : fs.chown(temporary, uid, gid)
}

/**
 * The directory takes no new file, the owner cannot be kept, or the name is a mount point: only the file itself can be
 * written.
 */
const unmovable = (error: PlatformError): boolean =>
  error._tag === "SystemError" &&
  (error.reason === "PermissionDenied" || error.reason === "Busy" || error.method === "chown")
