/** Searching with ripgrep. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Encoding from "effect/Encoding"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { toolError } from "../../contract/ToolFailure.ts"
import { parseJson } from "../../internal/parseJson.ts"
import { Subprocess } from "../../process/Subprocess.ts"
import { ToolInvocation } from "../../tool/ToolInvocation.ts"
import { characters, maxLine, type Query, type Sink } from "./lines.ts"
import { type Against, against, lengthOf } from "./page.ts"
import { decode, type Place, placing, prefixOf, type Root, timedOut, timeoutMs } from "./root.ts"

/**
 * No configuration, so no preprocessor; hidden files but never `.git`; ignore files hold outside of repositories too. A
 * file that is cut short while it is searched must not be mapped.
 */
const common = [
  ...["--no-config", "--hidden", "--no-require-git", "--no-follow", "--no-mmap", "--color=never"],
  "--iglob=!.git"
]

interface Ran {
  readonly exitCode: number
  readonly said: string
}

/** Succeeds with what it printed to stderr: files that cannot be read are told there and spoil nothing. */
const run = Effect.fnUntraced(function*(
  program: string,
  root: Root,
  options: ReadonlyArray<string>,
  onOutput: (chunk: Uint8Array) => void
) {
  const { turn } = yield* ToolInvocation
  const { ending, stderr } = yield* (yield* Subprocess).run({
    argv: [program, ...common, ...(root.ignored ? ["--no-ignore-parent"] : []), ...options, "--", root.physical],
    cwd: turn.workspace,
    timeout: timeoutMs,
    capture: { bytes: 64 * 1024, keep: "tail" },
    onOutput: (chunk, stream) => stream === "stdout" ? onOutput(chunk) : undefined
  })
  switch (ending._tag) {
    case "Exited": {
      const ran: Ran = { exitCode: ending.code, said: new TextDecoder().decode(stderr.bytes) }
      return ran
    }
    case "TimedOut":
      return yield* timedOut()
    case "SpawnFailed":
      return yield* toolError("search_failed", `ripgrep could not be started: ${ending.reason}`)
    case "Signalled":
    case "Stopped":
      return yield* toolError("search_failed", "ripgrep was stopped before it had finished.")
  }
})

/** Lines of stderr that name a file which could not be read. */
const unreadable = (said: string): number => said.split("\n").filter((line) => line.startsWith("rg: ")).length

type OnPiece = (bytes: Uint8Array, start: number, end: number, whole: boolean) => void

/**
 * Splits a stream of bytes at a separator, and tells where in them a piece begins and ends: most pieces need no more than a
 * look. Of one over `limit` bytes only the beginning is kept.
 */
const splitter = (separator: number, limit: number, onPiece: OnPiece) => {
  let held: Array<Uint8Array> = []
  let size = 0
  const hold = (part: Uint8Array) => {
    if (size < limit) held.push(part.subarray(0, limit - size))
    size += part.length
  }
  return (chunk: Uint8Array) => {
    let start = 0
    for (let end = chunk.indexOf(separator); end !== -1; end = chunk.indexOf(separator, start)) {
      if (size > 0) {
        hold(chunk.subarray(start, end))
        const piece = joined(held)
        const whole = size <= limit
        held = []
        size = 0
        onPiece(piece, 0, piece.length, whole)
      } else if (end > start) onPiece(chunk, start, Math.min(end, start + limit), end - start <= limit)
      start = end + 1
    }
    if (start < chunk.length) hold(chunk.subarray(start))
  }
}

const joined = (parts: ReadonlyArray<Uint8Array>): Uint8Array => {
  const out = new Uint8Array(parts.reduce((total, part) => total + part.length, 0))
  let offset = 0
  for (const part of parts) {
    out.set(part, offset)
    offset += part.length
  }
  return out
}

/**
 * Has ripgrep skip what cannot fit by its name, where the last segment is a plain one. Its own glob option would bring
 * back ignored files, so the exact test stays with us.
 */
export const plainName = (glob: string): string | undefined => {
  const name = glob.slice(glob.lastIndexOf("/") + 1)
  return /^[\w.*?@+-]+$/.test(name) && !name.includes("**") && !/[{}[\]\\]/.test(glob) ? name : undefined
}

