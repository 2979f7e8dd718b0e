import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import type { JsonObject } from "../../src/contract/Json.ts"
import { WorkspacePath } from "../../src/file/WorkspacePath.ts"
import { read } from "../../src/tools/read.ts"
import { write } from "../../src/tools/write.ts"
import { call, codeOf, services, turnIn } from "../fixtures/files.ts"
import { png } from "../fixtures/images.ts"
import { desk } from "./fileSupport.ts"

describe("write", () => {
  it.scopedLive("creates a file and its directories, an empty one too", () =>
    Effect.gen(function*() {
      const { at, disk, write } = yield* desk
      assert.deepInclude(yield* write("a/b/c.txt", "é\n"), {
        path: "a/b/c.txt",
        bytesWritten: 3,
        lines: 1,
        created: true
      })
      assert.strictEqual(disk("a/b/c.txt"), "é\n")
      assert.deepInclude(yield* write("empty", ""), { bytesWritten: 0, lines: 0, created: true })
      assert.strictEqual(statSync(at("empty")).size, 0)
    }).pipe(Effect.provide(services)))

  it.scopedLive("replaces what was read, keeping mark, encoding, endings and mode", () =>
    Effect.gen(function*() {
      const { at, bytes, disk, put, read, write } = yield* desk
      put("f", "\ufeffsécurisé\r\n")
      chmodSync(at("f"), 0o755)
      yield* read({ path: "f" })
      assert.deepInclude(yield* write("f", "ok\r\n"), { path: "f", bytesWritten: 7, created: false })
      assert.strictEqual(disk("f"), "\ufeffok\r\n")
      yield* write("f", "\ufeffa\nb\n")
      assert.strictEqual(disk("f"), "\ufeffa\r\nb\r\n")
      assert.strictEqual(statSync(at("f")).mode & 0o777, 0o755)
      yield* write("marked", "\ufeff\ufeffx")
      assert.strictEqual(disk("marked"), "\ufeffx")
      put("u16", Uint8Array.from([0xff, 0xfe, 0x61, 0x00]))
      yield* read({ path: "u16" })
      yield* write("u16", "b")
      assert.deepStrictEqual(bytes("u16"), [0xff, 0xfe, 0x62, 0x00])
    }).pipe(Effect.provide(services)))

  it.scopedLive("refuses a file that was not read, read in part, or changed since", () =>
    Effect.gen(function*() {
      const { disk, put, read, write } = yield* desk
      put("f", "v1\nmore\n")
      assert.strictEqual(yield* codeOf(write("f", "mine")), "read_before_edit_required")
      yield* read({ path: "f", limit: 1 })
      assert.strictEqual(yield* codeOf(write("f", "mine")), "read_before_edit_required")
      yield* read({ path: "f" })
      put("f", "v2\n")
      assert.strictEqual(yield* codeOf(write("f", "mine")), "stale_read")
      assert.strictEqual(disk("f"), "v2\n")
      yield* read({ path: "f" })
      yield* write("f", "v3\n")
      yield* write("f", "v4\n")
      assert.strictEqual(disk("f"), "v4\n")
    }).pipe(Effect.provide(services)))

  it.scopedLive("E26: a file with lines longer than a page counts as read once its pages were, and refusals lead there", () =>
    Effect.gen(function*() {
      const { disk, put, turn, write } = yield* desk
      for (const text of [`\ufeff${"é".repeat(70_000)}`, `a\r\n${"😀".repeat(30_000)}\r\nend`]) {
        put("f", text)
        let args: JsonObject = {}
        let pages = 0
        while (pages < 20) {
          const refused = yield* Effect.either(write("f", "new"))
          if (Either.isRight(refused)) break
          args = Object(Object(refused.left)["nextAction"]).arguments
          yield* call(read, turn, args)
          pages++
        }
        assert.strictEqual(disk("f"), text.startsWith("\ufeff") ? "\ufeffnew" : "new")
        assert.isAbove(pages, 2)
        assert.property(args, "column")
      }
    }).pipe(Effect.provide(services)))

  it.scopedLive("writes nothing outside, through whatever link", () =>
    Effect.gen(function*() {
      const { at, outside, turn, write: put } = yield* desk
      symlinkSync(outside, at("out"))
      symlinkSync(join(outside, "nope"), at("dangling"))
      for (const path of ["out/a.txt", "out/new/b.txt", "dangling", "../outside/x", join(outside, "y")]) {
        assert.strictEqual(yield* codeOf(put(path, "x")), "sandbox_write_blocked", path)
      }
      assert.deepStrictEqual(readdirSync(outside), [])
      for (const path of [".git/hooks/pre-commit", ".GIT/config", ".portcullis/hooks.json", "sub/.git/x"]) {
        assert.strictEqual(yield* codeOf(put(path, "x")), "sandbox_write_blocked", path)
      }
      assert.isFalse(existsSync(at(".git")) || existsSync(at("sub")) || existsSync(at(".portcullis")))
      yield* put(".gitignore", "x")
      yield* put(".portcullis/plan/p.md", "x")
      const full = turnIn(turn.workspace, { sandboxMode: "danger-full-access" })
      yield* call(write, full, { path: join(outside, "y"), content: "x" })
      assert.deepStrictEqual(readdirSync(outside), ["y"])
    }).pipe(Effect.provide(services)))

  it.scopedLive("writes an outside file that was approved, and only while it is that file", () =>
    Effect.gen(function*() {
      const { outside, turn } = yield* desk
      const paths = yield* WorkspacePath
      const file = join(outside, "notes")
      writeFileSync(file, "v1\n")
      const grant = yield* paths.identify(yield* paths.resolve(turn, file))
      yield* call(read, turnIn(turn.workspace, { sandboxMode: "danger-full-access" }), { path: file })
      yield* call(write, turn, { path: file, content: "v2\n" }, [grant])
      assert.strictEqual(readFileSync(file, "utf8"), "v2\n")
      assert.deepStrictEqual(readdirSync(outside), ["notes"])
      linkSync(file, join(outside, "second"))
      assert.strictEqual(
        yield* codeOf(call(write, turn, { path: file, content: "v3\n" }, [grant])),
        "sandbox_write_blocked"
      )
      assert.strictEqual(readFileSync(file, "utf8"), "v2\n")
    }).pipe(Effect.provide(services)))

  it.scopedLive("refuses directories, foreign bytes and half a surrogate pair", () =>
    Effect.gen(function*() {
      const { at, bytes, put, read, write } = yield* desk
      mkdirSync(at("d"))
      assert.strictEqual(yield* codeOf(write(".", "x")), "path_invalid")
      assert.strictEqual(yield* codeOf(write(".", "x")), "path_invalid")
      assert.strictEqual(yield* codeOf(write("new", "a\ud83d")), "text_invalid")
      assert.isFalse(existsSync(at("new")))
      put("f", Uint8Array.from([0xff]))
      assert.strictEqual(yield* codeOf(write("f", "x")), "file_not_text")
      put("image", png(8, 8))
      yield* read({ path: "image" })
      assert.strictEqual(yield* codeOf(write("image", "x")), "file_not_text")
      for (
        const [path, said] of [["f/below", "ENOTDIR: not a directory"], [
          "n".repeat(300),
          "ENAMETOOLONG: name too long"
        ]]
      ) {
        assert.deepInclude(yield* Effect.flip(write(String(path), "x")), {
          code: "file_io_failed",
          message: `${JSON.stringify(path)}: ${said}`
        })
      }
      assert.deepStrictEqual(bytes("f"), [0xff])
    }).pipe(Effect.provide(services)))

  it.scopedLive("shows what it changed", () =>
    Effect.gen(function*() {
      const { put, read, write } = yield* desk
      put("f", "one\ntwo\nthree\n")
      yield* read({ path: "f" })
      const { diff } = yield* write("f", "one\n2\nthree\n")
      assert.deepStrictEqual(
        String(diff).split("\n").filter((line) => /^[-+](?![-+])/.test(line)),
        ["-two", "+2"]
      )
    }).pipe(Effect.provide(services)))

  it.scopedLive("makes the line endings those that were asked for", () =>
    Effect.gen(function*() {
      const { disk, put, read, write } = yield* desk
      put("f", "\ufeffa\r\n")
      yield* read({ path: "f" })
      yield* write("f", "a\nb\n", { lineEndings: "lf" })
      assert.strictEqual(disk("f"), "\ufeffa\nb\n")
      yield* write("f", "a\r\nb\n", { lineEndings: "crlf" })
      assert.strictEqual(disk("f"), "\ufeffa\r\nb\r\n")
      yield* write("new", "a\n", { lineEndings: "crlf" })
      assert.strictEqual(disk("new"), "a\r\n")
    }).pipe(Effect.provide(services)))

  it.scopedLive("leaves a file alone that holds this already", () =>
    Effect.gen(function*() {
      const { at, put, read, write } = yield* desk
      put("f", "\ufeffa\r\nb\r\n")
      utimesSync(at("f"), 1, 2)
      const { ino } = statSync(at("f"))
      yield* read({ path: "f" })
      assert.deepStrictEqual(yield* write("f", "a\nb\n"), {
        path: "f",
        bytesWritten: 0,
        lines: 2,
        created: false,
        unchanged: true,
        diff: ""
      })
      assert.deepInclude(statSync(at("f")), { ino, mtimeMs: 2000 })
      put("g", "")
      assert.strictEqual(yield* codeOf(write("g", "")), "read_before_edit_required")
    }).pipe(Effect.provide(services)))
})
