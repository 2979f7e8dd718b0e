import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { execFileSync } from "node:child_process"
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import type { JsonObject } from "../../src/contract/Json.ts"
import { FileMutationQueue } from "../../src/file/FileMutationQueue.ts"
import { WorkspacePath } from "../../src/file/WorkspacePath.ts"
import { edit } from "../../src/tools/edit.ts"
import { fileTools } from "../../src/tools/fileTools.ts"
import { ls } from "../../src/tools/ls.ts"
import { read } from "../../src/tools/read.ts"
import { write } from "../../src/tools/write.ts"
import { call, codeOf, services, turnIn, world } from "../fixtures/files.ts"

/** A workspace, and the tools bound to it. */
const desk = Effect.gen(function*() {
  const place = yield* world
  const { turn, workspace } = place
  const at = (name: string) => join(workspace, name)
  return {
    ...place,
    at,
    put: (name: string, content: string | Uint8Array) => writeFileSync(at(name), content),
    disk: (name: string) => readFileSync(at(name), "utf8"),
    bytes: (name: string) => [...readFileSync(at(name))],
    read: (args: JsonObject) =>
      Effect.map(call(read, turn, args), ({ content, output }) => ({ content, output: plain(output) })),
    ls: (args: JsonObject) => Effect.map(call(ls, turn, args), ({ output }) => plain(output)),
    write: (path: string, content: string) =>
      Effect.map(call(write, turn, { path, content }), ({ output }) => plain(output)),
    edit: (args: JsonObject) => Effect.map(call(edit, turn, args), ({ output }) => plain(output))
  }
})

const plain = (output: unknown): Record<string, unknown> => Object(output)
const detailsOf = <A, R>(effect: Effect.Effect<A, unknown, R>) =>
  Effect.map(Effect.flip(effect), (error) => plain(plain(error)["details"]))

describe("the file tools", () => {
  it("declare what the gates judge by", () => {
    assert.deepStrictEqual(
      fileTools.map(({ kind, name, parallelSafe, policy, readOnly }) => [name, kind, policy, readOnly, parallelSafe]),
      [
        ["read", "tool_call", "auto", true, true],
        ["ls", "tool_call", "auto", true, true],
        ["write", "file_change", "on-request", false, false],
        ["edit", "file_change", "on-request", false, false]
      ]
    )
  })

  it("show a model plain object schemas", () => {
    assert.deepStrictEqual(Object.keys(plain(edit.parameters["properties"])), [
      "path",
      "edits",
      "oldText",
      "newText",
      "replaceAll"
    ])
    assert.deepStrictEqual(edit.parameters["required"], ["path"])
    for (const tool of fileTools) {
      assert.strictEqual(tool.parameters["type"], "object")
      assert.notInclude(JSON.stringify(tool.parameters), "$ref")
    }
  })

  it.effect("name the files they are about to change and the text they expect there", () =>
    Effect.gen(function*() {
      const one = yield* (yield* edit.load)({ path: "f", oldText: "a", newText: "b" })
      assert.deepStrictEqual(one.targets, [{ path: "f", requiresRead: true, quotes: ["a"] }])
      assert.deepStrictEqual(one.arguments, { path: "f", edits: [{ oldText: "a", newText: "b" }] })
      const whole = yield* (yield* write.load)({ path: "f", content: "" })
      assert.deepStrictEqual(whole.targets, [{ path: "f", requiresRead: true, quotes: [] }])
    }))

  it.effect("refuse arguments that say two things or nothing", () =>
    Effect.gen(function*() {
      const prepare = yield* edit.load
      for (
        const args of [
          { path: "f" },
          { path: "f", oldText: "a" },
          { path: "f", edits: [{ oldText: "a" }] },
          { path: "f", edits: [{ oldText: "a", newText: "b" }], oldText: "a", newText: "b" },
          { path: "f", edits: [{ oldText: "a", newText: "b" }], replaceAll: true },
          { path: "f", edits: Array.from({ length: 101 }, () => ({ oldText: "a", newText: "b" })) }
        ]
      ) assert.strictEqual(yield* codeOf(prepare(args)), "arguments_invalid")
    }))
})

