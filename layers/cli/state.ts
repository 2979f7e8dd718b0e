/** Which workspace, and where its state is: in the user's state directory, never where an agent can write. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { homedir } from "node:os"
import { Digest, short } from "../../src/contract/Digest.ts"
import type { FileOptions } from "./arguments.ts"
import { CliError } from "./CliError.ts"

export interface Place {
  /** Physical. */
  readonly workspace: string
  /** Physical; need not exist. */
  readonly state: string
}

const refused = (message: string): CliError => new CliError({ code: "state_refused", message })
const quote = (path: string): string => JSON.stringify(path)

/** The physical path of a directory. */
export const workspaceOf = (given: string | undefined) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const wanted = path.resolve(given ?? ".")
    const info = yield* Effect.option(fs.stat(wanted))
    if (Option.isSome(info) && info.value.type === "Directory") {
      const real = yield* Effect.option(fs.realPath(wanted))
      if (Option.isSome(real)) return real.value
    }
    return yield* new CliError({
      code: "workspace_unavailable",
      message: `the workspace ${quote(wanted)} is not a directory`
    })
  })

/** `$XDG_STATE_HOME` counts when it is absolute, as its specification says. */
const stateHome = Effect.gen(function*() {
  const path = yield* Path.Path
  const given = yield* Effect.orElseSucceed(Config.string("XDG_STATE_HOME"), () => "")
  return path.isAbsolute(given) ? given : path.join(homedir(), ".local", "state")
})

/** Where a path leads, whether or not its last parts exist. A link that leads nowhere is refused: opening it would create its target. */
const physical = (target: string): Effect.Effect<string, CliError, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const real = yield* Effect.option(fs.realPath(target))
    if (Option.isSome(real)) return real.value
    if (Option.isSome(yield* Effect.option(fs.readLink(target)))) {
      return yield* refused(`the state file cannot be at ${quote(target)}: that link leads nowhere`)
    }
    const parent = path.dirname(target)
    return parent === target ? target : path.join(yield* physical(parent), path.basename(target))
  })

/**
 * Finds both. Fails with `workspace_unavailable`, or with `state_refused` when the state would be inside the workspace,
 * where the agent that it guards against could change it. Creates nothing.
 */
export const locate = (options: FileOptions): Effect.Effect<Place, CliError, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function*() {
    const path = yield* Path.Path
    const workspace = yield* workspaceOf(options.workspace)
    const file = options.state === undefined
      ? path.join(yield* stateHome, "portcullis", short((yield* Digest)(workspace)), "state.db")
      : path.resolve(options.state)
    const state = yield* physical(file)
    if (state === workspace || state.startsWith(workspace.endsWith(path.sep) ? workspace : workspace + path.sep)) {
      return yield* refused(`the state file ${quote(state)} would be inside the workspace; name another with --state`)
    }
    return { workspace, state }
  })

/** The state file alone: one that is named needs no workspace, unless that is named too. */
export const locateState = (options: FileOptions): Effect.Effect<string, CliError, FileSystem.FileSystem | Path.Path> =>
  options.state !== undefined && options.workspace === undefined
    ? Effect.flatMap(Path.Path, (path) => physical(path.resolve(options.state ?? "")))
    : Effect.map(locate(options), ({ state }) => state)
