import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as LogLevel from "effect/LogLevel"
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync
} from "node:fs"
import { dirname, join } from "node:path"
import { Digest } from "../../src/contract/Digest.ts"
import * as ToolCall from "../../src/contract/ToolCall.ts"
import { StateUnavailable } from "../../src/contract/ToolFailure.ts"
import { FileAccess, layerPortable } from "../../src/file/FileAccess.ts"
import * as FileChange from "../../src/file/FileChange.ts"
import { FileHistory, type Recorded } from "../../src/file/FileHistory.ts"
import { FileMutationQueue } from "../../src/file/FileMutationQueue.ts"
import { ReadTracker } from "../../src/file/ReadTracker.ts"
import { utf8 } from "../../src/file/TextFile.ts"
import { WorkspacePath } from "../../src/file/WorkspacePath.ts"
import { ToolInvocation, type WriteGrant } from "../../src/tool/ToolInvocation.ts"
import { codeOf, platform, services, world } from "../fixtures/files.ts"
import { bundle, startCommand } from "../support/childProcess.ts"
import { count } from "../support/counts.ts"

const call = { callId: ToolCall.make({ toolName: "t" }).callId, toolName: "t" }
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

/** A workspace, and changes and restores in it; what the history was told is in `recorded`. */
const desk = Effect.gen(function*() {
  const { base, outside, turn, workspace } = yield* world
  const tracker = yield* ReadTracker
  const paths = yield* WorkspacePath
  const sha256 = yield* Digest
  const recorded: Array<Recorded> = []
  let brokenBy: Effect.Effect<void, StateUnavailable> = Effect.void
  const history = FileHistory.of({
    record: (change) => Effect.zipRight(brokenBy, Effect.sync(() => void recorded.push(change))),
    list: () => Effect.succeed([]),
    bytes: () => Effect.succeed(undefined)
  })
  const at = (name: string) => join(workspace, name)
  const change = (path: string, text: string, meanwhile?: () => void, grants: ReadonlyArray<WriteGrant> = []) =>
    FileChange.change({ path, requiresRead: false, quotes: [] }, () =>
      Effect.sync(() => {
        meanwhile?.()
        return { text, encoding: utf8, whole: true, value: "value" }
      })).pipe(
        Effect.provideService(FileHistory, history),
        Effect.provideService(ToolInvocation, {
          turn,
          call: { ...call, kind: "file_change", arguments: {}, digest: "" },
          grants,
          progress: () => Effect.void,
          observe: (observation) => tracker.observe(turn.threadId, observation)
        })
      )
  return {
    base,
    outside,
    workspace,
    turn,
    paths,
    recorded,
    hash: sha256,
    at,
    put: (name: string, content: string) => writeFileSync(at(name), content),
    disk: (name: string) => readFileSync(at(name), "utf8"),
    all: () => readdirSync(workspace, { recursive: true, encoding: "utf8" }).sort(),
    breakHistory: (effect: Effect.Effect<void, StateUnavailable>) => {
      brokenBy = effect
    },
    grantOf: (file: string) => Effect.flatMap(paths.resolve(turn, file), paths.identify),
    change,
    restore: (path: string, expected: string | null, text: string | null) =>
      FileChange.restore({
        turn,
        call,
        path,
        expected: expected === null ? null : sha256(expected),
        bytes: text === null ? null : bytes(text)
      }).pipe(Effect.provideService(FileHistory, history))
  }
})

const onNames = Layer.provideMerge(layerPortable, platform)

