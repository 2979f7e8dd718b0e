/** Searching without ripgrep, with the same results: files in order of their paths, one after another. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import { FileAccess, type OpenFile } from "../../file/FileAccess.ts"
import { byCodeUnit } from "../../internal/byCodeUnit.ts"
import { compile as compileGlob } from "../../internal/glob.ts"
import { ToolInvocation } from "../../tool/ToolInvocation.ts"
import * as IgnoreRules from "./ignoreRules.ts"
import { characters, maxLine, type Query, type Sink } from "./lines.ts"
import { keyOf } from "./page.ts"
import { compile, type LineTest } from "./regex.ts"
import type { Searched } from "./ripgrep.ts"
import { type Place, placing, type Root, timedOut, timeoutMs } from "./root.ts"

/** Links, special files and what vanishes meanwhile are passed over, as ripgrep does. */
const walk = Effect.fnUntraced(function*<E, R>(
  root: Root,
  name: string | undefined,
  onFile: (place: Place) => Effect.Effect<"on" | "stop" | "unreadable", E, R>
) {
  const fs = yield* FileSystem.FileSystem
  const access = yield* FileAccess
  const { turn } = yield* ToolInvocation
  const { rulesOf, userExcludes } = yield* IgnoreRules.make
  const user = yield* userExcludes
  const top = turn.workspace.endsWith("/") ? turn.workspace : `${turn.workspace}/`
  const place = placing(root)
  const named = (name === undefined ? undefined : compileGlob(name)) ?? (() => true)
  let unreadable = 0

  const enter = (directory: string, above: IgnoreRules.Rules | undefined) =>
    Effect.scoped(access.hold(directory)).pipe(
      Effect.zipRight(fs.readDirectory(directory)),
      Effect.flatMap((entries) =>
        Effect.map(rulesOf(directory, above, new Set(entries)), (rules) => ({
          rules,
          left: entries.map((entry) => ({ entry, key: keyOf(entry) })).sort((a, b) => byCodeUnit(b.key, a.key))
        }))
      ),
      Effect.catchAll((error) => {
        if (error._tag !== "SystemError" || (error.reason !== "NotFound" && error.reason !== "BadResource")) {
          unreadable++
        }
        return Effect.succeed(undefined)
      })
    )

  const visit = Effect.fnUntraced(function*(physical: string) {
    const then = yield* onFile(place(physical))
    if (then === "unreadable") unreadable++
    return then === "stop"
  })

  const typeOf = (physical: string) =>
    Effect.matchEffect(fs.readLink(physical), {
      onSuccess: () => Effect.succeed(undefined),
      onFailure: () => Effect.match(fs.stat(physical), { onSuccess: ({ type }) => type, onFailure: () => undefined })
    })

  const descend = Effect.gen(function*() {
    if (root.inGit) return false
    if (!root.isDirectory) return yield* visit(root.physical)
    const first = yield* enter(root.physical, root.rules)
    const open = first === undefined ? [] : [first]
    for (let folder = open.at(-1); folder !== undefined; folder = open.at(-1)) {
      const next = folder.left.pop()
      if (next === undefined) {
        open.pop()
        continue
      }
      const { entry } = next
      if (entry.toLowerCase() === ".git") continue
      const physical = folder.rules.prefix + entry
      const type = yield* typeOf(physical)
      if (type !== "Directory" && (type !== "File" || !named(entry))) continue
      if (IgnoreRules.ignores(folder.rules, user, top, physical, type === "Directory")) continue
      if (type === "Directory") {
        const inner = yield* enter(physical, folder.rules)
        if (inner !== undefined) open.push(inner)
      } else if (yield* visit(physical)) return true
    }
    return false
  })
  const stopped = yield* Effect.timeoutFail(descend, { duration: timeoutMs, onTimeout: timedOut })
  return { stopped, unreadable }
})

/** As `files` of ripgrep. */
export const files = (root: Root, name: string | undefined, onFile: (place: Place) => boolean) =>
  walk(root, name, (place) => Effect.sync(() => onFile(place) ? "on" as const : "stop" as const))

/** Bytes read at once, as ripgrep does: what it has of a binary file by then depends on it. */
const chunkBytes = 64 * 1024
const newline = 0x0a

/** Text in UTF-16 with a byte order mark, as UTF-8; a mark of UTF-8 is dropped. */
const decoderOf = (head: Uint8Array) => {
  const [first, second, third] = head
  const wide = first === 0xff && second === 0xfe
    ? "utf-16le"
    : first === 0xfe && second === 0xff
    ? "utf-16be"
    : undefined
  if (wide === undefined) {
    return { skip: first === 0xef && second === 0xbb && third === 0xbf ? 3 : 0, decode: undefined }
  }
  const decoder = new TextDecoder(wide)
  const encoder = new TextEncoder()
  return {
    skip: 0,
    decode: (bytes: Uint8Array, isLast: boolean) => encoder.encode(decoder.decode(bytes, { stream: !isLast }))
  }
}

