/**
 * better-sqlite3 alone at `synchronous=FULL`, writing what one call of ours writes: a row with the call, its raw outcome,
 * its result, and the two events of the journal.
 */
import Database from "better-sqlite3"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const open = () => {
  const folder = mkdtempSync(join(tmpdir(), "portcullis-bench-"))
  const database = new Database(join(folder, "ledger.sqlite"))
  database.pragma("journal_mode = WAL")
  database.pragma("synchronous = FULL")
  database.exec(
    "CREATE TABLE operation (id TEXT PRIMARY KEY, state TEXT NOT NULL, hash TEXT NOT NULL, details TEXT NOT NULL, " +
      "outcome TEXT, result TEXT) STRICT"
  )
  database.exec("CREATE TABLE event (sequence INTEGER PRIMARY KEY, thread TEXT NOT NULL, event TEXT NOT NULL) STRICT")
  const read = database.prepare("SELECT state FROM operation WHERE id = ?")
  const claim = database.prepare("INSERT INTO operation VALUES (?, 'started', ?, ?, NULL, NULL)")
  const outcome = database.prepare("UPDATE operation SET state = 'outcome', outcome = ? WHERE id = ?")
  const settle = database.prepare("UPDATE operation SET state = 'settled', outcome = NULL, result = ? WHERE id = ?")
  const event = database.prepare("INSERT INTO event (thread, event) VALUES (?, ?)")
  const hash = "f".repeat(64)
  const text = (length) => "x".repeat(length)
  const thread = "t".repeat(36)
  let next = 0
  return {
    claim: database.transaction(() => {
      const id = `op_${String(next++).padStart(24, "0")}`
      read.get(id)
      claim.run(id, hash, text(280))
      return id
    }).immediate,
    outcome: database.transaction((id) => {
      event.run(thread, text(250))
      outcome.run(text(120), id)
    }).immediate,
    settle: database.transaction((id) => {
      settle.run(text(480), id)
      event.run(thread, text(620))
    }).immediate,
    close: () => {
      database.close()
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

/** Three commits a call: claim, outcome, settle. */
export const sequential = () => {
  const ledger = open()
  return {
    run: (n) => {
      for (let index = 0; index < n; index++) {
        const id = ledger.claim()
        ledger.outcome(id)
        ledger.settle(id)
      }
    },
    close: ledger.close
  }
}
