import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import {
  find,
  type Found,
  normalized,
  type Pattern,
  search,
  type Span,
  subject,
  verbatim
} from "../../src/file/Normalized.ts"
import { count } from "../support/counts.ts"

const fold = (text: string): string =>
  text
    .replace(/[\u2018-\u201b]/g, "'")
    .replace(/[\u201c-\u201f]/g, "\"")
    .replace(/[\u2010-\u2015\u2212]/g, "-")
    .replace(/[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]/g, " ")

/** One line, whole: its normal form and, for each place in that, where it is in the original (nowhere inside a piece). */
const wholeLine = (content: string, start: number, folds: boolean) => {
  const composed = folds ? content.normalize("NFKC") : content
  const clusters = [...content.matchAll(/[^](?:\p{M}|[\u1160-\u11ff\u3131-\u318e\uff9e-\uffdc])*/gu)].map(([piece]) =>
    piece
  )
  const pieces = composed === content
    ? content.split("")
    : clusters.map((piece) => piece.normalize("NFKC")).join("") === composed
    ? clusters
    : [content]
  const places = new Map<number, number>()
  let normal = ""
  let from = start
  for (const piece of pieces) {
    places.set(normal.length, from)
    normal += folds && composed !== content ? piece.normalize("NFKC") : piece
    from += piece.length
  }
  places.set(normal.length, from)
  const folded = folds ? fold(normal).replace(/[ \t\v\f]+$/, "") : normal
  return { normal: folded, places, end: start + content.length }
}

/** The whole text normalised, and every offset tried. */
const naive = (text: string, { folds, text: sought, toLineEnd }: Pattern): Found => {
  const raw = text.split("\n")
  let start = 0
  const lines = raw.map((line, index) => {
    const content = index < raw.length - 1 && line.endsWith("\r") ? line.slice(0, -1) : line
    const whole = wholeLine(content, start, folds)
    start += line.length + 1
    return whole
  })
  const whole = lines.map(({ normal }) => normal).join("\n")
  const at = (offset: number) => {
    const before = whole.slice(0, offset).split("\n")
    return { line: lines[before.length - 1], within: before.at(-1)?.length ?? 0 }
  }
  const spans: Array<Span> = []
  let places = 0
  let free = 0
  for (let from = 0; from <= whole.length - sought.length; from++) {
    if (!whole.startsWith(sought, from)) continue
    const first = at(from)
    const last = at(from + sought.length)
    const begin = whole[from] === "\n" ? first.line?.end : first.line?.places.get(first.within)
    const end = !toLineEnd
      ? last.line?.places.get(last.within)
      : last.within === last.line?.normal.length
      ? last.line?.end
      : undefined
    if (begin === undefined || end === undefined) continue
    places++
    if (from < free) continue
    spans.push({ start: begin, end })
    free = from + sought.length
  }
  return { spans, ambiguous: places > 1 }
}

const alphabets = [
  ["a", "b", "\n", "\r\n", " ", "\t"],
  ["a", " ", "\n", "\r", "\r\n", "\u00a0", "\u3000", "\u2003", "\f"],
  ["'", "\u2018", "\u201b", "\"", "\u201c", "\u201f", "-", "\u2013", "\u2212", "\u2011", "\n", "a"],
  ["f", "i", "\ufb01", "2", "\u00b2", "\u00bd", "1", "\u2044", "\uff41", "a", "\n", " "],
  ["e", "\u00e9", "\u0301", "\u0316", "\u212b", "\u00e5", "a", "\u030a", "\n", "\u0338", "=", "\u2260"],
  ["\u1112", "\u1161", "\u11ab", "\ud55c", "\uff76", "\uff9e", "\u30ac", "\u30ab", "\u3099", "\n", "\r\n"],
  ["\ud83d\ude00", "\ud83d", "\u{1d400}", "A", "\u{16d63}", "\u{16d67}", "\ufdfa", "\u00a8", "\u2017", " ", "\n"]
]
const mixed = alphabets.flat()

const texts = fc.constantFrom(...alphabets, mixed).chain((alphabet) => {
  const unit = fc.constantFrom(...alphabet)
  return fc.record({
    text: fc.stringOf(unit, { maxLength: 60 }),
    other: fc.stringOf(unit, { minLength: 1, maxLength: 8 }),
    from: fc.nat(59),
    length: fc.integer({ min: 1, max: 20 }),
    folded: fc.boolean(),
    cut: fc.boolean()
  })
})

