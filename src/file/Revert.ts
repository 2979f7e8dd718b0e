/**
 * What a turn changed, as differences, and undone.
 *
 * A file is put back only where it is what the turn left: whatever anybody changed since stays, and so does the file.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { Digest, type Sha256 } from "../contract/Digest.ts"
import type { CallId } from "../contract/ToolCall.ts"
import type { SandboxBlocked, StateUnavailable } from "../contract/ToolFailure.ts"
import type { ThreadId, Turn, TurnId } from "../contract/Turn.ts"
import { FileAccess } from "./FileAccess.ts"
import * as FileDiff from "./FileDiff.ts"
import type { ChangeCode, FileError, LockCode, PathCode } from "./FileError.ts"
import { FileHistory, type Filter, isOfTurn, type Kept, turnKey, type Version } from "./FileHistory.ts"
import { FileMutationQueue } from "./FileMutationQueue.ts"
import { decode, type Encoding, MaxFileBytes } from "./TextFile.ts"
import { WorkspacePath } from "./WorkspacePath.ts"

export interface TurnRef {
  readonly threadId: ThreadId
  readonly turnId: TurnId
}

/** What a turn made of one file, from its first change to its last. */
export interface FileOutcome {
  /** Physical. */
  readonly path: string
  /** `nothing`: its changes never reached the disk, or took each other back. */
  readonly outcome: "created" | "modified" | "removed" | "nothing"
  readonly before: Version | null
  readonly after: Version | null
  /** In the order of their first change. */
  readonly tools: ReadonlyArray<string>
}

export interface TurnChanges extends TurnRef {
  /** When its last change was recorded, in milliseconds since 1970. */
  readonly at: number
  /** By path. */
  readonly files: ReadonlyArray<FileOutcome>
}

export interface FileDifference extends FileOutcome, FileDiff.FileDiff {}

export interface Refusal {
  readonly path: string
  readonly reason: string
}

export interface Reverted {
  readonly restored: ReadonlyArray<{ readonly path: string; readonly inPlace: boolean }>
  /** Files that the turn left, or that are again, as it found them. */
  readonly unchanged: ReadonlyArray<string>
  /** Why not; all is done when this is empty. */
  readonly refused: ReadonlyArray<Refusal>
  /** Files that could have been put back, and were not because others were refused. */
  readonly untouched: ReadonlyArray<string>
}

/** Puts bytes, or no file (`null`), in place of a file that still has the expected hash; fails with `path_changed`. */
export type Restore<R> = (options: {
  readonly turn: Turn
  readonly call: { readonly callId: CallId; readonly toolName: string }
  readonly path: string
  readonly expected: string | null
  readonly bytes: Uint8Array | null
  readonly mode: number | undefined
}) => Effect.Effect<{ readonly inPlace: boolean }, FileError<PathCode | ChangeCode> | SandboxBlocked, R>

/** The hash of a file; `null`: there is none; `undefined`: something that no change on record made. */
type State = string | null | undefined

const stateOf = (version: Version | null): string | null => version?.hash ?? null

/** Reads no file but one whose size is that of a version on record. */
const look = (
  access: FileAccess["Type"],
  sha256: Sha256,
  maxBytes: number,
  path: string,
  records: ReadonlyArray<Kept>
): Effect.Effect<State> =>
  Effect.gen(function*() {
    const file = yield* access.open(path)
    const { size } = yield* file.info
    const known = records.some(({ after, before }) => before?.byteSize === size || after?.byteSize === size)
    return known && size <= maxBytes ? sha256(yield* file.read(0, size)) : undefined
  }).pipe(
    Effect.scoped,
    Effect.catchAll((error) =>
      Effect.succeed(error._tag === "SystemError" && error.reason === "NotFound" ? null : undefined)
    )
  )

/**
 * The changes of one file that reached the disk. One that did not is known by what came after it: the next change, or the
 * file now, starts from what it would have replaced.
 */
const published = (records: ReadonlyArray<Kept>, now: State): ReadonlyArray<Kept> =>
  records.filter(({ after, before }, index) => {
    const next = records[index + 1]
    const later = next === undefined ? now : stateOf(next.before)
    return later !== stateOf(before) || later === stateOf(after)
  })

/** The changes of one file by one turn, among all of that file. */
interface Net extends FileOutcome {
  /** Who else changed the file between the first and the last of them; `undefined`: nobody. */
  readonly between: string | undefined
  /** Who else changed it after them, as far as it is on record. */
  readonly since: Kept | undefined
  readonly last: Kept
  /** Of the file that the last of them removed. */
  readonly mode: number | undefined
}

const shown = ({ threadId, toolName, turnId }: Kept): string => `${toolName} in turn ${turnId} of thread ${threadId}`

const somebody = "somebody or something that keeps no record, such as a command or an editor"

