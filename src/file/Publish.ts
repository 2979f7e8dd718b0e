/**
 * Putting a file's new bytes on disk so that a reader sees the old file or the new one, never a part (decisions, Files:
 * publish).
 *
 * All of it goes through a directory that is held, so a directory swapped meanwhile leads nowhere else.
 *
 * @since 0.1.0
 */
import type { PlatformError } from "@effect/platform/Error"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import { type Sha256, short } from "../contract/Digest.ts"
import { type FileAccess, type Held, type Info, infoOf, type OpenFile, sameFile } from "./FileAccess.ts"
import { type FileError, fileError, fromPlatform, quote } from "./FileError.ts"
import { hasReason, hold, isAt, isMissing, moved, type Places } from "./Folder.ts"

/** What publishing works with. */
export interface Files extends Places {
  readonly sha256: Sha256
}

export interface Published {
  /** There was no such file before. */
  readonly created: boolean
  /**
   * The file was overwritten where it is: it has other hard links, lies outside the workspace under a grant, or its
   * directory takes no new files. Then a reader may see a part.
   */
  readonly inPlace: boolean
}

/** A file as it was read, open for writing. */
export interface Before {
  readonly file: OpenFile
  readonly info: Info
}

export interface Target {
  /** Its directory, by identity and by physical path. */
  readonly parent: Held
  readonly folder: string
  /** Its last name: no link. */
  readonly name: string
  readonly display: string
  /** `undefined`: there was none. */
  readonly before: Before | undefined
  /** Nothing but the open file itself may be written. */
  readonly granted: boolean
  /** Of a new file, before the user's mask. Default 0o666. */
  readonly mode?: number | undefined
}

type Failed = FileError<"path_changed" | "file_not_found" | "file_access_denied" | "file_io_failed">

const taken = (display: string, what: string): FileError<"path_changed"> =>
  fileError("path_changed", `${quote(display)} was ${what} by somebody else meanwhile. Read it first.`)

type Trouble = FileError<"path_changed"> | PlatformError

const coded = (display: string) => (error: Trouble): Failed =>
  // Whatever is missing was there when it was looked at.
  error._tag === "ToolError" ? error : isMissing(error) ? moved(display) : fromPlatform(display)(error)

const isTaken = hasReason("AlreadyExists")

/**
 * Holds the directory of a physical path: the one that was resolved, with no link on the way. `undefined` when there is
 * none, `path_changed` when a link has appeared.
 */
export const enter = (
  files: Files,
  folder: string,
  display: string
): Effect.Effect<Held | undefined, Failed, Scope.Scope> =>
  hold(files, folder, folder, display).pipe(
    Effect.catchIf((error) => error._tag !== "ToolError" && isMissing(error), () => Effect.succeed(undefined)),
    Effect.mapError(coded(display))
  )

/** As `enter`, making what is missing: every directory is held before the next one is made in it. */
export const enterMade = (files: Files, folder: string, display: string): Effect.Effect<Held, Failed, Scope.Scope> =>
  Effect.flatMap(enter(files, folder, display), (held) => {
    const above = files.path.dirname(folder)
    if (held !== undefined) return Effect.succeed(held)
    if (above === folder) return Effect.fail(moved(display))
    return Effect.flatMap(enterMade(files, above, display), (parent) => {
      const entry = parent.at(files.path.basename(folder))
      return files.fs.makeDirectory(entry).pipe(
        Effect.catchIf(isTaken, () => Effect.void),
        Effect.zipRight(hold(files, entry, folder, display)),
        Effect.mapError(coded(display))
      )
    })
  })

/** Written first. One name a target: whoever holds the target in the queue may take what is there for a dead writer's. */
const temporaryOf = ({ sha256 }: Files, parent: Held, name: string): string =>
  parent.at(`.portcullis-${short(sha256(name.toWellFormed()))}.tmp`)

/** Removes what a killed writer left. Of one killed while it made the file, that is a second name of the file itself. */
export const sweep = (files: Files, parent: Held, name: string): Effect.Effect<void> =>
  Effect.ignore(files.fs.remove(temporaryOf(files, parent, name), { force: true }))

