/** `portcullis changes`: what tools changed in files, and how to undo it. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { CallId } from "../../src/contract/ToolCall.ts"
import type { StateUnavailable } from "../../src/contract/ToolFailure.ts"
import { ThreadId, TurnId } from "../../src/contract/Turn.ts"
import type { FileAccess } from "../../src/file/FileAccess.ts"
import { restore } from "../../src/file/FileChange.ts"
import { FileHistory, type Filter } from "../../src/file/FileHistory.ts"
import * as Revert from "../../src/file/Revert.ts"
import { ToolHost } from "../../src/host/ToolHost.ts"
import { display } from "../../src/internal/display.ts"
import * as NodeFileAccess from "../node/FileAccess.ts"
import * as NodeFileHistory from "../node/FileHistory.ts"
import * as Main from "../stacks/Main.ts"
import type { ChangesOptions } from "./arguments.ts"
import { type CliError, usage } from "./CliError.ts"
import { displayJson, lines, table } from "./output.ts"
import { plane, stateRefused, turnRefused } from "./plane.ts"
import { locate } from "./state.ts"
import { Terminal } from "./Terminal.ts"

/** Uses the history of a workspace that has one; a look creates none. */
const withHistory = <A>(
  options: ChangesOptions,
  use: Effect.Effect<A, StateUnavailable | CliError, FileHistory | FileAccess>,
  without: A
) =>
  Effect.gen(function*() {
    const { state, workspace } = yield* locate(options)
    const root = Main.historyOf({ filename: state })
    const exists = yield* Effect.orElseSucceed((yield* FileSystem.FileSystem).exists(root), () => true)
    const layer = Layer.merge(NodeFileHistory.layer({ root }), NodeFileAccess.layer())
    const opened = Effect.mapError(Effect.provide(use, layer), (error) =>
      error._tag === "StateUnavailable" ? stateRefused(error) : error)
    return { workspace, found: exists ? yield* opened : without }
  })

/** From the workspace where a path is in it. */
const shownIn = (path: Path.Path, workspace: string) => (file: string): string => {
  const relative = path.relative(workspace, file)
  return relative.startsWith("..") || path.isAbsolute(relative) ? file : relative
}

const filterOf = ({ thread, turn }: ChangesOptions): Filter => ({
  ...(thread === undefined ? {} : { threadId: ThreadId.make(thread) }),
  ...(turn === undefined ? {} : { turnId: TurnId.make(turn) })
})

export const list = Effect.fnUntraced(function*(options: ChangesOptions) {
  const terminal = yield* Terminal
  const none: ReadonlyArray<Revert.TurnChanges> = []
  const { found, workspace } = yield* withHistory(options, Revert.changes(filterOf(options)), none)
  if (options.json === true) {
    yield* terminal.out(`${displayJson(found)}\n`)
    return 0
  }
  const name = shownIn(yield* Path.Path, workspace)
  const rows = found.flatMap(({ at, files, threadId, turnId }) =>
    files.map(({ after, before, outcome, path, tools }) =>
      [
        new Date(at).toISOString(),
        threadId,
        turnId,
        outcome,
        `${before?.byteSize ?? 0} → ${after?.byteSize ?? 0}`,
        tools.join(", "),
        name(path)
      ].map((cell) => display(cell))
    )
  )
  const head = ["LAST CHANGE", "THREAD", "TURN", "OUTCOME", "BYTES", "TOOLS", "FILE"]
  yield* terminal.out(rows.length === 0 ? "No changes.\n" : table([head, ...rows]))
  return 0
})

/** The turn that an id means; `undefined`: nothing is kept of it. */
const find = (
  options: ChangesOptions,
  turn: string
): Effect.Effect<Revert.TurnRef | undefined, CliError | StateUnavailable, FileHistory> =>
  Effect.gen(function*() {
    const changes = yield* (yield* FileHistory).list(filterOf(options))
    const threads = new Map(changes.flatMap((change) => change.turnId === turn ? [[change.threadId, change]] : []))
    if (threads.size > 1) {
      const names = [...threads.keys()].slice(0, 10).join(", ")
      return yield* usage(`there is a turn ${turn} in several threads: ${names}; say which with --thread`)
    }
    return [...threads.values()][0]
  })

