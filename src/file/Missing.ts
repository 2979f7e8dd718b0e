/** The refusal for a file that is not there, naming files beside it that may have been meant. */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import { near } from "../internal/near.ts"
import { ToolInvocation } from "../tool/ToolInvocation.ts"
import { FileAccess } from "./FileAccess.ts"
import { type FileError, fileError, quote } from "./FileError.ts"
import { hold } from "./Folder.ts"
import { type Resolved, WorkspacePath } from "./WorkspacePath.ts"

/** Names nothing but what `ls` would: not what is withheld, nor what is in a folder that the turn may not read. */
export const missing = Effect.fnUntraced(function*(
  fs: FileSystem.FileSystem,
  path: Path.Path,
  resolved: Resolved
): Effect.fn.Return<never, FileError<"file_not_found">, FileAccess | WorkspacePath | ToolInvocation> {
  const access = yield* FileAccess
  const paths = yield* WorkspacePath
  const { turn } = yield* ToolInvocation
  const folder = path.dirname(resolved.physical)
  const names = yield* paths.forRead(turn, folder).pipe(
    Effect.zipRight(hold({ fs, path, access }, folder, folder, resolved.relative)),
    Effect.flatMap((held) => fs.readDirectory(held.at("."))),
    Effect.scoped,
    Effect.orElseSucceed((): ReadonlyArray<string> => [])
  )
  const above = path.dirname(resolved.relative)
  const found = near(
    path.basename(resolved.physical),
    names.filter((name) => !paths.withholds(path.join(folder, name)))
  ).map((name) => (above === "." ? name : `${above}/${name}`).toWellFormed())
  const hint = found.length === 0 ? "" : ` Did you mean ${found.map(quote).join(", ")}?`
  return yield* fileError("file_not_found", `There is no ${quote(resolved.relative)}.${hint}`, { near: found })
})
