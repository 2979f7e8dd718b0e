import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as fc from "effect/FastCheck"
import { execFileSync } from "node:child_process"
import { createServer } from "node:net"
import { FileAccess } from "../../src/file/FileAccess.ts"
import * as TextFile from "../../src/file/TextFile.ts"
import { codeOf, platform, world } from "../fixtures/files.ts"
import { count } from "../support/counts.ts"

const hex = (text: string): Uint8Array => Uint8Array.from(text.split(" ").map((byte) => Number.parseInt(byte, 16)))
const offset = (bytes: Uint8Array): number => Either.getOrThrow(Either.flip(TextFile.decode(bytes)))

/** The first byte that is not text, looked for byte by byte from the definition of UTF-8 (Unicode, table 3-7). */
const scanUtf8 = (bytes: Uint8Array, from: number): number | undefined => {
  const rows = [
    [[0x01, 0x7f]],
    [[0xc2, 0xdf], [0x80, 0xbf]],
    [[0xe0, 0xe0], [0xa0, 0xbf], [0x80, 0xbf]],
    [[0xe1, 0xec], [0x80, 0xbf], [0x80, 0xbf]],
    [[0xed, 0xed], [0x80, 0x9f], [0x80, 0xbf]],
    [[0xee, 0xef], [0x80, 0xbf], [0x80, 0xbf]],
    [[0xf0, 0xf0], [0x90, 0xbf], [0x80, 0xbf], [0x80, 0xbf]],
    [[0xf1, 0xf3], [0x80, 0xbf], [0x80, 0xbf], [0x80, 0xbf]],
    [[0xf4, 0xf4], [0x80, 0x8f], [0x80, 0xbf], [0x80, 0xbf]]
  ]
  let at = from
  while (at < bytes.length) {
    const fits = rows.find((row) =>
      row.every(([least = 0, most = 0], index) => {
        const byte = bytes[at + index]
        return byte !== undefined && byte >= least && byte <= most
      })
    )
    if (fits === undefined) return at
    at += fits.length
  }
  return undefined
}

const scanUtf16 = (bytes: Uint8Array, little: boolean): number | undefined => {
  const unit = (at: number): number | undefined => {
    const [first, second] = [bytes[at], bytes[at + 1]]
    if (first === undefined || second === undefined) return undefined
    return little ? second * 256 + first : first * 256 + second
  }
  let at = 2
  while (at < bytes.length) {
    const value = unit(at)
    if (value === undefined || value === 0 || (value >= 0xdc00 && value <= 0xdfff)) return at
    if (value < 0xd800 || value > 0xdbff) {
      at += 2
      continue
    }
    const low = unit(at + 2)
    if (low === undefined || low < 0xdc00 || low > 0xdfff) return at
    at += 4
  }
  return undefined
}

const scan = (bytes: Uint8Array): number | undefined => {
  const [first, second, third] = bytes
  if (first === 0xff && second === 0xfe) return scanUtf16(bytes, true)
  if (first === 0xfe && second === 0xff) return scanUtf16(bytes, false)
  return scanUtf8(bytes, first === 0xef && second === 0xbb && third === 0xbf ? 3 : 0)
}

const pieces = [
  "EF BB BF",
  "FF FE",
  "FE FF",
  "00",
  "00 00",
  "61",
  "0D 0A",
  "0A 00",
  "00 0A",
  "61 00",
  "00 61",
  "C3 A9",
  "E2 82 AC",
  "E2 82",
  "EF BF BD",
  "FD FF",
  "FF FD",
  "F0 9F 98 80",
  "F0 9F 98",
  "C0 AF",
  "E0 80 AF",
  "ED A0 80",
  "F5 80 80 80",
  "80",
  "D8 3D",
  "3D D8",
  "DE 00",
  "00 DE",
  "C4 E3 BA C3"
].map(hex)

const awkward = fc.array(fc.oneof(fc.constantFrom(...pieces), fc.uint8Array({ maxLength: 3 })), { maxLength: 12 })
  .map((chunks) => Uint8Array.from(chunks.flatMap((chunk) => [...chunk])))

