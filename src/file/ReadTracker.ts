/**
 * What each thread has read, so that nothing is changed unseen (seed 4.3; decisions, Files: read before edit).
 *
 * Keyed by real path, fresh by content hash; reads of earlier turns count; our own writes refresh it.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import { Digest, short } from "../contract/Digest.ts"
import { ReadRequired } from "../contract/ToolFailure.ts"
import type { ThreadId } from "../contract/Turn.ts"
import type { FileTarget } from "../tool/Tool.ts"
import type { Observation } from "../tool/ToolInvocation.ts"
import * as EditMatcher from "./EditMatcher.ts"
import { FileAccess } from "./FileAccess.ts"
import type { FileError, ReadCode } from "./FileError.ts"
import { decode, fromBytes, MaxFileBytes, readBytes } from "./TextFile.ts"
import { characters, type Place } from "./TextPage.ts"
import type { Resolved } from "./WorkspacePath.ts"

export class ReadTracker extends Context.Tag("portcullis/ReadTracker")<ReadTracker, {
  /**
   * Whether a change of `target` is licensed: the file is new, or was read whole and has not changed since, or was read
   * in part, has not changed since and holds every quote exactly once (a change that quotes nothing needs the whole).
   * Else `read_before_edit_required`, or `stale_read` when it changed, with the call that helps. A file that no read would
   * help with fails as reading it does, as with `file_too_large` or `file_not_text`; what is no regular file is left to the tool to refuse. `content` is what is there, for who has it at hand; default: it is read.
   */
  readonly require: (
    threadId: ThreadId,
    resolved: Resolved,
    target: FileTarget,
    content?: Content
  ) => Effect.Effect<void, ReadRequired | FileError<ReadCode>>
  /**
   * A read counts for the content it saw: the same content read in part later is still known as a whole, and its parts
   * add up. A `write` counts as seen whole, or, when `partial`, as much as the thread had seen of the file before.
   */
  readonly observe: (threadId: ThreadId, observation: Observation) => Effect.Effect<void>
  /** Forgets a thread, as when its context is compacted. */
  readonly clear: (threadId: ThreadId) => Effect.Effect<void>
}>() {}

/** The bytes of a file and their SHA-256, hexadecimal. */
export interface Content {
  readonly bytes: Uint8Array
  readonly hash: string
}

/** What a thread knows of a file. */
export interface Seen {
  readonly hash: string
  /** The first byte of the text as UTF-8 that it has not seen, all before it being known; `null`: it knows the whole. */
  readonly unseen: number | null
}

/** What a thread knows after an observation. */
export const afterwards = (before: Seen | undefined, { access, hash, partial, span }: Observation): Seen => {
  if (!partial) return { hash, unseen: null }
  // Text moves in a change of our own, so only the knowledge of all of it survives it.
  if (access === "write") return { hash, unseen: before?.unseen === null ? null : 0 }
  const known = before?.hash === hash ? before.unseen : 0
  if (span === undefined || known === null || span.from > known) return { hash, unseen: known }
  return { hash, unseen: span.to === null ? null : Math.max(known, span.to) }
}

/** Holds what a thread knows of a file against what is on disk. */
export const judge = (
  seen: Seen,
  { bytes, hash }: Content,
  resolved: Resolved,
  target: FileTarget
): Effect.Effect<void, ReadRequired> => {
  if (seen.hash !== hash) return Effect.fail(stale(resolved, short(seen.hash), short(hash)))
  if (seen.unseen === null) return Effect.void
  const text = Either.getOrUndefined(decode(bytes))?.text
  const licensed = text !== undefined && target.quotes.length > 0 &&
    EditMatcher.eachOnce(text, target.quotes)
  return licensed ? Effect.void : Effect.fail(
    unread(
      resolved,
      "has been read in part only, and the change does not quote text that is there exactly once",
      text === undefined ? undefined : placeOf(text, seen.unseen)
    )
  )
}

/** Where a byte of a text as UTF-8 is, as `read` counts. */
const placeOf = (text: string, at: number): Place => {
  const above = new TextEncoder().encode(text).subarray(0, at)
  const begin = above.lastIndexOf(0x0a) + 1
  let line = 1
  for (let found = above.indexOf(0x0a); found !== -1; found = above.indexOf(0x0a, found + 1)) line++
  return { line, column: characters(above.subarray(begin)) + 1 }
}

const unread = (resolved: Resolved, reason: string, { column, line }: Place = { line: 1, column: 1 }): ReadRequired =>
  new ReadRequired({
    code: "read_before_edit_required",
    path: resolved.relative,
    reason: `${JSON.stringify(resolved.relative)} ${reason}.`,
    nextAction: {
      tool: "read",
      arguments: {
        path: resolved.relative,
        ...(line > 1 || column > 1 ? { offset: line } : {}),
        ...(column > 1 ? { column } : {})
      }
    }
  })

const stale = (resolved: Resolved, readVersion: string, currentVersion: string): ReadRequired =>
  new ReadRequired({
    code: "stale_read",
    path: resolved.relative,
    reason: `${JSON.stringify(resolved.relative)} has changed since it was read: revision ${readVersion} was read, ` +
      `${currentVersion} is there now; which lines differ is not known.`,
    nextAction: { tool: "read", arguments: { path: resolved.relative } },
    readVersion,
    currentVersion
  })

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
export const make = (store: SeenStore): Effect.Effect<ReadTracker["Type"], never, FileAccess> =>
  Effect.gen(function*() {
    const access = yield* FileAccess
    const sha256 = yield* Digest
    const maxBytes = yield* MaxFileBytes

    const contentOf = ({ physical, relative }: Resolved): Effect.Effect<Content | undefined, FileError<ReadCode>> =>
      readBytes(access, physical, relative, maxBytes).pipe(
        Effect.map((bytes) => ({ bytes, hash: sha256(bytes) })),
        Effect.catchIf(
          ({ code }) => code === "file_not_found" || code === "is_a_directory" || code === "not_a_regular_file",
          () => Effect.succeed(undefined)
        )
      )

    return {
      require: Effect.fnUntraced(function*(threadId, resolved, target, content) {
        if (!target.requiresRead || !resolved.exists) return
        const seen = yield* store.get(threadId, resolved.physical)
        const now = content ?? (yield* contentOf(resolved))
        if (now === undefined) return
        const judged = seen === undefined
          ? Effect.fail(unread(resolved, "has not been read in this thread"))
          : judge(seen, now, resolved, target)
        yield* Effect.catchAll(
          judged,
          (refusal) => Effect.zipRight(fromBytes(now.bytes, now.hash, resolved.relative), Effect.fail(refusal))
        )
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
): Effect.Effect<ReadTracker["Type"], never, FileAccess> =>
  Effect.suspend(() => make(memoryStore(options.threads ?? maxThreads)))

export const layerMemory: Layer.Layer<ReadTracker, never, FileAccess> = Layer.effect(
  ReadTracker,
  makeMemory()
)
