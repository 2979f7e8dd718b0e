/** Runs an effect as the whole of this process. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Logger from "effect/Logger"
import { display } from "../../src/internal/display.ts"

const signals = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const
const internalError = 70

/** stdout belongs to results, so the log goes to stderr. */
const logger = Logger.replace(Logger.defaultLogger, Logger.withConsoleError(Logger.stringLogger))

/**
 * The process ends with the code the effect succeeds with. SIGHUP, SIGINT and SIGTERM interrupt it, and the process ends
 * with 129, 130 or 143 once the interruption is complete: processes dead, locks free, records written. A defect is told on
 * stderr and ends it with 70. A reader of stdout or stderr that goes away changes nothing.
 */
export const runMain = (effect: Effect.Effect<number>): void => {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {})
  // A fiber that waits for nothing but another fiber does not keep Node alive.
  const alive = setInterval(() => {}, 2 ** 31 - 1)
  const fiber = Effect.runFork(Effect.provide(effect, logger))
  let interruptedBy: keyof typeof signals | undefined
  const interrupt = (signal: keyof typeof signals) => () => {
    interruptedBy ??= signal
    fiber.unsafeInterruptAsFork(fiber.id())
  }
  process.on("SIGHUP", interrupt("SIGHUP"))
  process.on("SIGINT", interrupt("SIGINT"))
  process.on("SIGTERM", interrupt("SIGTERM"))
  fiber.addObserver((exit) => {
    clearInterval(alive)
    if (Exit.isSuccess(exit)) return process.exit(exit.value)
    if (interruptedBy !== undefined) return process.exit(signals[interruptedBy])
    process.stderr.write(
      `portcullis: internal error: ${display(Cause.pretty(exit.cause), { lines: true })}\n`,
      () => process.exit(internalError)
    )
  })
}
