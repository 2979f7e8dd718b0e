/**
 * `bash`: runs a shell command in the workspace, confined as the turn's sandbox mode asks.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Confinement, type SandboxMode } from "../contract/Policy.ts"
import { type CodedError, SandboxBlocked, toolError } from "../contract/ToolFailure.ts"
import { text } from "../contract/ToolResult.ts"
import {
  defaultLimits,
  escapeControls,
  type Limits,
  make as makeAccumulator,
  type OutputAccumulator
} from "../process/OutputAccumulator.ts"
import { ProcessSandbox } from "../process/ProcessSandbox.ts"
import { type Ending, type Outcome, Subprocess } from "../process/Subprocess.ts"
import * as Tool from "../tool/Tool.ts"
import { ToolInvocation } from "../tool/ToolInvocation.ts"
import { markStart, signalOf, suspicion, untilStarted } from "./confined.ts"

export interface Options {
  /** How long a command may run, whatever a model asks for. Default 15 minutes. */
  readonly ceiling?: Duration.DurationInput
  /** What is kept of the output. Default 2000 lines and 50 KB. */
  readonly limits?: Limits
}

export const Parameters = Schema.Struct({
  command: Schema.String.pipe(Schema.pattern(/\S/)).annotations({
    description: "Shell command, run by bash (sh where there is none) in the workspace. Its stdin is empty."
  }),
  timeoutMs: Schema.optionalWith(Schema.Int.pipe(Schema.positive()), { exact: true }).annotations({
    description: "Stop the command after this many milliseconds; can only shorten the host's own limit."
  })
})

const printed = {
  /** stdout and stderr as they arrived: the end of it, control characters escaped. */
  output: Schema.String,
  truncated: Schema.Boolean,
  /** All that the command wrote. */
  totalBytes: Schema.Number,
  durationMs: Schema.Number,
  /** What still ran when the shell had ended, and was then killed. */
  leftover: Schema.Literal("none", "killed"),
  confinement: Confinement
}
const Printed = Schema.Struct(printed)

export const Success = Schema.Struct({ exitCode: Schema.Literal(0), ...printed })

/** Failure codes of its own; every one but `command_not_started` carries what was printed in `details`. */
export const codes = ["command_failed", "command_killed", "command_timed_out", "command_not_started"] as const

/** The command is the last argument, so nothing of it can be taken for an option or for the script. */
const shell = (command: string, confined: boolean): ReadonlyArray<string> => [
  "/bin/sh",
  "-c",
  (confined ? `${markStart}; ` : "") +
  "if [ -x /bin/bash ]; then exec /bin/bash -c -- \"$1\"; else exec /bin/sh -c -- \"$1\"; fi",
  "sh",
  command
]

/** Nobody is at a terminal: editors, pagers and prompts give up instead of waiting. */
const env = { TERM: "dumb", PAGER: "cat", GIT_PAGER: "cat", GIT_TERMINAL_PROMPT: "0" }

const progressLimits: Limits = { lines: 40, bytes: 4096 }

/** A confined command that failed: in what way, and whether its output sounds as if the sandbox had refused something. */
const judgeConfined = (
  code: number,
  details: typeof Printed.Type
): CodedError<"command_failed" | "command_killed"> => {
  const words = suspicion(details.output)
  const hint = words === undefined
    ? ""
    : ` Its output says ${
      JSON.stringify(words)
    }, which may be the sandbox: a command can write in the workspace (but ` +
      ".git and .portcullis) and in its own /tmp, and has no network unless the host allows it."
  const all = { exitCode: code, ...details, ...(words === undefined ? {} : { sandbox: "suspected" }) }
  const signal = signalOf(code)
  if (signal === undefined) return toolError("command_failed", `The command exited with code ${code}.${hint}`, all)
  const message = `The command ended with code ${code}: ${signal} ended it, or it chose that code itself.${hint}`
  // Nothing hangs up a command that has no terminal, and 129 is what git says of a wrong option.
  return signal === "SIGHUP"
    ? toolError("command_failed", message, all)
    : toolError("command_killed", message, { signal, ...all })
}

