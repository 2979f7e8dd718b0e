/**
 * `FileHistory` in a private directory: versions as `blobs/<sha256>`, changes as lines of a log, under a quota.
 *
 * Several processes may share one. The order of changes is their order in the log: each is appended by one write, and an
 * append lands behind all that were there. A file is held while its change is recorded, so the changes of one file stand
 * in the order they were made, whichever process made them. The log is cut into segments; only the last one grows, and
 * only others are ever removed.
 *
 * A version is on disk under its name, whole, before the change that needs it is in the log. What was recorded outlives
 * the process, not a loss of power: nothing is synced.
 *
 * All calls are synchronous: on a local folder they take microseconds each, a trip through the thread pool takes longer.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import * as Crypto from "node:crypto"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { CallId } from "../../src/contract/ToolCall.ts"
import type { StateUnavailable } from "../../src/contract/ToolFailure.ts"
import { ThreadId, TurnId } from "../../src/contract/Turn.ts"
import { FileHistory, type Kept, matches, retain, sizeOf, turnKey, type Version } from "../../src/file/FileHistory.ts"
import { prepare, unavailable } from "./privateFolder.ts"

export interface Options {
  /** Absolute; created when missing, closed to others when it is not. Outside every workspace. */
  readonly root: string
  /**
   * Bytes of all versions, one counting for at least 4 KiB; the oldest turns go first. The newest turn stays, even where
   * it alone takes more. It is looked after when about a sixteenth of it was written, by whatever process. Default 1 GiB.
   */
  readonly quota?: number
  /** Default 5000. */
  readonly maxChanges?: number
}

const segmentBytes = 256 * 1024
/** Appends of several processes may overshoot a segment. More than this was not written by a store. */
const maxSegmentBytes = 4 * segmentBytes
/** More lines than a segment can hold. */
const linesPerSegment = 2 ** 20
/** What is younger is left alone by whoever clears up: somebody may be about to record it. */
const graceMs = 60_000

const hashPattern = /^[0-9a-f]{64}$/
const Hash = Schema.String.pipe(Schema.pattern(hashPattern))
const VersionLine = Schema.NullOr(Schema.Struct({ hash: Hash, byteSize: Schema.NonNegativeInt }))
const ChangeLine = Schema.Struct({
  threadId: ThreadId,
  turnId: TurnId,
  callId: CallId,
  toolName: Schema.String.pipe(Schema.maxLength(200)),
  path: Schema.String.pipe(Schema.pattern(/^[^\0]{1,4096}$/)),
  before: VersionLine,
  after: VersionLine,
  mode: Schema.optionalWith(Schema.Int.pipe(Schema.between(0, 0o777)), { exact: true }),
  at: Schema.NonNegativeInt
})
/** A turn that is kept no more, wherever its changes stand. */
const DroppedLine = Schema.Struct({ dropped: Schema.Struct({ threadId: ThreadId, turnId: TurnId }) })
const Line = Schema.parseJson(Schema.Union(ChangeLine, DroppedLine))
const decode = Schema.decodeUnknownOption(Line)
const encode = Schema.encode(Line)

interface Entry {
  readonly segment: number
  readonly change: Kept
}

interface Log {
  /** That could be read. */
  readonly segments: ReadonlyArray<number>
  /** Of dropped turns too. */
  readonly entries: ReadonlyArray<Entry>
  /** By turn, the last segment that says so. */
  readonly dropped: ReadonlyMap<string, number>
  /** Lines, and whole segments, that no store wrote. */
  readonly damaged: number
}

/** What the file system said. */
class Fault extends Data.TaggedError("Fault")<{ readonly message: string; readonly missing: boolean }> {}

const attempt = <A>(run: () => A): Effect.Effect<A, unknown> =>
  Effect.try({
    try: run,
    catch: (cause) =>
      new Fault({
        message: cause instanceof Error ? cause.message : String(cause),
        missing: cause instanceof Error && "code" in cause && cause.code === "ENOENT"
      })
  })

const whenMissing = <A>(self: Effect.Effect<A, unknown>, instead: Effect.Effect<A, unknown>) =>
  Effect.catchAll(self, (cause) => cause instanceof Fault && cause.missing ? instead : Effect.fail(cause))

/** `undefined`: it is no regular file, or has more bytes. */
const readWhole = (path: string, maxBytes: number): Effect.Effect<Buffer | undefined, unknown> =>
  attempt(() => {
    const info = Fs.lstatSync(path)
    return info.isFile() && info.size <= maxBytes ? Fs.readFileSync(path) : undefined
  })

const pair = (version: Version | null, bytes: Uint8Array | null): ReadonlyArray<readonly [Version, Uint8Array]> =>
  version === null || bytes === null ? [] : [[version, bytes]]

