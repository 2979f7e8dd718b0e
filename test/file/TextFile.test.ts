import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as fc from "effect/FastCheck"
import { execFileSync } from "node:child_process"
import { createServer } from "node:net"
import * as TextFile from "../../src/file/TextFile.ts"
import { codeOf, platform, world } from "../fixtures/files.ts"

const hex = (text: string): Uint8Array => Uint8Array.from(text.split(" ").map((byte) => Number.parseInt(byte, 16)))
const offset = (bytes: Uint8Array): number => Either.getOrThrow(Either.flip(TextFile.decode(bytes)))

describe("TextFile", () => {
  it("gives back every text it decodes byte for byte", () => {
    fc.assert(fc.property(
      fc.fullUnicodeString(),
      fc.constantFrom<TextFile.Encoding>(
        { charset: "utf-8", bom: false },
        { charset: "utf-8", bom: true },
        { charset: "utf-16le", bom: true },
        { charset: "utf-16be", bom: true }
      ),
      (text, encoding) => {
        fc.pre(!text.includes("\0") && (encoding.bom || !text.startsWith("\ufeff")))
        const bytes = Either.getOrThrow(TextFile.encode(text, encoding))
        assert.deepStrictEqual(Either.getOrThrow(TextFile.decode(bytes)), { text, encoding })
      }
    ))
  })

  it("gives back arbitrary bytes or refuses them, and never puts U+FFFD in their place", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 24 }), (bytes) => {
        const decoded = TextFile.decode(bytes)
        if (Either.isLeft(decoded)) return assert.isBelow(decoded.left, bytes.length)
        const again = Either.getOrThrow(TextFile.encode(decoded.right.text, decoded.right.encoding))
        assert.deepStrictEqual([...again], [...bytes])
      }),
      { numRuns: 2000 }
    )
  })

  it("does not touch the bytes it decodes, whatever kind of array holds them", () => {
    const bytes = Buffer.from([0xfe, 0xff, 0x00, 0x61])
    assert.strictEqual(Either.getOrThrow(TextFile.decode(bytes)).text, "a")
    assert.deepStrictEqual([...bytes], [0xfe, 0xff, 0x00, 0x61])
  })

  it("names the first byte that is not text", () => {
    assert.strictEqual(offset(hex("2F 2F 20 C4 E3 BA C3 0A 78 3D 31 0A")), 3)
    assert.strictEqual(offset(hex("61 E9 0A")), 1)
    assert.strictEqual(offset(hex("80")), 0)
    assert.strictEqual(offset(hex("61 C0 AF")), 1)
    assert.strictEqual(offset(hex("EF BF BD 61 FF")), 4)
    assert.strictEqual(offset(hex("EF BB BF E2 82")), 3)
    assert.strictEqual(offset(hex("61 62 00 63")), 2)
    assert.strictEqual(offset(hex("FF FE 61 00 00 D8 61 00")), 4)
    assert.strictEqual(offset(hex("FE FF 00 61 00")), 4)
    assert.strictEqual(offset(hex("FF FE 00 00")), 2)
  })

  it("has no bytes for half a surrogate pair", () => {
    const error = Either.getOrThrow(Either.flip(TextFile.encode("a\ud83d", TextFile.utf8)))
    assert.strictEqual(error.code, "text_invalid")
  })

  it.scopedLive("refuses what is no regular file at once, without opening it", () =>
    Effect.gen(function*() {
      const { fs, path, workspace } = yield* world
      execFileSync("mkfifo", [path.join(workspace, "fifo")])
      const socket = path.join(workspace, "socket")
      yield* Effect.acquireRelease(
        Effect.async<ReturnType<typeof createServer>>((resume) => {
          const server = createServer().listen(socket, () => resume(Effect.succeed(server)))
        }),
        (server) => Effect.async<void>((resume) => void server.close(() => resume(Effect.void)))
      )
      const read = (name: string) => codeOf(TextFile.readBytes(fs, path.resolve(workspace, name), name, 1000))
      const started = performance.now()
      assert.strictEqual(yield* read("fifo"), "not_a_regular_file")
      assert.strictEqual(yield* read("socket"), "not_a_regular_file")
      assert.strictEqual(yield* read("/dev/zero"), "not_a_regular_file")
      assert.strictEqual(yield* read("."), "is_a_directory")
      assert.strictEqual(yield* read("none"), "file_not_found")
      assert.isBelow(performance.now() - started, 500)
    }).pipe(Effect.provide(platform)))

  it.scopedLive("refuses a huge file from its size alone, and one that is larger than it says", () =>
    Effect.gen(function*() {
      const { fs, path, workspace } = yield* world
      const huge = path.join(workspace, "huge")
      yield* fs.writeFileString(huge, "")
      yield* fs.truncate(huge, 3 * 1024 ** 3)
      const before = process.memoryUsage().arrayBuffers
      assert.strictEqual(yield* codeOf(TextFile.readBytes(fs, huge, "huge", 8 * 1024 ** 2)), "file_too_large")
      assert.isBelow(process.memoryUsage().arrayBuffers - before, 1024 ** 2)
      assert.strictEqual(yield* codeOf(TextFile.readBytes(fs, "/proc/self/maps", "maps", 100)), "file_too_large")
      const maps = yield* TextFile.readBytes(fs, "/proc/self/maps", "maps", 1024 ** 2)
      assert.isAbove(maps.length, 100)
    }).pipe(Effect.provide(platform)))
})
