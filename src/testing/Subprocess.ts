/**
 * Processes that were recorded instead of run: answers in order, and what was asked.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { capture } from "../process/OutputAccumulator.ts"
import { type Command, type Ending, type Outcome, Subprocess } from "../process/Subprocess.ts"

/** What a process does when it is run. */
export interface Answer {
  readonly stdout?: string | Uint8Array
  readonly stderr?: string | Uint8Array
  /** Default: exit code 0. */
  readonly ending?: Ending
  /** How long it runs after it has written; `never` runs until it is stopped. Default 0. */
  readonly runs?: Duration.DurationInput | "never"
  readonly leftover?: Outcome["leftover"]
}

export class RecordedCommands extends Context.Tag("portcullis/testing/RecordedCommands")<RecordedCommands, {
  /** Every command so far, oldest first. */
  readonly commands: Effect.Effect<ReadonlyArray<Command>>
}>() {}

const bytesOf = (value: string | Uint8Array | undefined): Uint8Array =>
  value instanceof Uint8Array ? value : new TextEncoder().encode(value)

/** Plays one answer: captures, tells `onOutput`, and ends by time-out or a full head as a process would. */
const play = (command: Command, answer: Answer): Effect.Effect<Outcome> =>
  Effect.suspend(() => {
    const options = command.capture ?? { bytes: 1024 * 1024, keep: "tail" as const }
    const streams = { stdout: capture(options), stderr: capture(options) }
    for (const name of ["stdout", "stderr"] as const) {
      const bytes = bytesOf(answer[name])
      streams[name].push(bytes)
      if (bytes.length > 0) command.onOutput?.(bytes, name)
    }
    const full = options.keep === "head" && (streams.stdout.overflowed() || streams.stderr.overflowed())
    const runs = full ? 0 : answer.runs === "never" ? Infinity : Duration.toMillis(answer.runs ?? 0)
    const limit = command.timeout === undefined ? Infinity : Duration.toMillis(command.timeout)
    const timedOut = runs > limit
    const ending: Ending = full
      ? { _tag: "Stopped" }
      : timedOut
      ? { _tag: "TimedOut", afterMs: limit }
      : answer.ending ?? { _tag: "Exited", code: 0 }
    const durationMs = Math.min(runs, limit)
    return Effect.as(
      durationMs === Infinity ? Effect.never : durationMs === 0 ? Effect.void : Effect.sleep(durationMs),
      {
        ending,
        stdout: streams.stdout.output(),
        stderr: streams.stderr.output(),
        durationMs,
        leftover: answer.leftover ?? "none"
      }
    )
  })

/** A run beyond the last answer is a defect that names its argv. */
export const layer = (
  answers: ReadonlyArray<Answer | ((command: Command) => Answer)>
): Layer.Layer<Subprocess | RecordedCommands> =>
  Layer.effectContext(Effect.sync(() => {
    const commands: Array<Command> = []
    return Context.make(Subprocess, {
      run: (command) =>
        Effect.suspend(() => {
          const answer = answers[commands.length]
          if (answer === undefined) {
            return Effect.dieMessage(`No answer was recorded for ${JSON.stringify(command.argv)}`)
          }
          commands.push(command)
          return play(command, typeof answer === "function" ? answer(command) : answer)
        })
    }).pipe(Context.add(RecordedCommands, { commands: Effect.sync(() => [...commands]) }))
  }))