describe("a change", () => {
  it.scopedLive("says what it did, and tells the history first", () =>
    Effect.gen(function*() {
      const { at, change, disk, hash, put, recorded, turn } = yield* desk
      put("f", "before")
      assert.deepStrictEqual(yield* change("f", "after", () => assert.lengthOf(recorded, 0)), {
        created: false,
        inPlace: false,
        path: "f",
        bytesWritten: 5,
        hash: hash("after"),
        value: "value"
      })
      yield* change("new/f", "made")
      assert.deepStrictEqual([disk("f"), disk("new/f")], ["after", "made"])
      const { threadId, turnId } = turn
      assert.deepStrictEqual(
        recorded.map(({ bytes: kept, ...rest }) => ({
          ...rest,
          before: rest.before && { ...rest.before, text: new TextDecoder().decode(kept.before ?? undefined) },
          after: rest.after && { ...rest.after, text: new TextDecoder().decode(kept.after ?? undefined) }
        })),
        [
          {
            ...{ threadId, turnId, ...call, path: at("f") },
            before: { hash: hash("before"), byteSize: 6, text: "before" },
            after: { hash: hash("after"), byteSize: 5, text: "after" }
          },
          {
            ...{ threadId, turnId, ...call, path: at("new/f") },
            before: null,
            after: { hash: hash("made"), byteSize: 4, text: "made" }
          }
        ]
      )
    }).pipe(Effect.provide(services)))

  it.scopedLive("is made though the history fails, and not before the history has it", () =>
    Effect.gen(function*() {
      const { breakHistory, change, disk, put } = yield* desk
      put("f", "v0")
      const broken = [
        Effect.fail(new StateUnavailable({ code: "state_unavailable", reason: "no", executed: false })),
        Effect.die("a bug")
      ]
      for (const [index, how] of broken.entries()) {
        breakHistory(Effect.suspend(() => {
          assert.strictEqual(disk("f"), `v${index}`)
          return how
        }))
        yield* change("f", `v${index + 1}`)
        assert.strictEqual(disk("f"), `v${index + 1}`)
      }
      const entered = yield* Deferred.make<void>()
      breakHistory(Effect.zipRight(Deferred.succeed(entered, undefined), Effect.never))
      const fiber = yield* Effect.fork(change("f", "never"))
      yield* Deferred.await(entered)
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(disk("f"), "v2")
      breakHistory(Effect.void)
      yield* change("f", "the lock is free")
    }).pipe(Logger.withMinimumLogLevel(LogLevel.None), Effect.provide(services)))

  it.scopedLive("lands nowhere when a directory on its way is swapped for a link after the check", () =>
    Effect.gen(function*() {
      const { all, at, change, outside, put } = yield* desk
      for (const kind of ["link outside", "link inside", "directory"]) {
        for (const name of ["deep/dir/f", "deep/dir/new"]) {
          mkdirSync(at("deep/dir"), { recursive: true })
          mkdirSync(at("other/dir"), { recursive: true })
          put("deep/dir/f", "v1")
          let seen: ReadonlyArray<string> = []
          const code = yield* codeOf(change(name, "ours", () => {
            renameSync(at("deep"), at("away"))
            if (kind === "directory") mkdirSync(at("deep/dir"), { recursive: true })
            else symlinkSync(kind === "link outside" ? outside : at("other"), at("deep"))
            seen = all()
          }))
          assert.strictEqual(code, "path_changed", `${kind} ${name}`)
          assert.deepStrictEqual([all(), readdirSync(outside)], [seen, []])
          assert.strictEqual(readFileSync(at("away/dir/f"), "utf8"), "v1")
          for (const entry of ["deep", "away", "other"]) rmSync(at(entry), { recursive: true })
        }
      }
    }).pipe(Effect.provide(services)))

  it.scopedLive("does not land where its directory was moved to", () =>
    Effect.gen(function*() {
      const { at, change, outside } = yield* desk
      mkdirSync(at("d"))
      const away = join(outside, "d")
      assert.strictEqual(yield* codeOf(change("d/new", "ours", () => renameSync(at("d"), away))), "path_changed")
      assert.deepStrictEqual(readdirSync(away), [])
    }).pipe(Effect.provide(services)))

  it.scopedLive("makes directories through no link that appears meanwhile", () =>
    Effect.gen(function*() {
      const { at, change, outside } = yield* desk
      const code = yield* codeOf(change("a/b/f", "ours", () => symlinkSync(outside, at("a"))))
      assert.strictEqual(code, "path_changed")
      assert.deepStrictEqual(readdirSync(outside), [])
    }).pipe(Effect.provide(services)))

  it.scopedLive("says that its folder is gone when that vanishes meanwhile, and makes it no more", () =>
    Effect.gen(function*() {
      const { all, at, change, put } = yield* desk
      for (const name of ["d/e/new", "d/e/f"]) {
        mkdirSync(at("d/e"), { recursive: true })
        if (name === "d/e/f") put(name, "v1")
        const code = yield* codeOf(change(name, "ours", () => rmSync(at("d"), { recursive: true })))
        assert.strictEqual(code, "path_changed")
        assert.deepStrictEqual(all(), [])
      }
    }).pipe(Effect.provide(services)))

  it.scopedLive("takes a second name that a writer killed while it made the file left for no hard link of the user's", () =>
    Effect.gen(function*() {
      const { all, at, change, disk, put } = yield* desk
      const access = yield* FileAccess
      let temporary = ""
      const watching = FileAccess.of({
        ...access,
        create: (path, mode) => {
          temporary = path.slice(path.lastIndexOf("/") + 1)
          return access.create(path, mode)
        }
      })
      yield* Effect.provideService(change("f", "v1"), FileAccess, watching)
      // Killed between the link and the removal of its first name.
      linkSync(at("f"), at(temporary))
      assert.deepInclude(yield* change("f", "v2"), { inPlace: false })
      assert.deepStrictEqual([disk("f"), all()], ["v2", ["f"]])
      linkSync(at("f"), at("g"))
      put(temporary, "half of v3")
      assert.deepInclude(yield* change("f", "v3"), { inPlace: true })
      assert.deepStrictEqual([disk("g"), all()], ["v3", ["f", "g"]])
    }).pipe(Effect.provide(services)))

  it.scopedLive("leaves a file alone that nobody may write, whoever asks", () =>
    Effect.gen(function*() {
      const { all, at, change, disk, put } = yield* desk
      put("f", "v1")
      chmodSync(at("f"), 0o555)
      assert.strictEqual(yield* codeOf(change("f", "v2")), "file_access_denied")
      assert.deepStrictEqual([disk("f"), all()], ["v1", ["f"]])
    }).pipe(Effect.provide(services)))

  it.scopedLive("makes no directory for what comes to nothing", () =>
    Effect.gen(function*() {
      const { all, change } = yield* desk
      assert.strictEqual(yield* codeOf(change("a/b/f", "half \ud83d")), "text_invalid")
      assert.deepStrictEqual(all(), [])
    }).pipe(Effect.provide(services)))

  it.scopedLive("refuses a file that may not be read or not be written", () =>
    Effect.gen(function*() {
      const { base, change, put, workspace } = yield* desk
      if (process.getuid?.() === 0) {
        // Whoever may do anything is refused nothing, so become somebody else for the time.
        chmodSync(base, 0o777)
        chmodSync(workspace, 0o777)
      }
      put("f", "v1")
      yield* Effect.acquireRelease(
        Effect.sync(() => process.getuid?.() === 0 && process.seteuid?.(65534)),
        () => Effect.sync(() => process.getuid?.() === 0 && process.seteuid?.(0))
      )
      assert.strictEqual(yield* codeOf(change("mine", "v1")), "none")
      for (const mode of [0o444, 0o222, 0]) {
        chmodSync(join(workspace, "mine"), mode)
        assert.strictEqual(yield* codeOf(change("mine", "v2")), "file_access_denied", mode.toString(8))
      }
      chmodSync(join(workspace, "mine"), 0o644)
      assert.strictEqual(readFileSync(join(workspace, "mine"), "utf8"), "v1")
    }).pipe(Effect.scoped, Effect.provide(services)))
})

