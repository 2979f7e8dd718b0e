/**
 * What file tools changed, turn by turn, with what was there before: the ground for listing changes and undoing them.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { CallId } from "../contract/ToolCall.ts"
import type { StateUnavailable } from "../contract/ToolFailure.ts"
import type { ThreadId, TurnId } from "../contract/Turn.ts"

/** A state of a file, by the bytes it held. */
export interface Version {
  /** SHA-256 of the bytes, hexadecimal. */
  readonly hash: string
  readonly byteSize: number
}

/** One change of one file. It is kept before it is published, so it may have come to nothing. */
export interface Change {
  readonly threadId: ThreadId
  readonly turnId: TurnId
  readonly callId: CallId
  readonly toolName: string
  /** Physical. */
  readonly path: string
  /** `null`: there was no such file. */
  readonly before: Version | null
  /** `null`: the file was removed, as when its creation is undone. */
  readonly after: Version | null
  /** Who may do what with a file that was removed, so that it comes back with no more rights. */
  readonly mode?: number
}

/** A change as it is kept. */
export interface Kept extends Change {
  /** Counts up over all changes of the store. */
  readonly sequence: number
  /** Milliseconds since 1970. */
  readonly at: number
}

/** A change to keep, with the bytes of both its versions. */
export interface Recorded extends Change {
  readonly bytes: { readonly before: Uint8Array | null; readonly after: Uint8Array | null }
}

/** Absent means any. */
export interface Filter {
  readonly threadId?: ThreadId
  readonly turnId?: TurnId
  readonly path?: string
}

export class FileHistory extends Context.Tag("portcullis/FileHistory")<FileHistory, {
  /**
   * Keeps a change; to be called while the file is held, before it is published. Once it returns, the change outlives the
   * process. Interrupting it keeps the change or does not.
   */
  readonly record: (change: Recorded) => Effect.Effect<void, StateUnavailable>
  /** What is kept, in the order it was recorded. The store is bounded: the oldest turns go first, each as a whole. */
  readonly list: (filter?: Filter) => Effect.Effect<ReadonlyArray<Kept>, StateUnavailable>
  /** The bytes of a version that is still kept. */
  readonly bytes: (hash: string) => Effect.Effect<Uint8Array | undefined, StateUnavailable>
}>() {}

export const isOfTurn = (
  change: Pick<Change, "threadId" | "turnId">,
  turn: Pick<Change, "threadId" | "turnId">
): boolean => change.threadId === turn.threadId && change.turnId === turn.turnId

export const matches = (filter: Filter) => (change: Change): boolean =>
  (filter.threadId === undefined || change.threadId === filter.threadId) &&
  (filter.turnId === undefined || change.turnId === filter.turnId) &&
  (filter.path === undefined || change.path === filter.path)

/** How much a store keeps. */
export interface Limits {
  /** Bytes of all versions, one counting for at least 4 KiB. */
  readonly maxBytes: number
  readonly maxChanges: number
}

/** What a store keeps, and the versions it needs for that. */
export interface Retained {
  readonly changes: ReadonlyArray<Kept>
  readonly hashes: ReadonlySet<string>
}

/** What a version takes of a store's room. */
export const sizeOf = (version: Version): number => Math.max(version.byteSize, 4096)

/** A key without ambiguity: ids hold no blanks. */
export const turnKey = (change: Pick<Change, "threadId" | "turnId">): string => `${change.threadId} ${change.turnId}`

/**
 * What of these changes stays, for stores: all of them within the limits, else what fills nine tenths of them. Turns go as
 * a whole, because one without its beginning would be undone to a state that it never found; the one whose last change is
 * oldest goes first. The newest turn stays; when it alone is too large, only the first and the last version of each of
 * its files are needed. With more changes than the limit it goes too.
 */
export const retain = (changes: ReadonlyArray<Kept>, { maxBytes, maxChanges }: Limits): Retained => {
  const turns = new Map<string, Array<Kept>>()
  const uses = new Map<string, number>()
  let bytes = 0
  let left = changes.length
  const use = (version: Version | null, by: 1 | -1): void => {
    if (version === null) return
    const before = uses.get(version.hash) ?? 0
    if (before + by === 0) uses.delete(version.hash)
    else uses.set(version.hash, before + by)
    if (before === 0 || before + by === 0) bytes += by * sizeOf(version)
  }
  const useAll = (some: ReadonlyArray<Kept>, by: 1 | -1): void => {
    for (const { after, before } of some) {
      use(before, by)
      use(after, by)
    }
  }
  for (const change of changes) {
    const key = turnKey(change)
    const ofTurn = turns.get(key) ?? []
    ofTurn.push(change)
    turns.delete(key)
    turns.set(key, ofTurn)
  }
  useAll(changes, 1)
  if (bytes > maxBytes || left > maxChanges) {
    for (const [key, ofTurn] of turns) {
      if (bytes <= maxBytes * 0.9 && left <= maxChanges * 0.9) break
      useAll(ofTurn, -1)
      if (turns.size === 1 && left <= maxChanges) {
        for (const { first, last } of endsOf(ofTurn)) {
          use(first.before, 1)
          use(last.after, 1)
        }
        break
      }
      turns.delete(key)
      left -= ofTurn.length
    }
  }
  return { changes: changes.filter((change) => turns.has(turnKey(change))), hashes: new Set(uses.keys()) }
}

const endsOf = (changes: ReadonlyArray<Kept>): Iterable<{ readonly first: Kept; readonly last: Kept }> => {
  const ends = new Map<string, { readonly first: Kept; readonly last: Kept }>()
  for (const change of changes) ends.set(change.path, { first: ends.get(change.path)?.first ?? change, last: change })
  return ends.values()
}

/** Keeps nothing, so nothing can be undone. */
export const layerNone: Layer.Layer<FileHistory> = Layer.succeed(FileHistory, {
  record: () => Effect.void,
  list: () => Effect.succeed([]),
  bytes: () => Effect.succeed(undefined)
})

/** In memory, for tests: it ends with the process. Default 64 MiB and 5000 changes. */
export const makeMemory = (
  { maxBytes = 64 * 1024 * 1024, maxChanges = 5000 }: Partial<Limits> = {}
): Effect.Effect<FileHistory["Type"]> =>
  Effect.sync(() => {
    const blobs = new Map<string, Uint8Array>()
    let changes: Array<Kept> = []
    let bytes = 0
    let sequence = 0
    const keep = (version: Version | null, content: Uint8Array | null): void => {
      if (version === null || content === null || blobs.has(version.hash)) return
      blobs.set(version.hash, content.slice())
      bytes += sizeOf(version)
    }
    const trim = (): void => {
      const retained = retain(changes, { maxBytes, maxChanges })
      changes = [...retained.changes]
      for (const [hash, { length }] of blobs) {
        if (retained.hashes.has(hash)) continue
        blobs.delete(hash)
        bytes -= sizeOf({ hash, byteSize: length })
      }
    }
    return {
      record: ({ bytes: content, ...change }) =>
        Effect.map(Clock.currentTimeMillis, (at) => {
          keep(change.before, content.before)
          keep(change.after, content.after)
          changes.push({ ...change, sequence: ++sequence, at })
          if (bytes > maxBytes || changes.length > maxChanges) trim()
        }),
      list: (filter = {}) => Effect.sync(() => changes.filter(matches(filter))),
      bytes: (hash) => Effect.sync(() => blobs.get(hash)?.slice())
    }
  })

export const layerMemory = (limits?: Partial<Limits>): Layer.Layer<FileHistory> =>
  Layer.effect(FileHistory, makeMemory(limits))
