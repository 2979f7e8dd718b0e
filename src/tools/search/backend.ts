/** Ripgrep where it is, a scan of our own where it is not, and what both report. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Ripgrep as Program } from "../../process/Ripgrep.ts"
import type { Against } from "./page.ts"
import * as Ripgrep from "./ripgrep.ts"
import type { Place, Root } from "./root.ts"
import * as Scan from "./scan.ts"

/** The program, or `undefined` where there is none. */
export const findProgram = Effect.flatMap(
  Program,
  ({ executable }) => Effect.catchTag(executable, "RipgrepUnavailable", () => Effect.succeed(undefined))
)

export const backendOf = (program: string | undefined) => program === undefined ? "scan" as const : "ripgrep" as const

/** Tells every file that a search would look at, in no order, until `onFile` has had enough. May leave out what `skips` knows. */
export const filesOf = (
  program: string | undefined,
  root: Root,
  name: string | undefined,
  skips: (against: Against) => boolean,
  onFile: (place: Place) => boolean
) => program === undefined ? Scan.files(root, name, onFile) : Ripgrep.files(program, root, name, skips, onFile)

/** What every search says beside what it found. */
export const Report = {
  /** Where the next page begins; null on the last one. */
  nextCursor: Schema.NullOr(Schema.String),
  /**
   * Files that fit by name and are never shown, whatever is in them: told with the last page, and null where the tree is
   * too large to count them.
   */
  withheld: Schema.NullOr(Schema.Number),
  /** Files and directories that could not be read, as far as the search went. */
  unreadable: Schema.Number,
  /** `path` is left out by an ignore file, and was searched because it was named. */
  ignored: Schema.Boolean,
  backend: Schema.Literal("ripgrep", "scan")
}
const Reported = Schema.Struct(Report)

/** The report in words, where there is something to say. */
export const notes = ({ ignored, nextCursor, unreadable, withheld }: typeof Reported.Type): ReadonlyArray<string> => [
  ...(nextCursor === null ? [] : [`[there is more: narrow the search, or go on with cursor ${nextCursor}]`]),
  ...(withheld === null && nextCursor === null ? ["[withheld files were not counted in a tree this large]"] : []),
  ...(withheld !== null && withheld > 0 ? [`[${withheld} ${withheld === 1 ? "file" : "files"} withheld]`] : []),
  ...(unreadable > 0 ? [`[${unreadable} places could not be read]`] : []),
  ...(ignored ? ["[this path is ignored by git; it was searched because it was named]"] : [])
]
