/** The three streams of this process, as the commands use them. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { createInterface } from "node:readline"
import type { Readable, Writable } from "node:stream"
import * as FifoSemaphore from "../../src/internal/FifoSemaphore.ts"
import { CliError } from "./CliError.ts"

export class Terminal extends Context.Tag("portcullis/cli/Terminal")<Terminal, {
  /** Whether a person is there: stdin and stderr are both a terminal. */
  readonly interactive: boolean
  /** To stdout. Returns when it is written; a reader that is gone is no failure. */
  readonly out: (text: string) => Effect.Effect<void>
  /** To stderr. */
  readonly err: (text: string) => Effect.Effect<void>
  /** Shows a prompt on stderr and waits for one line; `undefined` at the end of input. One question at a time. */
  readonly ask: (prompt: string) => Effect.Effect<string | undefined>
  /** Stdin to its end, or its first bytes: `maxBytes` and perhaps some more. */
  readonly input: (maxBytes: number) => Effect.Effect<Uint8Array, CliError>
}>() {}

export interface Streams {
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: Writable
  readonly stderr: Writable & { readonly isTTY?: boolean }
}

const write = (stream: Writable) => (text: string): Effect.Effect<void> =>
  text === "" ? Effect.void : Effect.async((resume) => {
    stream.write(text, () => resume(Effect.void))
  })

const line = (stdin: Readable): Effect.Effect<string | undefined> =>
  Effect.async((resume) => {
    if (stdin.readableEnded || stdin.destroyed) return resume(Effect.succeed(undefined))
    // Not `terminal`: in raw mode Ctrl-C would be a character and no signal.
    const lines = createInterface({ input: stdin, terminal: false })
    const end = () => {
      lines.close()
      stdin.off("error", end)
      resume(Effect.succeed(undefined))
    }
    stdin.once("error", end)
    lines.once("close", end)
    lines.once("line", (answer) => {
      resume(Effect.succeed(answer))
      end()
    })
    return Effect.sync(end)
  })

const readAll = (stdin: Readable, maxBytes: number): Effect.Effect<Uint8Array, CliError> =>
  Effect.async((resume) => {
    const chunks: Array<Buffer> = []
    let size = 0
    const stop = () => {
      stdin.off("data", take).off("end", done).off("error", failed).pause()
    }
    const done = () => {
      stop()
      resume(Effect.succeed(Buffer.concat(chunks)))
    }
    const failed = (cause: Error) => {
      stop()
      resume(Effect.fail(new CliError({ code: "input_unreadable", message: `stdin cannot be read: ${cause.message}` })))
    }
    const take = (chunk: Buffer) => {
      chunks.push(chunk)
      size += chunk.length
      if (size > maxBytes) done()
    }
    if (stdin.readableEnded) return done()
    stdin.on("data", take).on("end", done).on("error", failed)
    return Effect.sync(stop)
  })

export const make = ({ stderr, stdin, stdout }: Streams): Effect.Effect<Terminal["Type"]> =>
  Effect.map(FifoSemaphore.make(1), (turn) => {
    const err = write(stderr)
    return {
      interactive: stdin.isTTY === true && stderr.isTTY === true,
      out: write(stdout),
      err,
      ask: (prompt) => turn.withPermit(Effect.zipRight(err(prompt), line(stdin))),
      input: (maxBytes) => readAll(stdin, maxBytes)
    }
  })

export const layer = (streams: Streams): Layer.Layer<Terminal> => Layer.effect(Terminal, make(streams))
