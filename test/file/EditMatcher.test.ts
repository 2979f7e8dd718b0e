import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as fc from "effect/FastCheck"
import * as EditMatcher from "../../src/file/EditMatcher.ts"
import * as TextFile from "../../src/file/TextFile.ts"
import vectors from "../fixtures/vectors/edit.json" with { type: "json" }

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)
const textOf = (bytes: Uint8Array): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)

/** From bytes to bytes, as the tool does it. */
const edited = (file: string, edits: ReadonlyArray<EditMatcher.Edit>) => {
  const { encoding, text } = Either.getOrThrow(TextFile.decode(bytesOf(file)))
  return Either.map(EditMatcher.apply(text, edits), (result) => ({
    ...result,
    file: textOf(Either.getOrThrow(TextFile.encode(result.text, encoding)))
  }))
}

const applied = (file: string, edits: ReadonlyArray<EditMatcher.Edit>) => Either.getOrThrow(edited(file, edits))
const refused = (file: string, edits: ReadonlyArray<EditMatcher.Edit>) =>
  Either.getOrThrow(Either.flip(edited(file, edits)))

/** Milliseconds of processor time since then: other processes may have the processors meanwhile. */
const spent = (started: NodeJS.CpuUsage): number => process.cpuUsage(started).user / 1000

