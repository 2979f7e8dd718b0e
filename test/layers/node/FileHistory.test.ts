import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as NodeFileHistory from "../../../layers/node/FileHistory.ts"
import type { FileHistory } from "../../../src/file/FileHistory.ts"
import { change, laws } from "../../../src/testing/contract/FileHistory.ts"
import { bundle, start } from "../../support/childProcess.ts"
import { count } from "../../support/counts.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

const rootIn = Effect.map(temporaryFolder, (folder) => join(folder, "history"))
const blobNames = (root: string) => Fs.readdirSync(join(root, "blobs"))
const logs = (root: string) => Fs.readdirSync(join(root, "changes")).map((name) => join(root, "changes", name))

/** That every change of a process up to a number is there, in order, with the bytes of both versions. */
const isWhole = Effect.fnUntraced(function*(history: FileHistory["Type"], name: string, last: number) {
  const listed = yield* history.list({ path: `/${name}` })
  const calls = listed.map(({ callId }) => Number(callId))
  assert.deepStrictEqual(calls, Array.from(calls, (_, index) => index))
  assert.isAtLeast(calls.length, last + 1)
  for (const { after, before } of listed) {
    for (const version of [before, after]) {
      if (version !== null) assert.strictEqual((yield* history.bytes(version.hash))?.length, version.byteSize)
    }
  }
  return listed
})

const noPartialBlob = (root: string) => {
  for (const name of blobNames(root)) {
    if (name.endsWith(".tmp")) continue
    const lines = Fs.readFileSync(join(root, "blobs", name), "utf8").split("\n")
    assert.strictEqual(lines.length, 1001)
    assert.strictEqual(new Set(lines).size, 2)
  }
}