describe("read", () => {
  it.scopedLive("shows LF, no byte order mark and where it is, and keeps the disk as it was", () =>
    Effect.gen(function*() {
      const { bytes, put, read } = yield* desk
      put("f", "\ufeffa\r\nb\rc\r\n")
      const { content, output } = yield* read({ path: "f" })
      assert.deepInclude(output, {
        path: "f",
        content: "a\nb\rc\n",
        startLine: 1,
        endLine: 2,
        totalLines: 2,
        byteSize: 11,
        truncated: false,
        nextOffset: null
      })
      assert.match(String(output["revision"]), /^[0-9a-f]{16}$/)
      assert.deepStrictEqual(content, [{ type: "text", text: "a\nb\rc\n" }])
      assert.deepStrictEqual(bytes("f").slice(0, 4), [0xef, 0xbb, 0xbf, 0x61])
    }).pipe(Effect.provide(services)))

  it.scopedLive("reads UTF-16 with a mark and refuses what is not text, with the offset", () =>
    Effect.gen(function*() {
      const { put, read } = yield* desk
      put("utf16", Uint8Array.from([0xfe, 0xff, 0x00, 0x61, 0xd8, 0x3d, 0xde, 0x00]))
      assert.strictEqual((yield* read({ path: "utf16" })).output["content"], "a😀")
      put("gbk", Uint8Array.from([0x2f, 0x2f, 0x20, 0xc4, 0xe3, 0xba, 0xc3, 0x0a]))
      assert.strictEqual(yield* codeOf(read({ path: "gbk" })), "file_not_text")
      assert.strictEqual((yield* detailsOf(read({ path: "gbk" })))["byteOffset"], 3)
      put("nul", "ab\0")
      assert.strictEqual(yield* codeOf(read({ path: "nul" })), "file_not_text")
    }).pipe(Effect.provide(services)))

  it.scopedLive("pages through a long file so that the pages together are the file", () =>
    Effect.gen(function*() {
      const { put, read } = yield* desk
      const file = Array.from({ length: 4500 }, (_, line) => `line ${line} ${"é".repeat(line % 40)}`).join("\n")
      put("f", file)
      let all = ""
      let offset: unknown = 1
      let pages = 0
      while (typeof offset === "number") {
        const { output }: { output: Record<string, unknown> } = yield* read({ path: "f", offset })
        const content = String(output["content"])
        assert.isAtMost(new TextEncoder().encode(content).length, 50 * 1024)
        assert.isAtMost(content.split("\n").length, 2001)
        all += content
        offset = output["nextOffset"]
        pages++
      }
      assert.strictEqual(all, file)
      assert.isAbove(pages, 2)
      const middle = (yield* read({ path: "f", offset: 10, limit: 2 })).output
      assert.deepInclude(middle, { startLine: 10, endLine: 11, nextOffset: 12, truncated: true })
      assert.strictEqual(yield* codeOf(read({ path: "f", offset: 4501 })), "offset_out_of_range")
    }).pipe(Effect.provide(services)))

  it.scopedLive("cuts a long line on a code point and says how much is missing", () =>
    Effect.gen(function*() {
      const { put, read } = yield* desk
      put("f", `${"x".repeat(1999)}😀tail\nnext\n`)
      const { output } = yield* read({ path: "f" })
      assert.strictEqual(output["content"], `${"x".repeat(1999)}… [6 more characters]\nnext\n`)
      assert.isTrue(output["truncated"])
      assert.isNull(output["nextOffset"])
    }).pipe(Effect.provide(services)))

  it.scopedLive("says that a file is empty, and counts no line after a final newline", () =>
    Effect.gen(function*() {
      const { put, read } = yield* desk
      put("empty", "")
      const { content, output } = yield* read({ path: "empty" })
      assert.deepInclude(output, { content: "", startLine: 1, endLine: 0, totalLines: 0, truncated: false })
      assert.deepStrictEqual(content, [{ type: "text", text: "[The file is empty.]" }])
      put("nl", "\n")
      assert.deepInclude((yield* read({ path: "nl" })).output, { content: "\n", endLine: 1, totalLines: 1 })
    }).pipe(Effect.provide(services)))

  it.scopedLive("names near names for a missing file", () =>
    Effect.gen(function*() {
      const { at, put, read } = yield* desk
      mkdirSync(at("src"))
      put("src/Reader.ts", "")
      put("src/other.md", "")
      assert.deepStrictEqual((yield* detailsOf(read({ path: "src/reader.tsx" })))["near"], ["src/Reader.ts"])
      assert.strictEqual(yield* codeOf(read({ path: "src/reader.tsx" })), "file_not_found")
      assert.strictEqual(yield* codeOf(read({ path: "no/such/folder" })), "file_not_found")
      assert.strictEqual(yield* codeOf(read({ path: "src/Reader.ts/x" })), "file_not_found")
      assert.strictEqual(yield* codeOf(read({ path: "src" })), "is_a_directory")
    }).pipe(Effect.provide(services)))

  it.scopedLive("stays inside the workspace", () =>
    Effect.gen(function*() {
      const { at, outside, read } = yield* desk
      writeFileSync(join(outside, "secret"), "secret")
      symlinkSync(outside, at("out"))
      for (const path of ["out/secret", join(outside, "secret"), "../outside/secret"]) {
        assert.strictEqual(yield* codeOf(read({ path })), "outside_workspace")
      }
      assert.strictEqual(yield* codeOf(read({ path: "a\0b" })), "path_invalid")
    }).pipe(Effect.provide(services)))
})

