import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as Ripgrep from "../../../layers/node/Ripgrep.ts"
import * as SpillDirectory from "../../../layers/node/SpillDirectory.ts"
import * as Subprocess from "../../../layers/node/Subprocess.ts"
import * as CapabilityRegistry from "../../../src/catalog/CapabilityRegistry.ts"
import type { JsonObject } from "../../../src/contract/Json.ts"
import { ThreadId } from "../../../src/contract/Turn.ts"
import * as WorkspacePath from "../../../src/file/WorkspacePath.ts"
import * as ToolHost from "../../../src/host/ToolHost.ts"
import { bounded, SpillStore } from "../../../src/spill/SpillStore.ts"
import { laws } from "../../../src/testing/contract/SpillStore.ts"
import * as ToolProvider from "../../../src/tool/ToolProvider.ts"
import { grep } from "../../../src/tools/grep.ts"
import { read } from "../../../src/tools/read.ts"
import { write } from "../../../src/tools/write.ts"
import { executeIn, Test } from "../../support/plane.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

const thread = ThreadId.make("thread")
const other = ThreadId.make("other")
const find = (locator: string) =>
  Effect.sync(() => Fs.existsSync(locator) ? Fs.readFileSync(locator, "utf8") : undefined)

const openedAt = (root: string, quota?: number) =>
  SpillDirectory.make({ root, ...(quota === undefined ? {} : { quota }) })

/** Every file below, as `<folder>/<name>`. */
const listing = (root: string) =>
  Fs.readdirSync(root, { recursive: true }).map(String).filter((name) => Fs.statSync(join(root, name)).isFile())

const setTime = (locator: string, seconds: number) => Fs.utimesSync(locator, seconds, seconds)

describe("SpillStore in a directory", () => {
  for (const { law, name } of laws(find)) {
    it.scopedLive(
      name,
      () =>
        Effect.flatMap(
          temporaryFolder,
          (folder) => Effect.provide(law, SpillDirectory.layer({ root: join(folder, "spill") }))
        )
    )
  }

  it.scopedLive("is open to its owner alone, and files never leave the thread's own folder", () =>
    Effect.gen(function*() {
      const root = join(yield* temporaryFolder, "deep", "spill")
      const store = yield* openedAt(root)
      const { locator } = yield* store.save(thread, "../../../etc/passwd", "text")
      const [folder] = SpillDirectory.readable(root)({ threadId: thread })
      assert.match(locator.slice(root.length), /^\/[0-9a-f]{16}\/[0-9a-f]{24}-\.\._\.\._\.\._etc_passwd$/)
      assert.isTrue(locator.startsWith(`${folder}/`))
      const modes = [root, folder ?? "", locator].map((path) => Fs.statSync(path).mode & 0o777)
      assert.deepStrictEqual(modes, [0o700, 0o700, 0o600])
    }))

  it.scopedLive("closes a root that was open to others, and takes no link or file for one", () =>
    Effect.gen(function*() {
      const folder = yield* temporaryFolder
      const root = join(folder, "spill")
      Fs.mkdirSync(root)
      Fs.chmodSync(root, 0o777)
      yield* openedAt(root)
      assert.strictEqual(Fs.statSync(root).mode & 0o777, 0o700)
      Fs.symlinkSync(root, join(folder, "link"))
      Fs.writeFileSync(join(folder, "file"), "")
      for (const name of ["link", "file"]) {
        assert.strictEqual((yield* Effect.flip(openedAt(join(folder, name)))).code, "state_unavailable")
      }
    }))

  it.scopedLive("lets the oldest go first when the quota is reached, whosever they are, and their empty folders", () =>
    Effect.gen(function*() {
      const root = join(yield* temporaryFolder, "spill")
      const store = yield* openedAt(root, 95_000)
      const save = (threadId: ThreadId, name: string, time: number) =>
        Effect.tap(
          store.save(threadId, name, "x".repeat(30_000)),
          ({ locator }) => Effect.sync(() => setTime(locator, time))
        )
      const newest = yield* save(thread, "newest", 300)
      const oldest = yield* save(other, "oldest", 100)
      const middle = yield* save(thread, "middle", 200)
      Fs.writeFileSync(join(root, "foreign"), "x".repeat(90_000))
      const last = yield* save(thread, "last", 400)
      assert.deepStrictEqual(
        [oldest, middle, newest, last].map(({ locator }) => Fs.existsSync(locator)),
        [false, false, true, true]
      )
      assert.deepStrictEqual(Fs.readdirSync(root).length, 2)
      assert.strictEqual(
        (yield* Effect.flip(store.save(thread, "huge", "x".repeat(95_001)))).code,
        "state_unavailable"
      )
      assert.isTrue(Fs.existsSync(last.locator))
    }))

  it.scopedLive("keeps to the quota with what an earlier process left, and counts small files as a block", () =>
    Effect.gen(function*() {
      const root = join(yield* temporaryFolder, "spill")
      const before = yield* openedAt(root)
      for (let index = 0; index < 20; index++) yield* before.save(thread, "small", "x")
      const store = yield* openedAt(root, 10 * 4096)
      yield* store.save(thread, "small", "x")
      assert.isAtMost(listing(root).length, 10)
    }))

  it.scopedLive("never turns a result into a failure when the directory is gone for good", () =>
    Effect.gen(function*() {
      const root = join(yield* temporaryFolder, "spill")
      const store = yield* openedAt(root)
      Fs.rmSync(root, { recursive: true })
      assert.strictEqual(yield* find((yield* store.save(thread, "n", "again")).locator), "again")
      Fs.rmSync(root, { recursive: true })
      Fs.writeFileSync(root, "a file now")
      const failure = yield* Effect.flip(store.save(thread, "n", "text"))
      assert.isTrue(failure.executed)
      const shown = yield* bounded(store, thread, "n", "a\nb\nc\nd\n", { maxLines: 3 })
      assert.deepStrictEqual([shown.truncated, shown.spilled], [true, undefined])
    }))
})

