/** Programs of this repository as real processes, bundled once a test file. */
import { afterAll, beforeAll } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { build } from "esbuild"
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { eventually } from "./plane.ts"

export const root = resolve(import.meta.dirname, "../..")

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface Options {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** Default: empty. */
  readonly input?: string | Uint8Array
  /** At a terminal of its own; stderr and what is typed are then part of stdout. */
  readonly terminal?: boolean
}

/** Whether `terminal` works here. */
export const hasTerminals = process.platform === "linux" && existsSync("/usr/bin/script")

export interface Started {
  readonly process: ChildProcess
  readonly ended: Effect.Effect<Ended>
}

const launch = (file: string, args: ReadonlyArray<string>, options: Options): Started => {
  const argv = [process.execPath, file, ...args]
  const quoted = argv.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ")
  const [command = "", ...rest] = options.terminal === true ? ["script", "-qec", quoted, "/dev/null"] : argv
  const child = spawn(command, rest, {
    cwd: options.cwd ?? root,
    env: { PATH: process.env["PATH"] ?? "", ...options.env },
    stdio: ["pipe", "pipe", "pipe"]
  })
  child.stdin.on("error", () => {})
  child.stdin.end(options.input)
  let stdout = ""
  let stderr = ""
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text))
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text))
  const ended = new Promise<Ended>((done) => {
    child.on("close", (code, signal) => done({ code, signal, stdout, stderr }))
  })
  return { process: child, ended: Effect.promise(() => ended) }
}

/**
 * Bundles an entry point before the tests of a file, to where its packages can be found, and gives the way to run it with a
 * bare environment. What a test leaves running is killed.
 */
export const program = (entry: string) => {
  let folder = ""
  beforeAll(async () => {
    mkdirSync(join(root, ".cache"), { recursive: true })
    folder = mkdtempSync(join(root, ".cache/bundle-"))
    await build({
      entryPoints: [join(root, entry)],
      outfile: join(folder, "main.mjs"),
      bundle: true,
      platform: "node",
      format: "esm",
      target: "node20",
      packages: "external",
      logLevel: "error"
    })
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const start = (args: ReadonlyArray<string>, options: Options = {}) =>
    Effect.acquireRelease(
      Effect.sync(() => launch(join(folder, "main.mjs"), args, options)),
      (started) => Effect.sync(() => started.process.kill("SIGKILL"))
    )
  return {
    start,
    run: (args: ReadonlyArray<string>, options: Options = {}) =>
      Effect.scoped(Effect.flatMap(start(args, options), ({ ended }) => ended))
  }
}

/** A workspace, and a home and a state directory beside it. */
export const place = Effect.acquireRelease(
  Effect.sync(() => {
    const base = realpathSync(mkdtempSync(join(tmpdir(), "portcullis-cli-")))
    for (const name of ["ws", "state", "home"]) mkdirSync(join(base, name))
    return {
      base,
      workspace: join(base, "ws"),
      env: { HOME: join(base, "home"), XDG_STATE_HOME: join(base, "state") }
    }
  }),
  ({ base }) => Effect.sync(() => rmSync(base, { recursive: true, force: true }))
)

/** Living processes with this word in their command line; zombies are dead. */
export const livingWith = (word: string): ReadonlyArray<string> =>
  readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "latin1")
      const state = stat.slice(stat.lastIndexOf(")") + 2)[0]
      return state !== "Z" && state !== "X" && readFileSync(`/proc/${pid}/cmdline`, "latin1").includes(word)
    } catch {
      return false
    }
  })

/** Waits until something is so; the test's own time limit is the limit. */
export const until = (holds: () => boolean): Effect.Effect<boolean> => eventually(Effect.sync(holds), (held) => held)
