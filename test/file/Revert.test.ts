import * as FileSystem from "@effect/platform/FileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { dirname, join } from "node:path"
import { CallId } from "../../src/contract/ToolCall.ts"
import { ThreadId, TurnId } from "../../src/contract/Turn.ts"
import { restore } from "../../src/file/FileChange.ts"
import { FileHistory } from "../../src/file/FileHistory.ts"
import * as Revert from "../../src/file/Revert.ts"
import { ToolHost } from "../../src/host/ToolHost.ts"
import { change } from "../../src/testing/contract/FileHistory.ts"
import { Test, workspace } from "../support/plane.ts"

type Content = string | Uint8Array | null

const put = (path: string, content: Content) => {
  Fs.mkdirSync(dirname(path), { recursive: true })
  if (content === null) Fs.rmSync(path)
  else Fs.writeFileSync(path, content)
}

const bytesOf = (content: string | Uint8Array) => Buffer.from(content)

/** Records and publishes a change, as a file tool does, from what is on disk. */
const changed = Effect.fnUntraced(function*(path: string, after: Content, ids: Parameters<typeof change>[3] = {}) {
  const before = Fs.existsSync(path) ? Fs.readFileSync(path) : null
  yield* Effect.flatMap(change(path, before, after, ids), (yield* FileHistory).record)
  put(path, after)
})

const ref = (turn: string, thread = "thread") => ({ threadId: ThreadId.make(thread), turnId: TurnId.make(turn) })

const undo = (root: string, turn: string, by = "undo", extra: { readonly restore?: typeof restore } = {}) =>
  Effect.gen(function*() {
    const host = yield* ToolHost
    const session = yield* host.openTurn({ workspace: root, threadId: "thread", turnId: by })
    return yield* Revert.revert({
      turn: yield* session.turn,
      undo: ref(turn),
      callId: CallId.make("call"),
      restore: extra.restore ?? restore
    })
  }).pipe(Effect.scoped)

const outcomes = (turns: ReadonlyArray<Revert.TurnChanges>) =>
  turns.map((
    { files, turnId }
  ) => [turnId, ...files.map(({ outcome, path }) => `${outcome} ${path.split("/").at(-1)}`)])

const within = <A, E>(
  body: (root: string) => Effect.Effect<A, E, FileHistory | ToolHost | Test.Services>
) =>
  Effect.gen(function*() {
    const { root } = yield* workspace
    return yield* body(root)
  }).pipe(Effect.provide(Test.layer([])), Effect.scoped)