const unknown = Effect.fnUntraced(function*(turn: string) {
  yield* (yield* Terminal).err(`portcullis: There are no changes of a turn ${display(turn, { max: 200 })}.\n`)
  return 1
})

/** Exit code 1 when nothing is kept of that turn. */
export const diff = Effect.fnUntraced(function*(turn: string, options: ChangesOptions) {
  const terminal = yield* Terminal
  const { workspace } = yield* locate(options)
  const name = shownIn(yield* Path.Path, workspace)
  const differences = Effect.flatMap(
    find(options, turn),
    (ref) =>
      ref === undefined ? Effect.succeed(undefined) : Effect.map(Revert.diff(ref, name), (files) => ({ ref, files }))
  )
  const { found } = yield* withHistory(options, differences, undefined)
  if (found === undefined) return yield* unknown(turn)
  const { files, ref: { threadId, turnId } } = found
  if (options.json === true) {
    yield* terminal.out(`${displayJson({ threadId, turnId, files })}\n`)
    return 0
  }
  for (const file of files) {
    yield* terminal.out(
      `${file.outcome}: ${display(name(file.path))}\n${file.diff === "" ? "" : `${lines(file.diff)}\n`}`
    )
  }
  return 0
})

/** Exit code 1 when a file was refused, or nothing is kept of that turn. */
export const revert = Effect.fnUntraced(function*(turn: string, options: ChangesOptions) {
  const terminal = yield* Terminal
  const { found: undo, workspace } = yield* withHistory(options, find(options, turn), undefined)
  if (undo === undefined) return yield* unknown(turn)
  const { layer, spec } = yield* plane({ ...options, thread: undo.threadId })
  const work = Effect.gen(function*() {
    const session = yield* Effect.mapError((yield* ToolHost).openTurn(spec), turnRefused)
    const own = yield* session.turn
    const callId = CallId.make(`revert_${globalThis.crypto.randomUUID()}`)
    return { own, reverted: yield* Revert.revert({ turn: own, undo, callId, restore }) }
  }).pipe(
    Effect.catchTags({
      StateUnavailable: (error) => Effect.fail(stateRefused(error)),
      ToolError: (error) => Effect.succeed({ failed: error })
    })
  )
  const done = yield* Effect.scoped(work).pipe(Effect.provide(layer))
  if ("failed" in done) {
    yield* terminal.err(`portcullis: ${done.failed.code}: ${display(done.failed.message, { max: 600 })}\n`)
    return 1
  }
  const { own, reverted: { refused, restored, unchanged, untouched } } = done
  if (options.json === true) {
    const by = restored.length === 0 ? null : own.turnId
    yield* terminal.out(
      `${displayJson({ threadId: undo.threadId, turnId: undo.turnId, by, restored, unchanged, refused, untouched })}\n`
    )
    return refused.length === 0 ? 0 : 1
  }
  const shown = shownIn(yield* Path.Path, workspace)
  const name = (file: string) => display(shown(file))
  yield* terminal.out([
    ...restored.map(({ inPlace, path }) => `restored: ${name(path)}${inPlace ? ", written in place" : ""}\n`),
    ...unchanged.map((path) => `nothing to undo: ${name(path)}\n`),
    ...refused.map(({ path, reason }) => `refused: ${name(path)}: ${display(reason, { max: 600 })}\n`),
    ...untouched.map((path) => `not touched: ${name(path)}\n`),
    ...restored.length === 0 ? [] : [`portcullis changes revert ${own.turnId} takes this back\n`]
  ].join(""))
  return refused.length === 0 ? 0 : 1
})
