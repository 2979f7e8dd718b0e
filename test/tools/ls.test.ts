import * as FileSystem from "@effect/platform/FileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { codeOf, services } from "../fixtures/files.ts"
import { desk, plain } from "./fileSupport.ts"

describe("ls", () => {
  it.scopedLive("lists kinds and sizes by code unit, dangling links and FIFOs included", () =>
    Effect.gen(function*() {
      const { at, list, outside, put } = yield* desk
      put("b", "12345")
      put("B", "")
      put("é", "1")
      mkdirSync(at("a"))
      symlinkSync("nowhere", at("dangling"))
      symlinkSync("a", at("to-a"))
      symlinkSync(outside, at("out"))
      execFileSync("mkfifo", [at("fifo")])
      const { content, output: result } = yield* list({})
      assert.deepStrictEqual(result, {
        path: ".",
        entries: [
          { name: "B", kind: "file", size: 0 },
          { name: "a", kind: "directory", size: null },
          { name: "b", kind: "file", size: 5 },
          { name: "dangling", kind: "symlink", size: null, target: "nowhere", leads: "nowhere" },
          { name: "fifo", kind: "other", size: null },
          { name: "out", kind: "symlink", size: null, target: outside, leads: "outside" },
          { name: "to-a", kind: "symlink", size: null, target: "a", leads: "inside" },
          { name: "é", kind: "file", size: 1 }
        ],
        total: 8,
        withheld: 0,
        truncated: false,
        next: null
      })
      assert.deepStrictEqual(content, [{
        type: "text",
        text: `B (0 bytes)\na/\nb (5 bytes)\ndangling -> nowhere (dangling)\nfifo (other)\n` +
          `out -> ${outside} (outside the workspace)\nto-a -> a\né (1 bytes)`
      }])
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

  it.scopedLive("goes on after the last name, so that all pages are all names", () =>
    Effect.gen(function*() {
      const { ls, put } = yield* desk
      const names = Array.from({ length: 25 }, (_, index) => `f${index}`)
      for (const name of names) put(name, "")
      const all: Array<string> = []
      let after: string | null = ""
      while (after !== null) {
        const result: Record<string, unknown> = yield* ls({ limit: 10, after })
        assert.strictEqual(result["total"], 25)
        all.push(...Array.from(Object(result["entries"]), (entry) => String(plain(entry)["name"])))
        after = typeof result["next"] === "string" ? result["next"] : null
      }
      assert.deepStrictEqual(all, names.sort())
      assert.deepInclude(yield* ls({ after: "z" }), { entries: [], total: 25, next: null })
    }).pipe(Effect.provide(services)))

  it.scopedLive("shows odd names on one line each and as they can be given to a tool, and flags those that cannot", () =>
    Effect.gen(function*() {
      const { list, put, read, workspace } = yield* desk
      put("a\nb", "1")
      put("\u202etxt", "2")
      writeFileSync(Buffer.concat([Buffer.from(`${workspace}/`), Buffer.from([0x63, 0xff])]), "3")
      const { content, output } = yield* list({})
      assert.deepStrictEqual(content, [{
        type: "text",
        text: "\"a\\nb\" (1 bytes)\nc\ufffd (its name is not UTF-8)\n\"\\u202etxt\" (1 bytes)"
      }])
      assert.deepInclude(plain(Object(output["entries"])[1]), { kind: "unreachable" })
      assert.strictEqual((yield* read({ path: "a\nb" })).output["content"], "1")
    }).pipe(Effect.provide(services)))

  it.scopedLive("counts what is withheld and does not name it, nor where a link to it leads", () =>
    Effect.gen(function*() {
      const { at, list, put } = yield* desk
      put(".env", "secret")
      put("a", "")
      symlinkSync(".env", at("link"))
      const { content, output } = yield* list({})
      assert.deepInclude(output, {
        entries: [
          { name: "a", kind: "file", size: 0 },
          { name: "link", kind: "symlink", size: null, leads: "withheld" }
        ],
        total: 2,
        withheld: 1
      })
      assert.deepStrictEqual(content, [
        { type: "text", text: "a (0 bytes)\nlink (to what is withheld)\n[1 more are withheld.]" }
      ])
    }).pipe(Effect.provide(services)))

  it.scopedLive("shows one page of 100,000 names and looks at no more files than are in it", () =>
    Effect.gen(function*() {
      const { fs, list } = yield* desk
      let looks = 0
      const many: FileSystem.FileSystem = {
        ...fs,
        readDirectory: () => Effect.succeed(Array.from({ length: 100_000 }, (_, index) => `f${index}`)),
        stat: (path) => path.includes("/f") ? Effect.suspend(() => (looks++, fs.stat("/"))) : fs.stat(path)
      }
      const { output } = yield* Effect.provideService(list({}), FileSystem.FileSystem, many)
      assert.deepInclude(output, { total: 100_000, truncated: true, next: "f10446" })
      assert.isAtMost(looks, 500)
    }).pipe(Effect.provide(services)))
})
