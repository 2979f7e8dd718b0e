/**
 * What `grep` and `glob` share: running ripgrep over one path, and keeping the first results in order.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { toolError } from "../contract/ToolFailure.ts"
import { type Resolved, WorkspacePath } from "../file/WorkspacePath.ts"
import { Ripgrep } from "../process/Ripgrep.ts"
import { Subprocess } from "../process/Subprocess.ts"
import { ToolInvocation } from "../tool/ToolInvocation.ts"

export const codes = [
  "pattern_invalid",
  "path_invalid",
  "path_not_found",
  "outside_workspace",
  "file_access_denied",
  "ripgrep_unavailable",
  "search_failed",
  "search_timed_out"
] as const

/**
 * No configuration, so no preprocessor; hidden files but never `.git`; ignore files hold outside of repositories too. A
 * file that is cut short while it is searched must not be mapped.
 */
const common = [
  ...["--no-config", "--hidden", "--no-require-git", "--no-follow", "--no-mmap", "--color=never"],
  ...["--iglob=!.git", "--iglob=!**/.git/**"]
]

const timeoutMs = 30_000

/** Turns what ripgrep prints of `root` into a path from the primary root. */
export const relativeTo = (root: Resolved) => {
  const prefix = root.physical.endsWith("/") ? root.physical : `${root.physical}/`
  const shown = root.relative === "." ? "" : root.relative.endsWith("/") ? root.relative : `${root.relative}/`
  return (printed: string): { readonly below: string; readonly path: string } => {
    if (!printed.startsWith(prefix)) return { below: printed.slice(printed.lastIndexOf("/") + 1), path: root.relative }
    const below = printed.slice(prefix.length)
    return { below, path: shown + below }
  }
}

/** Where a search begins; what is outside the roots is refused here. */
export const resolve = Effect.fnUntraced(function*(path: string) {
  const { turn } = yield* ToolInvocation
  const root = yield* (yield* WorkspacePath).forRead(turn, path)
  if (!root.exists) return yield* toolError("path_not_found", `There is nothing at ${JSON.stringify(path)}.`)
  return root
})

const insideGit = ({ relative }: Resolved): boolean => relative.toLowerCase().split("/").includes(".git")

/**
 * Runs ripgrep over `root`, unless that is in `.git`, where nothing is found. Succeeds with what it printed to stderr:
 * files that cannot be read are told there and spoil nothing. Fails when it could not be run or did not end in time.
 */
export const run = Effect.fnUntraced(function*(
  root: Resolved,
  options: ReadonlyArray<string>,
  onOutput: (chunk: Uint8Array) => void
) {
  const { turn } = yield* ToolInvocation
  if (insideGit(root)) return { exitCode: 1, said: "" }
  const program = yield* (yield* Ripgrep).executable
  const { ending, stderr } = yield* (yield* Subprocess).run({
    argv: [program, ...common, ...options, "--", root.physical],
    cwd: turn.workspace,
    timeout: timeoutMs,
    capture: { bytes: 64 * 1024, keep: "tail" },
    onOutput: (chunk, stream) => stream === "stdout" ? onOutput(chunk) : undefined
  })
  const said = new TextDecoder().decode(stderr.bytes)
  switch (ending._tag) {
    case "Exited":
      return { exitCode: ending.code, said }
    case "TimedOut":
      return yield* toolError(
        "search_timed_out",
        `The search did not end within ${ending.afterMs} ms. Search a smaller path or a rarer pattern.`
      )
    case "SpawnFailed":
      return yield* toolError("search_failed", `ripgrep could not be started: ${ending.reason}`)
    case "Signalled":
    case "Stopped":
      return yield* toolError("search_failed", "ripgrep was stopped before it had finished.")
  }
})

/** Lines of stderr that name a file which could not be read. */
export const unreadable = (said: string): number => said.split("\n").filter((line) => line.startsWith("rg: ")).length

/** Splits a stream of bytes at a separator; a piece over `limit` bytes is dropped and counted. */
export const splitter = (separator: number, limit: number, onPiece: (piece: Uint8Array) => void) => {
  let held: Array<Uint8Array> = []
  let size = 0
  let dropped = 0
  const add = (part: Uint8Array) => {
    size += part.length
    if (size <= limit) held.push(part)
    else held = []
  }
  const close = () => {
    if (size > limit) dropped++
    else if (size > 0) onPiece(held.length === 1 && held[0] !== undefined ? held[0] : joined(held, size))
    held = []
    size = 0
  }
  return {
    push: (chunk: Uint8Array) => {
      let start = 0
      for (let end = chunk.indexOf(separator); end !== -1; end = chunk.indexOf(separator, start)) {
        add(chunk.subarray(start, end))
        close()
        start = end + 1
      }
      if (start < chunk.length) add(chunk.slice(start))
    },
    dropped: () => dropped
  }
}

const joined = (parts: ReadonlyArray<Uint8Array>, size: number): Uint8Array => {
  const out = new Uint8Array(size)
  let offset = 0
  for (const part of parts) {
    out.set(part, offset)
    offset += part.length
  }
  return out
}

/** The first `limit` of any number of items, in order, whatever order they come in. */
export const smallest = <A>(limit: number, compare: (left: A, right: A) => number) => {
  let kept: Array<A> = []
  let seen = 0
  const trim = () => {
    kept.sort(compare)
    kept = kept.slice(0, limit)
  }
  return {
    add: (item: A) => {
      seen++
      kept.push(item)
      if (kept.length > limit * 2 + 100) trim()
    },
    result: () => {
      trim()
      return { items: kept, truncated: seen > limit }
    }
  }
}