describe("ls", () => {
  it.scopedLive("lists kinds and sizes by code unit, dangling links and FIFOs included", () =>
    Effect.gen(function*() {
      const { at, ls, put } = yield* desk
      put("b", "12345")
      put("B", "")
      put("é", "1")
      mkdirSync(at("a"))
      symlinkSync("nowhere", at("dangling"))
      symlinkSync("a", at("to-a"))
      execFileSync("mkfifo", [at("fifo")])
      const result = yield* ls({})
      assert.deepStrictEqual(result, {
        path: ".",
        entries: [
          { name: "B", kind: "file", size: 0 },
          { name: "a", kind: "directory", size: null },
          { name: "b", kind: "file", size: 5 },
          { name: "dangling", kind: "symlink", size: null },
          { name: "fifo", kind: "other", size: null },
          { name: "to-a", kind: "symlink", size: null },
          { name: "é", kind: "file", size: 1 }
        ],
        total: 7,
        truncated: false
      })
    }).pipe(Effect.provide(services)))

  it.scopedLive("stops at 500 entries and says so; exactly 500 are not truncated", () =>
    Effect.gen(function*() {
      const { ls, put } = yield* desk
      for (let index = 0; index < 500; index++) put(`f${index}`, "")
      assert.deepInclude(yield* ls({ path: "." }), { total: 500, truncated: false })
      put("one-more", "")
      const result = yield* ls({ path: "." })
      assert.deepInclude(result, { total: 501, truncated: true })
      assert.lengthOf(Object(result["entries"]), 500)
      assert.lengthOf(Object((yield* ls({ limit: 2 }))["entries"]), 2)
    }).pipe(Effect.provide(services)))

  it.scopedLive("refuses files, what is missing and what is outside", () =>
    Effect.gen(function*() {
      const { ls, put } = yield* desk
      put("f", "")
      assert.strictEqual(yield* codeOf(ls({ path: "f" })), "not_a_directory")
      assert.strictEqual(yield* codeOf(ls({ path: "none" })), "file_not_found")
      assert.strictEqual(yield* codeOf(ls({ path: ".." })), "outside_workspace")
    }).pipe(Effect.provide(services)))
})

describe("write", () => {
  it.scopedLive("creates a file and its directories, an empty one too", () =>
    Effect.gen(function*() {
      const { at, disk, write } = yield* desk
      assert.deepStrictEqual(yield* write("a/b/c.txt", "é\n"), { path: "a/b/c.txt", bytesWritten: 3, created: true })
      assert.strictEqual(disk("a/b/c.txt"), "é\n")
      yield* write("empty", "")
      assert.strictEqual(statSync(at("empty")).size, 0)
    }).pipe(Effect.provide(services)))

  it.scopedLive("replaces what was read, keeping mark, encoding, endings and mode", () =>
    Effect.gen(function*() {
      const { at, bytes, disk, put, read, write } = yield* desk
      put("f", "\ufeffsécurisé\r\n")
      chmodSync(at("f"), 0o755)
      yield* read({ path: "f" })
      assert.deepStrictEqual(yield* write("f", "ok\r\n"), { path: "f", bytesWritten: 7, created: false })
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
      const { at, bytes, put, write } = yield* desk
      mkdirSync(at("d"))
      assert.strictEqual(yield* codeOf(write("d", "x")), "is_a_directory")
      assert.strictEqual(yield* codeOf(write(".", "x")), "is_a_directory")
      assert.strictEqual(yield* codeOf(write("new", "a\ud83d")), "text_invalid")
      assert.isFalse(existsSync(at("new")))
      put("f", Uint8Array.from([0xff]))
      assert.strictEqual(yield* codeOf(write("f", "x")), "read_before_edit_required")
      assert.strictEqual(yield* codeOf(write("f/below", "x")), "file_io_failed")
      assert.deepStrictEqual(bytes("f"), [0xff])
    }).pipe(Effect.provide(services)))
})

