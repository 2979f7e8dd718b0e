import * as PlatformError from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import {
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { Digest } from "../../src/contract/Digest.ts"
import { FileAccess, layerPortable, type OpenFile } from "../../src/file/FileAccess.ts"
import * as Publish from "../../src/file/Publish.ts"
import { codeOf, platform, world } from "../fixtures/files.ts"

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

const problem = (reason: PlatformError.SystemErrorReason, method = "any"): PlatformError.PlatformError =>
  new PlatformError.SystemError({ reason, module: "FileSystem", method, description: "as the test wants it" })
const full = problem("Unknown")

const setup = Effect.gen(function*() {
  const { outside, workspace } = yield* world
  const files: Publish.Files = {
    fs: yield* FileSystem.FileSystem,
    path: yield* Path.Path,
    access: yield* FileAccess,
    sha256: yield* Digest
  }
  const display = "file.txt"
  return {
    files,
    outside,
    workspace,
    file: join(workspace, display),
    entries: () => readdirSync(workspace).sort(),
    /** What `change` does around publishing; `meanwhile` comes between the reading and the writing. */
    publish: (text: string, using: Partial<Publish.Files> = {}, meanwhile?: () => void, granted = false) =>
      Effect.scoped(Effect.gen(function*() {
        const broken = { ...files, ...using }
        const parent = yield* Publish.enterMade(files, workspace, display)
        const file = yield* Effect.option(files.access.open(parent.at(display), { write: true }))
        const before = file._tag === "None" ? undefined : { file: file.value, info: yield* file.value.info }
        meanwhile?.()
        const target = { parent, folder: workspace, name: display, display, before, granted }
        return yield* Publish.publish(broken, target, bytes(text))
      }))
  }
})

/** A `FileAccess` whose new files are spoilt. */
const spoilt = (access: FileAccess["Type"], changes: (file: OpenFile) => Partial<OpenFile>): FileAccess["Type"] => ({
  ...access,
  create: (path, mode) => Effect.map(access.create(path, mode), (file) => ({ ...file, ...changes(file) }))
})

const layers = {
  Publish: platform,
  "Publish over any file system": Layer.provideMerge(layerPortable, platform)
}

for (const [name, layer] of Object.entries(layers)) {
  describe(name, () => {
    it.scopedLive("E20: keeps the mode whatever the umask, set-id and sticky bits too, and leaves no other file", () =>
      Effect.gen(function*() {
        const { entries, file, publish } = yield* setup
        writeFileSync(file, "v0\n")
        const before = process.umask()
        yield* Effect.addFinalizer(() => Effect.sync(() => process.umask(before)))
        for (const umask of [0o077, 0o000, 0o777]) {
          process.umask(umask)
          for (const mode of [0o755, 0o600, 0o664, 0o666, 0o4755, 0o6775, 0o1644]) {
            chmodSync(file, mode)
            assert.deepStrictEqual(yield* publish(`${mode}`), { created: false, inPlace: false })
            assert.strictEqual(statSync(file).mode & 0o7777, mode)
            assert.strictEqual(readFileSync(file, "utf8"), `${mode}`)
          }
        }
        assert.deepStrictEqual(entries(), ["file.txt"])
      }).pipe(Effect.provide(layer)))

    it.scopedLive("keeps the owner, and a mode that lets nobody in", () =>
      Effect.gen(function*() {
        if (process.getuid?.() !== 0) return
        const { file, publish } = yield* setup
        writeFileSync(file, "v1\n")
        chownSync(file, 1234, 2345)
        for (const mode of [0o4711, 0o200, 0]) {
          chmodSync(file, mode)
          yield* publish("v2\n")
          const { gid, mode: now, uid } = statSync(file)
          assert.deepStrictEqual([uid, gid, now & 0o7777], [1234, 2345, mode])
        }
      }).pipe(Effect.provide(layer)))

    it.scopedLive("E19: writes a file with several hard links in place and says so", () =>
      Effect.gen(function*() {
        const { file, publish, workspace } = yield* setup
        const other = join(workspace, "other")
        writeFileSync(file, "a longer first version\n")
        linkSync(file, other)
        for (const text of ["v2\n", "", "a third version, which is the longest\n"]) {
          assert.deepStrictEqual(yield* publish(text), { created: false, inPlace: true })
          assert.strictEqual(readFileSync(other, "utf8"), text)
        }
        assert.strictEqual(statSync(file).nlink, 2)
      }).pipe(Effect.provide(layer)))

    it.scopedLive("creates a file, an empty one too", () =>
      Effect.gen(function*() {
        const { entries, file, publish } = yield* setup
        assert.deepStrictEqual(yield* publish(""), { created: true, inPlace: false })
        assert.strictEqual(statSync(file).size, 0)
        assert.strictEqual(statSync(file).mode & 0o7777, 0o666 & ~process.umask())
        assert.strictEqual(statSync(file).nlink, 1)
        assert.deepStrictEqual(entries(), ["file.txt"])
      }).pipe(Effect.provide(layer)))

    it.scopedLive("leaves the old file and nothing else when a write, a sync or the rename fails", () =>
      Effect.gen(function*() {
        const { entries, file, files, publish } = yield* setup
        const { access, fs } = files
        writeFileSync(file, "v1\n")
        const failing: ReadonlyArray<Partial<Publish.Files>> = [
          { access: { ...access, create: () => Effect.fail(full) } },
          { access: spoilt(access, () => ({ overwrite: () => Effect.fail(full) })) },
          {
            access: spoilt(access, (file) => ({
              overwrite: (bytes) => Effect.zipRight(file.overwrite(bytes), Effect.fail(full))
            }))
          },
          { access: spoilt(access, () => ({ overwrite: () => Effect.die("a bug") })) },
          { fs: { ...fs, rename: () => Effect.fail(full) } },
          { fs: { ...fs, rename: () => Effect.die("a bug") } }
        ]
        for (const broken of failing) {
          const exit = yield* Effect.exit(publish("v2, longer\n", broken))
          assert.strictEqual(exit._tag, "Failure")
          assert.strictEqual(readFileSync(file, "utf8"), "v1\n")
          assert.deepStrictEqual(entries(), ["file.txt"])
        }
      }).pipe(Effect.provide(layer)))

    it.scopedLive("finishes before an interruption completes, with the whole new file and nothing else", () =>
      Effect.gen(function*() {
        const { entries, file, files, publish } = yield* setup
        writeFileSync(file, "v1\n")
        const entered = yield* Deferred.make<void>()
        const slow = spoilt(files.access, (file) => ({
          overwrite: (bytes, rights) =>
            Effect.zipRight(Deferred.succeed(entered, undefined), Effect.delay(file.overwrite(bytes, rights), 20))
        }))
        const fiber = yield* Effect.fork(publish("v2\n", { access: slow }))
        yield* Deferred.await(entered)
        yield* Fiber.interrupt(fiber)
        assert.strictEqual(readFileSync(file, "utf8"), "v2\n")
        assert.deepStrictEqual(entries(), ["file.txt"])
      }).pipe(Effect.provide(layer)))

    it.scopedLive("writes an approved file through its own handle, and no other under its name", () =>
      Effect.gen(function*() {
        const { entries, file, publish, workspace } = yield* setup
        writeFileSync(file, "v1\n")
        const { ino } = statSync(file)
        assert.deepStrictEqual(yield* publish("v2\n", {}, undefined, true), { created: false, inPlace: true })
        assert.strictEqual(statSync(file).ino, ino)
        const swap = () => {
          renameSync(file, join(workspace, "moved"))
          writeFileSync(file, "another\n")
        }
        assert.strictEqual(yield* codeOf(publish("v3\n", {}, swap, true)), "path_changed")
        assert.strictEqual(readFileSync(file, "utf8"), "another\n")
        assert.strictEqual(readFileSync(join(workspace, "moved"), "utf8"), "v2\n")
        assert.deepStrictEqual(entries(), ["file.txt", "moved"])
      }).pipe(Effect.provide(layer)))

    it.scopedLive("does not replace what somebody else wrote, moved, linked or removed meanwhile", () =>
      Effect.gen(function*() {
        const { entries, file, outside, publish, workspace } = yield* setup
        const theirs = join(outside, "theirs")
        const cases: Record<string, () => void> = {
          wrote: () => writeFileSync(file, "theirs, and longer\n"),
          replaced: () => {
            writeFileSync(theirs, "theirs\n")
            renameSync(theirs, file)
          },
          linked: () => linkSync(file, join(workspace, "second")),
          swapped: () => {
            writeFileSync(theirs, "theirs\n")
            unlinkSync(file)
            symlinkSync(theirs, file)
          },
          removed: () => unlinkSync(file)
        }
        for (const [what, meanwhile] of Object.entries(cases)) {
          writeFileSync(file, "v1\n")
          let seen: ReadonlyArray<string> = []
          const code = yield* codeOf(publish("ours\n", {}, () => {
            meanwhile()
            seen = entries()
          }))
          assert.strictEqual(code, "path_changed", what)
          assert.deepStrictEqual(entries(), seen, what)
          for (const name of seen) assert.notInclude(readFileSync(join(workspace, name), "utf8"), "ours", what)
          for (const name of seen) unlinkSync(join(workspace, name))
        }
      }).pipe(Effect.provide(layer)))

    it.scopedLive("writes in place where the directory takes no new file or the owner cannot be kept", () =>
      Effect.gen(function*() {
        const { entries, file, files, publish } = yield* setup
        const closed = { access: { ...files.access, create: () => Effect.fail(problem("PermissionDenied")) } }
        assert.strictEqual(yield* codeOf(publish("v1\n", closed)), "file_access_denied")
        writeFileSync(file, "v1\n")
        const foreign = {
          access: spoilt(files.access, () => ({ overwrite: () => Effect.fail(problem("Unknown", "chown")) }))
        }
        const mounted = { fs: { ...files.fs, rename: () => Effect.fail(problem("Busy")) } }
        for (const using of [closed, foreign, mounted]) {
          const text = `${Math.random()}`
          assert.deepStrictEqual(yield* publish(text, using), { created: false, inPlace: true })
          assert.strictEqual(readFileSync(file, "utf8"), text)
          assert.deepStrictEqual(entries(), ["file.txt"])
        }
      }).pipe(Effect.provide(layer)))

    it.scopedLive("does not take the place of a file that somebody else creates meanwhile", () =>
      Effect.gen(function*() {
        const { entries, file, files: { fs }, publish } = yield* setup
        const create = Effect.sync(() => writeFileSync(file, "theirs\n"))
        const raced: FileSystem.FileSystem = { ...fs, link: (from, to) => Effect.zipRight(create, fs.link(from, to)) }
        const unlinked: FileSystem.FileSystem = { ...fs, link: () => Effect.zipRight(create, Effect.fail(full)) }
        for (const fs of [raced, unlinked]) {
          assert.strictEqual(yield* codeOf(publish("ours\n", { fs })), "path_changed")
          assert.strictEqual(readFileSync(file, "utf8"), "theirs\n")
          assert.deepStrictEqual(entries(), ["file.txt"])
          unlinkSync(file)
        }
        yield* publish("v1\n", { fs: { ...fs, link: () => Effect.fail(full) } })
        assert.strictEqual(readFileSync(file, "utf8"), "v1\n")
        assert.deepStrictEqual(entries(), ["file.txt"])
      }).pipe(Effect.provide(layer)))

    it.scopedLive("sweeps what a killed writer of the same file left, and nothing else", () =>
      Effect.gen(function*() {
        const { entries, file, files, publish, workspace } = yield* setup
        writeFileSync(file, "v1\n")
        let temporary = ""
        const watching = {
          access: {
            ...files.access,
            create: (path: string, mode?: number) => {
              temporary = path.slice(path.lastIndexOf("/") + 1)
              return files.access.create(path, mode)
            }
          }
        }
        yield* publish("v2\n", watching)
        assert.match(temporary, /^\.portcullis-[0-9a-f]{16}\.tmp$/)
        const other = ".portcullis-0123456789abcdef.tmp"
        writeFileSync(join(workspace, other), "of another file")
        writeFileSync(join(workspace, temporary), "half of v3")
        yield* publish("v4\n")
        assert.strictEqual(readFileSync(file, "utf8"), "v4\n")
        symlinkSync(join(workspace, other), join(workspace, temporary))
        yield* publish("v5\n")
        assert.deepStrictEqual(entries(), [other, "file.txt"])
        assert.strictEqual(readFileSync(join(workspace, other), "utf8"), "of another file")
        let tries = 0
        const stubborn = {
          access: {
            ...files.access,
            create: () => {
              tries++
              return Effect.fail(problem("AlreadyExists"))
            }
          }
        }
        assert.strictEqual(yield* codeOf(publish("v6\n", stubborn)), "file_io_failed")
        assert.strictEqual(tries, 4)
        assert.strictEqual(readFileSync(file, "utf8"), "v5\n")
      }).pipe(Effect.provide(layer)))

    it.scopedLive("publishes nothing in a directory that is no longer the one that was resolved", () =>
      Effect.gen(function*() {
        const { file, outside, publish, workspace } = yield* setup
        const away = `${workspace}-away`
        for (const existing of [true, false]) {
          for (const kind of ["link", "directory"]) {
            if (existing) writeFileSync(file, "v1\n")
            const swap = () => {
              renameSync(workspace, away)
              if (kind === "link") symlinkSync(outside, workspace)
              else mkdirSync(workspace)
            }
            assert.strictEqual(yield* codeOf(publish("ours\n", {}, swap)), "path_changed", kind)
            assert.deepStrictEqual(readdirSync(outside), [])
            assert.deepStrictEqual(readdirSync(away), existing ? ["file.txt"] : [])
            assert.deepStrictEqual(readdirSync(workspace), [])
            if (existing) assert.strictEqual(readFileSync(join(away, "file.txt"), "utf8"), "v1\n")
            if (kind === "link") unlinkSync(workspace)
            renameSync(away, workspace)
            if (existing) unlinkSync(file)
          }
        }
      }).pipe(Effect.provide(layer)))
  })
}

describe("making directories for a new file", () => {
  it.scopedLive("makes all that are missing", () =>
    Effect.gen(function*() {
      const { files, workspace } = yield* setup
      const held = yield* Publish.enterMade(files, join(workspace, "a/b/c"), "f")
      assert.strictEqual(yield* files.fs.realPath(held.at(".")), join(workspace, "a/b/c"))
      const again = yield* Publish.enterMade(files, join(workspace, "a/b/c"), "f")
      assert.strictEqual(again.info.inode, held.info.inode)
    }).pipe(Effect.provide(platform)))

  it.scopedLive("goes through no link, whenever one appears", () =>
    Effect.gen(function*() {
      const { files, outside, workspace } = yield* setup
      const link = (name: string) => Effect.sync(() => symlinkSync(outside, join(workspace, name)))
      // In place of the directory that is about to be made, of the one just made, and of the one above.
      const instead: FileSystem.FileSystem = {
        ...files.fs,
        makeDirectory: (name) => Effect.zipRight(link("a"), files.fs.makeDirectory(name))
      }
      assert.strictEqual(
        yield* codeOf(Publish.enterMade({ ...files, fs: instead }, join(workspace, "a/b"), "f")),
        "path_changed"
      )
      unlinkSync(join(workspace, "a"))
      const after: FileSystem.FileSystem = {
        ...files.fs,
        makeDirectory: (name) =>
          Effect.zipRight(
            files.fs.makeDirectory(name),
            Effect.sync(() => {
              if (!name.endsWith("/a")) return
              renameSync(join(workspace, "a"), join(workspace, "moved"))
              symlinkSync(outside, join(workspace, "a"))
            })
          )
      }
      assert.strictEqual(
        yield* codeOf(Publish.enterMade({ ...files, fs: after }, join(workspace, "a/b"), "f")),
        "path_changed"
      )
      assert.strictEqual(yield* codeOf(Publish.enterMade(files, join(workspace, "a/b"), "f")), "path_changed")
      assert.deepStrictEqual(readdirSync(outside), [])
    }).pipe(Effect.provide(platform)))
})
