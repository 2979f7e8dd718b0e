/**
 * What every `ReadTracker` does, as data: run each law with a Layer of your own and a file system.
 *
 * @since 0.1.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Digest, short } from "../../contract/Digest.ts"
import { ThreadId } from "../../contract/Turn.ts"
import { ReadTracker } from "../../file/ReadTracker.ts"
import type { Resolved } from "../../file/WorkspacePath.ts"
import type { Observation } from "../../tool/ToolInvocation.ts"

export type LawServices = ReadTracker | FileSystem.FileSystem | Path.Path | Scope.Scope

/** Succeeds when the law holds; fails with what does not. */
export interface Law {
  readonly name: string
  readonly law: Effect.Effect<void, unknown, LawServices>
}

const thread = ThreadId.make("laws")

/** A file on disk, and what one does with it. */
const fileOf = Effect.fnUntraced(function*(content: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const tracker = yield* ReadTracker
  const sha256 = yield* Digest
  const folder = yield* Effect.flatMap(fs.makeTempDirectoryScoped(), fs.realPath)
  const physical = path.join(folder, "file.txt")
  const resolved: Resolved = {
    lexical: physical,
    physical,
    relative: "file.txt",
    inside: true,
    exists: true,
    ancestor: undefined
  }
  const put = (text: string) => fs.writeFileString(physical, text)
  const observe = (access: Observation["access"], text: string, partial: boolean, threadId = thread) =>
    tracker.observe(threadId, { access, path: physical, hash: sha256(text), partial })
  const page = (text: string, from: number, to: number | null) =>
    tracker.observe(thread, {
      access: "read",
      path: physical,
      hash: sha256(text),
      partial: true,
      span: { from, to }
    })
  /** The code of the refusal, or `licensed`. */
  const outcome = (quotes: ReadonlyArray<string> = [], threadId = thread) =>
    Effect.match(tracker.require(threadId, resolved, { path: "file.txt", requiresRead: true, quotes }), {
      onFailure: (refusal): string => refusal.code,
      onSuccess: () => "licensed"
    })
  const refusal = (quotes: ReadonlyArray<string> = []) =>
    Effect.flip(
      Effect.catchTag(
        tracker.require(thread, resolved, { path: "file.txt", requiresRead: true, quotes }),
        "ToolError",
        Effect.die
      )
    )
  yield* put(content)
  return { fs, tracker, physical, resolved, put, observe, page, outcome, refusal }
})

const same = (actual: unknown, expected: unknown): Effect.Effect<void, string> =>
  actual === expected ? Effect.void : Effect.fail(`${String(actual)} instead of ${String(expected)}`)

