/**
 * What every `Subprocess` does.
 *
 * A law runs a POSIX shell script; `answer` is what that script does, for a Layer that plays answers instead.
 *
 * @since 0.1.0
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { type Command, type Outcome, Subprocess } from "../../process/Subprocess.ts"
import type { Answer } from "../Subprocess.ts"

export interface Law {
  readonly name: string
  /** Dies with what is wrong. */
  readonly law: Effect.Effect<void, never, Subprocess>
  readonly answer: Answer
}

const check = (holds: boolean, outcome: unknown): Effect.Effect<void> =>
  holds ? Effect.void : Effect.dieMessage(`The law does not hold for ${JSON.stringify(outcome)}`)

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

const run = (script: string, options: Partial<Command> = {}): Effect.Effect<Outcome, never, Subprocess> =>
  Effect.flatMap(Subprocess, (subprocess) => subprocess.run({ argv: ["/bin/sh", "-c", script], cwd: "/", ...options }))

export const laws: ReadonlyArray<Law> = [
  {
    name: "tells an exit code and keeps both outputs apart",
    answer: { stdout: "out", stderr: "err", ending: { _tag: "Exited", code: 3 } },
    law: Effect.flatMap(run("printf out; printf err >&2; exit 3"), (outcome) =>
      check(
        outcome.ending._tag === "Exited" && outcome.ending.code === 3 && text(outcome.stdout.bytes) === "out" &&
          text(outcome.stderr.bytes) === "err" && outcome.leftover === "none",
        outcome
      ))
  },
  {
    name: "tells a signal, never an exit code, when a signal ended the process",
    answer: { ending: { _tag: "Signalled", signal: "SIGKILL" } },
    law: Effect.flatMap(
      run("kill -KILL $$"),
      (outcome) => check(outcome.ending._tag === "Signalled" && outcome.ending.signal === "SIGKILL", outcome)
    )
  },
  {
    name: "makes a process that cannot be started an outcome",
    answer: { ending: { _tag: "SpawnFailed", reason: "no such program" } },
    law: Effect.flatMap(
      run("", { argv: ["/no/such/program"] }),
      (outcome) => check(outcome.ending._tag === "SpawnFailed" && outcome.ending.reason.length > 0, outcome)
    )
  },
  {
    name: "keeps the last bytes and the exact total",
    answer: { stdout: "0123456789" },
    law: Effect.flatMap(run("printf 0123456789", { capture: { bytes: 4, keep: "tail" } }), (outcome) =>
      check(
        text(outcome.stdout.bytes) === "6789" && outcome.stdout.totalBytes === 10 && outcome.ending._tag === "Exited",
        outcome
      ))
  },
  {
    name: "stops a process whose head is full",
    answer: { stdout: "y\n".repeat(2000), runs: "never" },
    law: Effect.flatMap(
      run("yes", { capture: { bytes: 5, keep: "head" } }),
      (outcome) => check(outcome.ending._tag === "Stopped" && text(outcome.stdout.bytes) === "y\ny\ny", outcome)
    )
  },
  {
    name: "does not stop a process whose output just fits the head",
    answer: { stdout: "12345" },
    law: Effect.flatMap(
      run("printf 12345", { capture: { bytes: 5, keep: "head" } }),
      (outcome) => check(outcome.ending._tag === "Exited" && text(outcome.stdout.bytes) === "12345", outcome)
    )
  },
  {
    name: "tells every chunk as it arrives",
    answer: { stdout: "abc", stderr: "def" },
    law: Effect.suspend(() => {
      const seen = { stdout: "", stderr: "" }
      return Effect.flatMap(
        run("printf abc; printf def >&2", {
          onOutput: (chunk, stream) => {
            seen[stream] += text(chunk)
          }
        }),
        () => check(seen.stdout === "abc" && seen.stderr === "def", seen)
      )
    })
  },
  {
    name: "ends a process at its time-out and keeps what it said",
    answer: { stdout: "said\n", runs: "never" },
    law: Effect.flatMap(run("echo said; sleep 60", { timeout: 200 }), (outcome) =>
      check(
        outcome.ending._tag === "TimedOut" && outcome.ending.afterMs === 200 && text(outcome.stdout.bytes) === "said\n",
        outcome
      ))
  },
  {
    name: "gives up a process that is interrupted",
    answer: { stdout: "ready\n", runs: "never" },
    law: Effect.gen(function*() {
      const ready = yield* Deferred.make<void>()
      const fiber = yield* Effect.fork(
        run("echo ready; sleep 60", { onOutput: () => Deferred.unsafeDone(ready, Effect.void) })
      )
      yield* Deferred.await(ready)
      const exit = yield* Fiber.interrupt(fiber)
      yield* check(exit._tag === "Failure", exit)
    })
  }
]
