/** Field cases of files, by the bytes on disk (E and P of the field faults). */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import type { JsonObject } from "../../src/contract/Json.ts"
import type { ReadRequired } from "../../src/contract/ToolFailure.ts"
import * as ToolProvider from "../../src/tool/ToolProvider.ts"
import { edit } from "../../src/tools/edit.ts"
import { read } from "../../src/tools/read.ts"
import { write } from "../../src/tools/write.ts"
import { call, codeOf, services, world } from "../fixtures/files.ts"
import { executeIn, Test } from "../support/plane.ts"

const outputOf = <E, R>(called: Effect.Effect<{ readonly output: unknown }, E, R>) =>
  Effect.map(called, ({ output }): Record<string, unknown> => Object(output))

const desk = Effect.gen(function*() {
  const { turn, workspace } = yield* world
  const at = (name: string) => join(workspace, name)
  return {
    at,
    workspace,
    put: (name: string, content: string | ReadonlyArray<number>) =>
      writeFileSync(at(name), typeof content === "string" ? content : Uint8Array.from(content)),
    disk: (name: string) => readFileSync(at(name), "utf8"),
    bytes: (name: string) => [...readFileSync(at(name))],
    read: (args: JsonObject) => outputOf(call(read, turn, args)),
    write: (path: string, content: string) => outputOf(call(write, turn, { path, content })),
    edit: (path: string, oldText: string, newText: string) => outputOf(call(edit, turn, { path, oldText, newText }))
  }
})

const utf8 = (text: string): ReadonlyArray<number> => [...new TextEncoder().encode(text)]
const mark = [0xef, 0xbb, 0xbf]

