/** What a state file is, read from its first bytes, before anything can write to it. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Fs from "node:fs"
import * as Path from "node:path"

/** The state file cannot be used. It was not changed. */
export class DatabaseRefused extends Schema.TaggedError<DatabaseRefused>("portcullis/DatabaseRefused")(
  "DatabaseRefused",
  {
    /**
     * `newer`: written by a later version of this package. `broken`: not a database, or a damaged one. `foreign`: a database
     * of somebody else. `unavailable`: it cannot be opened or written.
     */
    code: Schema.Literal("database_newer", "database_broken", "database_foreign", "database_unavailable"),
    filename: Schema.String,
    reason: Schema.String
  }
) {
  override get message() {
    return `${this.filename} cannot be used: ${this.reason}`
  }
}

/** "port", at byte 68 of every file of ours. */
export const applicationId = 0x706f7274

const magic = "SQLite format 3\u0000"
const headerBytes = 100

const read = (filename: string): Buffer | undefined => {
  const stat = Fs.statSync(filename, { throwIfNoEntry: false })
  if (stat === undefined) return undefined
  if (!stat.isFile()) throw new Error("it is not a regular file")
  const handle = Fs.openSync(filename, "r")
  try {
    const header = Buffer.alloc(headerBytes)
    return header.subarray(0, Fs.readSync(handle, header, 0, headerBytes, 0))
  } finally {
    Fs.closeSync(handle)
  }
}

/**
 * Takes from others what they may do with the file and its log. A file that is not ours is its owner's to close: it is
 * refused while others can reach it.
 */
const tighten = (filename: string): void => {
  const uid = process.getuid?.()
  if (uid === undefined) return
  for (const name of [filename, `${filename}-wal`, `${filename}-shm`]) {
    const stat = Fs.statSync(name, { throwIfNoEntry: false })
    if (stat === undefined || (stat.mode & 0o077) === 0) continue
    if (stat.uid !== uid) throw new Error("it is another user's, and open to others")
    Fs.chmodSync(name, 0o600)
  }
}

/**
 * Creates folder (0700) and file (0600) where they are missing; a file of ours that others can reach becomes 0600. The main
 * file always holds the format: see `Database`.
 */
export const prepareFile = (filename: string, supported: number): Effect.Effect<void, DatabaseRefused> => {
  const refuse = (code: DatabaseRefused["code"], reason: string) => new DatabaseRefused({ code, filename, reason })
  const attempt = <A>(run: () => A) =>
    Effect.try({
      try: run,
      catch: (cause) => refuse("database_unavailable", cause instanceof Error ? cause.message : "it cannot be opened")
    })
  return Effect.gen(function*() {
    if (filename !== filename.trim()) {
      return yield* refuse("database_unavailable", "its name begins or ends with a blank")
    }
    const header = yield* attempt(() => read(filename))
    if (header === undefined) {
      return yield* attempt(() => {
        Fs.mkdirSync(Path.dirname(filename), { recursive: true, mode: 0o700 })
        Fs.closeSync(Fs.openSync(filename, "a", 0o600))
      })
    }
    if (header.length === 0) return yield* attempt(() => tighten(filename))
    if (header.length < headerBytes || header.toString("latin1", 0, magic.length) !== magic) {
      return yield* refuse("database_broken", "it is not a database")
    }
    if (header.readUInt32BE(68) !== applicationId) {
      return yield* refuse("database_foreign", "it belongs to another program")
    }
    const version = header.readUInt32BE(60)
    if (version > supported) {
      return yield* refuse("database_newer", `it has format ${version}, this version knows up to ${supported}`)
    }
    yield* attempt(() => tighten(filename))
  })
}
