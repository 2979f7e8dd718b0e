/**
 * `Subprocess` on node:child_process.
 *
 * Children get pipes that are sockets, as Node makes them: in a child, opening `/dev/stdout` or `/dev/stderr` by name
 * fails, while `>&1` and `>&2` work. On Windows only the process itself is ended, not what it started.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as FiberId from "effect/FiberId"
import * as Layer from "effect/Layer"
import { type ChildProcess, spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { type Capture, capture } from "../../src/process/OutputAccumulator.ts"
import { type Command, type Ending, type Outcome, Subprocess } from "../../src/process/Subprocess.ts"
import { markName, mayBeAlive, type ProcessGroup, terminate } from "./ProcessGroup.ts"

export interface Options {
  /**
   * Host variables that children get beside the built-in list. A trailing `*` stands for any ending, but what looks
   * like a credential must be named in full.
   */
  readonly inheritEnv?: ReadonlyArray<string>
  /** From TERM to KILL. Default 500 ms. */
  readonly killGrace?: Duration.DurationInput
  /** How long a pipe may stay open after the process itself has ended. Default 50 ms. */
  readonly flush?: Duration.DurationInput
  /** Default: the environment of this process, as it is when the layer is built. */
  readonly hostEnv?: Readonly<Record<string, string | undefined>>
}

const builtIn = [
  ...["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TMP", "TEMP"],
  ...["LANG", "LC_*", "TERM", "COLORTERM", "NO_COLOR"],
  // Not XDG_RUNTIME_DIR: the sockets of the desktop session are there.
  ...["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"]
]
const builtInWindows = [
  ...["Path", "PATHEXT", "SystemRoot", "SystemDrive", "windir", "ComSpec", "USERNAME", "USERPROFILE", "APPDATA"],
  ...["LOCALAPPDATA", "ProgramData", "ProgramFiles"]
]
const credential = /key|token|secret|pass|credential|auth|session|cookie/i

/** The part of the host's environment that children may see. */
export const inheritedEnv = (
  host: Readonly<Record<string, string | undefined>>,
  extra: ReadonlyArray<string> = []
): Record<string, string> => {
  const rules = [...builtIn, ...(process.platform === "win32" ? builtInWindows : []), ...extra]
  const exact = new Set(rules)
  const prefixes = rules.flatMap((rule) => rule.endsWith("*") ? [rule.slice(0, -1)] : [])
  const admitted = (name: string) =>
    exact.has(name) || (!credential.test(name) && prefixes.some((prefix) => name.startsWith(prefix)))
  const out: Record<string, string> = {}
  for (const [name, value] of Object.entries(host)) if (value !== undefined && admitted(name)) out[name] = value
  return out
}

interface Running {
  readonly process: ChildProcess
  readonly group: ProcessGroup
  readonly stdout: Capture
  readonly stderr: Capture
  /** The first of: the process ended, its output is full. Dies with what `onOutput` threw. */
  readonly ended: Deferred.Deferred<Ending>
  readonly exited: Deferred.Deferred<void>
  /** It has exited and nobody holds its pipes. */
  readonly closed: Deferred.Deferred<void>
}

const attempt = <A>(thunk: () => A): Either.Either<A, unknown> => Either.try({ try: thunk, catch: (cause) => cause })

const defaultCapture = { bytes: 1024 * 1024, keep: "tail" } as const

/** Every listener is there before the first event can be: starting and listening are one step. */
const launch = (command: Command, inherited: Record<string, string>): Effect.Effect<Either.Either<Running, string>> =>
  Effect.async((resume) => {
    const failed = (cause: unknown) =>
      resume(Effect.succeed(Either.left(cause instanceof Error ? cause.message : String(cause))))
    const [program = "", ...args] = command.argv
    const mark = randomUUID()
    const started = attempt(() =>
      spawn(program, args, {
        cwd: command.cwd,
        env: { ...inherited, ...command.env, [markName]: mark },
        detached: process.platform !== "win32",
        stdio: [command.stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"],
        windowsHide: true
      })
    )
    if (Either.isLeft(started)) return failed(started.left)
    const child = started.right
    child.on("error", failed)
    const { pid } = child
    if (pid === undefined || pid <= 1) return
    const running: Running = {
      process: child,
      group: { id: pid, mark },
      stdout: capture(command.capture ?? defaultCapture),
      stderr: capture(command.capture ?? defaultCapture),
      ended: Deferred.unsafeMake(FiberId.none),
      exited: Deferred.unsafeMake(FiberId.none),
      closed: Deferred.unsafeMake(FiberId.none)
    }
    listen(command, running)
    resume(Effect.succeed(Either.right(running)))
  })

const listen = (command: Command, { process: child, ...running }: Running): void => {
  const end = (ending: Ending) => Deferred.unsafeDone(running.ended, Effect.succeed(ending))
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.on("data", (chunk: Buffer) => {
      running[name].push(chunk)
      const told = attempt(() => command.onOutput?.(chunk, name))
      if (Either.isLeft(told)) Deferred.unsafeDone(running.ended, Effect.die(told.left))
      if (command.capture?.keep === "head" && running[name].overflowed()) end({ _tag: "Stopped" })
    })
    // A pipe that breaks has no more to say; how the process ended is told by its exit.
    child[name]?.on("error", () => {})
  }
  child.on("exit", (code, signal) => {
    end(code === null ? { _tag: "Signalled", signal: signal ?? "unknown" } : { _tag: "Exited", code })
    Deferred.unsafeDone(running.exited, Effect.void)
  })
  child.on("close", () => Deferred.unsafeDone(running.closed, Effect.void))
  // A child need not read what it is given.
  child.stdin?.on("error", () => {})
  child.stdin?.end(command.stdin)
}

