/**
 * The directory that a path was judged by, held, so that no name that is swapped meanwhile leads elsewhere.
 *
 * @since 0.1.0
 */
import type { PlatformError } from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { FileAccess, type Held, infoOf, type OpenFile, sameFile } from "./FileAccess.ts"
import { type FileError, fileError, fromPlatform, quote, type ReadCode } from "./FileError.ts"
import { open } from "./TextFile.ts"
import type { Resolved } from "./WorkspacePath.ts"

/** What reaching a file works with. */
export interface Places {
  readonly fs: FileSystem.FileSystem
  readonly path: Path.Path
  readonly access: FileAccess["Type"]
}

export const moved = (display: string): FileError<"path_changed"> =>
  fileError("path_changed", `${quote(display)} leads elsewhere than it did when the call began.`)

export const hasReason = (reason: string) => (error: PlatformError): boolean =>
  error._tag === "SystemError" && error.reason === reason
export const isMissing = hasReason("NotFound")

/**
 * Holds `entry` if it is the directory of that physical path, with no link on the way; `path_changed` if it is not.
 * `entry` is the path itself, or names it in a directory that is held.
 */
export const hold = (
  { access, fs }: Places,
  entry: string,
  physical: string,
  display: string
): Effect.Effect<Held, PlatformError | FileError<"path_changed">, Scope.Scope> =>
  Effect.matchEffect(access.hold(entry), {
    onFailure: (error) =>
      Effect.flatMap(
        Effect.option(fs.realPath(physical)),
        (real) => Effect.fail(isMissing(error) || Option.contains(real, physical) ? error : moved(display))
      ),
    onSuccess: (held) =>
      Effect.flatMap(isAt(fs, held, physical), (is) => is ? Effect.succeed(held) : Effect.fail(moved(display)))
  })

/** The path is asked of the handle where the platform can tell: names may change at any moment. */
export const isAt = (fs: FileSystem.FileSystem, held: Held, physical: string): Effect.Effect<boolean> =>
  Effect.match(Effect.all([fs.realPath(held.at(".")), fs.stat(physical)]), {
    onFailure: () => false,
    onSuccess: ([path, info]) => path === physical && sameFile(infoOf(info), held.info)
  })

/** Opens an existing regular file for reading, in the directory where it was resolved. */
export const openIn = Effect.fnUntraced(function*(
  { physical, relative }: Resolved
): Effect.fn.Return<OpenFile, FileError<ReadCode>, FileSystem.FileSystem | Path.Path | FileAccess | Scope.Scope> {
  const places = { fs: yield* FileSystem.FileSystem, path: yield* Path.Path, access: yield* FileAccess }
  const folder = places.path.dirname(physical)
  const parent = yield* Effect.mapError(
    hold(places, folder, folder, relative),
    (error) => error._tag === "ToolError" ? error : fromPlatform(relative)(error)
  )
  return yield* open(places.access, parent.at(places.path.basename(physical) || "."), relative)
})