describe("TextFile", () => {
  it("E13: gives back every file that it does not refuse, and names the byte that a scan of the bytes names", () => {
    fc.assert(
      fc.property(fc.oneof(awkward, fc.uint8Array({ maxLength: 24 })), (bytes) => {
        const wrong = scan(bytes)
        const decoded = TextFile.decode(bytes)
        if (Either.isLeft(decoded)) return assert.strictEqual(decoded.left, wrong)
        assert.isUndefined(wrong)
        const again = Either.getOrThrow(TextFile.encode(decoded.right.text, decoded.right.encoding))
        assert.deepStrictEqual([...again], [...bytes])
      }),
      { numRuns: count({ quick: 5000, soak: 200_000 }) }
    )
  })

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
    assert.strictEqual(offset(hex("61 00 62 FF")), 1)
  })

  it("has no bytes for half a surrogate pair", () => {
    const error = Either.getOrThrow(Either.flip(TextFile.encode("a\ud83d", TextFile.utf8)))
    assert.strictEqual(error.code, "text_invalid")
  })

  it.scopedLive("E13: says what a file may be that is not text, and what to do", () =>
    Effect.gen(function*() {
      const { fs, path, workspace } = yield* world
      const access = yield* FileAccess
      const file = path.join(workspace, "f")
      const cases = [
        ["2F 2F 20 C4 E3 BA C3 0A 78 3D 31 0A", 3, "byte 3 (0xc4)", "GBK or Latin-1"],
        ["7F 45 4C 46 00 00", 4, "byte 4 (0x00)", "a binary file"]
      ] as const
      for (const [bytes, byteOffset, where, what] of cases) {
        yield* fs.writeFile(file, hex(bytes))
        const error = yield* Effect.flip(TextFile.read(access, String, file, "f", 1000))
        assert.deepStrictEqual([error.code, error.details], ["file_not_text", { byteOffset }])
        assert.include(error.message, where)
        assert.include(error.message, what)
      }
    }).pipe(Effect.provide(platform)))

  it.scopedLive("P06: refuses what is no regular file at once, and waits for no writer", () =>
    Effect.gen(function*() {
      const { path, workspace } = yield* world
      const access = yield* FileAccess
      execFileSync("mkfifo", [path.join(workspace, "fifo")])
      const socket = path.join(workspace, "socket")
      yield* Effect.acquireRelease(
        Effect.async<ReturnType<typeof createServer>>((resume) => {
          const server = createServer().listen(socket, () => resume(Effect.succeed(server)))
        }),
        (server) => Effect.async<void>((resume) => void server.close(() => resume(Effect.void)))
      )
      const read = (name: string) => codeOf(TextFile.readBytes(access, path.resolve(workspace, name), name, 10))
      const started = performance.now()
      assert.strictEqual(yield* read("fifo"), "not_a_regular_file")
      assert.strictEqual(yield* read("socket"), "not_a_regular_file")
      assert.strictEqual(yield* read("/dev/zero"), "not_a_regular_file")
      assert.strictEqual(yield* read("."), "is_a_directory")
      assert.strictEqual(yield* read("none"), "file_not_found")
      assert.strictEqual(
        yield* read("/proc/self/environ"),
        process.env["PATH"] === undefined ? "none" : "file_too_large"
      )
      assert.isBelow(performance.now() - started, 500)
    }).pipe(Effect.provide(platform)))

  it.scopedLive("E26: refuses a huge file from its size alone, and one that is larger than it says", () =>
    Effect.gen(function*() {
      const { fs, path, workspace } = yield* world
      const access = yield* FileAccess
      const read = (file: string, maxBytes: number) => TextFile.readBytes(access, file, "f", maxBytes)
      const huge = path.join(workspace, "huge")
      yield* fs.writeFileString(huge, "")
      yield* fs.truncate(huge, 3 * 1024 ** 3)
      const before = process.memoryUsage().arrayBuffers
      assert.strictEqual(yield* codeOf(read(huge, 16 * 1024 ** 2)), "file_too_large")
      yield* fs.truncate(huge, 200 * 1024 ** 2)
      assert.strictEqual(yield* codeOf(read(huge, 16 * 1024 ** 2)), "file_too_large")
      assert.isBelow(process.memoryUsage().arrayBuffers - before, 1024 ** 2)
      assert.strictEqual(yield* codeOf(read("/proc/self/maps", 100)), "file_too_large")
      assert.isAbove((yield* read("/proc/self/maps", 1024 ** 2)).length, 100)
      yield* fs.truncate(huge, 200_001)
      for (const [maxBytes, code] of [[200_000, "file_too_large"], [200_001, "none"]] as const) {
        assert.strictEqual(yield* codeOf(read(huge, maxBytes)), code)
      }
    }).pipe(Effect.provide(platform)))

  it.scopedLive("E26: a million lines are text in time that grows with their number", () =>
    Effect.gen(function*() {
      const { fs, path, workspace } = yield* world
      const file = path.join(workspace, "lines")
      yield* fs.writeFileString(file, "a line\n".repeat(1_000_000))
      const started = performance.now()
      const { text } = yield* TextFile.read(yield* FileAccess, String, file, "lines", 16 * 1024 ** 2)
      assert.strictEqual(text.length, 7_000_000)
      assert.isBelow(performance.now() - started, 10_000)
    }).pipe(Effect.provide(platform)))
})
