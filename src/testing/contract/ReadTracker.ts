/**
 * What every `ReadTracker` does, as data: run each law with a Layer of your own and a file system.
 *
 * @since 0.1.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Digest } from "../../contract/Digest.ts"
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
  const resolved: Resolved = { lexical: physical, physical, relative: "file.txt", inside: true, exists: true }
  const put = (text: string) => fs.writeFileString(physical, text)
  const observe = (access: Observation["access"], text: string, partial: boolean, threadId = thread) =>
    tracker.observe(threadId, { access, path: physical, hash: sha256(text), partial })
  /** The code of the refusal, or `licensed`. */
  const outcome = (quotes: ReadonlyArray<string> = [], threadId = thread) =>
    Effect.match(tracker.require(threadId, resolved, { path: "file.txt", requiresRead: true, quotes }), {
      onFailure: (refusal): string => refusal.code,
      onSuccess: () => "licensed"
    })
  yield* put(content)
  return { fs, tracker, physical, resolved, put, observe, outcome }
})

const same = (actual: string, expected: string): Effect.Effect<void, string> =>
  actual === expected ? Effect.void : Effect.fail(`${actual} instead of ${expected}`)

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