/** So many lines or files at a time; then whatever else the process has to do gets its turn. */
const atOnce = 200
const others = Effect.async<void>((resume) => {
  setImmediate(() => resume(Effect.void))
})

const inParts = <A>(
  items: ReadonlyArray<A>,
  use: (part: ReadonlyArray<A>, from: number) => Effect.Effect<void, unknown>
): Effect.Effect<void, unknown> =>
  Effect.gen(function*() {
    for (let from = 0; from < items.length; from += atOnce) {
      if (from > 0) yield* others
      yield* use(items.slice(from, from + atOnce), from)
    }
  })

const token = (): string => Crypto.randomBytes(12).toString("hex")

/**
 * A store over a directory. Fails with `state_unavailable` when the root cannot be made or belongs to another user. What
 * is damaged is left out, and a warning says so.
 */
export const make = (
  { maxChanges = 5000, quota = 1024 ** 3, root: given }: Options
): Effect.Effect<FileHistory["Type"], StateUnavailable> =>
  Effect.gen(function*() {
    const root = Path.resolve(given)
    const failed = unavailable("The history of files cannot be used", false)
    yield* Effect.mapError(prepare(root), failed)
    const blobs = Path.join(root, "blobs")
    const log = Path.join(root, "changes")
    const blobOf = (hash: string): string => Path.join(blobs, hash)
    const segmentOf = (segment: number): string => Path.join(log, `${segment}.log`)
    const folders = attempt(() => {
      for (const folder of [blobs, log]) Fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
    })

    const segments = Effect.map(
      whenMissing<ReadonlyArray<string>>(attempt(() => Fs.readdirSync(log)), Effect.succeed([])),
      (names) =>
        names.flatMap((name) => {
          const number = /^([1-9]\d{0,8})\.log$/.exec(name)?.[1]
          return number === undefined ? [] : [Number(number)]
        }).sort((left, right) => left - right)
    )
    const lastSegment = Effect.map(segments, (all) => all.at(-1) ?? 1)

    /** Answers the segment it landed in. */
    const append = (lines: ReadonlyArray<string>): Effect.Effect<number, unknown> => {
      // What a killed process or a full disk left of a line ends where the next one begins.
      const text = lines.map((line) => `\n${line}\n`).join("")
      const once = Effect.flatMap(lastSegment, (last) =>
        attempt(() => {
          const size = Fs.statSync(segmentOf(last), { throwIfNoEntry: false })?.size ?? 0
          const segment = size < segmentBytes ? last : last + 1
          Fs.appendFileSync(segmentOf(segment), text, { mode: 0o600 })
          return segment
        }))
      // A segment that is not the last any more may be removed by somebody who read it before this line was there.
      return Effect.repeat(Effect.zip(once, lastSegment), { until: ([segment, last]) => segment >= last }).pipe(
        Effect.map(([segment]) => segment)
      )
    }

    /** Answers how many bytes were written. */
    const put = (hash: string, bytes: Uint8Array): Effect.Effect<number, unknown> =>
      attempt(() => {
        if (Fs.statSync(blobOf(hash), { throwIfNoEntry: false })?.size === bytes.length) return 0
        const temporary = Path.join(blobs, `${token()}.tmp`)
        Fs.writeFileSync(temporary, bytes, { flag: "wx", mode: 0o600 })
        Fs.renameSync(temporary, blobOf(hash))
        return bytes.length
      })

    /** Says that a version is needed, to whoever looked into the log before the change was there. */
    const touch = (hash: string, bytes: Uint8Array, at: number): Effect.Effect<unknown, unknown> =>
      whenMissing<unknown>(attempt(() => Fs.utimesSync(blobOf(hash), at / 1000, at / 1000)), put(hash, bytes))

    const readLog: Effect.Effect<Log, unknown> = Effect.gen(function*() {
      const found: Array<number> = []
      const entries: Array<Entry> = []
      const dropped = new Map<string, number>()
      let damaged = 0
      const parse = (segment: number) => (part: ReadonlyArray<string>, from: number) =>
        Effect.sync(() =>
          part.forEach((line, index) => {
            if (line === "") return
            const found = Option.getOrUndefined(decode(line))
            if (found === undefined) damaged++
            else if ("dropped" in found) dropped.set(turnKey(found.dropped), segment)
            else entries.push({ segment, change: { ...found, sequence: segment * linesPerSegment + from + index } })
          })
        )
      for (const segment of yield* segments) {
        // Somebody may have removed it meanwhile.
        const empty = Effect.sync(() => Buffer.alloc(0))
        const bytes = yield* whenMissing(readWhole(segmentOf(segment), maxSegmentBytes), empty)
        if (bytes === undefined) {
          damaged++
          continue
        }
        found.push(segment)
        yield* inParts(bytes.toString("utf8").split("\n"), parse(segment))
        yield* others
      }
      if (damaged > 0) yield* Effect.logWarning(`${damaged} parts of the history of files are damaged and left out`)
      return { segments: found, entries, dropped, damaged }
    })

    /** A line that was appended again, because its segment was no longer the last, counts once. */
    const live = ({ dropped, entries }: Log): ReadonlyArray<Kept> => {
      const changes = new Map<string, Kept>()
      for (const { change } of entries) {
        if (dropped.has(turnKey(change))) continue
        const { sequence: _, ...line } = change
        changes.set(JSON.stringify(line), change)
      }
      return [...changes.values()]
    }

    /**
     * Removes a blob that nobody has said to need since. It is put aside first: whoever says so meanwhile either finds it
     * gone and writes it anew, or was earlier, and it is put back.
     */
    const retire = (path: string, since: number): Effect.Effect<void, unknown> =>
      attempt(() => {
        if (Fs.statSync(path).mtimeMs >= since) return
        const aside = Path.join(blobs, `${token()}.tmp`)
        Fs.renameSync(path, aside)
        if (Fs.statSync(aside).mtimeMs >= since) Fs.renameSync(aside, path)
        else Fs.rmSync(aside)
      }).pipe((removed) => whenMissing(removed, Effect.void))

    const tidy = Effect.gen(function*() {
      const since = (yield* Clock.currentTimeMillis) - graceMs
      const now = yield* readLog
      const { changes, hashes } = retain(live(now), { maxBytes: quota, maxChanges })
      const kept = new Set(changes.map(turnKey))
      const stay = new Set(now.segments.slice(-1))
      for (const { change, segment } of now.entries) if (kept.has(turnKey(change))) stay.add(segment)
      // A dropped turn is told for as long as a line of it is there.
      const tell = new Map<string, string>()
      for (const { change, segment } of now.entries) {
        const key = turnKey(change)
        const told = now.dropped.get(key)
        if (kept.has(key) || !stay.has(segment) || (told !== undefined && stay.has(told))) continue
        tell.set(key, yield* encode({ dropped: { threadId: change.threadId, turnId: change.turnId } }))
      }
      yield* inParts([...tell.values()], (some) => Effect.asVoid(append(some)))
      const unneeded = (yield* attempt(() => Fs.readdirSync(blobs))).filter((name) =>
        hashPattern.test(name) ? !hashes.has(name) : /^[0-9a-f]{24}\.tmp$/.test(name)
      )
      yield* inParts(
        unneeded,
        (some) => Effect.forEach(some, (name) => retire(Path.join(blobs, name), since), { discard: true })
      )
      for (const segment of now.segments) {
        if (!stay.has(segment)) yield* attempt(() => Fs.rmSync(segmentOf(segment), { force: true }))
      }
    })

    // Somewhere on the way, for a process that ends after one change would never get there, and else always be there.
    let unseen = (yield* Random.next) * quota / 16
    let seenSegment = yield* Effect.mapError(lastSegment, failed)

    const record: FileHistory["Type"]["record"] = Effect.fnUntraced(function*({ bytes, ...change }) {
      const at = yield* Clock.currentTimeMillis
      const versions = [...pair(change.before, bytes.before), ...pair(change.after, bytes.after)]
      const size = versions.reduce((sum, [version]) => sum + sizeOf(version), 0)
      if (size > quota) return yield* failed(`a change of ${size} bytes does not fit into ${quota} bytes`)
      const keep = Effect.gen(function*() {
        // First, because it also says whether the hashes are fit to name files.
        const line = yield* encode({ ...change, at })
        yield* folders
        for (const [{ hash }, content] of versions) unseen += yield* put(hash, content)
        const segment = yield* append([line])
        for (const [{ hash }, content] of versions) yield* touch(hash, content, at)
        return segment
      })
      const segment = yield* Effect.mapError(keep, failed)
      if (unseen <= quota / 16 && segment === seenSegment) return
      unseen = 0
      seenSegment = segment
      yield* Effect.catchAll(tidy, (cause) => Effect.logWarning("The history of files could not be trimmed", cause))
    })

    return {
      record: (change) => Effect.uninterruptible(record(change)),
      list: (filter = {}) =>
        Effect.map(Effect.mapError(readLog, failed), (found) => live(found).filter(matches(filter))),
      bytes: (hash) =>
        Effect.gen(function*() {
          if (!hashPattern.test(hash)) return undefined
          const read = whenMissing(readWhole(blobOf(hash), quota), Effect.succeed(undefined))
          const found = yield* Effect.mapError(read, failed)
          if (found === undefined) return undefined
          if (Crypto.createHash("sha256").update(found).digest("hex") === hash) return new Uint8Array(found)
          yield* Effect.logWarning(`The version ${hash} in the history of files is damaged`)
          return undefined
        })
    }
  })

export const layer = (options: Options): Layer.Layer<FileHistory, StateUnavailable> =>
  Layer.effect(FileHistory, make(options))