const net = (ref: TurnRef, records: ReadonlyArray<Kept>, effective: ReadonlyArray<Kept>): Net | undefined => {
  const mine = records.filter((record) => isOfTurn(record, ref))
  const last = mine.at(-1)
  if (last === undefined) return undefined
  const tools = [...new Set(mine.map(({ toolName }) => toolName))]
  const done = effective.filter((record) => isOfTurn(record, ref))
  const [start] = done
  const end = done.at(-1)
  if (start === undefined || end === undefined) {
    const { before, path } = last
    return {
      path,
      outcome: "nothing",
      before,
      after: before,
      tools,
      between: undefined,
      since: undefined,
      last,
      mode: undefined
    }
  }
  const [from, to] = [effective.indexOf(start), effective.indexOf(end)]
  const span = effective.slice(from, to + 1)
  const stranger = span.find((record) => !isOfTurn(record, ref))
  const broken = span.some(({ before }, index) => {
    const previous = span[index - 1]
    return previous !== undefined && stateOf(previous.after) !== stateOf(before)
  })
  const { before, path } = start
  const { after } = end
  const outcome = stateOf(before) === stateOf(after)
    ? "nothing"
    : before === null
    ? "created"
    : after === null
    ? "removed"
    : "modified"
  return {
    path,
    outcome,
    before,
    after,
    tools,
    between: stranger !== undefined ? shown(stranger) : broken ? somebody : undefined,
    since: effective[to + 1],
    last,
    mode: end.mode
  }
}

interface Examined extends TurnRef {
  readonly at: number
  readonly files: ReadonlyArray<{ readonly net: Net; readonly now: State }>
}

/** The turns with a change that fits, each with all its files that fit, and what is on disk now. */
const examine = Effect.fnUntraced(function*(
  filter: Filter
): Effect.fn.Return<ReadonlyArray<Examined>, StateUnavailable, FileHistory | FileAccess> {
  const history = yield* FileHistory
  const access = yield* FileAccess
  const sha256 = yield* Digest
  const maxBytes = yield* MaxFileBytes
  const { threadId, turnId } = filter
  // All turns: another one may have changed the same file.
  const records = yield* history.list(filter.path === undefined ? {} : { path: filter.path })
  const wanted = new Map<string, Kept>()
  const byPath = new Map<string, Array<Kept>>()
  for (const record of records) {
    const ofPath = byPath.get(record.path) ?? []
    ofPath.push(record)
    byPath.set(record.path, ofPath)
    if (threadId !== undefined && record.threadId !== threadId) continue
    if (turnId !== undefined && record.turnId !== turnId) continue
    wanted.set(turnKey(record), record)
  }
  const files = new Map<string, Array<Examined["files"][number]>>()
  for (const path of [...byPath.keys()].sort()) {
    const ofPath = byPath.get(path) ?? []
    const turns = new Map(ofPath.map((record) => [turnKey(record), record]))
    const asked = [...turns].filter(([key]) => wanted.has(key))
    if (asked.length === 0) continue
    const now = yield* look(access, sha256, maxBytes, path, ofPath)
    const effective = published(ofPath, now)
    for (const [key, ref] of asked) {
      const found = net(ref, ofPath, effective)
      if (found !== undefined) files.set(key, [...files.get(key) ?? [], { net: found, now }])
    }
  }
  return [...wanted.values()]
    .sort((left, right) => left.sequence - right.sequence)
    .map((record) => ({
      threadId: record.threadId,
      turnId: record.turnId,
      at: record.at,
      files: files.get(turnKey(record)) ?? []
    }))
})

/** A change names its turn, and would filter by its path too. */
const only = ({ threadId, turnId }: TurnRef): Filter => ({ threadId, turnId })

const outcomeOf = ({ after, before, outcome, path, tools }: Net): FileOutcome => ({
  path,
  outcome,
  before,
  after,
  tools
})

/**
 * What turns changed, the latest turn last. Looks at the files to tell which changes came to nothing, and changes nothing.
 */
export const changes = (
  filter: Filter = {}
): Effect.Effect<ReadonlyArray<TurnChanges>, StateUnavailable, FileHistory | FileAccess> =>
  Effect.map(examine(filter), (turns) =>
    turns.map(({ at, files, threadId, turnId }) => ({
      threadId,
      turnId,
      at,
      files: files.map((file) => outcomeOf(file.net))
    })))

/** What a turn left, against what it found, file by file. `name` says how a path is shown; default as it is. */
export const diff = Effect.fnUntraced(function*(
  turn: TurnRef,
  name: (path: string) => string = (path) => path
): Effect.fn.Return<ReadonlyArray<FileDifference>, StateUnavailable, FileHistory | FileAccess> {
  const history = yield* FileHistory
  const found = yield* examine(only(turn))
  const out: Array<FileDifference> = []
  for (const file of found.flatMap(({ files }) => files)) {
    const { after, before, path } = file.net
    if (file.net.outcome === "nothing") {
      out.push({ ...outcomeOf(file.net), diff: "", patch: null })
      continue
    }
    const texts = yield* Effect.forEach([before, after], (version) => textOf(history, version))
    const [old, made] = texts
    out.push({
      ...outcomeOf(file.net),
      ...old?._tag === "Text" && made?._tag === "Text"
        ? FileDiff.between(name(path), old.text, made.text, [old, made].find(isWide)?.encoding)
        : { diff: `${unlike(texts)}, ${before?.byteSize ?? 0} → ${after?.byteSize ?? 0} bytes`, patch: null }
    })
  }
  return out
})