/** Half of the patterns are cut from the text, and half of those arrive in their normal form. */
const soughtIn = (
  sample: { text: string; other: string; from: number; length: number; folded: boolean; cut: boolean }
) => {
  const from = sample.from % Math.max(sample.text.length, 1)
  const raw = sample.cut ? sample.text.slice(from, from + sample.length) : sample.other
  return (sample.folded ? fold(raw.normalize("NFKC")) : raw).replaceAll("\r\n", "\n")
}

/** Milliseconds of processor time since then: other processes may have the processors meanwhile. */
const spent = (started: NodeJS.CpuUsage): number => process.cpuUsage(started).user / 1000

describe("Normalized", () => {
  it("finds what a normalisation of the whole text finds, and whether it is there once", () => {
    let found = 0
    let several = 0
    fc.assert(
      fc.property(texts, (sample) => {
        const sought = soughtIn(sample)
        for (const pattern of [normalized(sought), verbatim(sought)]) {
          if (pattern.text.trim() === "") continue
          const fast = search(sample.text, pattern, 1000)
          assert.deepStrictEqual(fast, naive(sample.text, pattern), JSON.stringify([sample.text, pattern]))
          assert.deepStrictEqual(
            find(subject(sample.text), pattern, 1000),
            fast,
            JSON.stringify([sample.text, pattern])
          )
          if (fast.spans.length > 0) found++
          if (fast.ambiguous) several++
        }
      }),
      { numRuns: count({ quick: 2500, soak: 15_000 }) }
    )
    assert.isAbove(found, 500)
    assert.isAbove(several, 60)
  })

  it("knows every unit that can change beside another", () => {
    for (let page = 0; page < 0x10000; page += 0x100) {
      const page256 = Array.from({ length: 0x100 }, (_, index) => String.fromCharCode(page + index))
      const characters = page256.filter((character) => !/[\r\n]/.test(character))
      for (const [before, after] of [["e", ""], ["", "\u00e9"], ["\uac00", "\u0301"]]) {
        const text = characters.map((character) => `${before}${character}${after}`).join("\n")
        const sought = text.split("\n").map((line) => wholeLine(line, 0, true).normal).join("\n")
        const found = search(text, { text: sought, folds: true, toLineEnd: true }, 9)
        assert.deepStrictEqual(found.spans, [{ start: 0, end: text.length }], `page ${page}`)
      }
    }
  })

  it("maps places inside ASCII beside what NFKC changes, one by one", () => {
    const text = "ab\ufb01cd e\u0301f\u00b2gh"
    for (const [sought, span] of [["c", [3, 4]], ["d", [4, 5]], ["f2g", [8, 11]], ["b", [1, 2]]] as const) {
      assert.deepStrictEqual(search(text, normalized(sought), 9).spans, [{ start: span[0], end: span[1] }])
    }
    assert.lengthOf(search(text, normalized("e"), 9).spans, 0)
  })

  it("stops one after its limit", () => {
    assert.lengthOf(search("a\n".repeat(50), normalized("a"), 10).spans, 11)
  })

  it("is linear in texts and patterns made to be slow", () => {
    const started = process.cpuUsage()
    const lines = "a\r\n".repeat(300_000)
    search(lines, verbatim(`${"a\n".repeat(50_000)}b`), 10)
    search(lines, normalized(`${"a\n".repeat(50_000)}b`), 10)
    search("\u201c".repeat(1_000_000), normalized(`${"\"".repeat(50_000)}b`), 10)
    search(`\ufb01${"\u201c".repeat(500_000)}`, normalized("\"".repeat(5)), 10_000)
    search("\ufb01".repeat(200_000), normalized(`i${"fi".repeat(1000)}`), 10)
    search(`\uff76${"\u0301\uff9e".repeat(100_000)}`, normalized("\u201cx\u201d"), 10)
    search("a\u201c", normalized(`\uff76${"\u0301\uff9e".repeat(100_000)}`), 10)
    search(`${"x".repeat(5_000_000)}\u201cq\u201d\ufb01`, normalized("\"q\""), 10)
    search(`${"x".repeat(80)}\u201c\n`.repeat(20_000), normalized(`${"x".repeat(80)}"\n`.repeat(5000)), 10)
    assert.isBelow(spent(started), 5000)
  })
})