describe("FileHistory in a directory", { timeout: 120_000 }, () => {
  for (const { law, name } of laws) {
    it.scopedLive(name, () => Effect.flatMap(rootIn, (root) => Effect.provide(law, NodeFileHistory.layer({ root }))))
  }

  it.scopedLive("outlives its process, and is open to its owner alone", () =>
    Effect.gen(function*() {
      const root = yield* rootIn
      const earlier = yield* NodeFileHistory.make({ root })
      const recorded = yield* change("/a", "before", "after")
      yield* earlier.record(recorded)
      const history = yield* NodeFileHistory.make({ root })
      assert.deepStrictEqual((yield* history.list()).map(({ path }) => path), ["/a"])
      assert.strictEqual(Buffer.from((yield* history.bytes(recorded.before?.hash ?? "")) ?? []).toString(), "before")
      const blobs = blobNames(root).map((name) => join(root, "blobs", name))
      assert.deepStrictEqual(
        [root, join(root, "blobs"), join(root, "changes")].map((path) => Fs.statSync(path).mode & 0o777),
        [0o700, 0o700, 0o700]
      )
      for (const path of [...blobs, ...logs(root)]) assert.strictEqual(Fs.statSync(path).mode & 0o777, 0o600)
    }))

  it.scopedLive("takes no link for its root, and says so when the root is gone for good", () =>
    Effect.gen(function*() {
      const root = yield* rootIn
      const history = yield* NodeFileHistory.make({ root })
      Fs.symlinkSync(root, `${root}-link`)
      assert.strictEqual(
        (yield* Effect.flip(NodeFileHistory.make({ root: `${root}-link` }))).code,
        "state_unavailable"
      )
      Fs.rmSync(root, { recursive: true })
      yield* Effect.flatMap(change("/a", null, "1"), history.record)
      assert.strictEqual((yield* history.list()).length, 1)
      Fs.rmSync(root, { recursive: true })
      Fs.writeFileSync(root, "a file now")
      const failure = yield* Effect.flip(Effect.flatMap(change("/a", null, "1"), history.record))
      assert.strictEqual(failure.code, "state_unavailable")
    }))

  it.scopedLive("refuses a change that would write elsewhere, or that never fits", () =>
    Effect.gen(function*() {
      const root = yield* rootIn
      const history = yield* NodeFileHistory.make({ root, quota: 10_000 })
      const good = yield* change("/a", null, "text")
      for (
        const bad of [
          { ...good, after: { hash: "../out", byteSize: 4 } },
          { ...good, path: "a\0b" },
          { ...good, path: "x".repeat(5000) },
          yield* change("/a", null, "x".repeat(10_001))
        ]
      ) {
        assert.strictEqual((yield* Effect.flip(history.record(bad))).code, "state_unavailable")
      }
      assert.deepStrictEqual(yield* history.list(), [])
      assert.isFalse(Fs.existsSync(join(root, "out")))
    }))

  it.scopedLive("leaves out what is damaged, and keeps the rest", () =>
    Effect.gen(function*() {
      const root = yield* rootIn
      const history = yield* NodeFileHistory.make({ root })
      const [first, second, third] = [
        yield* change("/a", null, "first"),
        yield* change("/b", null, "second"),
        yield* change("/c", null, "third")
      ]
      yield* history.record(first)
      const [log = ""] = logs(root)
      // The half of a line that a killed process left, and lines of somebody else.
      Fs.appendFileSync(log, `\n{"threadId":"thr`)
      yield* history.record(second)
      Fs.appendFileSync(log, Buffer.from([0xff, 0xfe, 0, 0x0a]))
      Fs.appendFileSync(log, `[1]\n{"dropped":1}\n${"[".repeat(10_000)}\n`)
      Fs.appendFileSync(log, Fs.readFileSync(log, "utf8").split("\n")[1]?.replace("\"/a\"", "\"a\\u0000\"") ?? "")
      yield* history.record(third)
      assert.deepStrictEqual((yield* history.list()).map(({ path }) => path), ["/a", "/b", "/c"])

      const blob = (recorded: typeof first) => join(root, "blobs", recorded.after?.hash ?? "")
      Fs.writeFileSync(blob(first), "FIRST")
      Fs.rmSync(blob(second))
      Fs.mkdirSync(blob(second))
      Fs.truncateSync(blob(third), 2)
      for (const recorded of [first, second, third]) {
        assert.isUndefined(yield* history.bytes(recorded.after?.hash ?? ""))
      }
      // A version of another size than its name says is written anew.
      yield* history.record(third)
      assert.isDefined(yield* history.bytes(third.after?.hash ?? ""))

      Fs.writeFileSync(join(root, "changes", "2.log"), "x".repeat(2 ** 21))
      Fs.writeFileSync(join(root, "changes", "foreign"), "x")
      assert.deepStrictEqual((yield* history.list()).length, 4)
      yield* history.record(yield* change("/d", null, "fourth"))
      assert.deepStrictEqual((yield* history.list()).length, 5)
    }))

  it.scopedLive("keeps to its quota over processes: the oldest turns go as a whole, and blobs without a change", () =>
    Effect.gen(function*() {
      const root = yield* rootIn
      const old = (path: string) => Fs.utimesSync(path, 1, 1)
      const record = (history: FileHistory["Type"], turn: string, letter: string) =>
        Effect.tap(change(`/${letter}`, null, letter.repeat(20_000), { turn }), history.record)
      const earlier = yield* NodeFileHistory.make({ root })
      for (const [turn, letter] of [["long", "a"], ["short", "b"], ["long", "c"], ["new", "d"]] as const) {
        yield* record(earlier, turn, letter)
      }
      const orphan = join(root, "blobs", "0".repeat(64))
      const stray = join(root, "blobs", `${"0".repeat(24)}.tmp`)
      for (const path of [orphan, stray, join(root, "blobs", "foreign")]) Fs.writeFileSync(path, "x")
      for (const name of blobNames(root)) old(join(root, "blobs", name))
      const fresh = join(root, "blobs", "1".repeat(64))
      Fs.writeFileSync(fresh, "about to be recorded")

      const history = yield* NodeFileHistory.make({ root, quota: 90_000 })
      yield* record(history, "new", "e")
      assert.deepStrictEqual((yield* history.list()).map(({ path }) => path), ["/a", "/c", "/d", "/e"])
      assert.deepStrictEqual((yield* earlier.list()).map(({ path }) => path), ["/a", "/c", "/d", "/e"])
      assert.strictEqual(blobNames(root).length, 6)
      assert.deepStrictEqual([orphan, stray, fresh].map((path) => Fs.existsSync(path)), [false, false, true])

      // A turn that has lost its beginning stays away.
      yield* record(history, "new", "f")
      yield* record(history, "long", "g")
      yield* record(earlier, "short", "h")
      assert.notInclude((yield* history.list()).map(({ turnId }) => String(turnId)), "short")
    }))

  it.scopedLive("keeps a version that is used again while somebody clears up", () =>
    Effect.gen(function*() {
      const root = yield* rootIn
      const history = yield* NodeFileHistory.make({ root })
      yield* Effect.flatMap(change("/a", null, "again"), history.record)
      for (const name of blobNames(root)) Fs.utimesSync(join(root, "blobs", name), 1, 1)
      const again = yield* change("/b", null, "again", { turn: "later" })
      yield* history.record(again)
      const [name = ""] = blobNames(root)
      assert.isAbove(Fs.statSync(join(root, "blobs", name)).mtimeMs, 60_000)
    }))

  it.scopedLive("bounds the number of changes, and its log", () =>
    Effect.gen(function*() {
      const root = yield* rootIn
      const history = yield* NodeFileHistory.make({ root, maxChanges: 500 })
      const path = `/${"x".repeat(2000)}`
      for (let index = 0; index < 1200; index++) {
        yield* Effect.flatMap(change(path, null, "same", { turn: `${index}` }), history.record)
      }
      const listed = yield* history.list()
      assert.strictEqual(listed.at(-1)?.turnId, "1199")
      assert.isAtMost(listed.length, 700)
      assert.isAtMost(logs(root).length, 7)
      const sequences = listed.map(({ sequence }) => sequence)
      assert.deepStrictEqual(sequences, [...sequences].sort((left, right) => left - right))
    }))

  it.scopedLive("drops thousands of turns at once without losing what stays", () =>
    Effect.gen(function*() {
      const root = yield* rootIn
      const earlier = yield* NodeFileHistory.make({ root, maxChanges: 100_000 })
      const thread = "t".repeat(200)
      const add = (history: FileHistory["Type"], turn: string, content = "same") =>
        Effect.flatMap(change("/a", null, content, { thread, turn, call: turn }), history.record)
      for (let index = 0; index < 3000; index++) {
        if (index % 100 === 0) yield* add(earlier, "long")
        yield* add(earlier, `${index}`.padEnd(200, "x"))
      }
      const history = yield* NodeFileHistory.make({ root, maxChanges: 40, quota: 16_384 })
      // Enough for it to look around.
      yield* add(history, "long", "x".repeat(2000))
      yield* add(history, "long")
      const listed = yield* history.list()
      assert.isAtMost(listed.length, 40)
      assert.strictEqual(listed.filter(({ turnId }) => turnId === "long").length, 32)
    }))

  it.scopedLive("lets others work while it reads and clears up a long log", () =>
    Effect.gen(function*() {
      const root = yield* rootIn
      const earlier = yield* NodeFileHistory.make({ root })
      for (let index = 0; index < count({ quick: 1500, soak: 5000 }); index++) {
        yield* Effect.flatMap(change("/a", null, `${index}`, { turn: `${index}` }), earlier.record)
      }
      const history = yield* NodeFileHistory.make({ root, maxChanges: 100, quota: 2 ** 20 })
      let ticks = 0
      const timer = setInterval(() => ticks++, 1)
      yield* history.list()
      const whileReading = ticks
      yield* Effect.flatMap(change("/a", null, "last".repeat(20_000)), history.record)
      clearInterval(timer)
      assert.isAtLeast(whileReading, 3)
      assert.isAtLeast(ticks - whileReading, 3)
      assert.isAtMost((yield* history.list()).length, 100)
    }))

  it.scopedLive("counts a line once that was appended to two segments", () =>
    Effect.gen(function*() {
      const root = yield* rootIn
      const history = yield* NodeFileHistory.make({ root })
      yield* Effect.flatMap(change("/a", null, "1"), history.record)
      Fs.copyFileSync(join(root, "changes", "1.log"), join(root, "changes", "2.log"))
      assert.strictEqual((yield* history.list()).length, 1)
    }))

  it.scopedLive("keeps the changes of one file in the order they were made, whichever store recorded them", () =>
    Effect.gen(function*() {
      const root = yield* rootIn
      const stores = [yield* NodeFileHistory.make({ root }), yield* NodeFileHistory.make({ root })]
      const path = `/${"x".repeat(2000)}`
      for (let index = 0; index < 400; index++) {
        const store = stores[(index * 7 + (index >> 3)) % 2]
        yield* Effect.flatMap(
          change(path, null, "same", { call: `${index}` }),
          (made) => store?.record(made) ?? Effect.void
        )
      }
      assert.isAbove(logs(root).length, 2)
      const calls = (yield* stores[0]?.list() ?? Effect.succeed([])).map(({ callId }) => Number(callId))
      assert.deepStrictEqual(calls, Array.from({ length: 400 }, (_, index) => index))
    }))

  it.scopedLive("loses nothing that was recorded when its process is killed, whatever others record meanwhile", () =>
    Effect.gen(function*() {
      const root = yield* rootIn
      const script = yield* bundle("recorder.ts")
      const killed = Effect.fnUntraced(function*(name: string) {
        const child = yield* start(script, root, name)
        assert.strictEqual(yield* child.line, "ready")
        const lines = 1 + Math.floor(Math.random() * 40)
        let last = -1
        for (let line = 0; line < lines; line++) last = Number(yield* child.line)
        yield* Effect.sleep(Math.random() * 3)
        yield* child.kill("SIGKILL")
        yield* child.ended
        return { name, last }
      }, Effect.scoped)
      const names = Array.from({ length: count({ quick: 5, soak: 100 }) }, (_, index) => `killed${index}`)
      const all = yield* Effect.forEach(names, killed, { concurrency: 4 })
      const history = yield* NodeFileHistory.make({ root })
      for (const { last, name } of all) yield* isWhole(history, name, last)
      noPartialBlob(root)
    }))

  it.scopedLive("serves two processes at once, also while they clear up after each other", () =>
    Effect.gen(function*() {
      const root = yield* rootIn
      const script = yield* bundle("recorder.ts")
      const each = count({ quick: 500, soak: 2400 })
      const children = yield* Effect.forEach(["one", "two"], (name) => start(script, root, name, String(each)))
      for (const child of children) assert.strictEqual(yield* child.ended, 0)
      const history = yield* NodeFileHistory.make({ root })
      for (const name of ["one", "two"]) yield* isWhole(history, name, each - 1)
      assert.isAbove(logs(root).length, 1)
      const sequences = (yield* history.list()).map(({ sequence }) => sequence)
      assert.strictEqual(new Set(sequences).size, 2 * each)
      noPartialBlob(root)

      // 40 versions of 13 KB fit.
      const small = yield* rootIn
      const tidying = yield* Effect.forEach(
        ["one", "two"],
        (name) => start(script, small, name, "200", String(40 * 13_000))
      )
      for (const child of tidying) assert.strictEqual(yield* child.ended, 0)
      const trimmed = yield* NodeFileHistory.make({ root: small })
      const left = yield* trimmed.list()
      assert.isAtMost(left.length, 100)
      for (const { after, before } of left) {
        for (const version of [before, after]) {
          if (version !== null) assert.isDefined(yield* trimmed.bytes(version.hash))
        }
      }
    }))
})