const narrowing = (name: string | undefined): ReadonlyArray<string> =>
  name === undefined ? [] : [`--type-add=portcullis:${name}`, "--type=portcullis"]

const maxPath = 64 * 1024

/** Tells every file that a search would look at, but what `skips` knows, in no order, until `onFile` has had enough. */
export const files = (
  program: string,
  root: Root,
  name: string | undefined,
  skips: (against: Against) => boolean,
  onFile: (place: Place) => boolean
) =>
  Effect.gen(function*() {
    if (root.inGit) return { unreadable: 0 }
    const place = placing(root)
    const prefix = lengthOf(prefixOf(root))
    const enough = Deferred.unsafeMake<{ readonly unreadable: number }>(FiberId.none)
    const ended = run(
      program,
      root,
      ["--files", "--null", ...narrowing(name)],
      splitter(0, maxPath, (bytes, start, end, whole) => {
        if (!whole || skips(against(bytes, start + prefix, end))) return
        if (!onFile(place(bytes.subarray(start, end)))) {
          Deferred.unsafeDone(enough, Effect.succeed({ unreadable: 0 }))
        }
      })
    ).pipe(
      Effect.flatMap(({ exitCode, said }) => {
        const lost = unreadable(said)
        return exitCode > 1 && lost === 0
          ? toolError("search_failed", said.slice(0, 500).toWellFormed())
          : Effect.succeed({ unreadable: lost })
      })
    )
    return yield* Effect.raceFirst(ended, Deferred.await(enough))
  })

const Bytes = Schema.Union(Schema.Struct({ text: Schema.String }), Schema.Struct({ bytes: Schema.String }))
const isBegin = Schema.is(Schema.Struct({ data: Schema.Struct({ path: Bytes }) }))
const isLine = Schema.is(Schema.Struct({ data: Schema.Struct({ lines: Bytes, line_number: Schema.Number }) }))
const isSummary = Schema.is(Schema.Struct({
  data: Schema.Struct({ stats: Schema.Struct({ searches: Schema.Number }) })
}))

/** Text that is not UTF-8 comes as base64; what does not decode shows as U+FFFD. */
const raw = (value: typeof Bytes.Type): string | Uint8Array =>
  "text" in value ? value.text : Either.getOrElse(Encoding.decodeBase64(value.bytes), () => new Uint8Array(0))

/** Of one line of ripgrep's JSON: the longest line that is shown, and some of what follows it. */
const maxRecord = 2 * maxLine
const submatches = ",\"submatches\":["

const quoted = "{\"type\":\"begin\",\"data\":{\"path\":{\"text\":\""
const letter = quoted.indexOf("begin")
const kind = quoted.indexOf("text")

/** Reads the JSON of a search: one line says that a file begins, each further one a line of it. */
const reader = (root: Root, sink: Sink, onSummary: (searches: number) => void) => {
  const place = placing(root)
  const prefix = quoted.length + lengthOf(JSON.stringify(prefixOf(root))) - 2
  let wanted = false
  let beyond = false
  const line = (piece: Uint8Array, whole: boolean) => {
    const record = decode(piece)
    // A line can match thousands of times; only the first one is of use.
    const end = record.indexOf(submatches)
    const head = parseJson(whole && end === -1 ? record : `${record.slice(0, Math.max(0, end))}}}`)
    if (!isLine(head)) return whole ? undefined : sink.oversized()
    const { line_number: number, lines } = head.data
    const content = raw(lines)
    if (content.length > maxLine) return sink.oversized()
    const text = typeof content === "string" ? content : decode(content)
    if (record.startsWith("{\"type\":\"context\"")) return sink.line({ number, text, start: undefined })
    const offset = Number(/^(\d+)/.exec(record.slice(record.indexOf(",\"start\":", end) + 9))?.[1] ?? 0)
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content
    sink.line({ number, text, start: characters(decode(bytes.subarray(0, offset))) })
  }
  const begin = (record: Uint8Array) => {
    const side = root.isDirectory && record[kind] === 0x74
      ? sink.side(against(record, prefix, record.length - "\"}}}".length))
      : undefined
    beyond = side === "beyond"
    if (side !== undefined) return false
    const told = parseJson(decode(record))
    return isBegin(told) && sink.file(place(raw(told.data.path)))
  }
  return splitter(0x0a, maxRecord, (bytes, start, end, whole) => {
    switch (bytes[start + letter]) {
      case 0x62:
        wanted = begin(bytes.subarray(start, end))
        return
      case 0x63:
      case 0x6d:
        return wanted ? line(bytes.subarray(start, end), whole) : beyond ? sink.passed() : undefined
      // The summary begins with what is in it.
      case 0x22: {
        const summary = parseJson(decode(bytes.subarray(start, end)))
        return isSummary(summary) ? onSummary(summary.data.stats.searches) : undefined
      }
    }
  })
}