const append = (left: Uint8Array, right: Uint8Array): Uint8Array => {
  if (left.length === 0) return right
  const out = new Uint8Array(left.length + right.length)
  out.set(left)
  out.set(right, left.length)
  return out
}

/**
 * Hands the lines of a file over, many at a time, until `onLines` has enough. A file with a NUL is binary and ends there,
 * but where it was named itself its NULs end lines. A line over the limit is told as `undefined`.
 */
const eachLines = Effect.fnUntraced(
  function*(file: OpenFile, named: boolean, onLines: (lines: ReadonlyArray<string> | undefined) => boolean) {
    const text = new TextDecoder("utf-8", { ignoreBOM: true })
    let held: Uint8Array = new Uint8Array(0)
    let dropping = false
    let offset = 0
    let decoder: ReturnType<typeof decoderOf> | undefined
    while (true) {
      const length = Math.max(chunkBytes - held.length, 1024, held.length)
      const got = yield* file.read(offset, length)
      offset += got.length
      const isLast = got.length < length
      decoder ??= decoderOf(got)
      const skipped = offset === got.length ? got.subarray(decoder.skip) : got
      const fresh = decoder.decode === undefined ? skipped : decoder.decode(skipped, isLast)
      if (named) {
        for (let at = fresh.indexOf(0); at !== -1; at = fresh.indexOf(0, at + 1)) fresh[at] = newline
      } else if (fresh.includes(0)) return
      const end = fresh.lastIndexOf(newline) + 1
      if (end > 0 || isLast) {
        const whole = append(held, isLast ? fresh : fresh.subarray(0, end))
        const from = dropping ? whole.indexOf(newline) + 1 || whole.length : 0
        if (dropping && !onLines(undefined)) return
        dropping = false
        const lines = text.decode(whole.subarray(from)).split("\n")
        if (lines.at(-1) === "") lines.pop()
        if (!onLines(lines)) return
        held = fresh.slice(end)
      } else held = append(held, fresh)
      if (isLast) return
      if (held.length > maxLine) {
        dropping = true
        held = new Uint8Array(0)
      }
    }
  }
)

/** Tells the matching lines of one file and what is around them. */
const searcher = (query: Query, test: LineTest, sink: Sink) => {
  let number = 0
  let matches = 0
  let afterUntil = 0
  let told = 0
  let recent: Array<{ readonly number: number; readonly text: string }> = []
  return (lines: ReadonlyArray<string> | undefined): boolean => {
    if (lines === undefined) {
      number++
      sink.oversized()
      return true
    }
    for (const text of lines) {
      number++
      const at = matches < query.maxCount ? test(text) : -1
      if (at !== -1) {
        matches++
        for (const before of recent) if (before.number > told) sink.line({ ...before, start: undefined })
        sink.line({ number, text, start: characters(text.slice(0, at)) })
        told = number
        afterUntil = number + query.context
        if (query.context === 0 && sink.progress() >= 1) return false
      } else if (number <= afterUntil) {
        sink.line({ number, text, start: undefined })
        told = number
      }
      if (matches >= query.maxCount && number >= afterUntil) return false
      if (query.context > 0) {
        recent.push({ number, text })
        if (recent.length > query.context) recent = recent.slice(1)
      }
    }
    return true
  }
}

/** As `lines` of ripgrep; a pattern whose meaning is not sure to be the same is refused. */
export const lines = <S extends Sink>(root: Root, query: Query, makeSink: (inOrder: boolean) => S) =>
  Effect.gen(function*() {
    const access = yield* FileAccess
    const test = yield* compile(query.pattern, query)
    const sink = makeSink(true)
    const walked = yield* walk(root, query.name, (place) => {
      if (!sink.file(place)) return Effect.succeed(sink.progress() >= 1 ? "stop" : "on")
      return Effect.scoped(
        Effect.flatMap(
          access.open(place.physical),
          (file) => eachLines(file, !root.isDirectory, searcher(query, test, sink))
        )
      ).pipe(
        Effect.match({
          onSuccess: () => sink.progress() >= 1 ? "stop" as const : "on" as const,
          onFailure: (error) =>
            error._tag === "SystemError" && (error.reason === "NotFound" || error.reason === "BadResource")
              ? "on"
              : "unreadable"
        })
      )
    })
    const searched: Searched<S> = { sink, searches: 0, ...walked }
    return searched
  })