export const laws: ReadonlyArray<Law> = [
  {
    name: "refuses what was not read in this thread",
    law: Effect.gen(function*() {
      const { observe, outcome } = yield* fileOf("one\n")
      yield* same(yield* outcome(), "read_before_edit_required")
      yield* observe("read", "one\n", false, ThreadId.make("another"))
      yield* same(yield* outcome(["one"]), "read_before_edit_required")
    })
  },
  {
    name: "licenses what was read whole until it changes on disk",
    law: Effect.gen(function*() {
      const { observe, outcome, put } = yield* fileOf("one\n")
      yield* observe("read", "one\n", false)
      yield* same(yield* outcome(), "licensed")
      yield* put("two\n")
      yield* same(yield* outcome(), "stale_read")
      yield* put("one\n")
      yield* same(yield* outcome(), "licensed")
    })
  },
  {
    name: "licenses after a partial read only what quotes text that is there exactly once",
    law: Effect.gen(function*() {
      const text = "one\r\ntwo\r\ntwo\r\n"
      const { observe, outcome, put } = yield* fileOf(text)
      yield* observe("read", text, true)
      yield* same(yield* outcome(["one\ntwo"]), "licensed")
      yield* same(yield* outcome(["one", "two"]), "read_before_edit_required")
      yield* same(yield* outcome(["three"]), "read_before_edit_required")
      yield* same(yield* outcome([]), "read_before_edit_required")
      yield* put("one\n")
      yield* same(yield* outcome(["one"]), "stale_read")
    })
  },
  {
    name: "keeps a whole read whole when a part of the same content is read again",
    law: Effect.gen(function*() {
      const { observe, outcome } = yield* fileOf("one\n")
      yield* observe("read", "one\n", false)
      yield* observe("read", "one\n", true)
      yield* same(yield* outcome(), "licensed")
    })
  },
  {
    name: "takes parts of one content that join on to each other from its beginning for the whole",
    law: Effect.gen(function*() {
      const text = "1\n2\n3\n4\n5\n"
      const { outcome, page, put } = yield* fileOf(text)
      yield* page(text, 4, 7)
      yield* page(text, 0, 4)
      yield* page(text, 7, null)
      yield* same(yield* outcome(), "read_before_edit_required")
      yield* page(text, 2, 7)
      yield* page(text, 0, 2)
      yield* same(yield* outcome(), "read_before_edit_required")
      yield* page(text, 7, null)
      yield* same(yield* outcome(), "licensed")
      yield* put("1\n")
      yield* page("1\n", 1, null)
      yield* same(yield* outcome(), "read_before_edit_required")
    })
  },
  {
    name: "names the call that helps: the first place that is missing, and the revisions when they differ",
    law: Effect.gen(function*() {
      const sha256 = yield* Digest
      const text = "1\r\n2\n\u00e93456\n"
      const { page, put, refusal } = yield* fileOf(text)
      yield* same((yield* refusal()).nextAction.arguments.offset, undefined)
      yield* page(text, 3, null)
      yield* same((yield* refusal()).nextAction.arguments.offset, undefined)
      yield* page(text, 0, 5)
      yield* same((yield* refusal()).nextAction.arguments.offset, 3)
      yield* same((yield* refusal()).nextAction.arguments.column, undefined)
      yield* page(text, 5, 8)
      const { arguments: next } = (yield* refusal()).nextAction
      yield* same(`${next.offset}:${next.column}`, "3:3")
      yield* put("others\n")
      const { code, currentVersion, nextAction, readVersion } = yield* refusal(["others"])
      yield* same(code, "stale_read")
      yield* same(readVersion, short(sha256(text)))
      yield* same(currentVersion, short(sha256("others\n")))
      yield* same(nextAction.arguments.offset, undefined)
    })
  },
  {
    name: "judges by the content it is given rather than by what is there",
    law: Effect.gen(function*() {
      const sha256 = yield* Digest
      const { observe, outcome, resolved, tracker } = yield* fileOf("one\n")
      yield* observe("read", "one\n", false)
      const bytes = new TextEncoder().encode("two\n")
      const target = { path: "file.txt", requiresRead: true, quotes: [] }
      const refused = yield* Effect.flip(tracker.require(thread, resolved, target, { bytes, hash: sha256(bytes) }))
      yield* same(refused.code, "stale_read")
      yield* same(yield* outcome(), "licensed")
    })
  },
  {
    name: "is refreshed by the thread's own writes, as much as it knew before",
    law: Effect.gen(function*() {
      const { observe, outcome, put } = yield* fileOf("one\n")
      yield* observe("read", "one\n", true)
      yield* put("two\n")
      yield* observe("write", "two\n", true)
      yield* same(yield* outcome(), "read_before_edit_required")
      yield* same(yield* outcome(["two"]), "licensed")
      yield* put("three\n")
      yield* observe("write", "three\n", false)
      yield* same(yield* outcome(), "licensed")
      yield* put("four\n")
      yield* observe("write", "four\n", true)
      yield* same(yield* outcome(), "licensed")
    })
  },
  {
    name: "licenses a new file, and what needs no read",
    law: Effect.gen(function*() {
      const { fs, physical, resolved, tracker } = yield* fileOf("one\n")
      const target = { path: "file.txt", requiresRead: true, quotes: [] }
      yield* tracker.require(thread, resolved, { ...target, requiresRead: false })
      yield* tracker.require(thread, { ...resolved, exists: false }, target)
      yield* fs.remove(physical)
      yield* tracker.require(thread, resolved, target)
    })
  },
  {
    name: "forgets a thread when told to",
    law: Effect.gen(function*() {
      const { observe, outcome, tracker } = yield* fileOf("one\n")
      yield* observe("read", "one\n", false)
      yield* tracker.clear(thread)
      yield* same(yield* outcome(), "read_before_edit_required")
    })
  },
  {
    name: "remembers the 128 files and the 128 threads used last",
    law: Effect.gen(function*() {
      const { observe, outcome, physical, tracker } = yield* fileOf("one\n")
      const seen: Observation = { access: "read", path: physical, hash: "", partial: false }
      yield* observe("read", "one\n", false)
      for (let index = 0; index < 127; index++) yield* tracker.observe(thread, { ...seen, path: `/laws/${index}` })
      yield* same(yield* outcome(), "licensed")
      for (let index = 0; index < 128; index++) yield* tracker.observe(thread, { ...seen, path: `/more/${index}` })
      yield* same(yield* outcome(), "read_before_edit_required")
      yield* observe("read", "one\n", false)
      for (let index = 0; index < 127; index++) yield* tracker.observe(ThreadId.make(`laws-${index}`), seen)
      yield* same(yield* outcome(), "licensed")
      for (let index = 0; index < 128; index++) yield* tracker.observe(ThreadId.make(`more-${index}`), seen)
      yield* same(yield* outcome(), "read_before_edit_required")
    })
  }
]
