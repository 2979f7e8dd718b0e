/**
 * `SpillStore` in a private directory: one folder a thread, one file a text, under a quota.
 *
 * The root belongs outside the workspace and outside shared temp folders; only its owner may look into it. Several
 * processes may share one: each keeps to the quota by itself, so together they may exceed it until the next save.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Crypto from "node:crypto"
import * as Fs from "node:fs/promises"
import * as Path from "node:path"
import type { StateUnavailable } from "../../src/contract/ToolFailure.ts"
import type { ThreadId, Turn } from "../../src/contract/Turn.ts"
import * as FifoSemaphore from "../../src/internal/FifoSemaphore.ts"
import { SpillStore, tooLarge } from "../../src/spill/SpillStore.ts"
import { attempt, prepare, unavailable } from "./privateFolder.ts"

export interface Options {
  /** Absolute; created when missing, closed to others when it is not. */
  readonly root: string
  /** Bytes kept over all threads, a file counting for at least 4 KiB; the oldest go first. Default 2 GiB. */
  readonly quota?: number
}

const folderOf = (root: string, threadId: ThreadId): string =>
  Path.join(Path.resolve(root), Crypto.createHash("sha256").update(threadId).digest("hex").slice(0, 16))

/** For `WorkspacePath.layerWith`: a turn may read what was saved under its own thread, and nothing else in `root`. */
export const readable = (root: string) => (turn: Pick<Turn, "threadId">): ReadonlyArray<string> => [
  folderOf(root, turn.threadId)
]

const safeName = (name: string): string => name.slice(0, 80).replace(/[^A-Za-z0-9._-]/g, "_") || "output"

const isMissing = (cause: unknown): boolean => cause instanceof Error && "code" in cause && cause.code === "ENOENT"

interface Kept {
  readonly path: string
  readonly size: number
  readonly savedAt: number
}

const sizeOf = (bytes: number): number => Math.max(bytes, 4096)

const namesIn = (folder: string, pattern: RegExp): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(
    Effect.orElseSucceed(attempt(() => Fs.readdir(folder)), (): ReadonlyArray<string> => []),
    (names) => names.filter((name) => pattern.test(name)).map((name) => Path.join(folder, name))
  )

/** What a store wrote, the oldest first; anything else in the root is left alone. */
const survey = Effect.fnUntraced(function*(root: string) {
  const kept: Array<Kept> = []
  for (const folder of yield* namesIn(root, /^[0-9a-f]{16}$/)) {
    for (const path of yield* namesIn(folder, /^[0-9a-f]{24}-/)) {
      const info = yield* Effect.orElseSucceed(attempt(() => Fs.lstat(path)), () => undefined)
      if (info?.isFile() === true) kept.push({ path, size: sizeOf(info.size), savedAt: info.mtimeMs })
    }
  }
  return kept.sort((left, right) => left.savedAt - right.savedAt)
})

/** Makes room for `needed` bytes, and for a tenth of the quota more, so that not every save has to look around. */
const makeRoom = Effect.fnUntraced(function*(root: string, quota: number, needed: number) {
  const kept = yield* survey(root)
  let total = kept.reduce((sum, { size }) => sum + size, 0)
  if (total + needed <= quota) return total
  for (const { path, size } of kept) {
    if (total + needed <= quota * 0.9) break
    yield* attempt(() => Fs.rm(path, { force: true }))
    yield* Effect.ignore(attempt(() => Fs.rmdir(Path.dirname(path))))
    total -= size
  }
  return total
})

/** A new file with all of `bytes`, or none. */
const write = (path: string, bytes: Uint8Array): Effect.Effect<void, unknown> => {
  const opened = Effect.zipRight(
    attempt(() => Fs.mkdir(Path.dirname(path), { recursive: true, mode: 0o700 })),
    attempt(() => Fs.open(path, "wx", 0o600))
  )
  // Another process may have removed the folder, as an empty one, since it was made.
  return Effect.acquireUseRelease(
    Effect.retry(opened, { times: 1, while: isMissing }),
    (file) => Effect.tapError(attempt(() => file.writeFile(bytes)), () => Effect.ignore(attempt(() => Fs.rm(path)))),
    (file) => Effect.ignore(attempt(() => file.close()))
  )
}

/**
 * A store over a directory. Fails with `state_unavailable` when the root cannot be made or belongs to another user. A save
 * cannot be interrupted half-way: an interruption waits until the file is whole or gone.
 */
export const make = (
  { quota = 2 * 1024 ** 3, root: given }: Options
): Effect.Effect<SpillStore["Type"], StateUnavailable> =>
  Effect.gen(function*() {
    const root = Path.resolve(given)
    yield* Effect.mapError(prepare(root), unavailable("The directory for large output cannot be used", false))
    const saving = yield* FifoSemaphore.make(1)
    let total = Number.POSITIVE_INFINITY

    const save: SpillStore["Type"]["save"] = Effect.fnUntraced(function*(threadId, name, text) {
      const bytes = new TextEncoder().encode(text)
      const size = sizeOf(bytes.length)
      if (size > quota) return yield* tooLarge(bytes.length, quota)
      const locator = Path.join(
        folderOf(root, threadId),
        `${Crypto.randomBytes(12).toString("hex")}-${safeName(name)}`
      )
      yield* Effect.mapError(
        Effect.gen(function*() {
          if (total + size > quota) total = yield* makeRoom(root, quota, size)
          yield* write(locator, bytes)
          total += size
        }),
        unavailable("Output could not be saved", true)
      )
      return { locator, bytes: bytes.length }
    })

    return { save: (threadId, name, text) => saving.withPermit(Effect.uninterruptible(save(threadId, name, text))) }
  })

export const layer = (options: Options): Layer.Layer<SpillStore, StateUnavailable> =>
  Layer.effect(SpillStore, make(options))
