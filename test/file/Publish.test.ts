import * as PlatformError from "@effect/platform/Error"
import type * as FileSystem from "@effect/platform/FileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import { chmodSync, chownSync, linkSync, readFileSync, statSync, writeFileSync } from "node:fs"
import * as Publish from "../../src/file/Publish.ts"
import { codeOf, platform, world } from "../fixtures/files.ts"

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

const full: PlatformError.PlatformError = new PlatformError.SystemError({
  reason: "Unknown",
  module: "FileSystem",
  method: "any",
  description: "ENOSPC: no space left on device"
})

const setup = Effect.gen(function*() {
  const { fs, path, workspace } = yield* world
  const file = path.join(workspace, "file.txt")
  const target = { physical: file, display: "file.txt", grant: undefined }
  return {
    fs,
    path,
    workspace,
    file,
    target,
    entries: Effect.map(fs.readDirectory(workspace), (names) => names.sort())
  }
})

describe("Publish", () => {
  it.scopedLive("keeps the mode whatever the umask, and leaves no other file", () =>
    Effect.gen(function*() {
      const { entries, file, fs, path, target } = yield* setup
      for (const mode of [0o755, 0o600, 0o664]) {
        writeFileSync(file, "v1\n")
        chmodSync(file, mode)
        assert.deepStrictEqual(yield* Publish.publish(fs, path, target, bytes("v2\n")), {
          created: false,
          inPlace: false
        })
        assert.strictEqual(statSync(file).mode & 0o7777, mode)
        assert.strictEqual(readFileSync(file, "utf8"), "v2\n")
      }
      assert.deepStrictEqual(yield* entries, ["file.txt"])
    }).pipe(Effect.provide(platform)))

  it.scopedLive("keeps the owner", () =>
    Effect.gen(function*() {
      if (process.getuid?.() !== 0) return
      const { file, fs, path, target } = yield* setup
      writeFileSync(file, "v1\n")
      chownSync(file, 1234, 2345)
      yield* Publish.publish(fs, path, target, bytes("v2\n"))
      assert.deepStrictEqual([statSync(file).uid, statSync(file).gid], [1234, 2345])
    }).pipe(Effect.provide(platform)))

  it.scopedLive("writes a file with several hard links in place and says so", () =>
    Effect.gen(function*() {
      const { file, fs, path, target, workspace } = yield* setup
      writeFileSync(file, "a longer first version\n")
      linkSync(file, path.join(workspace, "other"))
      assert.deepStrictEqual(yield* Publish.publish(fs, path, target, bytes("v2\n")), { created: false, inPlace: true })
      assert.strictEqual(readFileSync(path.join(workspace, "other"), "utf8"), "v2\n")
      assert.strictEqual(statSync(file).nlink, 2)
      yield* Publish.publish(fs, path, target, bytes(""))
      assert.strictEqual(statSync(path.join(workspace, "other")).size, 0)
    }).pipe(Effect.provide(platform)))

  it.scopedLive("creates a file, an empty one too", () =>
    Effect.gen(function*() {
      const { entries, file, fs, path, target } = yield* setup
      assert.deepStrictEqual(yield* Publish.publish(fs, path, target, bytes("")), { created: true, inPlace: false })
      assert.strictEqual(statSync(file).size, 0)
      assert.strictEqual(statSync(file).mode & 0o777, 0o666 & ~process.umask())
      assert.deepStrictEqual(yield* entries, ["file.txt"])
    }).pipe(Effect.provide(platform)))

  it.scopedLive("leaves the old file and nothing else when a write, a sync or the rename fails", () =>
    Effect.gen(function*() {
      const { entries, file, fs, path, target } = yield* setup
      writeFileSync(file, "v1\n")
      const failing: ReadonlyArray<FileSystem.FileSystem> = [
        {
          ...fs,
          open: (name, options) =>
            Effect.map(
              fs.open(name, options),
              (opened): FileSystem.File => spoilt(opened, { writeAll: () => Effect.fail(full) })
            )
        },
        {
          ...fs,
          open: (name, options) =>
            Effect.map(fs.open(name, options), (opened): FileSystem.File => spoilt(opened, { sync: Effect.fail(full) }))
        },
        { ...fs, chmod: () => Effect.fail(full) },
        { ...fs, rename: () => Effect.fail(full) },
        { ...fs, rename: () => Effect.die("a bug") }
      ]
      for (const broken of failing) {
        const exit = yield* Effect.exit(Publish.publish(broken, path, target, bytes("v2, longer\n")))
        assert.strictEqual(exit._tag, "Failure")
        assert.strictEqual(readFileSync(file, "utf8"), "v1\n")
        assert.deepStrictEqual(yield* entries, ["file.txt"])
      }
    }).pipe(Effect.provide(platform)))

  it.scopedLive("finishes before an interruption completes, with the whole new file and nothing else", () =>
    Effect.gen(function*() {
      const { entries, file, fs, path, target } = yield* setup
      writeFileSync(file, "v1\n")
      const entered = yield* Deferred.make<void>()
      const slow: FileSystem.FileSystem = {
        ...fs,
        chmod: (name, mode) =>
          Effect.zipRight(Deferred.succeed(entered, undefined), Effect.delay(fs.chmod(name, mode), 20))
      }
      const fiber = yield* Effect.fork(Publish.publish(slow, path, target, bytes("v2\n")))
      yield* Deferred.await(entered)
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(readFileSync(file, "utf8"), "v2\n")
      assert.deepStrictEqual(yield* entries, ["file.txt"])
    }).pipe(Effect.provide(platform)))

  it.scopedLive("never shows a reader an empty or partial file", () =>
    Effect.gen(function*() {
      const { file, fs, path, target } = yield* setup
      const versions = ["a".repeat(100_000), "b".repeat(150_000)]
      writeFileSync(file, "a".repeat(100_000))
      const reader = yield* Effect.fork(Effect.forever(
        Effect.map(fs.readFileString(file), (seen) => {
          if (!versions.includes(seen)) throw new Error(`saw ${seen.length} characters`)
        })
      ))
      for (let index = 0; index < 200; index++) {
        yield* Publish.publish(fs, path, target, bytes(versions[index % 2] ?? ""))
      }
      const exit = yield* Fiber.interrupt(reader)
      assert.isTrue(exit._tag === "Failure" && exit.cause._tag !== "Die")
    }).pipe(Effect.provide(platform)))

  it.scopedLive("writes an approved file through its own handle, and no other under its name", () =>
    Effect.gen(function*() {
      const { file, fs, path, target, workspace } = yield* setup
      writeFileSync(file, "v1\n")
      const info = statSync(file)
      const folder = statSync(workspace)
      const grant = { path: file, device: info.dev, inode: info.ino, parentDevice: folder.dev, parentInode: folder.ino }
      yield* Publish.publish(fs, path, { ...target, grant }, bytes("v2\n"))
      assert.strictEqual(statSync(file).ino, info.ino)
      yield* fs.rename(file, path.join(workspace, "moved"))
      writeFileSync(file, "another\n")
      assert.strictEqual(
        yield* codeOf(Publish.publish(fs, path, { ...target, grant }, bytes("v3\n"))),
        "sandbox_write_blocked"
      )
      assert.strictEqual(readFileSync(file, "utf8"), "another\n")
    }).pipe(Effect.provide(platform)))

  it.scopedLive("writes in place where the directory takes no new file, but creates nothing there", () =>
    Effect.gen(function*() {
      const { entries, file, fs, path, target } = yield* setup
      const denied = new PlatformError.SystemError({ reason: "PermissionDenied", module: "FileSystem", method: "open" })
      const closed: FileSystem.FileSystem = {
        ...fs,
        open: (name, options) => options?.flag === "wx" ? Effect.fail(denied) : fs.open(name, options)
      }
      assert.strictEqual(yield* codeOf(Publish.publish(closed, path, target, bytes("v1\n"))), "file_access_denied")
      writeFileSync(file, "v1\n")
      assert.deepStrictEqual(yield* Publish.publish(closed, path, target, bytes("v2\n")), {
        created: false,
        inPlace: true
      })
      assert.strictEqual(readFileSync(file, "utf8"), "v2\n")
      assert.deepStrictEqual(yield* entries, ["file.txt"])
    }).pipe(Effect.provide(platform)))

  it.scopedLive("does not take the place of a file that somebody else creates meanwhile", () =>
    Effect.gen(function*() {
      const { entries, file, fs, path, target } = yield* setup
      const raced: FileSystem.FileSystem = {
        ...fs,
        link: (from, to) => Effect.zipRight(Effect.sync(() => writeFileSync(file, "theirs\n")), fs.link(from, to))
      }
      assert.strictEqual(yield* codeOf(Publish.publish(raced, path, target, bytes("ours\n"))), "path_changed")
      assert.strictEqual(readFileSync(file, "utf8"), "theirs\n")
      assert.deepStrictEqual(yield* entries, ["file.txt"])
    }).pipe(Effect.provide(platform)))

  it.scopedLive("creates a file where there are no hard links", () =>
    Effect.gen(function*() {
      const { entries, file, fs, path, target } = yield* setup
      const published = yield* Publish.publish({ ...fs, link: () => Effect.fail(full) }, path, target, bytes("v1\n"))
      assert.deepStrictEqual(published, { created: true, inPlace: false })
      assert.strictEqual(readFileSync(file, "utf8"), "v1\n")
      assert.deepStrictEqual(yield* entries, ["file.txt"])
    }).pipe(Effect.provide(platform)))

  it.scopedLive("refuses a directory and a device", () =>
    Effect.gen(function*() {
      const { fs, path, target, workspace } = yield* setup
      const result = yield* Effect.either(Publish.publish(fs, path, { ...target, physical: workspace }, bytes("x")))
      assert.strictEqual(Either.isLeft(result) && result.left.code, "is_a_directory")
      const device = { ...target, physical: "/dev/null" }
      assert.strictEqual(yield* codeOf(Publish.publish(fs, path, device, bytes("x"))), "not_a_regular_file")
    }).pipe(Effect.provide(platform)))
})

const spoilt = (file: FileSystem.File, changes: Partial<FileSystem.File>): FileSystem.File =>
  new Proxy(file, {
    get: (opened, key) => {
      if (Object.hasOwn(changes, key)) return Reflect.get(changes, key)
      const value: unknown = Reflect.get(opened, key, opened)
      return typeof value === "function" ? value.bind(opened) : value
    }
  })