type Content =
  | { readonly _tag: "Text"; readonly text: string | undefined; readonly encoding: Encoding | undefined }
  | { readonly _tag: "Binary" | "Gone" }

const unlike = (contents: ReadonlyArray<Content>): string =>
  contents.some(({ _tag }) => _tag === "Gone") ? "no longer kept" : "binary"

const isWide = ({ encoding }: { readonly encoding: Encoding | undefined }): boolean =>
  encoding !== undefined && encoding.charset !== "utf-8"

/** With the byte order mark of UTF-8, which may be all of the difference. */
const textOf = (
  history: FileHistory["Type"],
  version: Version | null
): Effect.Effect<Content, StateUnavailable> =>
  version === null
    ? Effect.succeed({ _tag: "Text", text: undefined, encoding: undefined })
    : Effect.map(history.bytes(version.hash), (bytes) =>
      bytes === undefined ? { _tag: "Gone" } : Either.match(decode(bytes), {
        onLeft: () => ({ _tag: "Binary" }),
        onRight: ({ encoding, text }) => ({
          _tag: "Text",
          text: encoding.bom && encoding.charset === "utf-8" ? `\ufeff${text}` : text,
          encoding
        })
      }))

/**
 * Undoes what `undo` did, as a change of `turn` that is recorded like any other, so it can be undone in turn. Bytes come
 * back exactly; what the turn created is removed, but for directories; a removed file comes back with the mode it had, as
 * far as the user's mask allows.
 *
 * All files are checked before one is touched, and one refusal stops them all: a file that is not what the turn left, that
 * somebody else changed between two changes of the turn, that `turn` may not write, or whose bytes are no longer kept. A
 * file is checked again when its turn comes; a refusal then leaves those before it restored, and the answer says which.
 * An interruption waits for the file under way and leaves the others.
 */
export const revert = Effect.fnUntraced(function*<R>(options: {
  readonly turn: Turn
  readonly undo: TurnRef
  readonly callId: CallId
  readonly restore: Restore<R>
}): Effect.fn.Return<
  Reverted,
  StateUnavailable | FileError<LockCode>,
  R | FileHistory | FileAccess | FileMutationQueue | WorkspacePath
> {
  const { callId, restore, turn, undo } = options
  const history = yield* FileHistory
  const queue = yield* FileMutationQueue
  const paths = yield* WorkspacePath

  const problemOf = Effect.fnUntraced(function*({ net: { after, before, between, path, since }, now }: {
    readonly net: Net
    readonly now: State
  }) {
    if (now !== stateOf(after)) {
      return `was changed since by ${since === undefined ? somebody : shown(since)}`
    }
    if (between !== undefined) return `was changed between the changes of the turn by ${between}`
    const resolved = yield* Effect.either(paths.forWrite(turn, path))
    if (Either.isLeft(resolved)) return resolved.left.message
    if (resolved.right.physical !== path) return "leads elsewhere now"
    const bytes = before === null ? null : yield* history.bytes(before.hash)
    return bytes === undefined ? "cannot be restored: what it held is no longer kept" : undefined
  })

  const concerned = (yield* history.list(only(undo))).map(({ path }) => path)
  // Held, so that no change is judged between its record and its publication.
  const found = yield* queue.withFiles(concerned, examine(only(undo)))
  const wanted: Array<Net> = []
  const unchanged: Array<string> = []
  const refused: Array<Refusal> = []
  for (const file of found.flatMap(({ files }) => files)) {
    if (file.net.outcome === "nothing" || file.now === stateOf(file.net.before)) {
      unchanged.push(file.net.path)
      continue
    }
    const reason = yield* problemOf(file)
    if (reason === undefined) wanted.push(file.net)
    else refused.push({ path: file.net.path, reason })
  }
  const restored: Array<Reverted["restored"][number]> = []
  if (refused.length === 0) {
    for (const { after, before, mode, path } of wanted) {
      const bytes = before === null ? null : yield* history.bytes(before.hash)
      if (bytes === undefined) {
        refused.push({ path, reason: "cannot be restored: what it held is no longer kept" })
        break
      }
      const call = { callId, toolName: "revert" }
      const done = yield* Effect.either(restore({ turn, call, path, expected: stateOf(after), bytes, mode }))
      if (Either.isLeft(done)) {
        refused.push({ path, reason: done.left.message })
        break
      }
      restored.push({ path, inPlace: done.right.inPlace })
    }
  }
  const named = new Set([...restored, ...refused].map(({ path }) => path))
  const untouched = wanted.map(({ path }) => path).filter((path) => !named.has(path))
  return { restored, unchanged, refused, untouched }
})