/** One turn of the event loop in which every readable pipe is read. */
const poll = Effect.async<void>((resume) => {
  setImmediate(() => resume(Effect.void))
})

/** Whether the pipes closed in time. When not, all that was written by then has been read. */
const drained = ({ closed }: Running, flush: Duration.Duration): Effect.Effect<boolean> =>
  Effect.timeoutTo(Effect.interruptible(Deferred.await(closed)), {
    duration: flush,
    onSuccess: () => Effect.succeed(true),
    onTimeout: () => Effect.as(poll, false)
  }).pipe(Effect.flatten)

/** The exit of a dead process is known at once; one that we were not allowed to kill is not waited for. */
const release = ({ exited, process: child }: Running): Effect.Effect<void> =>
  Effect.zipRight(
    Effect.timeoutOption(Effect.interruptible(Deferred.await(exited)), "1 second"),
    Effect.sync(() => {
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy()
    })
  )

/** Runs processes of this machine, unconfined: what confines them is in their argv. */
export const make = (options: Options = {}): Effect.Effect<Subprocess["Type"]> =>
  Effect.sync(() => {
    const inherited = inheritedEnv(options.hostEnv ?? process.env, options.inheritEnv)
    const grace = Duration.decode(options.killGrace ?? "500 millis")
    const flush = Duration.decode(options.flush ?? "50 millis")

    const firstEnding = (command: Command, running: Running): Effect.Effect<Ending> => {
      const ended = Deferred.await(running.ended)
      if (command.timeout === undefined) return ended
      const duration = Duration.decode(command.timeout)
      return Effect.timeoutTo(ended, {
        duration,
        onSuccess: (ending) => ending,
        onTimeout: (): Ending => ({ _tag: "TimedOut", afterMs: Duration.toMillis(duration) })
      })
    }

    const discard = (running: Running) => Effect.zipRight(terminate(running.group, grace), release(running))

    const settle = Effect.fnUntraced(function*(running: Running, ending: Ending) {
      const byUs = ending._tag === "TimedOut" || ending._tag === "Stopped"
      if (byUs) yield* terminate(running.group, grace)
      const closed = yield* drained(running, flush)
      const survived = (!closed || mayBeAlive(running.group)) && (yield* terminate(running.group, grace))
      if (!closed) yield* drained(running, flush)
      yield* release(running)
      return survived && !byUs
    })

    return {
      run: (command) =>
        Effect.uninterruptibleMask((restore) =>
          Effect.gen(function*() {
            const startedAt = yield* Clock.currentTimeNanos
            const launched = yield* launch(command, inherited)
            if (Either.isLeft(launched)) return notStarted(launched.left)
            const running = launched.right
            const ending = yield* restore(Effect.suspend(() => firstEnding(command, running))).pipe(
              Effect.onError(() => discard(running))
            )
            const leftover = yield* settle(running, ending)
            const outcome: Outcome = {
              ending,
              stdout: running.stdout.output(),
              stderr: running.stderr.output(),
              durationMs: Math.round(Number((yield* Clock.currentTimeNanos) - startedAt) / 1e6),
              leftover: leftover ? "killed" : "none"
            }
            return outcome
          })
        )
    }
  })

const notStarted = (reason: string): Outcome => ({
  ending: { _tag: "SpawnFailed", reason },
  stdout: { bytes: new Uint8Array(0), totalBytes: 0 },
  stderr: { bytes: new Uint8Array(0), totalBytes: 0 },
  durationMs: 0,
  leftover: "none"
})

export const layer = (options?: Options): Layer.Layer<Subprocess> => Layer.effect(Subprocess, make(options))