describe("edit", () => {
  it.scopedLive("replaces by text and says what it did", () =>
    Effect.gen(function*() {
      const { disk, edit, put, read } = yield* desk
      put("f", "one\r\ntwo\r\nthree\r\nfour\r\nfive\r\nsix\r\n")
      yield* read({ path: "f" })
      const result = yield* edit({ path: "f", oldText: "four\nfive", newText: "4\n4.5\nfive" })
      assert.strictEqual(disk("f"), "one\r\ntwo\r\nthree\r\n4\r\n4.5\r\nfive\r\nsix\r\n")
      assert.deepStrictEqual(result, {
        path: "f",
        replacements: 1,
        strategy: "exact",
        ranges: [{ startLine: 4, endLine: 6 }],
        firstChangedLine: 4,
        diff: "@@ -1,6 +1,7 @@\n one\n two\n three\n-four\n+4\n+4.5\n five\n six"
      })
    }).pipe(Effect.provide(services)))

  it.scopedLive("goes on from its own edits without another read", () =>
    Effect.gen(function*() {
      const { disk, edit, put, read } = yield* desk
      put("f", "a\nb\n")
      yield* read({ path: "f" })
      yield* edit({ path: "f", oldText: "a", newText: "A" })
      yield* edit({ path: "f", edits: [{ oldText: "b", newText: "B" }, { oldText: "A", newText: "AA" }] })
      assert.strictEqual(disk("f"), "AA\nB\n")
    }).pipe(Effect.provide(services)))

  it.scopedLive("changes nothing when one edit of several does not fit", () =>
    Effect.gen(function*() {
      const { disk, edit, put, read } = yield* desk
      put("f", "abc\n")
      yield* read({ path: "f" })
      const bad = edit({ path: "f", edits: [{ oldText: "a", newText: "1" }, { oldText: "zz", newText: "2" }] })
      assert.strictEqual(yield* codeOf(bad), "edit_not_found")
      assert.strictEqual(yield* codeOf(edit({ path: "f", oldText: "", newText: "x" })), "edit_invalid")
      assert.strictEqual(yield* codeOf(edit({ path: "f", oldText: "a", newText: "\ud83d" })), "arguments_invalid")
      assert.strictEqual(disk("f"), "abc\n")
      assert.strictEqual(yield* codeOf(edit({ path: "none", oldText: "a", newText: "b" })), "file_not_found")
    }).pipe(Effect.provide(services)))

  it.scopedLive("keeps a mark and matches an old text that begins with one", () =>
    Effect.gen(function*() {
      const { bytes, edit, put, read } = yield* desk
      put("f", "\ufeffs = 1\r\n")
      yield* read({ path: "f" })
      yield* edit({ path: "f", oldText: "\ufeffs = 1", newText: "\ufeffs = 2" })
      assert.deepStrictEqual(bytes("f"), [0xef, 0xbb, 0xbf, ...new TextEncoder().encode("s = 2\r\n")])
    }).pipe(Effect.provide(services)))

  it.scopedLive("writes what a link leads to and leaves the link, and says when it wrote in place", () =>
    Effect.gen(function*() {
      const { at, disk, edit, put, read } = yield* desk
      put("real.txt", "v1\n")
      symlinkSync("real.txt", at("link.txt"))
      yield* read({ path: "link.txt" })
      const linked = yield* edit({ path: "link.txt", oldText: "v1", newText: "v2" })
      assert.isTrue(lstatSync(at("link.txt")).isSymbolicLink())
      assert.strictEqual(disk("real.txt"), "v2\n")
      assert.strictEqual(linked["path"], "real.txt")
      assert.isUndefined(linked["inPlace"])
      linkSync(at("real.txt"), at("h2"))
      assert.isTrue((yield* edit({ path: "real.txt", oldText: "v2", newText: "v3" }))["inPlace"])
      assert.strictEqual(disk("h2"), "v3\n")
    }).pipe(Effect.provide(services)))

  it.scopedLive("is licensed by a partial read for text that is there once, be it read or not", () =>
    Effect.gen(function*() {
      const { disk, edit, put, read } = yield* desk
      put("f", `${Array.from({ length: 500 }, (_, line) => `line ${line + 1};`).join("\n")}\nline 1;\n`)
      yield* read({ path: "f", offset: 2, limit: 9 })
      yield* edit({ path: "f", oldText: "line 400;", newText: "changed" })
      assert.include(disk("f"), "line 399;\nchanged\nline 401;")
      assert.strictEqual(
        yield* codeOf(edit({ path: "f", oldText: "line 1;", newText: "x", replaceAll: true })),
        "read_before_edit_required"
      )
    }).pipe(Effect.provide(services)))

  it.scopedLive("loses none of many edits at once, under whatever spelling of the file", () =>
    Effect.gen(function*() {
      const { at, disk, edit, put, read, workspace } = yield* desk
      mkdirSync(at("dir"))
      symlinkSync("dir", at("alias"))
      put("dir/f", `${Array.from({ length: 100 }, (_, line) => `<${line + 1}>`).join("\n")}\n`)
      yield* read({ path: "dir/f" })
      const spellings = ["dir/f", "./dir/../dir/f", "alias/f", join(workspace, "dir/f"), join(workspace, "alias/f")]
      const results = yield* Effect.forEach(
        Array.from({ length: 20 }, (_, index) => index + 1),
        (line) => edit({ path: spellings[line % 5] ?? "dir/f", oldText: `<${line}>`, newText: `<${line}>!` }),
        { concurrency: "unbounded" }
      )
      assert.isTrue(results.every((result) => result["replacements"] === 1))
      const lines = disk("dir/f").trimEnd().split("\n")
      assert.deepStrictEqual(
        lines,
        Array.from({ length: 100 }, (_, line) => line < 20 ? `<${line + 1}>!` : `<${line + 1}>`)
      )
      assert.deepStrictEqual(readdirSync(at("dir")), ["f"])
    }).pipe(Effect.provide(services)))

  it.scopedLive("checks the read, the path and the grant again after it has waited for the file", () =>
    Effect.gen(function*() {
      const { at, disk, edit, fs, outside, put, read, write } = yield* desk
      const queue = yield* FileMutationQueue
      put("f", "v1\n")
      mkdirSync(at("dir"))
      yield* read({ path: "f" })
      const wait = Effect.fnUntraced(
        function*<A, E, R>(held: string, waiting: Effect.Effect<A, E, R>, meanwhile: Effect.Effect<unknown>) {
          const gate = yield* Deferred.make<void>()
          const holder = yield* Effect.fork(queue.withFile(at(held), Deferred.await(gate)))
          yield* Effect.yieldNow()
          const waiter = yield* Effect.fork(codeOf(waiting))
          yield* Effect.sleep(30)
          yield* meanwhile
          yield* Deferred.succeed(gate, undefined)
          yield* Fiber.join(holder)
          return yield* Fiber.join(waiter)
        }
      )
      assert.strictEqual(
        yield* wait("f", edit({ path: "f", oldText: "v", newText: "w" }), Effect.sync(() => put("f", "v2\n"))),
        "stale_read"
      )
      assert.strictEqual(disk("f"), "v2\n")
      const swap = Effect.orDie(
        Effect.zipRight(fs.remove(at("dir"), { recursive: true }), fs.symlink(outside, at("dir")))
      )
      assert.strictEqual(yield* wait("dir/new", write("dir/new", "x"), swap), "sandbox_write_blocked")
      assert.deepStrictEqual(readdirSync(outside), [])
      const inside = Effect.orDie(Effect.zipRight(fs.remove(at("dir")), fs.symlink(at("."), at("dir"))))
      mkdirSync(at("dir2"))
      const moved = Effect.orDie(
        Effect.zipRight(fs.remove(at("dir2"), { recursive: true }), fs.symlink(at("."), at("dir2")))
      )
      yield* inside
      assert.strictEqual(yield* wait("dir2/new", write("dir2/new", "x"), moved), "path_changed")
      assert.isFalse(existsSync(at("new")))
    }).pipe(Effect.provide(services)))

  it.scopedLive("leaves the file and no other when it is interrupted at any moment", () =>
    Effect.gen(function*() {
      const { disk, edit, put, read, workspace } = yield* desk
      put("f", "a".repeat(200_000))
      yield* read({ path: "f" })
      const before = disk("f")
      const args = { path: "f", edits: [{ oldText: before, newText: "b".repeat(200_000) }] }
      for (let delay = 0; delay < 12; delay++) {
        put("f", before)
        yield* read({ path: "f" })
        const fiber = yield* Effect.fork(edit(args))
        yield* Effect.sleep(delay)
        yield* Fiber.interrupt(fiber)
        assert.include([before, "b".repeat(200_000)], disk("f"))
        assert.deepStrictEqual(readdirSync(workspace), ["f"])
      }
    }).pipe(Effect.provide(services)))
})
