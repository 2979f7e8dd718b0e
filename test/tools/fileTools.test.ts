import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import type { JsonObject } from "../../src/contract/Json.ts"
import { FileMutationQueue } from "../../src/file/FileMutationQueue.ts"
import { edit } from "../../src/tools/edit.ts"
import { ls } from "../../src/tools/ls.ts"
import { read } from "../../src/tools/read.ts"
import { write } from "../../src/tools/write.ts"
import { call, codeOf, services, world } from "../fixtures/files.ts"

const fileTools = [read, ls, write, edit]

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
        diff: "@@ -1,6 +1,7 @@\n one\n two\n three\n-four\n+4\n+4.5\n five\n six",
        patch: "--- a/f\n+++ b/f\n@@ -1,6 +1,7 @@\n one\r\n two\r\n three\r\n-four\r\n+4\r\n+4.5\r\n five\r\n six\r\n",
        bytesWritten: 36,
        revision: (yield* read({ path: "f" })).output["revision"]
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