describe("changes of a turn", () => {
  it.live("are told by turn and file, from the first to the last of them", () =>
    within((root) =>
      Effect.gen(function*() {
        const [a, b, c] = [join(root, "a"), join(root, "b"), join(root, "c")]
        put(a, "1\n")
        put(c, "c\n")
        yield* changed(a, "2\n", { turn: "t1", tool: "edit" })
        yield* changed(b, "new\n", { turn: "t1", tool: "write" })
        yield* changed(a, "3\n", { turn: "t1", tool: "write" })
        yield* changed(c, null, { turn: "t2", tool: "revert" })
        yield* changed(b, "other\n", { turn: "t2" })
        yield* changed(b, "new\n", { turn: "t2" })
        const turns = yield* Revert.changes()
        assert.deepStrictEqual(outcomes(turns), [["t1", "modified a", "created b"], ["t2", "nothing b", "removed c"]])
        assert.deepStrictEqual(turns[0]?.files[0]?.tools, ["edit", "write"])
        assert.deepStrictEqual(
          [turns[0]?.files[0]?.before?.byteSize, turns[0]?.files[1]?.before, turns[1]?.files[1]?.after],
          [2, null, null]
        )
        assert.deepStrictEqual(outcomes(yield* Revert.changes({ turnId: TurnId.make("t2") })).length, 1)
        assert.deepStrictEqual(outcomes(yield* Revert.changes({ path: c })), [["t2", "removed c"]])
        assert.deepStrictEqual(yield* Revert.changes({ threadId: ThreadId.make("other") }), [])
      })
    ))

  it.live("that never reached the disk came to nothing", () =>
    within((root) =>
      Effect.gen(function*() {
        const history = yield* FileHistory
        const [a, b] = [join(root, "a"), join(root, "b")]
        put(a, "1")
        yield* Effect.flatMap(change(a, "1", "never", { turn: "t1" }), history.record)
        yield* Effect.flatMap(change(b, null, "never", { turn: "t1" }), history.record)
        assert.deepStrictEqual(outcomes(yield* Revert.changes()), [["t1", "nothing a", "nothing b"]])
        yield* changed(a, "2", { turn: "t1" })
        assert.deepStrictEqual(outcomes(yield* Revert.changes()), [["t1", "modified a", "nothing b"]])
        const done = yield* undo(root, "t1")
        assert.deepStrictEqual(done, {
          restored: [{ path: a, inPlace: false }],
          unchanged: [b],
          refused: [],
          untouched: []
        })
        assert.strictEqual(Fs.readFileSync(a, "utf8"), "1")
        assert.isFalse(Fs.existsSync(b))
      })
    ))

  it.live("are shown as differences, binary ones by their size", () =>
    within((root) =>
      Effect.gen(function*() {
        const [a, b, c] = [join(root, "a"), join(root, "b"), join(root, "c")]
        put(a, "one\ntwo\n")
        put(b, new Uint8Array([0, 1, 2]))
        yield* changed(a, "one\nTWO\n", { turn: "t1" })
        yield* changed(b, new Uint8Array([0, 1, 2, 3]), { turn: "t1" })
        yield* changed(c, "new\n", { turn: "t1" })
        const [text, binary, created] = yield* Revert.diff(ref("t1"), (path) => path.slice(root.length + 1))
        assert.include(text?.diff, "-two\n+TWO")
        assert.include(text?.patch, "a/a")
        assert.deepStrictEqual([binary?.diff, binary?.patch], ["binary, 3 → 4 bytes", null])
        assert.include(created?.diff, "+new")
        const [first] = yield* (yield* FileHistory).list()
        assert.strictEqual((yield* Revert.diff(first ?? ref("t1"))).length, 3)
        assert.deepStrictEqual(yield* Revert.diff(ref("gone")), [])
      })
    ))
})

