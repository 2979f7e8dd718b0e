/**
 * The one way in which built-in tools change a file: resolve, wait for the file, resolve and check again, publish,
 * tell.
 *
 * @since 0.1.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import { Digest } from "../contract/Digest.ts"
import type { ReadRequired, SandboxBlocked } from "../contract/ToolFailure.ts"
import type { FileTarget } from "../tool/Tool.ts"
import { ToolInvocation } from "../tool/ToolInvocation.ts"
import { type ChangeCode, type FileError, fileError, fromPlatform, type PathCode, quote } from "./FileError.ts"
import { FileMutationQueue } from "./FileMutationQueue.ts"
import * as Publish from "./Publish.ts"
import { ReadTracker } from "./ReadTracker.ts"
import { encode, type Encoding, MaxFileBytes, read, type TextFile } from "./TextFile.ts"
import { type Resolved, WorkspacePath } from "./WorkspacePath.ts"

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
  readonly value: A
}

export type ChangeError = FileError<PathCode | ChangeCode> | SandboxBlocked | ReadRequired
export type ChangeServices =
  | FileSystem.FileSystem
  | Path.Path
  | WorkspacePath
  | FileMutationQueue
  | ReadTracker
  | ToolInvocation

/**
 * Changes one file while holding it: `next` gets it as it is on disk now (`undefined` when there is none) and says what
 * it shall be. Everything that was checked before the wait is checked again after it. An interruption while waiting
 * changes nothing; one during the write waits for it.
 */
export const change = Effect.fnUntraced(function*<A, E>(
  target: FileTarget,
  next: (before: TextFile | undefined, resolved: Resolved) => Effect.Effect<Next<A>, E>
): Effect.fn.Return<Changed<A>, ChangeError | E, ChangeServices> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const paths = yield* WorkspacePath
  const queue = yield* FileMutationQueue
  const tracker = yield* ReadTracker
  const invocation = yield* ToolInvocation
  const sha256 = yield* Digest
  const maxBytes = yield* MaxFileBytes
  const { grants, turn } = invocation
  const moved = fileError("path_changed", `${quote(target.path)} leads elsewhere than it did when the call began.`)

  const held = Effect.fnUntraced(function*(asked: Resolved) {
    const resolved = yield* paths.forWrite(turn, target.path, grants)
    if (resolved.physical !== asked.physical) return yield* moved
    yield* tracker.require(turn.threadId, resolved, target)
    const before = resolved.exists ? yield* read(fs, sha256, resolved.physical, resolved.relative, maxBytes) : undefined
    const after = yield* next(before, resolved)
    const bytes = yield* encode(after.text, after.encoding)
    if (bytes.length > maxBytes) {
      return yield* fileError("file_too_large", `${quote(target.path)} would be larger than ${maxBytes} bytes.`, {
        byteSize: bytes.length,
        maxBytes
      })
    }
    const folder = path.dirname(resolved.physical)
    const failed = fromPlatform(resolved.relative)
    if (before === undefined) yield* Effect.mapError(fs.makeDirectory(folder, { recursive: true }), failed)
    if ((yield* Effect.mapError(fs.realPath(folder), failed)) !== folder) return yield* moved
    const destination: Publish.Target = {
      physical: resolved.physical,
      display: resolved.relative,
      grant: resolved.inside ? undefined : grants.find((grant) => grant.path === resolved.physical)
    }
    const observation = {
      access: "write",
      path: resolved.physical,
      hash: sha256(bytes),
      partial: !after.whole
    } as const
    const published = yield* Effect.uninterruptible(
      Effect.zipLeft(Publish.publish(fs, path, destination, bytes), invocation.observe(observation))
    )
    return { ...published, path: resolved.relative, bytesWritten: bytes.length, value: after.value }
  })

  const asked = yield* paths.forWrite(turn, target.path, grants)
  return yield* queue.withFile(asked.physical, held(asked))
})
