/** Scripts of test/fixtures as processes of their own: to be raced, stopped and killed. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Mailbox from "effect/Mailbox"
import type * as Scope from "effect/Scope"
import * as esbuild from "esbuild"
import { type ChildProcess, spawn } from "node:child_process"
import * as Path from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../", import.meta.url))

/**
 * Bundles a script under test/fixtures with the sources it imports; packages stay outside. Inside the repository, so that
 * they are found. Answers the path of the bundle, which goes with the scope.
 */
export const bundle = (script: string): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const name = `${Path.basename(script, ".ts")}-${globalThis.crypto.randomUUID()}.mjs`
      const outfile = Path.join(root, ".cache", "children", name)
      await esbuild.build({
        entryPoints: [Path.join(root, "test/fixtures", script)],
        outfile,
        bundle: true,
        platform: "node",
        format: "esm",
        packages: "external",
        logLevel: "silent"
      })
      return outfile
    }),
    (outfile) => Effect.promise(() => import("node:fs/promises").then((fs) => fs.rm(outfile, { force: true })))
  )

export interface Child {
  readonly pid: number
  /** The next line of its stdout; dies when it has ended. */
  readonly line: Effect.Effect<string>
  readonly send: (line: string) => Effect.Effect<void>
  /** Closes its stdin. */
  readonly end: Effect.Effect<void>
  readonly kill: (signal: NodeJS.Signals) => Effect.Effect<void>
  /** How it ended: an exit code, or the name of a signal. */
  readonly ended: Effect.Effect<number | string>
}

/** Starts an argv; its stderr is ours. It is killed with the scope. */
export const startCommand = (
  argv: readonly [string, ...ReadonlyArray<string>]
): Effect.Effect<Child, never, Scope.Scope> =>
  Effect.gen(function*() {
    const lines = yield* Mailbox.make<string>()
    const ended = yield* Deferred.make<number | string>()
    const child: ChildProcess = yield* Effect.acquireRelease(
      Effect.sync(() => spawn(argv[0], argv.slice(1), { stdio: ["pipe", "pipe", "inherit"] })),
      (child) => Effect.zipRight(Effect.sync(() => child.kill("SIGKILL")), Deferred.await(ended))
    )
    child.on("error", () => Deferred.unsafeDone(ended, Effect.succeed("failed")))
    child.on("close", (code, signal) => {
      lines.unsafeDone(Exit.void)
      Deferred.unsafeDone(ended, Effect.succeed(code ?? signal ?? "unknown"))
    })
    if (child.stdout !== null) createInterface({ input: child.stdout }).on("line", (line) => lines.unsafeOffer(line))
    return {
      pid: child.pid ?? -1,
      line: Effect.orDie(lines.take),
      send: (line) => Effect.sync(() => void child.stdin?.write(`${line}\n`)),
      end: Effect.sync(() => void child.stdin?.end()),
      kill: (signal) => Effect.sync(() => void child.kill(signal)),
      ended: Deferred.await(ended)
    }
  })

/** Starts a bundle with arguments. */
export const start = (bundle: string, ...args: ReadonlyArray<string>): Effect.Effect<Child, never, Scope.Scope> =>
  startCommand([process.execPath, bundle, ...args])