describe("cases of files", () => {
  it.scopedLive("E04: a byte order mark stays, once, and is not shown", () =>
    Effect.gen(function*() {
      const { bytes, edit, put, read, write } = yield* desk
      const file = [...mark, ...utf8("sécurisé\r\n")]
      const ways = [
        edit("f", "sécurisé", "ok"),
        write("f", "ok\r\n"),
        edit("f", "\ufeffsécurisé", "\ufeffok"),
        write("f", "\ufeffok\r\n")
      ]
      for (const way of ways) {
        put("f", file)
        assert.strictEqual((yield* read({ path: "f" }))["content"], "sécurisé\n")
        yield* way
        assert.deepStrictEqual(bytes("f"), [...mark, ...utf8("ok\r\n")])
      }
    }).pipe(Effect.provide(services)))

  it.scopedLive("E13: what is not text is refused with the offset and left as it is; UTF-16 changes where it is told to", () =>
    Effect.gen(function*() {
      const { bytes, edit, put, read, write } = yield* desk
      const foreign = {
        gbk: [[0x2f, 0x2f, 0x20, 0xc4, 0xe3, 0xba, 0xc3, 0x0a, 0x78, 0x3d, 0x31, 0x0a], 3],
        latin: [[0x61, 0xe9, 0x0a], 1],
        lone: [[0x80], 0],
        overlong: [[0x2f, 0xc0, 0xaf], 1],
        binary: [[0x7f, 0x45, 0x4c, 0x46, 0x00], 4]
      } as const
      for (const [name, [file, byteOffset]] of Object.entries(foreign)) {
        put(name, file)
        for (const way of [read({ path: name }), edit(name, "x=1", "x=2"), write(name, "x")]) {
          const code = yield* codeOf(way)
          assert.include(["file_not_text", "read_before_edit_required"], code, name)
        }
        const error = yield* Effect.flip(read({ path: name }))
        assert.deepNestedInclude(error, { "details.byteOffset": byteOffset })
        assert.deepStrictEqual(bytes(name), [...file])
      }
      put("utf16", [0xff, 0xfe, 0x78, 0, 0x3d, 0, 0x31, 0, 0x0d, 0, 0x0a, 0])
      yield* read({ path: "utf16" })
      yield* edit("utf16", "x=1", "x=2")
      assert.deepStrictEqual(bytes("utf16"), [0xff, 0xfe, 0x78, 0, 0x3d, 0, 0x32, 0, 0x0d, 0, 0x0a, 0])
    }).pipe(Effect.provide(services)))

  it.scopedLive("E15: no newline at the end is invented or lost", () =>
    Effect.gen(function*() {
      const { disk, edit, put, read, write } = yield* desk
      put("f", "a\nb")
      put("g", "a\n")
      yield* read({ path: "f" })
      yield* read({ path: "g" })
      yield* edit("f", "b", "c")
      yield* edit("g", "a", "b\n")
      assert.deepStrictEqual([disk("f"), disk("g")], ["a\nc", "b\n\n"])
      for (const content of ["x", "x\n", "x\n\n", ""]) {
        yield* write("f", content)
        assert.strictEqual(disk("f"), content)
      }
    }).pipe(Effect.provide(services)))

  it.scopedLive("E18: an empty old text changes no file that has one", () =>
    Effect.gen(function*() {
      const { disk, edit, put, read } = yield* desk
      put("f", "ab\n")
      yield* read({ path: "f" })
      assert.strictEqual(yield* codeOf(edit("f", "", "x")), "edit_invalid")
      assert.strictEqual(disk("f"), "ab\n")
    }).pipe(Effect.provide(services)))

  it.scopedLive("E19: what a link leads to is written and the link stays; hard links are written in place, and it is said", () =>
    Effect.gen(function*() {
      const { at, disk, edit, put, read } = yield* desk
      put("real.txt", "v1\n")
      symlinkSync("real.txt", at("link.txt"))
      symlinkSync("link.txt", at("link2.txt"))
      yield* read({ path: "link.txt" })
      yield* edit("link.txt", "v1", "v2")
      yield* edit("link2.txt", "v2", "v3")
      assert.isTrue(lstatSync(at("link.txt")).isSymbolicLink() && lstatSync(at("link2.txt")).isSymbolicLink())
      assert.strictEqual(disk("real.txt"), "v3\n")
      put("h1", "v1\n")
      linkSync(at("h1"), at("h2"))
      yield* read({ path: "h1" })
      assert.deepInclude(yield* edit("h1", "v1", "v2"), { inPlace: true })
      assert.deepStrictEqual([disk("h2"), statSync(at("h1")).ino], ["v2\n", statSync(at("h2")).ino])
    }).pipe(Effect.provide(services)))

  it.scopedLive("E20: an edit keeps the mode under any umask and leaves no other file", () =>
    Effect.gen(function*() {
      const { at, edit, put, read, workspace } = yield* desk
      const before = process.umask(0o077)
      yield* Effect.addFinalizer(() => Effect.sync(() => process.umask(before)))
      for (const mode of [0o755, 0o600, 0o664]) {
        put("run.sh", "v1\n")
        chmodSync(at("run.sh"), mode)
        yield* read({ path: "run.sh" })
        yield* edit("run.sh", "v1", "v2")
        assert.strictEqual(statSync(at("run.sh")).mode & 0o7777, mode)
      }
      assert.deepStrictEqual(readdirSync(workspace), ["run.sh"])
    }).pipe(Effect.provide(services)))

  it.scopedLive("E23: a write from a stale read is refused with both revisions, one of an unread file with what to call", () =>
    Effect.gen(function*() {
      const { disk, put, workspace } = yield* desk
      const tools = ToolProvider.make({ id: "files", kind: "built-in", tools: [read, write, edit] })
      const spec = { workspace, threadId: "a", approvalPolicy: "auto" } as const
      const run = (toolName: string, args: JsonObject) =>
        executeIn(spec, { toolName, arguments: { path: "f", ...args } })
      yield* Effect.gen(function*() {
        put("f", "v1\n")
        assert.deepInclude((yield* run("write", { content: "mine" })).output, {
          code: "read_before_edit_required",
          details: {
            path: "f",
            reason: "\"f\" has not been read in this thread.",
            nextAction: { tool: "read", arguments: { path: "f" } }
          }
        })
        const first = Object((yield* run("read", {})).output)["revision"]
        put("f", "v2\n")
        const refused = Object((yield* run("write", { content: "v1, changed\n" })).output)
        const second = Object((yield* run("read", {})).output)["revision"]
        assert.strictEqual(refused["code"], "stale_read")
        assert.deepInclude(refused["details"], { readVersion: first, currentVersion: second })
        assert.include(refused["error"], first)
        assert.include(refused["error"], second)
        assert.strictEqual(disk("f"), "v2\n")
        assert.isNull((yield* run("write", { content: "v3\n" })).code)
      }).pipe(Effect.provide(Test.layer([tools])))
    }).pipe(Effect.provide(services)))

  it.scopedLive("a read whose output a hook replaced licenses no change", () =>
    Effect.gen(function*() {
      const { disk, put, workspace } = yield* desk
      const tools = ToolProvider.make({ id: "files", kind: "built-in", tools: [read, write] })
      const spec = { workspace, threadId: "a", approvalPolicy: "auto" } as const
      put("f", "secret\n")
      const codes = (answer: { readonly output?: string }) =>
        Effect.gen(function*() {
          yield* executeIn(spec, { toolName: "read", arguments: { path: "f" } })
          const call = { toolName: "write", arguments: { path: "f", content: "mine" } }
          return (yield* executeIn(spec, call)).code
        }).pipe(Effect.provide(Test.layer([tools], {
          hooks: [{ phase: "PostToolUse", name: "h", tools: ["read"], run: () => Effect.succeed(answer) }]
        })))
      assert.strictEqual(yield* codes({ output: "withheld" }), "read_before_edit_required")
      assert.strictEqual(disk("f"), "secret\n")
      assert.isNull(yield* codes({}))
    }).pipe(Effect.provide(services)))

  it.scopedLive("E25: a partial read licenses what is quoted, whether an offset or a limit made it partial; its parts add up", () =>
    Effect.gen(function*() {
      const { disk, edit, put, read, write } = yield* desk
      const lines = Array.from({ length: 3000 }, (_, line) => `line ${line + 1};`).join("\n")
      for (const args of [{ offset: 1, limit: 10 }, { offset: 20, limit: 10 }, {}]) {
        put("f", `${lines}\n${JSON.stringify(args)}\n`)
        yield* read({ path: "f", ...args })
        assert.strictEqual(yield* codeOf(write("f", "all of it")), "read_before_edit_required")
        yield* edit("f", "line 2900;", "changed")
        assert.include(disk("f"), "line 2899;\nchanged\nline 2901;")
        assert.strictEqual(yield* codeOf(write("f", "all of it")), "read_before_edit_required")
      }
      // The call that a refusal names, made until there is none, licenses the write.
      let calls = 0
      while (calls < 10) {
        const result = yield* Effect.either(write("f", "all of it"))
        if (result._tag === "Right") break
        const refusal = result.left as ReadRequired
        assert.strictEqual(refusal.nextAction.tool, "read")
        yield* read(refusal.nextAction.arguments)
        calls++
      }
      assert.deepStrictEqual([calls, disk("f")], [2, "all of it"])
    }).pipe(Effect.provide(services)))

  it.scopedLive("E26: a huge file is refused before memory is taken for it, by every tool", () =>
    Effect.gen(function*() {
      const { at, edit, put, read, write } = yield* desk
      put("sparse", "")
      truncateSync(at("sparse"), 3 * 1024 ** 3)
      put("line", "")
      truncateSync(at("line"), 200 * 1024 ** 2)
      const before = process.memoryUsage()
      for (const name of ["sparse", "line"]) {
        for (const way of [read({ path: name }), edit(name, "a", "b"), write(name, "x")]) {
          assert.include(["file_too_large", "read_before_edit_required", "file_not_text"], yield* codeOf(way))
        }
      }
      const after = process.memoryUsage()
      assert.isBelow(after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers, 64 * 1024 ** 2)
      assert.strictEqual(statSync(at("sparse")).size, 3 * 1024 ** 3)
    }).pipe(Effect.provide(services)))

  it.scopedLive("P06: special files hold up no tool and are not written", () =>
    Effect.gen(function*() {
      const { at, edit, read, write } = yield* desk
      execFileSync("mkfifo", [at("fifo")])
      const started = performance.now()
      for (const way of [read({ path: "fifo" }), edit("fifo", "a", "b"), write("fifo", "x")]) {
        assert.strictEqual(yield* codeOf(way), "not_a_regular_file")
      }
      assert.strictEqual(yield* codeOf(write(".", "x")), "path_invalid")
      assert.isBelow(performance.now() - started, 1000)
      assert.isTrue(existsSync(at("fifo")) && lstatSync(at("fifo")).isFIFO())
    }).pipe(Effect.provide(services)))
})