/**
 * Writes `bytes` to a temporary file beside the target, syncs it, gives it the mode and owner of the file it replaces
 * and renames it; access lists, extended attributes and labels of the file it replaces are not kept. A new file never
 * takes the place of one that appeared meanwhile. Nothing is left behind by a failure,
 * and what a killed process left is swept by the next write of that file. It cannot be interrupted half-way: an
 * interruption waits until it is done. The target must be held in the queue.
 */
export const publish = (files: Files, target: Target, bytes: Uint8Array): Effect.Effect<Published, Failed> => {
  const { access, fs } = files
  const { before, display, name, parent } = target
  const temporary = temporaryOf(files, parent, name)

  const create = (mode: number, sweeps: number): ReturnType<FileAccess["Type"]["create"]> =>
    Effect.catchIf(
      access.create(temporary, mode),
      (error) => isTaken(error) && sweeps > 0,
      () => Effect.zipRight(sweep(files, parent, name), create(mode, sweeps - 1))
    )

  const beside = (mode: number, rights: Info | undefined, place: Effect.Effect<void, Trouble>) =>
    Effect.scoped(Effect.flatMap(create(mode, 3), (file) => file.overwrite(bytes, rights))).pipe(
      Effect.zipRight(place),
      Effect.onError(() => sweep(files, parent, name))
    )

  /** A rename would also replace a file that somebody else created meanwhile; a link does not. */
  const appear = Effect.catchAll(
    Effect.zipRight(fs.link(temporary, parent.at(name)), Effect.ignore(fs.remove(temporary))),
    (error): Effect.Effect<void, Trouble> =>
      Effect.if(isTaken(error) ? Effect.succeed(true) : fs.exists(parent.at(name)), {
        onTrue: () => Effect.fail(taken(display, "created")),
        onFalse: () => fs.rename(temporary, parent.at(name))
      })
  )

  const still = stillThere(files, target)
  const replace = (old: Before): Effect.Effect<boolean, Trouble> => {
    const overwrite = Effect.as(Effect.zipRight(still, old.file.overwrite(bytes)), true)
    if (target.granted || old.info.links > 1) return overwrite
    const rename = Effect.zipRight(still, fs.rename(temporary, parent.at(name)))
    return Effect.catchAll(
      Effect.as(beside(0o600, old.info, rename), false),
      (error) => unmovable(error) ? overwrite : Effect.fail(error)
    )
  }

  const done = before === undefined
    ? Effect.as(beside(target.mode ?? 0o666, undefined, Effect.zipRight(still, appear)), {
      created: true,
      inPlace: false
    })
    : Effect.map(replace(before), (inPlace) => ({ created: false, inPlace }))
  // A write cannot be called back: closing its descriptor under it could make it write into another file.
  return Effect.uninterruptible(Effect.mapError(done, coded(display)))
}

/** Removes the target, if it is still the file that was read. */
export const remove = (files: Files, target: Target): Effect.Effect<void, Failed> =>
  Effect.zipRight(stillThere(files, target), files.fs.remove(target.parent.at(target.name))).pipe(
    Effect.mapError(coded(target.display)),
    Effect.uninterruptible
  )

/**
 * Who does not ask the queue may move and write too: what is replaced must be what was read, in the directory that was
 * resolved.
 */
const stillThere = (files: Files, target: Target): Effect.Effect<void, Trouble> =>
  Effect.gen(function*() {
    const { before, display, folder, name, parent } = target
    if (!(yield* isAt(files.fs, parent, folder))) return yield* moved(display)
    if (before === undefined) return
    const { file, info } = before
    const now = yield* file.info
    const named = yield* Effect.option(files.fs.stat(parent.at(name)))
    const same = now.size === info.size && now.modifiedMs === info.modifiedMs && now.links === info.links &&
      Option.exists(named, (seen) => sameFile(infoOf(seen), info))
    if (!same) return yield* taken(display, "changed")
  })

/**
 * The directory takes no new file, the owner cannot be kept, or the name is a mount point: only the file itself can be
 * written.
 */
const unmovable = (error: Trouble): boolean =>
  error._tag === "SystemError" &&
  (error.reason === "PermissionDenied" || error.reason === "Busy" || error.method === "chown" ||
    (Predicate.hasProperty(error.cause, "code") && error.cause.code === "EPERM"))
