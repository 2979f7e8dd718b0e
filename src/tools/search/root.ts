/** Where a search begins, and what `grep` and `glob` may fail with. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import { toolError } from "../../contract/ToolFailure.ts"
import { type Resolved, WorkspacePath } from "../../file/WorkspacePath.ts"
import { ToolInvocation } from "../../tool/ToolInvocation.ts"
import * as IgnoreRules from "./ignoreRules.ts"
import { keyOf, lengthOf } from "./page.ts"

export const codes = [
  "pattern_invalid",
  "cursor_invalid",
  "path_invalid",
  "path_not_found",
  "not_a_regular_file",
  "outside_workspace",
  "file_access_denied",
  "file_withheld",
  "search_failed",
  "search_timed_out"
] as const

export const timeoutMs = 30_000

export const timedOut = () =>
  toolError(
    "search_timed_out",
    `The search did not end within ${timeoutMs} ms. Search a smaller path or a rarer pattern.`
  )

export interface Root extends Resolved {
  readonly isDirectory: boolean
  /** In `.git`, where nothing is found. */
  readonly inGit: boolean
  /** Git leaves it out. It was named, so it is searched, and only ignore files below it count. */
  readonly ignored: boolean
  readonly rules: IgnoreRules.Rules | undefined
}

/** What is outside the roots is refused here, and what would not end when it is read. */
export const resolve = Effect.fnUntraced(function*(path: string) {
  const { turn } = yield* ToolInvocation
  const fs = yield* FileSystem.FileSystem
  const resolved = yield* (yield* WorkspacePath).forRead(turn, path)
  const type = yield* Effect.match(fs.stat(resolved.physical), {
    onFailure: () => undefined,
    onSuccess: (info) => info.type
  })
  if (type === undefined) return yield* toolError("path_not_found", `There is nothing at ${JSON.stringify(path)}.`)
  if (type !== "File" && type !== "Directory") {
    return yield* toolError("not_a_regular_file", `${JSON.stringify(path)} is neither a file nor a directory.`)
  }
  const isDirectory = type === "Directory"
  const { above, userExcludes } = yield* IgnoreRules.make
  const { rules, user } = yield* Effect.all({ rules: above(resolved.physical), user: userExcludes }, {
    concurrency: 2
  })
  const ignored = IgnoreRules.ignoresOnTheWay(rules, user, resolved.physical, isDirectory)
  const root: Root = {
    ...resolved,
    isDirectory,
    inGit: resolved.relative.toLowerCase().split("/").includes(".git"),
    ignored,
    rules: ignored ? undefined : rules
  }
  return root
})

/** A file as it is found. */
export interface Place {
  /** From where the search began. */
  readonly below: string
  /** From the primary root; absolute outside of it. */
  readonly path: string
  readonly key: string
  readonly physical: string
}

export const decode = (bytes: Uint8Array): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)

/** What the paths of all that is below begin with. */
export const prefixOf = ({ physical }: Root): string => physical.endsWith("/") ? physical : `${physical}/`

/** The place of an absolute path at or below the root. What is not UTF-8 in its name shows as U+FFFD. */
export const placing = (root: Root) => {
  const prefix = prefixOf(root)
  const prefixBytes = lengthOf(prefix)
  // One for all: making it costs more than a path does.
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true })
  const shown = root.relative === "." ? "" : root.relative.endsWith("/") ? root.relative : `${root.relative}/`
  return (printed: string | Uint8Array): Place => {
    const physical = typeof printed === "string" ? printed : decoder.decode(printed)
    if (!physical.startsWith(prefix)) {
      const name = physical.slice(physical.lastIndexOf("/") + 1)
      return { below: name, path: root.relative, key: keyOf(name), physical }
    }
    const below = physical.slice(prefix.length)
    const key = keyOf(typeof printed === "string" || !below.includes("\ufffd") ? below : printed.subarray(prefixBytes))
    return { below, path: shown + below, key, physical }
  }
}
