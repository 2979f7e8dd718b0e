import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import {
  capture,
  defaultLimits,
  escapeControls,
  make,
  truncateHead,
  truncateTail
} from "../../src/process/OutputAccumulator.ts"

const encode = (text: string) => new TextEncoder().encode(text)
const bytesIn = (text: string) => encode(text).length
const linesIn = (text: string) => text === "" ? 0 : text.split("\n").length - (text.endsWith("\n") ? 1 : 0)

const line = fc.string({ unit: "binary", maxLength: 12 })
const someText = fc.array(fc.oneof(line, fc.constant("\n"), fc.constant("\r\n"), fc.constant("😀é€")), {
  maxLength: 40
}).map((_) => _.join(""))
const someLimits = fc.record({ lines: fc.integer({ min: 1, max: 8 }), bytes: fc.integer({ min: 8, max: 80 }) })

describe("truncateTail and truncateHead", () => {
  it("keep an end or a beginning within both caps, cut on code points, and say what is missing", () => {
    fc.assert(
      fc.property(someText, someLimits, (input, limits) => {
        const text = input.toWellFormed()
        for (
          const [cut, side] of [[truncateTail(input, limits), "tail"], [truncateHead(input, limits), "head"]] as const
        ) {
          assert.isTrue(cut.text.isWellFormed())
          assert.strictEqual(cut.totalBytes, bytesIn(text))
          assert.strictEqual(cut.totalLines, linesIn(text))
          assert.strictEqual(cut.truncated, bytesIn(text) > limits.bytes || linesIn(text) > limits.lines)
          if (!cut.truncated) {
            assert.strictEqual(cut.text, text)
            continue
          }
          const gap = cut.text.match(side === "tail" ? /^\[…[^\n]*\]\n/ : /\[…[^\n\]]*\]$/)?.[0] ?? ""
          assert.notStrictEqual(gap, "")
          const kept = side === "tail" ? cut.text.slice(gap.length) : cut.text.slice(0, -gap.length)
          // The newline before the gap may be the text's own.
          assert.isTrue(
            [kept, kept.slice(0, -1)].some((original) =>
              (side === "tail" ? text.endsWith(original) : text.startsWith(original)) &&
              bytesIn(original) <= limits.bytes && linesIn(original) <= limits.lines
            )
          )
        }
      }),
      { numRuns: 500 }
    )
  })

  it("keep whole lines where there is one", () => {
    assert.strictEqual(
      truncateTail("one\ntwo\nthree\n", { lines: 9, bytes: 12 }).text,
      "[… 1 lines above not shown, 14 bytes in all]\ntwo\nthree\n"
    )
    assert.strictEqual(
      truncateHead("one\ntwo\nthree\n", { lines: 2, bytes: 99 }).text,
      "one\ntwo\n[… 1 lines below not shown, 14 bytes in all]"
    )
    assert.strictEqual(
      truncateTail("a😀😀", { lines: 9, bytes: 7 }).text,
      "[… part of a line above not shown, 9 bytes in all]\n😀"
    )
    assert.strictEqual(
      truncateHead("a😀😀", { lines: 9, bytes: 7 }).text,
      "a😀\n[… part of a line below not shown, 9 bytes in all]"
    )
  })
})

describe("escapeControls", () => {
  it("shows NUL, escapes and lone carriage returns, and leaves tabs, newlines and letters alone", () => {
    assert.strictEqual(
      escapeControls("\0\x1b[31mred\x1b[0m\r50%\r100%\n\x1b]0;title\x07\x9b1m\ta\r\né😀"),
      "\\x00\\x1b[31mred\\x1b[0m\\r50%\\r100%\n\\x1b]0;title\\x07\\x9b1m\ta\né😀"
    )
  })
})

describe("capture", () => {
  it("keeps exactly the first or the last bytes, however they are cut into chunks", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 40 })), fc.integer({ min: 0, max: 50 }), (chunks, bytes) => {
        const all = chunks.flatMap((chunk) => [...chunk])
        for (const keep of ["head", "tail"] as const) {
          const held = capture({ bytes, keep })
          for (const chunk of chunks) held.push(chunk)
          const { bytes: kept, totalBytes } = held.output()
          assert.strictEqual(totalBytes, all.length)
          assert.strictEqual(held.overflowed(), all.length > bytes)
          assert.deepStrictEqual(
            [...kept],
            keep === "head" ? all.slice(0, bytes) : bytes === 0 ? [] : all.slice(-bytes)
          )
        }
      })
    )
  })
})

describe("OutputAccumulator", () => {
  it("is a tail of the whole text with exact totals, however it is cut into chunks", () => {
    fc.assert(
      fc.property(
        someText,
        someLimits,
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
        (input, limits, sizes) => {
          const text = input.toWellFormed()
          const bytes = encode(text)
          const output = make(limits)
          for (let start = 0, turn = 0; start < bytes.length; turn++) {
            const size = sizes[turn % sizes.length] ?? 1
            output.push(bytes.slice(start, start + size))
            start += size
          }
          const excerpt = output.excerpt()
          const expected = truncateTail(escapeControls(text), limits)
          const body = (shown: string) => shown.replace(/^\[…[^\n]*\]\n/, "")
          assert.strictEqual(body(excerpt.text), body(expected.text))
          assert.strictEqual(excerpt.truncated, expected.truncated)
          assert.strictEqual(excerpt.totalBytes, bytes.length)
          assert.strictEqual(excerpt.totalLines, linesIn(text))
        }
      ),
      { numRuns: 500 }
    )
  })

  it("keeps a character whole that is split over chunks while the other stream writes in between", () => {
    const output = make()
    output.push(Uint8Array.of(0x35, 0xe2, 0x82), "stdout")
    output.push(encode("err"), "stderr")
    output.push(Uint8Array.of(0xac), "stdout")
    assert.strictEqual(output.excerpt().text, "5err€")
  })

  it("shows bytes that are no UTF-8 as replacement characters, unfinished ones at the end too", () => {
    const output = make()
    output.push(Uint8Array.of(0xff, 0xfe, 0, 0x41, 0xe2))
    assert.strictEqual(output.excerpt().text, "\ufffd\ufffd\\x00A\ufffd")
    assert.strictEqual(output.totalBytes(), 5)
  })

  it("holds 300 MB in bounded memory with exact totals", () => {
    const output = make()
    const chunk = encode("y\n".repeat(32 * 1024))
    const before = process.memoryUsage()
    for (let index = 0; index < 4800; index++) output.push(chunk)
    const after = process.memoryUsage()
    assert.isBelow(after.arrayBuffers - before.arrayBuffers, 8 * 1024 * 1024)
    const { text, totalBytes, totalLines, truncated } = output.excerpt()
    assert.strictEqual(totalBytes, 4800 * 65536)
    assert.strictEqual(totalLines, 4800 * 32768)
    assert.isTrue(truncated)
    assert.strictEqual(linesIn(text), defaultLimits.lines + 1)
  })

  it("cuts one line of 5 MB and says so", () => {
    const output = make()
    output.push(encode("é".repeat(2_500_000)))
    const { text, totalLines } = output.excerpt()
    assert.strictEqual(totalLines, 1)
    assert.match(text, /^\[… part of a line above not shown, 5000000 bytes in all\]\né+$/)
    assert.isAtMost(bytesIn(text), defaultLimits.bytes + 100)
  })
})
