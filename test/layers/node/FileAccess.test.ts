import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { execFileSync } from "node:child_process"
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import * as NodeFileAccess from "../../../layers/node/FileAccess.ts"
import { FileAccess } from "../../../src/file/FileAccess.ts"
import { laws } from "../../../src/testing/contract/FileAccess.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

const platform = Layer.merge(NodeFileSystem.layer, NodePath.layer)
const layers = {
  "FileAccess on descriptors": NodeFileAccess.layer(),
  "FileAccess on descriptors without names": NodeFileAccess.layer({ descriptors: "/no/such/folder" })
}

/** Descriptors that this process has open on something in a folder; others come and go meanwhile. */
const openIn = (folder: string): ReadonlyArray<string> =>
  readdirSync("/proc/self/fd").filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).includes(folder)
    } catch {
      return false
    }
  })

for (const [name, layer] of Object.entries(layers)) {
  describe(name, () => {
    for (const { law, name } of laws) it.scopedLive(name, () => Effect.provide(law, Layer.merge(layer, platform)))
  })
}

const listening = (socket: string) =>
  Effect.acquireRelease(
    Effect.async<ReturnType<typeof createServer>>((resume) => {
      const server = createServer().listen(socket, () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.async<void>((resume) => void server.close(() => resume(Effect.void)))
  )

describe("FileAccess on a real disk", () => {
  it.scopedLive("P06: refuses a FIFO, a socket, a device, a directory and a link at once, and keeps nothing open", () =>
    Effect.gen(function*() {
      const folder = yield* temporaryFolder
      const access = yield* FileAccess
      execFileSync("mkfifo", [join(folder, "fifo")])
      yield* listening(join(folder, "socket"))
      mkdirSync(join(folder, "directory"))
      symlinkSync("/dev/zero", join(folder, "link"))
      const before = readdirSync("/proc/self/fd").length
      for (const path of ["fifo", "socket", "directory", "link", "/dev/zero", "/dev/tty"]) {
        for (const write of [false, true]) {
          const started = performance.now()
          const exit = yield* Effect.exit(access.open(join(path.startsWith("/") ? "" : folder, path), { write }))
          assert.isBelow(performance.now() - started, 100, path)
          assert.isTrue(Exit.isFailure(exit), path)
          if (path !== "/dev/tty") assert.include(String(exit), "BadResource", path)
        }
      }
      // Refusals close what they opened themselves, not only with the scope.
      assert.strictEqual(readdirSync("/proc/self/fd").length, before)
    }).pipe(Effect.provide(layers["FileAccess on descriptors"])))

  it.scopedLive("a held directory stays the same one when it is renamed and another put in its place", () =>
    Effect.gen(function*() {
      const folder = yield* temporaryFolder
      const access = yield* FileAccess
      const [name, moved, outside] = ["d", "moved", "outside"].map((entry) => join(folder, entry)) as [
        string,
        string,
        string
      ]
      mkdirSync(name)
      mkdirSync(outside)
      writeFileSync(join(outside, "f"), "theirs")
      const held = yield* access.hold(name)
      renameSync(name, moved)
      for (const other of ["directory", "link"]) {
        if (other === "directory") mkdirSync(name)
        else symlinkSync(outside, name)
        const file = yield* access.create(held.at(`${other}.txt`))
        yield* file.overwrite(new TextEncoder().encode("ours"))
        assert.strictEqual(readFileSync(join(moved, `${other}.txt`), "utf8"), "ours")
        assert.deepStrictEqual(readdirSync(outside), ["f"])
        if (other === "directory") {
          assert.deepStrictEqual(readdirSync(name), [])
          rmdirSync(name)
        }
      }
      assert.isFalse(existsSync(held.at("f")))
    }).pipe(Effect.provide(layers["FileAccess on descriptors"])))

  it.live("keeps nothing open after its scope, nor after an interruption at any step", () =>
    Effect.gen(function*() {
      const folder = yield* temporaryFolder
      const access = yield* FileAccess
      const path = join(folder, "f")
      writeFileSync(path, "x".repeat(1_000_000))
      const use = Effect.scoped(Effect.gen(function*() {
        const held = yield* access.hold(folder)
        const file = yield* access.open(held.at("f"), { write: true })
        yield* file.read(0, 1_000_000)
        yield* file.overwrite(new Uint8Array(1_000_000).fill(120))
      }))
      yield* use
      for (let yields = 0; yields < 40; yields++) {
        const entered = yield* Deferred.make<void>()
        const fiber = yield* Effect.fork(Effect.zipRight(Deferred.succeed(entered, undefined), use))
        yield* Deferred.await(entered)
        yield* Effect.repeatN(Effect.yieldNow({ priority: 1 }), yields)
        if (yields % 4 === 3) yield* Effect.sleep(yields / 10)
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(openIn(folder), [])
      }
      assert.strictEqual(readFileSync(path, "utf8"), "x".repeat(1_000_000))
    }).pipe(Effect.scoped, Effect.provide(layers["FileAccess on descriptors"])))
})
