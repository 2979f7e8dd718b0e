/**
 * Running an argv to an outcome as data.
 *
 * The child gets a process group of its own, an allow-listed environment, and an empty stdin unless one is given. A run
 * ends when its process does, and what that left behind is killed. Interruption and time-out complete only when the
 * whole group is dead (TERM, then KILL after a grace). Output is bounded in memory, whatever the child prints.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"

export interface Command {
  /** At least the program; no shell is involved. */
  readonly argv: ReadonlyArray<string>
  /** Absolute. */
  readonly cwd: string
  /** Added to the allow-listed environment. */
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: string | Uint8Array
  readonly timeout?: Duration.DurationInput
  /**
   * Bytes kept in memory per stream: `tail` keeps the end, `head` the beginning and stops the child once more than that
   * has come. Default 1 MiB, tail.
   */
  readonly capture?: { readonly bytes: number; readonly keep: "head" | "tail" }
  /** Called with each chunk as it arrives; must not block. What it throws is a defect of the run. */
  readonly onOutput?: (chunk: Uint8Array, stream: "stdout" | "stderr") => void
}

export interface Output {
  readonly bytes: Uint8Array
  /** All that the child wrote, kept or not. */
  readonly totalBytes: number
}

export type Ending =
  | { readonly _tag: "Exited"; readonly code: number }
  | { readonly _tag: "Signalled"; readonly signal: string }
  | { readonly _tag: "TimedOut"; readonly afterMs: number }
  /** Stopped by us because a `head` capture was full. */
  | { readonly _tag: "Stopped" }
  | { readonly _tag: "SpawnFailed"; readonly reason: string }

export interface Outcome {
  readonly ending: Ending
  readonly stdout: Output
  readonly stderr: Output
  readonly durationMs: number
  /** Whether anything it had started still lived when it ended by itself; that was then killed. */
  readonly leftover: "none" | "killed"
}

export class Subprocess extends Context.Tag("portcullis/Subprocess")<Subprocess, {
  /** Runs to the end of the process itself, not of the last holder of its pipes. Never fails: every ending is data. */
  readonly run: (command: Command) => Effect.Effect<Outcome>
}>() {}
