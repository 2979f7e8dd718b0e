/**
 * What each thread has read, so that nothing is changed unseen (seed 4.3; decisions, Files: read before edit).
 *
 * Keyed by real path, fresh by content hash; reads of earlier turns count; our own writes refresh it.
 *
 * @since 0.1.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { Digest } from "../contract/Digest.ts"
import { ReadRequired } from "../contract/ToolFailure.ts"
import type { ThreadId } from "../contract/Turn.ts"
import type { FileTarget } from "../tool/Tool.ts"
import type { Observation } from "../tool/ToolInvocation.ts"
import * as EditMatcher from "./EditMatcher.ts"
import { decode, MaxFileBytes, readBytes } from "./TextFile.ts"
import type { Resolved } from "./WorkspacePath.ts"

export class ReadTracker extends Context.Tag("portcullis/ReadTracker")<ReadTracker, {
  /**
   * Whether a change of `target` is licensed: the file is new, or was read whole and has not changed since, or was read
   * in part, has not changed since and holds every quote exactly once (a change that quotes nothing needs the whole).
   * Else `read_before_edit_required`, or `stale_read` when it changed. What is no regular file is left to the tool to
   * refuse.
   */
  readonly require: (
    threadId: ThreadId,
    resolved: Resolved,
    target: FileTarget
  ) => Effect.Effect<void, ReadRequired>
  /**
   * A read counts for the content it saw: the same content read in part later is still known as a whole. A `write`
   * counts as seen whole, or, when `partial`, as much as the thread had seen of the file before.
   */
  readonly observe: (threadId: ThreadId, observation: Observation) => Effect.Effect<void>
  /** Forgets a thread, as when its context is compacted. */
  readonly clear: (threadId: ThreadId) => Effect.Effect<void>
}>() {}

/** What a thread knows of a file. */
export interface Seen {
  readonly hash: string
  readonly partial: boolean
}

/** What a thread knows after an observation. */
export const afterwards = (before: Seen | undefined, observation: Observation): Seen => {
  const whole = before !== undefined && !before.partial &&
    (observation.access === "write" || before.hash === observation.hash)
  return { hash: observation.hash, partial: observation.partial && !whole }
}

/** Holds what a thread knows of a file against the bytes that are on disk, whose hash is `hash`. */
export const judge = (
  seen: Seen,
  hash: string,
  bytes: Uint8Array,
  resolved: Resolved,
  target: FileTarget
): Effect.Effect<void, ReadRequired> => {
  if (seen.hash !== hash) return Effect.fail(refusal("stale_read", resolved, "has changed since it was read"))
  if (!seen.partial) return Effect.void
  const text = Either.getOrUndefined(decode(bytes))?.text
  const licensed = text !== undefined && target.quotes.length > 0 &&
    EditMatcher.eachOnce(text, target.quotes)
  return licensed ? Effect.void : Effect.fail(
    unread(resolved, "has been read in part only, and the change does not quote text that is there exactly once")
  )
}

const refusal = (code: ReadRequired["code"], resolved: Resolved, reason: string): ReadRequired =>
  new ReadRequired({
    code,
    path: resolved.relative,
    reason: `${JSON.stringify(resolved.relative)} ${reason}.`,
    nextAction: { tool: "read", arguments: { path: resolved.relative } }
  })

const unread = (resolved: Resolved, reason: string): ReadRequired =>
  refusal("read_before_edit_required", resolved, reason)

/** How many threads are remembered by default, and of each how many files: those used last. */
export const maxThreads = 128
export const maxFiles = 128

/** What the tracker keeps its knowledge in. What a store has lost reads as never seen, which is safe. */
export interface SeenStore {
  readonly get: (threadId: ThreadId, path: string) => Effect.Effect<Seen | undefined>
  readonly put: (threadId: ThreadId, path: string, seen: Seen) => Effect.Effect<void>
  readonly clear: (threadId: ThreadId) => Effect.Effect<void>
}

/** A tracker over a store. */
export const make = (store: SeenStore): Effect.Effect<ReadTracker["Type"], never, FileSystem.FileSystem> =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const sha256 = yield* Digest
    const maxBytes = yield* MaxFileBytes

    return {
      require: Effect.fnUntraced(function*(threadId, resolved, target) {
        if (!target.requiresRead || !resolved.exists) return
        const seen = yield* store.get(threadId, resolved.physical)
        const info = yield* Effect.option(fs.stat(resolved.physical))
        if (Option.isNone(info) || info.value.type !== "File") return
        if (seen === undefined) return yield* unread(resolved, "has not been read in this thread")
        const bytes = yield* Effect.mapError(
          readBytes(fs, resolved.physical, resolved.relative, maxBytes),
          (error) => unread(resolved, `cannot be compared with what was read (${error.code})`)
        )
        yield* judge(seen, sha256(bytes), bytes, resolved, target)
      }),
      observe: (threadId, observation) =>
        Effect.flatMap(
          store.get(threadId, observation.path),
          (before) => store.put(threadId, observation.path, afterwards(before, observation))
        ),
      clear: store.clear
    }
  })

/** Puts a key last in the order of use; beyond `max` the one used least recently goes. */
const touch = <A>(map: Map<string, A>, key: string, value: A, max: number): void => {
  map.delete(key)
  map.set(key, value)
  if (map.size <= max) return
  for (const oldest of map.keys()) {
    map.delete(oldest)
    return
  }
}

const memoryStore = (limit: number): SeenStore => {
  const threads = new Map<string, Map<string, Seen>>()
  return {
    get: (threadId, path) =>
      Effect.sync(() => {
        const files = threads.get(threadId)
        const seen = files?.get(path)
        if (files === undefined || seen === undefined) return undefined
        touch(threads, threadId, files, limit)
        touch(files, path, seen, maxFiles)
        return seen
      }),
    put: (threadId, path, seen) =>
      Effect.sync(() => {
        const files = threads.get(threadId) ?? new Map<string, Seen>()
        touch(threads, threadId, files, limit)
        touch(files, path, seen, maxFiles)
      }),
    clear: (threadId) => Effect.sync(() => void threads.delete(threadId))
  }
}

export interface MemoryOptions {
  /** How many threads are remembered, those used last. Default 128. */
  readonly threads?: number
}

/** A tracker that is forgotten with the process. */
export const makeMemory = (
  options: MemoryOptions = {}
): Effect.Effect<ReadTracker["Type"], never, FileSystem.FileSystem> =>
  Effect.suspend(() => make(memoryStore(options.threads ?? maxThreads)))

export const layerMemory: Layer.Layer<ReadTracker, never, FileSystem.FileSystem> = Layer.effect(
  ReadTracker,
  makeMemory()
)