describe("a file outside that was approved", () => {
  const outsideFile = Effect.gen(function*() {
    const place = yield* desk
    const file = join(place.outside, "notes")
    writeFileSync(file, "v1")
    return { ...place, file, grant: yield* place.grantOf(file) }
  })

  it.scopedLive("is read and written through one handle", () =>
    Effect.gen(function*() {
      const { change, file, grant, outside } = yield* outsideFile
      const { ino } = statSync(file)
      assert.isTrue((yield* change(file, "v2", undefined, [grant])).inPlace)
      assert.deepStrictEqual([readFileSync(file, "utf8"), statSync(file).ino], ["v2", ino])
      assert.deepStrictEqual(readdirSync(outside), ["notes"])
    }).pipe(Effect.provide(services)))

  it.scopedLive("is left alone, and so is whatever took its name, when anything about it is not as approved", () =>
    Effect.gen(function*() {
      const { base, change, file, grantOf, outside } = yield* outsideFile
      const folder = dirname(file)
      const secret = join(base, "secret")
      writeFileSync(secret, "secret")
      const swaps: Record<string, () => void> = {
        file: () => {
          renameSync(file, join(base, "moved"))
          writeFileSync(file, "another")
        },
        link: () => {
          unlinkSync(file)
          symlinkSync(secret, file)
        },
        "hard link": () => linkSync(file, join(base, "second")),
        gone: () => unlinkSync(file),
        directory: () => {
          unlinkSync(file)
          mkdirSync(file)
        },
        parent: () => {
          renameSync(folder, join(base, "elsewhere"))
          mkdirSync(folder)
          renameSync(join(base, "elsewhere/notes"), file)
        },
        "parent link": () => {
          renameSync(folder, join(base, "elsewhere"))
          symlinkSync(join(base, "elsewhere"), folder)
        }
      }
      for (const [what, swap] of Object.entries(swaps)) {
        for (const when of ["before", "meanwhile"]) {
          for (const name of ["notes", "moved", "second", "elsewhere"]) {
            rmSync(join(base, name), { recursive: true, force: true })
          }
          rmSync(outside, { recursive: true, force: true })
          mkdirSync(outside)
          writeFileSync(file, "v1")
          const now = yield* grantOf(file)
          if (when === "before") swap()
          const code = yield* codeOf(change(file, "ours", when === "before" ? undefined : swap, [now]))
          const allowed = when === "before" ? ["sandbox_write_blocked"] : ["path_changed"]
          assert.include(allowed, code, `${what} ${when}`)
          assert.strictEqual(readFileSync(secret, "utf8"), "secret")
          for (const name of readdirSync(base, { recursive: true, encoding: "utf8" })) {
            const path = join(base, name)
            if (statSync(path).isFile()) assert.notStrictEqual(readFileSync(path, "utf8"), "ours", `${what} ${when}`)
          }
        }
      }
    }).pipe(Effect.provide(services)))
})

