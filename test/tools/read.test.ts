import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import { execFileSync } from "node:child_process"
import { mkdirSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import type { JsonObject } from "../../src/contract/Json.ts"
import { FileAccess } from "../../src/file/FileAccess.ts"
import { MaxFileBytes } from "../../src/file/TextFile.ts"
import { ReadBudget } from "../../src/file/TextPage.ts"
import { edit } from "../../src/tools/edit.ts"
import { read as read_ } from "../../src/tools/read.ts"
import { call, codeOf, services } from "../fixtures/files.ts"
import { png } from "../fixtures/images.ts"
import { count } from "../support/counts.ts"
import { desk, detailsOf, plain } from "./fileSupport.ts"

describe("read", () => {
  it.scopedLive("shows LF, no byte order mark and where it is, and keeps the disk as it was", () =>
    Effect.gen(function*() {
      const { bytes, put, read } = yield* desk
      put("f", "\ufeffa\r\nb\rc\r\n")
      const { content, output } = yield* read({ path: "f" })
      assert.deepInclude(output, {
        kind: "text",
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
      assert.deepStrictEqual(yield* detailsOf(read({ path: "f", offset: 4501 })), { totalLines: 4500 })
      assert.strictEqual(yield* codeOf(read({ path: "f", offset: 4501 })), "offset_out_of_range")
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

  it.scopedLive("E26: cuts a line too long for a page between two code points and goes on inside it", () =>
    Effect.gen(function*() {
      const { put, read } = yield* desk
      put("f", `one\n${"x".repeat(50 * 1024 - 1)}😀tail\r\nnext\n`)
      assert.deepInclude((yield* read({ path: "f" })).output, { content: "one\n", nextOffset: 2 })
      const { content, output } = yield* read({ path: "f", offset: 2 })
      assert.strictEqual(output["content"], "x".repeat(50 * 1024 - 1))
      assert.deepInclude(output, {
        startLine: 2,
        endLine: 2,
        truncated: true,
        nextOffset: 2,
        nextColumn: 50 * 1024,
        charactersLeft: 5
      })
      assert.deepStrictEqual(content[1], {
        type: "text",
        text:
          `[Lines 2 to 2 of 3, revision ${
            String(output["revision"])
          }; line 2 has 5 more characters: go on with offset 2 and column 51200, or skip them with ` +
          "offset 3.]"
      })
      assert.deepInclude((yield* read({ path: "f", offset: 2, column: 50 * 1024 })).output, {
        content: "😀tail\nnext\n",
        nextOffset: null
      })
      const past = read({ path: "f", offset: 1, column: 4 })
      assert.strictEqual(yield* codeOf(past), "offset_out_of_range")
      assert.deepStrictEqual(yield* detailsOf(past), { columns: 3 })
    }).pipe(Effect.provide(services)))

  it.scopedLive("keeps to the host's budget and to the tokens that a call asks for", () =>
    Effect.gen(function*() {
      const { put, read } = yield* desk
      put("f", "123456789\n".repeat(1000))
      assert.deepInclude((yield* read({ path: "f", maxTokens: 300 })).output, { endLine: 90, nextOffset: 91 })
      assert.deepInclude((yield* read({ path: "f", maxTokens: 1 })).output, { endLine: 51 })
      assert.deepInclude((yield* read({ path: "f", maxTokens: 1_000_000 })).output, { endLine: 1000 })
      const small = Effect.provideService(read({ path: "f", limit: 50 }), ReadBudget, {
        lines: 7,
        bytes: 10_000,
        tokens: 1000
      })
      assert.deepInclude((yield* small).output, { endLine: 7 })
    }).pipe(Effect.provide(services)))

  it.scopedLive("notices by the revision that a file has changed between two pages", () =>
    Effect.gen(function*() {
      const { at, put, read } = yield* desk
      for (const maxBytes of [1_000_000, 1000]) {
        put("f", "line\n".repeat(1000))
        const page = (args: JsonObject) =>
          Effect.provideService(read({ path: "f", limit: 10, ...args }), MaxFileBytes, maxBytes)
        const { output } = yield* page({})
        const expectedRevision = String(output["revision"])
        assert.strictEqual(expectedRevision.startsWith("stat-5000-"), maxBytes === 1000)
        assert.deepInclude((yield* page({ expectedRevision, offset: 11 })).output, { revision: expectedRevision })
        put("f", "lime\n".repeat(1000))
        utimesSync(at("f"), 1, 2)
        const changed = page({ expectedRevision, offset: 21 })
        assert.strictEqual(yield* codeOf(changed), "file_revision_mismatch")
        const actual = (yield* page({})).output["revision"]
        assert.deepStrictEqual(yield* detailsOf(changed), { expected: expectedRevision, actual })
      }
    }).pipe(Effect.provide(services)))

  it.scopedLive("E26: pages a file too large for memory, reads no further than the page, and licenses no edit", () =>
    Effect.gen(function*() {
      const { at, put, read, turn } = yield* desk
      put("f", `\ufeff${"wörd\r\n".repeat(50_000)}`)
      truncateSync(at("f"), 3 * 1024 ** 3)
      let got = 0
      const access = yield* FileAccess
      const counted = read({ path: "f" }).pipe(Effect.provideService(FileAccess, {
        ...access,
        open: (path) =>
          Effect.map(access.open(path), (file) => ({
            ...file,
            read: (offset, length) => Effect.tap(file.read(offset, length), (bytes) => void (got += bytes.length))
          }))
      }))
      const { content, output } = yield* counted
      assert.isBelow(got, 1024 * 1024)
      assert.deepInclude(output, {
        content: "wörd\n".repeat(2000),
        endLine: 2000,
        totalLines: null,
        nextOffset: 2001,
        byteSize: 3 * 1024 ** 3,
        editable: false
      })
      assert.deepStrictEqual(content[1], {
        type: "text",
        text:
          `[Lines 1 to 2000 of a file of 3221225472 bytes, too large to be edited, revision ${
            String(output["revision"])
          }; ` +
          "next offset 2001.]"
      })
      assert.deepInclude((yield* read({ path: "f", offset: 49_999, limit: 2 })).output, { content: "wörd\nwörd\n" })
      const beyond = read({ path: "f", offset: 50_000, limit: 2 })
      assert.strictEqual(yield* codeOf(beyond), "none")
      assert.strictEqual(yield* codeOf(read({ path: "f", offset: 50_001 })), "file_not_text")
      assert.strictEqual((yield* detailsOf(read({ path: "f", offset: 50_001 })))["byteOffset"], 350_003)
      assert.strictEqual(
        yield* codeOf(call(edit, turn, { path: "f", oldText: "a", newText: "b" })),
        "file_too_large"
      )
    }).pipe(Effect.provide(services)))

  it.scopedLive("pages no large file in UTF-16, and says what is no text", () =>
    Effect.gen(function*() {
      const { put, read } = yield* desk
      const page = (path: string) => Effect.provideService(read({ path }), MaxFileBytes, 100)
      put("u16", Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from("a".repeat(100), "utf16le")]))
      assert.strictEqual(yield* codeOf(page("u16")), "file_too_large")
      assert.strictEqual((yield* read({ path: "u16" })).output["content"], "a".repeat(100))
      put("z", Buffer.concat([Buffer.from("PK\x03\x04"), Buffer.alloc(200)]))
      put("s", Buffer.concat([Buffer.from("SQLite format 3\0"), Buffer.alloc(10)]))
      assert.deepStrictEqual(yield* detailsOf(page("z")), {
        byteOffset: 4,
        format: "a zip archive or a document packed as one"
      })
      assert.deepStrictEqual(yield* detailsOf(page("s")), { byteOffset: 15, format: "an SQLite database" })
      put("late", Buffer.concat([Buffer.from("é".repeat(60)), Buffer.from([0xc3])]))
      assert.deepStrictEqual(yield* detailsOf(page("late")), { byteOffset: 120 })
    }).pipe(Effect.provide(services)))

  it.scopedLive("tells of an image what it is, whatever its name, and who can look at it", () =>
    Effect.gen(function*() {
      const { put, read, turn } = yield* desk
      put("photo.txt", png(640, 480))
      const { content, output } = yield* read({ path: "photo.txt" })
      assert.deepStrictEqual(output, {
        kind: "image",
        path: "photo.txt",
        mediaType: "image/png",
        width: 640,
        height: 480,
        byteSize: 33,
        viewable: false
      })
      assert.deepStrictEqual(content, [
        { type: "text", text: "[An image, image/png, 640 × 480 pixels, 33 bytes. It cannot be shown to this model.]" }
      ])
      const seeing = call(read_, { ...turn, model: { inputModalities: ["text", "image"] } }, { path: "photo.txt" })
      assert.include(JSON.stringify((yield* seeing).content), "call read_image")
    }).pipe(Effect.provide(services)))

  it.scopedLive("P06: waits for nothing that is no regular file", () =>
    Effect.gen(function*() {
      const { at, put, read } = yield* desk
      execFileSync("mkfifo", [at("fifo")])
      const server = createServer()
      yield* Effect.async<void>((resume) => void server.listen(at("socket"), () => resume(Effect.void)))
      mkdirSync(at("d"))
      symlinkSync("fifo", at("link"))
      put("f", "")
      for (const path of ["fifo", "link", "socket"]) {
        assert.strictEqual(yield* codeOf(Effect.timeout(read({ path }), 2000)), "not_a_regular_file", path)
      }
      const directory = yield* Effect.flip(read({ path: "d" }))
      assert.include(String(plain(directory)["message"]), "call ls")
      server.close()
    }).pipe(Effect.provide(services)))

  it.scopedLive(
    "E26: pages through a line of a megabyte, and any file in pages of any size is that file",
    () =>
      Effect.gen(function*() {
        const { put, read } = yield* desk
        const text = Array.from({ length: 150_000 }, (_, index) => ["ab", "é", "汉", "😀", "\r"][index % 5]).join("")
        put("line", text)
        assert.strictEqual(yield* paged(read, { path: "line" }), text)
        const random = FastCheck.sample(
          FastCheck.record({
            text: FastCheck.array(
              FastCheck.constantFrom("a", "é", "汉", "😀", "\r", "\r\n", "\n", "\ufeff", "x".repeat(300)),
              {
                maxLength: 200
              }
            ),
            limit: FastCheck.integer({ min: 1, max: 50 }),
            maxTokens: FastCheck.integer({ min: 1, max: 400 }),
            maxBytes: FastCheck.constantFrom(100, 1_000_000)
          }),
          count({ quick: 100, soak: 2000 })
        )
        for (const { limit, maxBytes, maxTokens, text } of random) {
          const file = text.join("")
          put("f", `\ufeff${file}`)
          const all = paged(read, { path: "f", limit, maxTokens })
          assert.strictEqual(
            yield* Effect.provideService(all, MaxFileBytes, maxBytes),
            file.replaceAll("\r\n", "\n"),
            JSON.stringify({ file, limit, maxTokens, maxBytes })
          )
        }
      }).pipe(Effect.provide(services)),
    60_000
  )
})

/** All pages, one after the other, as a model would ask for them. */
const paged = <E, R>(
  read: (args: JsonObject) => Effect.Effect<{ readonly output: Record<string, unknown> }, E, R>,
  args: JsonObject
): Effect.Effect<string, E, R> =>
  Effect.flatMap(read(args), ({ output }) => {
    const { content, nextColumn, nextOffset, revision } = output
    if (typeof nextOffset !== "number") return Effect.succeed(String(content))
    const { column: _, ...rest } = args
    const next = typeof nextColumn === "number" ? { column: nextColumn } : {}
    const more = paged(read, { ...rest, offset: nextOffset, expectedRevision: String(revision), ...next })
    return Effect.map(more, (text) => String(content) + text)
  })