describe("revert", () => {
  const exact: ReadonlyArray<readonly [string, string | Uint8Array]> = [
    ["CRLF", "x\r\ny\r\n"],
    ["mixed endings", "one\r\ntwo\nthree\rfour"],
    ["a byte order mark", new Uint8Array([0xef, 0xbb, 0xbf, 0x61, 0x0d, 0x0a])],
    ["UTF-16", new Uint8Array([0xff, 0xfe, 0x61, 0, 0x0d, 0, 0x0a, 0])],
    ["GBK", new Uint8Array([0x2f, 0x2f, 0x20, 0xc4, 0xe3, 0xba, 0xc3, 0x0a])],
    ["bytes of all kinds", Uint8Array.from({ length: 1024 }, (_, index) => index % 256)],
    ["nothing", ""]
  ]
  for (const [name, content] of exact) {
    it.live(`E02: restores the exact first bytes of a file with ${name}`, () =>
      within((root) =>
        Effect.gen(function*() {
          const path = join(root, "deep/file")
          put(path, content)
          Fs.chmodSync(path, 0o751)
          yield* changed(path, "y\nz\nw", { turn: "t1" })
          yield* changed(path, "and more", { turn: "t1" })
          assert.deepStrictEqual((yield* undo(root, "t1")).restored, [{ path, inPlace: false }])
          assert.deepStrictEqual(Fs.readFileSync(path), bytesOf(content))
          assert.strictEqual(Fs.statSync(path).mode & 0o777, 0o751)
          assert.deepStrictEqual(Fs.readdirSync(dirname(path)), ["file"])
        })
      ))
  }

  it.live("removes what was created, and a revert of the revert brings it back", () =>
    within((root) =>
      Effect.gen(function*() {
        const [a, b] = [join(root, "a"), join(root, "folder/b")]
        put(a, "1")
        yield* changed(a, "2", { turn: "t1" })
        yield* changed(b, "new", { turn: "t1" })
        yield* undo(root, "t1", "undo")
        assert.deepStrictEqual([Fs.readFileSync(a, "utf8"), Fs.existsSync(b)], ["1", false])
        assert.isTrue(Fs.existsSync(dirname(b)))
        const [, back] = yield* Revert.changes()
        assert.deepStrictEqual(outcomes(back === undefined ? [] : [back]), [["undo", "modified a", "removed b"]])
        assert.deepStrictEqual(back?.files[0]?.tools, ["revert"])

        Fs.rmdirSync(dirname(b))
        yield* undo(root, "undo", "redo")
        assert.deepStrictEqual([Fs.readFileSync(a, "utf8"), Fs.readFileSync(b, "utf8")], ["2", "new"])
        assert.strictEqual((yield* undo(root, "t1", "again")).restored.length, 2)
        assert.deepStrictEqual([Fs.readFileSync(a, "utf8"), Fs.existsSync(b)], ["1", false])
        assert.deepStrictEqual(yield* undo(root, "t1", "twice"), {
          restored: [],
          unchanged: [a, b],
          refused: [],
          untouched: []
        })
      })
    ))

  it.live("brings back a removed file with no more rights than it had", () =>
    within((root) =>
      Effect.gen(function*() {
        const modes = { secret: 0o600, script: 0o755, plain: 0o644 }
        for (const [name, mode] of Object.entries(modes)) {
          yield* changed(join(root, name), name, { turn: "t1" })
          Fs.chmodSync(join(root, name), mode)
        }
        yield* undo(root, "t1", "undo")
        assert.deepStrictEqual(Fs.readdirSync(root), [])
        yield* undo(root, "undo", "again")
        for (const [name, mode] of Object.entries(modes)) {
          assert.strictEqual(Fs.statSync(join(root, name)).mode & 0o777, mode)
        }
      })
    ))

  it.live("touches nothing when somebody has changed one of the files since, and says who", () =>
    within((root) =>
      Effect.gen(function*() {
        const [a, b, c] = [join(root, "a"), join(root, "b"), join(root, "c")]
        for (const path of [a, b, c]) put(path, "before")
        for (const path of [a, b, c]) yield* changed(path, "after", { turn: "t1" })
        put(b, "by hand")
        yield* changed(c, "later", { turn: "t2", tool: "write" })
        const done = yield* undo(root, "t1")
        assert.deepStrictEqual(done.restored, [])
        assert.deepStrictEqual(done.untouched, [a])
        assert.deepStrictEqual(done.refused.map(({ path }) => path), [b, c])
        assert.match(done.refused[0]?.reason ?? "", /^was changed since by somebody or something that keeps no record/)
        assert.strictEqual(done.refused[1]?.reason, "was changed since by write in turn t2 of thread thread")
        assert.deepStrictEqual([a, b, c].map((path) => Fs.readFileSync(path, "utf8")), ["after", "by hand", "later"])
        assert.deepStrictEqual(yield* Revert.changes({ turnId: TurnId.make("undo") }), [])
      })
    ))

  it.live("refuses a file that is gone, or is no file any more", () =>
    within((root) =>
      Effect.gen(function*() {
        const paths = ["gone", "folder", "link", "parent/file"].map((name) => join(root, name))
        const [gone = "", folder = "", link = "", below = ""] = paths
        for (const path of paths) {
          put(path, "before")
          yield* changed(path, "after", { turn: "t1" })
        }
        for (const path of paths.slice(0, 3)) Fs.rmSync(path)
        Fs.mkdirSync(folder)
        put(join(root, "elsewhere"), "after")
        Fs.symlinkSync(join(root, "elsewhere"), link)
        Fs.renameSync(dirname(below), join(root, "moved"))
        Fs.symlinkSync(join(root, "moved"), dirname(below))
        const done = yield* undo(root, "t1")
        assert.deepStrictEqual(done.refused.map(({ path }) => path), [...paths].sort())
        assert.strictEqual(Fs.existsSync(gone), false)
        assert.strictEqual(Fs.readFileSync(join(root, "elsewhere"), "utf8"), "after")
        assert.strictEqual(Fs.readFileSync(join(root, "moved/file"), "utf8"), "after")
      })
    ))

  it.live("refuses a file that somebody else changed between two changes of the turn", () =>
    within((root) =>
      Effect.gen(function*() {
        const [a, b] = [join(root, "a"), join(root, "b")]
        for (const path of [a, b]) {
          put(path, "1")
          yield* changed(path, "2", { turn: "t1" })
        }
        put(a, "by hand")
        yield* changed(b, "other", { turn: "t2" })
        for (const path of [a, b]) yield* changed(path, "3", { turn: "t1" })
        const { refused, restored } = yield* undo(root, "t1")
        assert.deepStrictEqual(restored, [])
        assert.match(refused[0]?.reason ?? "", /^was changed between the changes of the turn by somebody/)
        assert.match(refused[1]?.reason ?? "", /between the changes of the turn by edit in turn t2 /)
        assert.strictEqual(Fs.readFileSync(a, "utf8"), "3")
      })
    ))

  it.live("writes nothing outside the workspace or into protected folders, whatever the record says", () =>
    within((root) =>
      Effect.gen(function*() {
        const outside = join(root, "../outside/file")
        const git = join(root, ".git/config")
        for (const path of [outside, git]) {
          put(path, "before")
          yield* changed(path, "after", { turn: "t1" })
          assert.strictEqual((yield* undo(root, "t1")).restored.length, 0)
          assert.strictEqual(Fs.readFileSync(path, "utf8"), "after")
        }
      })
    ))

  it.live("refuses a file whose first bytes are no longer kept", () =>
    within((root) =>
      Effect.gen(function*() {
        const history = yield* FileHistory
        const path = join(root, "a")
        put(path, "1")
        yield* changed(path, "2", { turn: "t1" })
        const done = yield* Effect.provideService(undo(root, "t1"), FileHistory, {
          ...history,
          bytes: () => Effect.succeed(undefined)
        })
        assert.deepStrictEqual(done.refused, [{
          path,
          reason: "cannot be restored: what it held is no longer kept"
        }])
        assert.strictEqual(Fs.readFileSync(path, "utf8"), "2")
      })
    ))

  it.live("says which files were restored and which were not when one changes while it goes on", () =>
    within((root) =>
      Effect.gen(function*() {
        const paths = ["a", "b", "c"].map((name) => join(root, name))
        const [a = "", b = "", c = ""] = paths
        for (const path of paths) {
          put(path, "before")
          yield* changed(path, "after", { turn: "t1" })
        }
        const done = yield* undo(root, "t1", "undo", {
          restore: (options) =>
            Effect.suspend(() => {
              if (options.path === b) put(b, "by hand")
              return restore(options)
            })
        })
        assert.deepStrictEqual(done.restored, [{ path: a, inPlace: false }])
        assert.deepStrictEqual(done.refused.map(({ path }) => path), [b])
        assert.deepStrictEqual(done.untouched, [c])
        assert.deepStrictEqual(paths.map((path) => Fs.readFileSync(path, "utf8")), ["before", "by hand", "after"])
      })
    ))

  it.live("reads no file that cannot be a version on record, however large", () =>
    within((root) =>
      Effect.gen(function*() {
        const path = join(root, "a")
        put(path, "1")
        yield* changed(path, "2", { turn: "t1" })
        const fs = yield* FileSystem.FileSystem
        yield* fs.truncate(path, FileSystem.Size(2 ** 32))
        assert.match((yield* undo(root, "t1")).refused[0]?.reason ?? "", /^was changed since/)
      })
    ))
})
