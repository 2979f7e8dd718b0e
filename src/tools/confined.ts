/** What can be known of how a confined command ended, from outside its sandbox. */
import type { Ending } from "../process/Subprocess.ts"

const mark = "\0portcullis: started\0"

/** Shell words that write the mark. They come before the command, so that no command can pretend not to have run. */
export const markStart = "printf '\\000portcullis: started\\000' >&2"

/** More than a runner says before it starts a command, or gives up. */
const patience = 4096

const latin1 = (bytes: Uint8Array): string => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")

export interface Start {
  readonly push: (chunk: Uint8Array, stream: "stdout" | "stderr") => void
  /** Gives on what was held back; succeeds with what the runner said when it gave up before the command ran. */
  readonly end: (ending: Ending, runner: string) => string | undefined
}

/** Gives output on without the mark. Stderr is held back, a little of it, until that has come. */
export const untilStarted = (onOutput: (chunk: Uint8Array, stream: "stdout" | "stderr") => void): Start => {
  let held: Uint8Array | undefined = new Uint8Array(0)
  const pass = (...chunks: ReadonlyArray<Uint8Array>) => {
    held = undefined
    for (const chunk of chunks) if (chunk.length > 0) onOutput(chunk, "stderr")
  }
  return {
    push: (chunk, stream) => {
      if (stream === "stdout" || held === undefined) return onOutput(chunk, stream)
      const joined = new Uint8Array(held.length + chunk.length)
      joined.set(held)
      joined.set(chunk, held.length)
      const at = latin1(joined.subarray(0, patience)).indexOf(mark)
      if (at >= 0) return pass(joined.subarray(0, at), joined.subarray(at + mark.length))
      if (joined.length >= patience) return pass(joined)
      held = joined
    },
    end: (ending, runner) => {
      if (held === undefined) return undefined
      const said = new TextDecoder().decode(held)
      pass(held)
      const name = runner.replace(/^.*\//, "")
      return ending._tag === "Exited" && ending.code !== 0 && said.startsWith(`${name}: `) ? said.trim() : undefined
    }
  }
}

const signals = "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT".split(" ")

/** A runner says 128 and the number for a command that a signal ended, as shells do; a command may also choose that code. */
export const signalOf = (code: number): string | undefined => {
  const number = code - 128
  if (number < 1 || number > 64) return undefined
  const name = signals[number - 1]
  return name === undefined ? `signal ${number}` : `SIG${name}`
}

const refusals =
  /read-only file system|operation not permitted|permission denied|resource busy|network is unreachable|could(?: not|n't) resolve host|name resolution|\b(?:EROFS|EPERM|EACCES|EBUSY|ENETUNREACH|EAI_AGAIN)\b/i

/** The words in a failed command's output that sound like a refusal of the sandbox. Nothing more can be known from outside. */
export const suspicion = (output: string): string | undefined => refusals.exec(output)?.[0]
