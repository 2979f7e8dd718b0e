/** The refusal for a file that is not there, naming files beside it that may have been meant. */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import { near } from "../internal/near.ts"
import { type FileError, fileError, quote } from "./FileError.ts"
import type { Resolved } from "./WorkspacePath.ts"

export const missing = (
  fs: FileSystem.FileSystem,
  path: Path.Path,
  resolved: Resolved
): Effect.Effect<never, FileError<"file_not_found">> =>
  fs.readDirectory(path.dirname(resolved.physical)).pipe(
    Effect.orElseSucceed((): ReadonlyArray<string> => []),
    Effect.flatMap((names) => {
      const folder = path.dirname(resolved.relative)
      const found = near(path.basename(resolved.physical), names)
        .map((name) => (folder === "." ? name : `${folder}/${name}`).toWellFormed())
      const hint = found.length === 0 ? "" : ` Did you mean ${found.map(quote).join(", ")}?`
      return Effect.fail(
        fileError("file_not_found", `There is no ${quote(resolved.relative)}.${hint}`, { near: found })
      )
    })
  )
