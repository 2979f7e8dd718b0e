/**
 * What every `FileAccess` does, as data: run each law with a Layer of your own and a file system that has links.
 *
 * @since 0.1.0
 */
import type { PlatformError } from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Scope from "effect/Scope"
import { FileAccess } from "../../file/FileAccess.ts"
import { equal, expect, type Law, law } from "./Law.ts"

export type LawServices = FileAccess | FileSystem.FileSystem | Path.Path | Scope.Scope

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)
const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

/** A folder on disk and what one does in it. */
const place = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const access = yield* FileAccess
  const folder = yield* Effect.flatMap(fs.makeTempDirectoryScoped(), fs.realPath)
  const at = (name: string) => path.join(folder, name)
  return { fs, path, access, folder, at, put: (name: string, text: string) => fs.writeFileString(at(name), text) }
})

/** Why it failed: a reason, or `none`. */
const reasonOf = <A, R>(effect: Effect.Effect<A, PlatformError, R>): Effect.Effect<string, never, R> =>
  Effect.map(
    Effect.either(effect),
    (result) => Either.isRight(result) ? "none" : result.left._tag === "SystemError" ? result.left.reason : "argument"
  )

export const laws: ReadonlyArray<Law<LawServices>> = [
  law(
    "reads from any offset, and less than was asked for only where the file ends",
    Effect.gen(function*() {
      const { access, at, put } = yield* place
      yield* put("f", "0123456789")
      const file = yield* access.open(at("f"))
      for (const [offset, length] of [[0, 10], [0, 4], [6, 4], [6, 100], [10, 1], [50, 5], [3, 0]] as const) {
        const read = textOf(yield* file.read(offset, length))
        yield* equal(read, "0123456789".slice(offset, offset + length), `${length} bytes from ${offset}`)
      }
      yield* put("empty", "")
      yield* equal((yield* (yield* access.open(at("empty"))).read(0, 5)).length, 0, "an empty file's bytes")
    })
  ),
  law(
    "tells of an open file what it is now",
    Effect.gen(function*() {
      const { access, at, fs, put } = yield* place
      yield* put("f", "12345")
      const file = yield* access.open(at("f"))
      yield* equal((yield* file.info).size, 5, "its size")
      yield* equal((yield* file.info).type, "File", "its type")
      yield* equal((yield* file.info).links, 1, "its links")
      yield* fs.link(at("f"), at("g"))
      yield* fs.writeFileString(at("g"), "1234567")
      yield* equal((yield* file.info).size, 7, "its size after another wrote")
      yield* equal((yield* file.info).links, 2, "its links after another linked it")
    })
  ),
  law(
    "makes bytes all that a file holds, longer, shorter or none, and it stays the same file",
    Effect.gen(function*() {
      const { access, at, fs, put } = yield* place
      yield* put("f", "first")
      yield* fs.link(at("f"), at("g"))
      const file = yield* access.open(at("f"), { write: true })
      for (const text of ["a longer second", "short", "", "again"]) {
        yield* file.overwrite(bytesOf(text))
        yield* equal(yield* fs.readFileString(at("g")), text, "what it holds")
      }
      yield* equal(textOf(yield* file.read(0, 100)), "again", "what the handle reads")
    })
  ),
  law(
    "gives a file the mode it is told, whatever the umask",
    Effect.gen(function*() {
      const { access, at } = yield* place
      for (const mode of [0o640, 0o777, 0o666, 0o755]) {
        const name = `f${mode}`
        const file = yield* access.create(at(name), 0o600)
        const { gid, uid } = yield* file.info
        yield* file.overwrite(bytesOf("x"), { mode, uid, gid })
        yield* equal((yield* file.info).mode, mode, "its mode")
      }
    })
  ),
  law(
    "opens for reading only unless told otherwise",
    Effect.gen(function*() {
      const { access, at, fs, put } = yield* place
      yield* put("f", "kept")
      const reason = yield* reasonOf(Effect.flatMap(access.open(at("f")), (file) => file.overwrite(bytesOf("no"))))
      yield* expect(reason !== "none", "a file that was opened for reading was written")
      yield* equal(yield* fs.readFileString(at("f")), "kept", "what it holds")
    })
  ),
  law(
    "opens no directory, no link and nothing that is not there",
    Effect.gen(function*() {
      const { access, at, folder, fs, put } = yield* place
      yield* put("f", "x")
      yield* fs.symlink(at("f"), at("link"))
      yield* fs.symlink(at("none"), at("dangling"))
      for (const options of [{}, { write: true }]) {
        yield* equal(yield* reasonOf(access.open(folder, options)), "BadResource", "opening a directory")
        yield* equal(yield* reasonOf(access.open(at("link"), options)), "BadResource", "opening a link")
        yield* equal(yield* reasonOf(access.open(at("dangling"), options)), "BadResource", "opening a dangling link")
        yield* equal(yield* reasonOf(access.open(at("none"), options)), "NotFound", "opening nothing")
      }
      yield* expect(!(yield* fs.exists(at("none"))), "opening made a file")
    })
  ),
  law(
    "creates where there is nothing, and leaves what there is",
    Effect.gen(function*() {
      const { access, at, fs, put } = yield* place
      const file = yield* access.create(at("new"))
      yield* equal((yield* file.info).size, 0, "its size")
      yield* file.overwrite(bytesOf("made"))
      yield* put("f", "kept")
      yield* fs.symlink(at("none"), at("dangling"))
      for (const name of ["f", "new", "dangling"]) {
        yield* equal(yield* reasonOf(access.create(at(name))), "AlreadyExists", `creating ${name}`)
      }
      yield* equal(yield* fs.readFileString(at("f")), "kept", "the file that was there")
      yield* equal(yield* fs.readFileString(at("new")), "made", "the file that was created")
      yield* expect(!(yield* fs.exists(at("none"))), "what a dangling link names was created")
      yield* equal(
        yield* reasonOf(access.create(at("no/such/f"))),
        "NotFound",
        "creating in a directory that is not there"
      )
    })
  ),
  law(
    "holds a directory, and names its entries",
    Effect.gen(function*() {
      const { access, folder, fs, put } = yield* place
      yield* put("f", "x")
      const held = yield* access.hold(folder)
      yield* equal(held.info.type, "Directory", "its type")
      yield* equal(yield* fs.readFileString(held.at("f")), "x", "its file")
      yield* equal(yield* fs.realPath(held.at(".")), folder, "its path")
      yield* fs.writeFileString(held.at("g"), "y")
      yield* fs.rename(held.at("g"), held.at("h"))
      yield* equal((yield* fs.readDirectory(folder)).sort(), ["f", "h"], "its entries")
      yield* equal(textOf(yield* (yield* access.open(held.at("h"))).read(0, 9)), "y", "an entry that is opened")
    })
  ),
  law(
    "holds no file, no link and nothing that is not there",
    Effect.gen(function*() {
      const { access, at, fs, put } = yield* place
      yield* put("f", "x")
      yield* fs.makeDirectory(at("real"))
      yield* fs.symlink(at("real"), at("link"))
      yield* equal(yield* reasonOf(access.hold(at("f"))), "BadResource", "holding a file")
      yield* equal(yield* reasonOf(access.hold(at("link"))), "BadResource", "holding a link")
      yield* equal(yield* reasonOf(access.hold(at("none"))), "NotFound", "holding nothing")
    })
  )
]
