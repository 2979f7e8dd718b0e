/** The queue of file changes: alone, with its locks between processes, and with many that wait. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { mkdtempSync, rmSync } from "node:fs"
import { writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeQueue from "../../dist/layers/node/FileMutationQueue.js"
import * as ProcessIdentity from "../../dist/layers/node/ProcessIdentity.js"
import { FileMutationQueue } from "../../dist/src/index.js"

export const content = "x".repeat(4096)

/** A folder, and the names of `files` in it. */
export const desk = (files) => {
  const folder = mkdtempSync(join(tmpdir(), "portcullis-bench-"))
  return {
    folder,
    paths: Array.from({ length: files }, (_, index) => join(folder, `file${index}`)),
    close: () => rmSync(folder, { recursive: true, force: true })
  }
}

const subject = async (files, body, layerIn, concurrency = "unbounded") => {
  const { close, folder, paths } = desk(files)
  const runtime = ManagedRuntime.make(layerIn(folder))
  const queue = await runtime.runPromise(FileMutationQueue.FileMutationQueue)
  return {
    run: (n) =>
      runtime.runPromise(Effect.forEach(
        Array.from({ length: n }, (_, index) => paths[index % files]),
        (path) => queue.withFile(path, body(path)),
        { concurrency, discard: true }
      )),
    close: async () => {
      await runtime.dispose()
      close()
    }
  }
}

const nothing = () => Effect.void
const inProcess = () => FileMutationQueue.layerInProcess
const locking = (folder) =>
  Layer.provide(NodeQueue.layer({ directory: join(folder, "locks") }), ProcessIdentity.layer())

/** `n` no-op bodies handed in at once, over so many files, under locks between processes. */
export const burst = (files) => subject(files, nothing, locking)

/** The same, one after another. */
export const sequence = (files) => subject(files, nothing, locking, 1)

/** `n` writes of one file handed in at once, for this process only. */
export const writes = () => subject(1, (path) => Effect.promise(() => writeFile(path, content)), inProcess)

/** `n` bodies that let others run first, all waiting at once, over so many files. */
export const waiters = (files) => subject(files, Effect.yieldNow, inProcess)
