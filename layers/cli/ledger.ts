/** `portcullis ledger`: what has run, and the person's word on what nobody knows. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type LedgerEntry, OperationId, OperationLedger } from "../../src/host/OperationLedger.ts"
import * as ProcessIdentity from "../node/ProcessIdentity.ts"
import * as Database from "../sqlite/Database.ts"
import * as SqliteOperationLedger from "../sqlite/OperationLedger.ts"
import type { FileOptions } from "./arguments.ts"
import { displayJson, lines, table } from "./output.ts"
import { stateRefused } from "./plane.ts"
import { locateState } from "./state.ts"
import { Terminal } from "./Terminal.ts"

type Options = FileOptions & { readonly json?: boolean }

/** Uses the ledger of a state file that exists; a look creates none. */
const withLedger = <A, E>(
  options: Options,
  use: (ledger: OperationLedger["Type"]) => Effect.Effect<A, E>,
  without: A
) =>
  Effect.gen(function*() {
    const filename = yield* locateState(options)
    if (!(yield* Effect.orElseSucceed((yield* FileSystem.FileSystem).exists(filename), () => true))) return without
    const layer = SqliteOperationLedger.layer.pipe(
      Layer.provide(Layer.merge(Database.layer({ filename }), ProcessIdentity.layer())),
      Layer.mapError(stateRefused)
    )
    return yield* Effect.provide(Effect.flatMap(OperationLedger, use), layer)
  })

/** The id names thread, turn, call and tool. */
const row = ({ id, reason, startedAt, state }: LedgerEntry) => [
  state,
  new Date(startedAt).toISOString(),
  id,
  reason ?? ""
]

const print = Effect.fnUntraced(function*(entries: ReadonlyArray<LedgerEntry>) {
  const head = ["STATE", "STARTED", "OPERATION", "WHY"]
  yield* (yield* Terminal).out(entries.length === 0 ? "No operations.\n" : lines(table([head, ...entries.map(row)])))
})

export const list = Effect.fnUntraced(function*(options: Options) {
  const none: ReadonlyArray<LedgerEntry> = []
  const entries = yield* withLedger(options, (ledger) => Effect.mapError(ledger.list(), stateRefused), none)
  if (options.json === true) yield* (yield* Terminal).out(`${displayJson(entries)}\n`)
  else yield* print(entries)
  return 0
})

/** Exit code 1 when there is nothing of that id whose outcome is unknown. */
export const reconcile = Effect.fnUntraced(function*(
  operation: string,
  outcome: "completed" | "failed",
  options: Options
) {
  const terminal = yield* Terminal
  const missing = { refused: `There is no operation ${operation}.` }
  const answer = yield* withLedger(options, (ledger) =>
    ledger.reconcile(OperationId.make(operation), outcome).pipe(
      Effect.map((entry): LedgerEntry | typeof missing => entry),
      Effect.catchTags({
        ReconcileRefused: (error) => Effect.succeed({ refused: error.message }),
        StateUnavailable: (error) => Effect.fail(stateRefused(error))
      })
    ), missing)
  if ("refused" in answer) {
    yield* terminal.err(`portcullis: ${lines(answer.refused)}\n`)
    return 1
  }
  if (options.json === true) yield* terminal.out(`${displayJson(answer)}\n`)
  else yield* print([answer])
  return 0
})