describe("restore", () => {
  it.scopedLive("puts bytes back, makes what is gone and removes what was made, and records that", () =>
    Effect.gen(function*() {
      const { all, at, disk, hash, put, recorded, restore } = yield* desk
      put("f", "now")
      chmodSync(at("f"), 0o755)
      assert.deepStrictEqual(yield* restore(at("f"), "now", "then"), { inPlace: false })
      assert.strictEqual(disk("f"), "then")
      assert.strictEqual(statSync(at("f")).mode & 0o777, 0o755)
      yield* restore("f", "then", null)
      assert.isFalse(existsSync(at("f")))
      yield* restore("a/b/f", null, "\ufffe not text \0")
      yield* restore("gone", null, null)
      assert.deepStrictEqual(all(), ["a", "a/b", "a/b/f"])
      assert.deepStrictEqual(
        recorded.map(({ after, before, path }) => [path, before?.hash, after?.hash]),
        [
          [at("f"), hash("now"), hash("then")],
          [at("f"), hash("then"), undefined],
          [at("a/b/f"), undefined, hash("\ufffe not text \0")]
        ]
      )
    }).pipe(Effect.provide(services)))

  it.scopedLive("changes nothing that is not what is expected", () =>
    Effect.gen(function*() {
      const { all, disk, put, recorded, restore } = yield* desk
      put("f", "theirs")
      for (const [expected, text] of [["ours", "then"], [null, "then"], ["ours", null], [null, null]] as const) {
        assert.strictEqual(yield* codeOf(restore("f", expected, text)), "path_changed")
      }
      assert.strictEqual(yield* codeOf(restore("none", "ours", "then")), "path_changed")
      assert.strictEqual(yield* codeOf(restore("none", "ours", null)), "path_changed")
      assert.strictEqual(disk("f"), "theirs")
      assert.deepStrictEqual([all(), recorded], [["f"], []])
    }).pipe(Effect.provide(services)))

  it.scopedLive("is held to the same rules as a change", () =>
    Effect.gen(function*() {
      const { at, disk, outside, put, restore } = yield* desk
      writeFileSync(join(outside, "f"), "theirs")
      symlinkSync(outside, at("out"))
      for (const path of [join(outside, "f"), "out/f", ".git/config"]) {
        assert.strictEqual(yield* codeOf(restore(path, "theirs", null)), "sandbox_write_blocked")
      }
      mkdirSync(at("d"))
      assert.strictEqual(yield* codeOf(restore("d", null, "x")), "is_a_directory")
      put("f", "now")
      linkSync(at("f"), at("g"))
      assert.deepStrictEqual(yield* restore("f", "now", "then"), { inPlace: true })
      assert.strictEqual(disk("g"), "then")
      assert.deepStrictEqual(readdirSync(outside), ["f"])
    }).pipe(Effect.provide(services)))

  it.scopedLive("waits for its turn", () =>
    Effect.gen(function*() {
      const { at, disk, put, restore } = yield* desk
      const queue = yield* FileMutationQueue
      put("f", "now")
      const gate = yield* Deferred.make<void>()
      const entered = yield* Deferred.make<void>()
      const holder = yield* Effect.fork(
        queue.withFile(at("f"), Effect.zipRight(Deferred.succeed(entered, undefined), Deferred.await(gate)))
      )
      yield* Deferred.await(entered)
      const waiter = yield* Effect.fork(codeOf(restore("f", "now", "then")))
      yield* Effect.sleep(20)
      put("f", "changed meanwhile")
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(holder)
      assert.strictEqual(yield* Fiber.join(waiter), "path_changed")
      assert.strictEqual(disk("f"), "changed meanwhile")
    }).pipe(Effect.provide(services)))
})

