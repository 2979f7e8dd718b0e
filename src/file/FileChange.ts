/**
 * The one way in which built-in tools change a file: resolve, wait for the file, resolve and check again, read, keep what
 * was there, publish, tell.
 *
 * From the second check on the file and its directory are open: what was checked is what is read and written.
 *
 * @since 0.1.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { Digest } from "../contract/Digest.ts"
import type { CallId } from "../contract/ToolCall.ts"
import { type ReadRequired, SandboxBlocked } from "../contract/ToolFailure.ts"
import type { Turn } from "../contract/Turn.ts"
import type { FileTarget } from "../tool/Tool.ts"
import { ToolInvocation, type WriteGrant } from "../tool/ToolInvocation.ts"
import { FileAccess, type Held } from "./FileAccess.ts"
import { type ChangeCode, type FileError, fileError, fromPlatform, type PathCode, quote } from "./FileError.ts"
import { FileHistory } from "./FileHistory.ts"
import { FileMutationQueue } from "./FileMutationQueue.ts"
import { moved } from "./Folder.ts"
import * as Publish from "./Publish.ts"
import { ReadTracker } from "./ReadTracker.ts"
import { bytesOf, encode, type Encoding, fromBytes, MaxFileBytes, open, type TextFile } from "./TextFile.ts"
import { mayBeRead, type Resolved, WorkspacePath } from "./WorkspacePath.ts"

/** What a change makes of a file. */
export interface Next<A> {
  readonly text: string
  readonly encoding: Encoding
  /** Whether the change shows that all of the file is known. */
  readonly whole: boolean
  readonly value: A
}

export interface Changed<A> extends Publish.Published {
  readonly path: string
  readonly bytesWritten: number
  /** SHA-256 of the bytes written, hexadecimal. */
  readonly hash: string
  readonly value: A
}

export type ChangeError = FileError<PathCode | ChangeCode> | SandboxBlocked | ReadRequired
export type RestoreServices =
  | FileSystem.FileSystem
  | Path.Path
  | FileAccess
  | FileHistory
  | FileMutationQueue
  | WorkspacePath
export type ChangeServices = RestoreServices | ReadTracker | ToolInvocation

/** On whose account a file is changed. */
interface Account {
  readonly turn: Turn
  readonly call: { readonly callId: CallId; readonly toolName: string }
}

/** A file that is held in the queue, and open if it is there. */
interface Site {
  readonly resolved: Resolved
  readonly before: (Publish.Before & { readonly bytes: Uint8Array; readonly hash: string }) | undefined
  /** Puts bytes in its place, or nothing (`null`), and then does `after`; an interruption waits for both. */
  readonly put: (
    next: { readonly bytes: Uint8Array; readonly hash: string; readonly mode?: number | undefined } | null,
    after: Effect.Effect<void>
  ) => Effect.Effect<Publish.Published, FileError<ChangeCode>, Scope.Scope>
}

const holding = Effect.fnUntraced(function*<A, E, R>(
  { call, turn }: Account,
  given: string,
  grants: ReadonlyArray<WriteGrant>,
  use: (site: Site) => Effect.Effect<A, E, R>
): Effect.fn.Return<
  A,
  FileError<PathCode | ChangeCode> | SandboxBlocked | E,
  RestoreServices | Exclude<R, Scope.Scope>
> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const access = yield* FileAccess
  const history = yield* FileHistory
  const paths = yield* WorkspacePath
  const queue = yield* FileMutationQueue
  const maxBytes = yield* MaxFileBytes
  const files: Publish.Files = { fs, path, access, sha256: yield* Digest }

  /** The existing file, open for writing: a link that has taken its name meanwhile is not followed. */
  const opened = (entry: string, display: string) =>
    Effect.catchAll(open(access, entry, display, { write: true }), (error) => {
      if (error.code === "file_not_found") return Effect.succeed(undefined)
      if (error.code !== "not_a_regular_file") return Effect.fail(error)
      return Effect.flatMap(
        Effect.option(fs.readLink(entry)),
        (link) => Effect.fail(Option.isSome(link) ? moved(display) : error)
      )
    })

  const siteOf = Effect.fnUntraced(function*(
    resolved: Resolved
  ): Effect.fn.Return<Site, FileError<ChangeCode> | SandboxBlocked, Scope.Scope> {
    const { physical, relative } = resolved
    const failed = fromPlatform(relative)
    const name = path.basename(physical)
    const folder = path.dirname(physical)
    const parent = yield* Publish.enter(files, folder, relative)
    const file = parent === undefined ? undefined : yield* opened(parent.at(name), relative)
    const info = parent === undefined || file === undefined
      ? undefined
      : yield* Effect.mapError(
        Effect.flatMap(
          file.info,
          (info) =>
            info.links === 1 ? Effect.succeed(info) : Effect.zipRight(Publish.sweep(files, parent, name), file.info)
        ),
        failed
      )
    // The superuser could, which is not what the mode says.
    if (info !== undefined && (info.mode & 0o222) === 0) {
      return yield* fileError("file_access_denied", `${quote(relative)} is read-only: its mode lets nobody write it.`)
    }
    const grant = grants.find((candidate) => !resolved.inside && candidate.path === physical)
    const granted = grant !== undefined
    if (
      granted && !(info?.device === grant.device && info.inode === grant.inode && info.links === 1 &&
        parent?.info.device === grant.parentDevice && parent.info.inode === grant.parentInode)
    ) {
      return yield* new SandboxBlocked({
        code: "sandbox_write_blocked",
        reason: `${quote(relative)} is no longer the file that was approved.`,
        path: relative
      })
    }
    const bytes = file === undefined || info === undefined ? undefined : yield* bytesOf(file, info, relative, maxBytes)
    const before = file === undefined || info === undefined || bytes === undefined
      ? undefined
      : { file, info, bytes, hash: files.sha256(bytes) }

    const publish = (parent: Held, next: Parameters<Site["put"]>[0]) => {
      const target = { parent, folder, name, display: relative, before, granted, mode: next?.mode }
      return next === null
        ? Effect.as(Publish.remove(files, target), { created: false, inPlace: false })
        : Publish.publish(files, target, next.bytes)
    }

    return {
      resolved: { ...resolved, exists: before !== undefined },
      before,
      put: Effect.fnUntraced(function*(next, after) {
        const into = parent ?? (yield* Publish.enterMade(files, folder, relative))
        yield* history.record({
          threadId: turn.threadId,
          turnId: turn.turnId,
          callId: call.callId,
          toolName: call.toolName,
          path: physical,
          before: before === undefined ? null : { hash: before.hash, byteSize: before.bytes.length },
          after: next === null ? null : { hash: next.hash, byteSize: next.bytes.length },
          ...(next === null && before !== undefined ? { mode: before.info.mode & 0o777 } : {}),
          bytes: { before: before?.bytes ?? null, after: next?.bytes ?? null }
        }).pipe(
          Effect.catchAll((error) => Effect.logWarning("A change is not in the history:", error.reason)),
          Effect.catchAllDefect((defect) => Effect.logWarning("A change is not in the history:", defect))
        )
        return yield* Effect.uninterruptible(Effect.zipLeft(publish(into, next), after))
      })
    }
  })

  const asked = yield* paths.forWrite(turn, given, grants)
  const held = Effect.gen(function*() {
    const resolved = yield* paths.forWrite(turn, given, grants)
    if (resolved.physical !== asked.physical) return yield* moved(given)
    return yield* use(yield* siteOf(resolved))
  })
  return yield* queue.withFile(asked.physical, Effect.scoped(held))
})

