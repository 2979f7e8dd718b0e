/** A folder of our own, where only its owner may look in. */
import * as Effect from "effect/Effect"
import * as Fs from "node:fs/promises"
import { StateUnavailable } from "../../src/contract/ToolFailure.ts"

export const attempt = <A>(run: () => Promise<A>): Effect.Effect<A, unknown> =>
  Effect.tryPromise({ try: run, catch: (cause) => cause })

export const unavailable = (reason: string, executed: boolean) => (cause: unknown): StateUnavailable =>
  new StateUnavailable({
    reason: `${reason}: ${(cause instanceof Error ? cause.message : String(cause)).slice(0, 500)}`,
    executed
  })

/** Makes it, or closes it to others. Fails when it is a link, no directory, or somebody else's. */
export const prepare = (root: string): Effect.Effect<void, unknown> =>
  Effect.gen(function*() {
    yield* attempt(() => Fs.mkdir(root, { recursive: true, mode: 0o700 }))
    const info = yield* attempt(() => Fs.lstat(root))
    if (!info.isDirectory()) return yield* Effect.fail(`${root} is not a directory`)
    if (process.getuid !== undefined && info.uid !== process.getuid()) {
      return yield* Effect.fail(`${root} belongs to somebody else`)
    }
    if ((info.mode & 0o077) !== 0) yield* attempt(() => Fs.chmod(root, 0o700))
  })