const judge = (
  ending: Ending,
  details: typeof Printed.Type
): Effect.Effect<typeof Success.Type, CodedError<typeof codes[number]>> => {
  switch (ending._tag) {
    case "Exited":
      return ending.code === 0
        ? Effect.succeed({ exitCode: 0, ...details })
        : isConfined(details.confinement)
        ? Effect.fail(judgeConfined(ending.code, details))
        : Effect.fail(
          toolError("command_failed", `The command exited with code ${ending.code}.`, {
            exitCode: ending.code,
            ...details
          })
        )
    case "Signalled":
      return Effect.fail(
        toolError("command_killed", `The command was ended by ${ending.signal}.`, { signal: ending.signal, ...details })
      )
    case "TimedOut":
      return Effect.fail(toolError(
        "command_timed_out",
        `The command was still running after ${ending.afterMs} ms and was stopped.`,
        { timeoutMs: ending.afterMs, ...details }
      ))
    case "Stopped":
    case "SpawnFailed":
      return Effect.fail(toolError(
        "command_not_started",
        "The command could not be started; nothing has run.",
        { reason: ending._tag === "SpawnFailed" ? ending.reason : "It was stopped before it ran." }
      ))
  }
}

/**
 * The tool. Exit code 0 is a success; every other end is a failure with its code: `command_failed`, `command_killed`,
 * `command_timed_out`, `command_not_started`, or `sandbox_unavailable` when nothing can confine it. Of a confined command
 * that failed, `details.sandbox` is `suspected` when its output sounds as if the sandbox had refused it something; an end
 * by a signal is then an exit code above 129, and `command_killed`. Progress is the
 * newest output, at most every 100 ms. Interruption completes when all that the command started is dead.
 */
export const make = (options: Options = {}) => {
  const ceiling = Duration.toMillis(options.ceiling ?? "15 minutes")
  const seconds = Math.ceil(ceiling / 1000)
  const limits = options.limits ?? defaultLimits
  return Tool.make("bash", {
    description:
      "Run a shell command in the workspace and return the end of its output. Exit codes other than 0 are failures. " +
      `Commands get no input and are stopped after ${seconds} seconds; what they leave in the background is killed.`,
    kind: "command_execution",
    runs: "sandboxed",
    policy: "on-request",
    codes,
    parameters: Parameters,
    success: Success,
    handler: ({ command, timeoutMs }) =>
      Effect.gen(function*() {
        const { progress, turn } = yield* ToolInvocation
        const sandbox = yield* ProcessSandbox
        const subprocess = yield* Subprocess
        const confinement = yield* confinementOf(sandbox, turn.sandboxMode)
        const argv = yield* sandbox.confine(shell(command, isConfined(confinement)), {
          mode: turn.sandboxMode,
          roots: turn.roots,
          cwd: turn.workspace,
          env
        })
        const output = makeAccumulator(limits)
        const start = untilStarted(output.push)
        yield* Effect.forkScoped(publish(output, progress))
        const outcome: Outcome = yield* subprocess.run({
          argv,
          cwd: turn.workspace,
          env,
          timeout: Math.min(timeoutMs ?? ceiling, ceiling),
          capture: { bytes: 0, keep: "tail" },
          onOutput: isConfined(confinement) ? start.push : output.push
        })
        const { durationMs, ending, leftover } = outcome
        const refused = isConfined(confinement) ? start.end(ending, argv[0] ?? "") : undefined
        if (refused !== undefined) return yield* notConfined(refused)
        const { text: shown, totalBytes, truncated } = output.excerpt()
        return yield* judge(ending, { output: shown, truncated, totalBytes, durationMs, leftover, confinement })
      }).pipe(Effect.scoped),
    render: ({ leftover, output }) => [
      text(
        (output === "" ? "(no output)" : output) +
          (leftover === "killed" ? "\n[what the command left running in the background was killed]" : "")
      )
    ]
  })
}

const isConfined = (confinement: Confinement): boolean => confinement === "full" || confinement === "partial"

const notConfined = (said: string): SandboxBlocked =>
  new SandboxBlocked({
    code: "sandbox_unavailable",
    reason: `The command was not run, for it could not be confined: ${escapeControls(said)}`
  })

/** Full access is not confined, whatever the sandbox could do, unless the host itself is. */
const confinementOf = (
  sandbox: ProcessSandbox["Type"],
  mode: SandboxMode
): Effect.Effect<Confinement, SandboxBlocked> =>
  mode !== "danger-full-access"
    ? sandbox.report
    : Effect.match(sandbox.report, {
      onFailure: () => "none",
      onSuccess: (confinement) => confinement === "external" ? "external" : "none"
    })

const publish = (
  output: OutputAccumulator,
  progress: ToolInvocation["Type"]["progress"]
): Effect.Effect<never> =>
  Effect.suspend(() => {
    let published = 0
    const next = Effect.suspend(() => {
      const totalBytes = output.totalBytes()
      if (totalBytes === published) return Effect.void
      published = totalBytes
      return progress({ output: output.excerpt(progressLimits).text, totalBytes })
    })
    return Effect.forever(Effect.zipRight(Effect.sleep("100 millis"), next))
  })