/** How long a search by one thread has to show that it fills its share of the page. */
const windowMs = 10
const windows = 4
/** From so many pages on, the first one is sooner found in order. */
const manyPages = 50

export interface Searched<S> {
  readonly sink: S
  /** The page was full before the search was complete. */
  readonly stopped: boolean
  readonly unreadable: number
  /** At least so many files were looked into. */
  readonly searches: number
}

/**
 * Searches in order by one thread first, which for a pattern that is everywhere has a page at once. When that does not
 * get on, it is replaced by a search with all threads, which is in no order and has to be complete, unless it finds so
 * much that the order pays after all.
 */
export const lines = <S extends Sink>(program: string, root: Root, query: Query, makeSink: (inOrder: boolean) => S) =>
  Effect.gen(function*() {
    const attempt = Effect.fnUntraced(function*(sorted: boolean) {
      const sink = makeSink(sorted)
      if (root.inGit) {
        return { sink, ended: Effect.succeed<Searched<S>>({ sink, stopped: false, unreadable: 0, searches: 0 }) }
      }
      const full = Deferred.unsafeMake<Searched<S>>(FiberId.none)
      let begun = false
      let searches = 0
      const read = reader(root, sink, (count) => {
        searches = count
      })
      const ended = run(program, root, [
        "--json",
        ...(sorted ? ["--sort=path"] : []),
        ...(query.literal ? ["--fixed-strings"] : []),
        query.ignoreCase ? "--ignore-case" : "--case-sensitive",
        `--context=${query.context}`,
        `--max-count=${query.maxCount}`,
        ...narrowing(query.name),
        "-e",
        query.pattern
      ], (chunk) => {
        begun = true
        read(chunk)
        if (sorted ? sink.progress() >= 1 : sink.pages() >= manyPages) {
          Deferred.unsafeDone(full, Effect.succeed({ sink, stopped: true, unreadable: 0, searches }))
        }
      }).pipe(
        Effect.flatMap(({ exitCode, said }) =>
          // A search that was begun ends with a summary, so nothing is said only where the pattern was refused.
          exitCode > 1 && !begun
            ? toolError("pattern_invalid", `ripgrep does not take this pattern: ${said.slice(0, 1000)}`.toWellFormed())
            : Effect.succeed<Searched<S>>({ sink, stopped: false, unreadable: unreadable(said), searches })
        )
      )
      return { sink, ended: Effect.raceFirst(ended, Deferred.await(full)) }
    })

    return yield* Effect.scoped(Effect.gen(function*() {
      const inOrder = yield* attempt(true)
      const fiber = yield* Effect.forkScoped(inOrder.ended)
      // Starting a process holds this one up for longer than a window: the time begins after that.
      yield* Effect.yieldNow()
      for (let window = 1; window <= windows; window++) {
        const done = yield* Effect.timeoutOption(Fiber.await(fiber), windowMs)
        if (Option.isSome(done)) return yield* done.value
        if (inOrder.sink.progress() < window / windows) break
      }
      const unordered = yield* attempt(false)
      const [searched] = yield* Effect.all([unordered.ended, Fiber.interrupt(fiber)], { concurrency: 2 })
      // The machine was too busy for the time to tell anything.
      return searched.stopped ? yield* (yield* attempt(true)).ended : searched
    }))
  })