describe("EditMatcher", () => {
  for (const row of vectors.rows) {
    it(`vector: ${row.case}`, () => {
      const result = edited(row.file, row.edits)
      if (Either.isLeft(result)) {
        assert.strictEqual(result.left.code, row.code)
        if (row.details !== undefined) assert.deepInclude(result.left.details, row.details)
      } else {
        assert.strictEqual(result.right.file, row.expect)
        if (row.strategy !== undefined) assert.strictEqual(result.right.strategy, row.strategy)
      }
    })
  }

  it("replaces every occurrence when asked to, and counts them", () => {
    const result = applied("a x a x a\n", [{ oldText: "a", newText: "$&a", replaceAll: true }])
    assert.strictEqual(result.file, "$&a x $&a x $&a\n")
    assert.strictEqual(result.ranges.length, 3)
  })

  it("replaces every normalised occurrence and nothing between them", () => {
    const result = applied("a – b “q”\r\nm  \r\na — b\r\n", [{ oldText: "a - b", newText: "X", replaceAll: true }])
    assert.strictEqual(result.file, "X “q”\r\nm  \r\nX\r\n")
  })

  it("calls two places that overlap ambiguous", () => {
    const error = refused("aaa\n", [{ oldText: "aa", newText: "b" }])
    assert.strictEqual(error.code, "edit_ambiguous")
  })

  it("keeps the ending of each kept line when a line is put between lines of different endings", () => {
    const result = applied("a\r\nb\nc\r\n", [{ oldText: "a\nb\nc", newText: "a\nNEW\nb\nc" }])
    assert.strictEqual(result.file, "a\r\nNEW\r\nb\nc\r\n")
  })

  it("gives a line put first in its span the ending of the line before it", () => {
    assert.strictEqual(applied("x\r\nb\n", [{ oldText: "b", newText: "a\nb" }]).file, "x\r\na\r\nb\n")
    assert.strictEqual(applied("b\r\n", [{ oldText: "b", newText: "a\nb" }]).file, "a\r\nb\r\n")
  })

  it("gives a line that grows at the end of an unfinished CRLF file a CRLF", () => {
    assert.strictEqual(applied("a\r\nb", [{ oldText: "b", newText: "b\nc" }]).file, "a\r\nb\r\nc")
  })

  it("joins lines without leaving half a CRLF", () => {
    assert.strictEqual(applied("a\r\nb\r\n", [{ oldText: "a\nb", newText: "ab" }]).file, "ab\r\n")
    assert.strictEqual(applied("a\r\nb\r\n", [{ oldText: "\n", newText: "", replaceAll: true }]).file, "ab")
  })

  it("does not match half of a CRLF", () => {
    assert.strictEqual(refused("a\r\n", [{ oldText: "a\r", newText: "b" }]).code, "edit_not_found")
  })

  it("keeps the trailing blanks of the line before a match that begins with a newline", () => {
    const result = applied("keep  \n‘x’\n", [{ oldText: "\n'x'", newText: "\ny" }])
    assert.strictEqual(result.file, "keep  \ny\n")
  })

  it("lets blanks at the end of the old text match at the end of a line only", () => {
    assert.strictEqual(refused("x =5\n", [{ oldText: "x =  ", newText: "y" }]).code, "edit_not_found")
    assert.strictEqual(applied("x =\t\nz\n", [{ oldText: "x = ", newText: "y" }]).file, "y\nz\n")
  })

  it("never matches blanks alone against something else", () => {
    assert.strictEqual(refused("a\n", [{ oldText: " \n", newText: "" }]).code, "edit_not_found")
  })

  it("matches composed against decomposed letters, and replaces all of their code points", () => {
    const result = applied("cafe\u0301 au lait\n", [{ oldText: "caf\u00e9", newText: "tea" }])
    assert.strictEqual(result.file, "tea au lait\n")
    assert.strictEqual(applied("\u1112\u1161\u11ab x\n", [{ oldText: "\ud55c", newText: "y" }]).file, "y x\n")
  })

  it("can be told to match exactly only", () => {
    const result = EditMatcher.apply("“a”\n", [{ oldText: "\"a\"", newText: "b" }], { exactOnly: true })
    assert.isTrue(Either.isLeft(result))
  })

  it("reports where the first change is, not where the first match begins", () => {
    assert.strictEqual(applied("a\r\nb\r\nc\r\n", [{ oldText: "a\nb\nc", newText: "a\nb\nC" }]).firstChangedLine, 3)
  })

  it("reports lines of the edited file", () => {
    const result = applied("a\nb\nc\n", [{ oldText: "a", newText: "1\n2" }, { oldText: "c", newText: "C" }])
    assert.deepStrictEqual(result.ranges.map(({ endLine, startLine }) => [startLine, endLine]), [[1, 2], [4, 4]])
  })

  it("does not count the line after a replaced one that ends with a newline", () => {
    const result = applied("a\nb\nc\n", [{ oldText: "a\n", newText: "1\n2\n" }, { oldText: "c\n", newText: "" }])
    assert.deepStrictEqual(result.ranges.map(({ endLine, startLine }) => [startLine, endLine]), [[1, 2], [4, 4]])
  })

  it("names the nearest place in a large file in little time", () => {
    const file = "  some line – “of” many\r\n".repeat(400_000) + "\tthe last of them\r\n"
    const started = process.cpuUsage()
    const error = refused(file, [{ oldText: "  the last of them\nand no more", newText: "" }])
    assert.deepInclude(error.details, { nearestLine: 400_001 })
    assert.isBelow(spent(started), 900)
  })

  it("says that only whitespace differs, and where, without showing the text", () => {
    const error = refused("package\n\n\tif x {\n\t\treturn secret\n\t}\n", [
      { oldText: "    if x {\n        return secret\n    }", newText: "y" }
    ])
    assert.deepInclude(error.details, { nearestLine: 3, difference: "whitespace" })
    assert.notInclude(error.message, "secret")
  })

  it("names the nearest place by the longest line", () => {
    const error = refused("one\ntwo two two\nthree\n", [{ oldText: "two two two\nfour", newText: "" }])
    assert.deepInclude(error.details, { nearestLine: 2 })
  })

  it("refuses an edit whose old text an earlier edit of the call would have made", () => {
    assert.strictEqual(
      refused("a\n", [{ oldText: "a", newText: "bb" }, { oldText: "bb", newText: "c" }]).code,
      "edit_not_found"
    )
  })

  it("finds 200 lines in 100 000 in well under a second, present or not", () => {
    const lines = Array.from({ length: 100_000 }, (_, line) => `line ${line} – of “many”`)
    const file = `${lines.join("\r\n")}\r\n`
    const wanted = lines.slice(70_000, 70_200).join("\n")
    const started = process.cpuUsage()
    assert.strictEqual(applied(file, [{ oldText: wanted, newText: "x" }]).strategy, "exact")
    const plain = wanted.replaceAll("–", "-").replaceAll(/[“”]/g, "\"")
    assert.strictEqual(
      applied(file.slice(0, 1_900_000), [{ oldText: plain.slice(0, 20), newText: "x" }]).strategy,
      "normalized"
    )
    assert.strictEqual(refused(file, [{ oldText: `${wanted}!`, newText: "x" }]).code, "edit_not_found")
    assert.isBelow(spent(started), 3000)
  })

  it("does not slow down on text made to slow it down", () => {
    const started = process.cpuUsage()
    refused("a".repeat(1_000_000), [{ oldText: `${"a".repeat(50_000)}b`, newText: "x" }])
    refused(" ".repeat(1_000_000), [{ oldText: "“ ”", newText: "x" }])
    refused("ﬁ".repeat(300_000), [{ oldText: `i${"fi".repeat(1000)}`, newText: "x" }])
    refused(`a${"\u0301\u0316".repeat(100_000)}`, [{ oldText: `“${"\u0301\u0316".repeat(100_000)}”`, newText: "x" }])
    refused("a\r\n".repeat(300_000), [{ oldText: "a", newText: "x", replaceAll: true }])
    assert.isBelow(spent(started), 4000)
  })

  it("takes a hundred edits of a large text in little more time than one", () => {
    const file = Array.from({ length: 60_000 }, (_, line) => `  const line${line} = compute(“text ${line}”)\r\n`).join(
      ""
    )
    const edits = Array.from({ length: 100 }, (_, edit) => ({
      oldText: `line${edit * 500 + 1} = compute("text ${edit * 500 + 1}")\n  const line${edit * 500 + 2}`,
      newText: `line ${edit} `
    }))
    const started = process.cpuUsage()
    assert.lengthOf(applied(file, edits).ranges, 100)
    assert.isBelow(spent(started), 1500)
  })

  it("refuses to make a file grow out of all bounds", () => {
    const error = refused("a".repeat(5000), [{ oldText: "a", newText: "b".repeat(1_000_000), replaceAll: true }])
    assert.strictEqual(error.code, "edit_invalid")
  })

  const piece = fc.stringOf(
    fc.constantFrom(
      "a",
      "b",
      " ",
      "\t",
      "\n",
      "\r\n",
      "\r",
      "–",
      "-",
      "“",
      "\"",
      "ﬁ",
      "f",
      "i",
      "é",
      "e",
      "\u0301",
      "\u00a0",
      "$",
      "&",
      "😀"
    ),
    { maxLength: 12 }
  )

  it("leaves everything outside the reported ranges as it was, whatever matched", () => {
    let matched = 0
    fc.assert(
      fc.property(piece, piece, piece, piece, fc.boolean(), (before, inside, after, newText, replaceAll) => {
        const file = before + inside + after
        const result = EditMatcher.apply(file, [{ oldText: inside, newText, replaceAll }])
        if (Either.isLeft(result)) return
        matched++
        let expected = ""
        let last = 0
        for (const range of result.right.ranges) {
          expected += file.slice(last, range.start) + range.text
          last = range.end
        }
        assert.strictEqual(result.right.text, expected + file.slice(last))
        assert.isTrue(result.right.text.isWellFormed())
        for (const range of result.right.ranges) {
          assert.strictEqual(TextFile.encode(range.text, TextFile.utf8)._tag, "Right")
          assert.strictEqual(range.text.replaceAll(/\r*\n/g, "\n"), newText.replaceAll(/\r*\n/g, "\n"))
        }
      }),
      { numRuns: 3000 }
    )
    assert.isAbove(matched, 500)
  })

  it("writes prefix, new text and suffix for a marker that is there once", () => {
    const marker = "\u2603marker\u2603"
    fc.assert(
      fc.property(fc.fullUnicodeString(), fc.fullUnicodeString(), fc.fullUnicodeString(), (prefix, newText, suffix) => {
        fc.pre(!newText.startsWith("\ufeff") && !/[\r\n]/.test(newText) && newText !== marker)
        const result = EditMatcher.apply(prefix + marker + suffix, [{ oldText: marker, newText }])
        assert.strictEqual(Either.getOrThrow(result).text, prefix + newText + suffix)
      }),
      { numRuns: 1000 }
    )
  })

  it("gives the same file in whatever order disjoint edits are listed", () => {
    fc.assert(
      fc.property(fc.shuffledSubarray([0, 1, 2, 3, 4, 5], { minLength: 1 }), (order) => {
        const file = "0a\r\n1b\n2c\r\n3d\n4e\r\n5f"
        const edits = order.map((index) => ({ oldText: `${index}`, newText: `<${index}\n>` }))
        const sorted = [...edits].sort((left, right) => left.oldText < right.oldText ? -1 : 1)
        assert.strictEqual(applied(file, edits).file, applied(file, sorted).file)
      })
    )
  })

  it("keeps line endings in a whole rewrite unless the new text brings its own", () => {
    assert.strictEqual(EditMatcher.rewrite("a\r\nb\r\n", "a\nc\nb\n"), "a\r\nc\r\nb\r\n")
    assert.strictEqual(EditMatcher.rewrite("a\nb\r\n", "a\nb\nc\n"), "a\nb\r\nc\r\n")
    assert.strictEqual(EditMatcher.rewrite("a\nb\n", "x\r\ny\r\n"), "x\r\ny\r\n")
    assert.strictEqual(EditMatcher.rewrite("a\nb\n", "x\ny\n"), "x\ny\n")
    assert.strictEqual(EditMatcher.rewrite("a\r\n", ""), "")
  })
})
