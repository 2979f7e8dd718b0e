/** Owners over one state file in this process: each may die without a word, and the others see that. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import * as Path from "node:path"
import * as Database from "../../../layers/sqlite/Database.ts"
import * as SqliteLedger from "../../../layers/sqlite/OperationLedger.ts"
import { OperationLedger } from "../../../src/host/OperationLedger.ts"
import { type Owner, ProcessIdentity } from "../../../src/process/ProcessIdentity.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

export const temporaryDatabase: Layer.Layer<Database.Database, Database.DatabaseRefused> = Layer.unwrapScoped(
  Effect.map(temporaryFolder, (folder) => Database.layer({ filename: Path.join(folder, "state.db") }))
)

export class Restart extends Context.Tag("test/Restart")<Restart, Effect.Effect<void>>() {}

/** An identity that lives as long as its token is not in `dead`. */
export const identity = (token: string, dead: ReadonlySet<string>): typeof ProcessIdentity.Service => {
  const self: Owner = { pid: 1, startTime: "1", bootId: null, token }
  return { self, alive: (owner) => Effect.sync(() => !dead.has(owner.token)) }
}

/** A ledger whose owner `Restart` lets die. */
export const restartable = Layer.scopedContext(Effect.gen(function*() {
  const dead = new Set<string>()
  let generation = 0
  const scope = yield* Effect.scope
  const open: Effect.Effect<typeof OperationLedger.Service, never, Database.Database | Scope.Scope> = Effect.suspend(
    () =>
      SqliteLedger.make.pipe(
        Effect.provideService(ProcessIdentity, identity(`owner ${++generation}`, dead)),
        Effect.orDie
      )
  )
  const database = yield* Database.Database
  let ledger = yield* open
  const use = <A, E>(body: (ledger: typeof OperationLedger.Service) => Effect.Effect<A, E>) =>
    Effect.suspend(() => body(ledger))
  const restart = Effect.suspend(() => {
    dead.add(`owner ${generation}`)
    return Effect.map(open, (next) => void (ledger = next))
  }).pipe(Effect.provideService(Database.Database, database), Effect.provideService(Scope.Scope, scope))
  return Context.make(OperationLedger, {
    peek: (operation) => use((ledger) => ledger.peek(operation)),
    claim: (operation, details) => use((ledger) => ledger.claim(operation, details)),
    outcome: (claim, outcome) => use((ledger) => ledger.outcome(claim, outcome)),
    settle: (claim, result) => use((ledger) => ledger.settle(claim, result)),
    abandon: (claim, reason) => use((ledger) => ledger.abandon(claim, reason)),
    reconcile: (id, outcome) => use((ledger) => ledger.reconcile(id, outcome)),
    list: (options) => use((ledger) => ledger.list(options))
  }).pipe(Context.add(Restart, restart))
}))

/** Commits in a write-ahead log: frames that carry the size of the database. */
export const commitsIn = (wal: string): number => {
  const bytes = Fs.readFileSync(wal)
  const frame = 24 + bytes.readUInt32BE(8)
  const salt = bytes.readBigUInt64BE(16)
  let commits = 0
  for (let at = 32; at + frame <= bytes.length && bytes.readBigUInt64BE(at + 8) === salt; at += frame) {
    if (bytes.readUInt32BE(at + 4) !== 0) commits++
  }
  return commits
}
