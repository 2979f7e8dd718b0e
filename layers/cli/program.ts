/** From the words of the command line to an exit code. A command's module is loaded when it is asked for. */
import * as Effect from "effect/Effect"
import { display } from "../../src/internal/display.ts"
import * as Arguments from "./arguments.ts"
import { Terminal } from "./Terminal.ts"

const dispatch = Effect.fnUntraced(function*(command: Arguments.Command) {
  switch (command._tag) {
    case "help":
      yield* (yield* Terminal).out(Arguments.help)
      return 0
    case "version": {
      const { manifest } = yield* Effect.promise(() => import("./manifest.ts"))
      const found = yield* manifest
      yield* (yield* Terminal).out(`${found._tag === "Some" ? found.value.version : "unknown"}\n`)
      return 0
    }
    case "call": {
      const { call } = yield* Effect.promise(() => import("./call.ts"))
      return yield* call(command.tool, command.args, command.options)
    }
    case "catalog": {
      const { catalog } = yield* Effect.promise(() => import("./catalog.ts"))
      return yield* catalog(command.options)
    }
    case "run": {
      const { run } = yield* Effect.promise(() => import("./run.ts"))
      return yield* run(command.prompt, command.options)
    }
    case "ledger": {
      const { list } = yield* Effect.promise(() => import("./ledger.ts"))
      return yield* list(command.options)
    }
    case "reconcile": {
      const { reconcile } = yield* Effect.promise(() => import("./ledger.ts"))
      return yield* reconcile(command.operation, command.outcome, command.options)
    }
    case "changes": {
      const { list } = yield* Effect.promise(() => import("./changes.ts"))
      return yield* list(command.options)
    }
    case "diff": {
      const { diff } = yield* Effect.promise(() => import("./changes.ts"))
      return yield* diff(command.turn, command.options)
    }
    case "revert": {
      const { revert } = yield* Effect.promise(() => import("./changes.ts"))
      return yield* revert(command.turn, command.options)
    }
    case "doctor": {
      const { doctor } = yield* Effect.promise(() => import("./doctor.ts"))
      return yield* doctor(command.options)
    }
  }
})

/** Succeeds with the exit code. What keeps a command from being carried out is one line on stderr, and code 2. */
export const program = (words: ReadonlyArray<string>) =>
  Effect.flatMap(Arguments.parse(words), dispatch).pipe(
    Effect.catchTag("CliError", (error) =>
      Effect.flatMap(Terminal, (terminal) =>
        Effect.as(terminal.err(`portcullis: ${display(error.message.replace(/\s+/g, " "), { max: 1000 })}\n`), 2)))
  )