describe("an interruption", () => {
  for (const [name, layer] of [["on descriptors", platform], ["over any file system", onNames]] as const) {
    it.scopedLive(`at any moment leaves the old file or the new one, a free lock and nothing open, ${name}`, () =>
      Effect.gen(function*() {
        const { all, change, disk, put } = yield* desk
        const queue = yield* FileMutationQueue
        const versions = ["a".repeat(300_000), "b".repeat(200_000)]
        put("f", versions[0] ?? "")
        yield* change("f", versions[1] ?? "")
        const before = readdirSync("/proc/self/fd").length
        for (let round = 0; round < count({ quick: 40, soak: 200 }); round++) {
          const fiber = yield* Effect.fork(change(round % 3 === 0 ? `dir/new${round}` : "f", versions[round % 2] ?? ""))
          const pause = Math.random() * 12
          if (pause < 4) yield* Effect.repeatN(Effect.yieldNow(), Math.floor(pause * 20))
          else yield* Effect.sleep(pause - 4)
          yield* Fiber.interrupt(fiber)
          assert.include(versions, disk("f"))
          for (const entry of all()) {
            assert.notInclude(entry, ".tmp")
            if (entry.startsWith("dir/")) assert.include(versions, disk(entry))
          }
          assert.strictEqual((yield* queue.metrics).held, 0)
          assert.strictEqual(readdirSync("/proc/self/fd").length, before)
        }
        yield* change("f", "the last word")
        assert.strictEqual(disk("f"), "the last word")
      }).pipe(Effect.provide(Layer.merge(services, layer))))
  }
})

describe("a reader in another process", () => {
  it.scopedLive("E20: never sees a partial file during 200 writes", () =>
    Effect.gen(function*() {
      const { at, change, put } = yield* desk
      const versions = ["a".repeat(100_000), "b".repeat(150_000)]
      put("f", versions[0] ?? "")
      const script = `
        const { readFileSync } = require("node:fs")
        let reads = 0, torn = 0, stop = false
        process.stdin.on("data", () => { stop = true })
        const look = () => {
          for (let index = 0; index < 20; index++) {
            const seen = readFileSync(process.argv[1], "latin1")
            reads++
            const whole = seen[0] === "a" ? 100000 : 150000
            if (seen.length !== whole || seen !== seen[0].repeat(whole)) torn++
          }
          if (reads === 20) console.log("ready")
          if (stop) { console.log(JSON.stringify([reads > 100, torn])); process.exit(0) }
          setImmediate(look)
        }
        look()`
      const child = yield* startCommand([process.execPath, "-e", script, at("f")])
      assert.strictEqual(yield* child.line, "ready")
      for (let index = 1; index <= 200; index++) yield* change("f", versions[index % 2] ?? "")
      yield* child.send("stop")
      assert.deepStrictEqual(JSON.parse(yield* child.line), [true, 0])
    }).pipe(Effect.provide(services)))
})

describe("a full disk", () => {
  it.scopedLive("fails a change by its code and leaves the old file whole, in place or not, and no other", () =>
    Effect.gen(function*() {
      const { all, at, disk, put } = yield* desk
      put("f", "old\n")
      put("linked", "old too\n")
      linkSync(at("linked"), at("second"))
      const script = yield* bundle("fullFile.ts")
      // A file size limit refuses bytes as a full disk does.
      const limited = "ulimit -f 500; exec \"$0\" \"$@\""
      const child = yield* startCommand(["bash", "-c", limited, process.execPath, script, at("")])
      assert.deepStrictEqual(JSON.parse(yield* child.line), ["file_io_failed", "file_io_failed", "file_io_failed"])
      assert.strictEqual(yield* child.ended, 0)
      assert.deepStrictEqual(all(), ["f", "linked", "second"])
      assert.deepStrictEqual([disk("f"), disk("linked")], ["old\n", "old too\n"])
    }).pipe(Effect.provide(services)))
})