describe("what was spilled", () => {
  const provider = ToolProvider.make({ id: "files", kind: "built-in", tools: [read, grep, write] })
  const planeOver = (root: string) =>
    ToolHost.layer().pipe(
      Layer.provideMerge(CapabilityRegistry.layer([provider])),
      Layer.provideMerge(Layer.mergeAll(
        WorkspacePath.layerWith({ readable: SpillDirectory.readable(root) }),
        SpillDirectory.layer({ root }),
        Ripgrep.layer,
        Subprocess.layer()
      )),
      Layer.provideMerge(Test.services())
    )

  it.scopedLive("is read and searched by its locator in the thread it was saved for, and in no other", () =>
    Effect.gen(function*() {
      const folder = yield* temporaryFolder
      const workspace = join(folder, "ws")
      Fs.mkdirSync(workspace)
      const root = join(folder, "spill")
      yield* Effect.gen(function*() {
        const store = yield* SpillStore
        const text = Array.from({ length: 5000 }, (_, index) => `line ${index}\n`).join("")
        const shown = yield* bounded(store, thread, "bash output", text)
        const locator = shown.spilled?.locator ?? ""
        assert.include(shown.text, `the whole is at ${locator}: read it with read or grep …]`)
        const ask = (threadId: string, toolName: string, args: JsonObject) =>
          executeIn({ threadId, workspace, approvalPolicy: "auto" }, { toolName, arguments: args })

        const page = yield* ask("thread", "read", { path: locator, offset: 2500, limit: 1 })
        assert.include(JSON.stringify(page.output), "\"content\":\"line 2499\\n\"")
        const found = yield* ask("thread", "grep", { pattern: "line 4321$", path: locator })
        assert.include(JSON.stringify(found.output), "line 4321")
        const below = yield* ask("thread", "grep", { pattern: "line 4321$", path: join(locator, "..") })
        assert.include(JSON.stringify(below.output), "line 4321")

        for (const [threadId, path] of [["other", locator], ["thread", root], ["thread", folder]] as const) {
          assert.strictEqual((yield* ask(threadId, "read", { path })).code, "outside_workspace")
          assert.strictEqual((yield* ask(threadId, "grep", { pattern: ".", path })).code, "outside_workspace")
        }
        const put = yield* ask("thread", "write", { path: join(locator, "..", "new.txt"), content: "x" })
        assert.strictEqual(put.code, "sandbox_write_blocked")
        assert.strictEqual(Fs.readFileSync(locator, "utf8"), text)
      }).pipe(Effect.provide(planeOver(root)))
    }))
})