/**
 * Changes one file while holding it: `next` gets it as it is on disk now (`undefined` when there is none) and says what
 * it shall be. Everything that was checked before the wait is checked again after it. What was there is kept in the
 * history first; a history that fails is a logged warning. `visible` is false for a file that may be written and not
 * read: nothing of it may be shown. An interruption while waiting changes nothing; one during the
 * write waits for it.
 */
export const change = Effect.fnUntraced(function*<A, E>(
  target: FileTarget,
  next: (
    before: TextFile | undefined,
    resolved: Resolved,
    visible: boolean
  ) => Effect.Effect<Next<A>, E, ChangeServices>
): Effect.fn.Return<Changed<A>, ChangeError | E, ChangeServices> {
  const tracker = yield* ReadTracker
  const paths = yield* WorkspacePath
  const { call, grants, observe, turn } = yield* ToolInvocation
  const sha256 = yield* Digest
  const maxBytes = yield* MaxFileBytes

  return yield* holding({ turn, call }, target.path, grants, ({ before, put, resolved }) =>
    Effect.gen(function*() {
      const visible = yield* mayBeRead(paths, turn, resolved)
      if (before !== undefined && visible) yield* tracker.require(turn.threadId, resolved, target, before)
      const text = before && (yield* fromBytes(before.bytes, before.hash, resolved.relative))
      const after = yield* next(text, resolved, visible)
      const bytes = yield* encode(after.text, after.encoding)
      if (bytes.length > maxBytes) {
        return yield* fileError("file_too_large", `${quote(target.path)} would be larger than ${maxBytes} bytes.`, {
          byteSize: bytes.length,
          maxBytes
        })
      }
      const hash = sha256(bytes)
      const observation = { access: "write", path: resolved.physical, hash, partial: !after.whole } as const
      const published = yield* put({ bytes, hash }, observe(observation))
      return { ...published, path: resolved.relative, bytesWritten: bytes.length, hash, value: after.value }
    }))
})

export interface RestoreOptions extends Account {
  /** Physical, or as a tool would be given it. */
  readonly path: string
  /** SHA-256 of the bytes that must be there now, hexadecimal; `null`: no file must be there. */
  readonly expected: string | null
  /** What to put there; `null`: no file. */
  readonly bytes: Uint8Array | null
  /** Of a file that is not there, before the user's mask. Default that of a new one. */
  readonly mode?: number | undefined
}

/**
 * Puts given bytes in place of a file, or removes it, under the same checks as `change` and recorded like it, if it is
 * what `expected` says: else `path_changed`, and it stays as it is. Threads that had read the file have to read it again.
 */
export const restore = (
  options: RestoreOptions
): Effect.Effect<
  { readonly inPlace: boolean },
  FileError<PathCode | ChangeCode> | SandboxBlocked,
  RestoreServices
> =>
  holding(options, options.path, [], ({ before, put, resolved }) =>
    Effect.gen(function*() {
      const { bytes, expected, mode } = options
      if ((before?.hash ?? null) !== expected) {
        return yield* fileError("path_changed", `${quote(resolved.relative)} is not what it was expected to be.`)
      }
      if (bytes === null && before === undefined) return { inPlace: false }
      const sha256 = yield* Digest
      const { inPlace } = yield* put(bytes && { bytes, hash: sha256(bytes), mode }, Effect.void)
      return { inPlace }
    }))
