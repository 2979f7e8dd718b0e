import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as fc from "effect/FastCheck"
import * as EditMatcher from "../../src/file/EditMatcher.ts"
import { unified } from "../../src/file/RangeDiff.ts"

const diff = (text: string, ...edits: ReadonlyArray<EditMatcher.Edit>): string =>
  unified(text, Either.getOrThrow(EditMatcher.apply(text, edits)).ranges)

/** Applies a diff as `patch` would: by line numbers, checking every line it says is there. */
const patched = (text: string, diffText: string): string => {
  const lines = text.split(/(?<=\n)/)
  const out: Array<string> = []
  let at = 0
  for (const line of diffText.split("\n")) {
    const header = /^@@ -(\d+),(\d+) \+(\d+),(\d+) @@$/.exec(line)
    if (header !== null) {
      const first = Number(header[1]) - (header[2] === "0" ? 0 : 1)
      while (at < first) out.push(lines[at++] ?? "")
      assert.strictEqual(out.length, Number(header[3]) - (header[4] === "0" ? 0 : 1))
      continue
    }
    if (line.startsWith("\\")) {
      const last = out.pop()
      if (last !== undefined) out.push(last.replace(/\n$/, ""))
      continue
    }
    if (line[0] !== "+") assert.strictEqual(lines[at++]?.replace(/\n$/, ""), line.slice(1))
    if (line[0] !== "-") out.push(`${line.slice(1)}\n`)
  }
  return out.concat(lines.slice(at)).join("")
}

describe("RangeDiff", () => {
  it("shows three lines around a change", () => {
    const text = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
    assert.strictEqual(
      diff(text, { oldText: "5", newText: "five\n5½" }),
      "@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+five\n+5½\n 6\n 7\n 8"
    )
  })

  it("shows a missing final newline", () => {
    assert.strictEqual(
      diff("a", { oldText: "a", newText: "b\n" }),
      "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+b"
    )
  })

  it("is bounded, whatever is changed", () => {
    const many = diff("a\n\n\n\n\n\n\n\n\n".repeat(5000), { oldText: "a", newText: "b", replaceAll: true })
    assert.isBelow(many.split("\n").length, 250)
    assert.match(many, /… \d+ more changes$/)
    const long = diff(`${"x".repeat(100_000)}a`, { oldText: "a", newText: "b" })
    assert.isBelow(long.length, 5000)
    const started = performance.now()
    diff("a".repeat(10_000), { oldText: "a", newText: "b", replaceAll: true })
    assert.isBelow(performance.now() - started, 1000)
  })

  it("turns the old text into the new one when applied", () => {
    const line = fc.constantFrom("a", "b", "c", "")
    fc.assert(
      fc.property(
        fc.array(line, { maxLength: 30 }),
        fc.boolean(),
        fc.array(line, { maxLength: 4 }),
        fc.boolean(),
        (lines, finished, added, all) => {
          const text = lines.join("\n") + (finished && lines.length > 0 ? "\n" : "")
          const edits = [{ oldText: "a\nb", newText: added.join("\n"), replaceAll: all }]
          const edited = EditMatcher.apply(text, edits)
          if (Either.isLeft(edited)) return
          const shown = unified(text, edited.right.ranges)
          if (!text.endsWith("\n") || !edited.right.text.endsWith("\n")) return
          assert.strictEqual(patched(text, shown), edited.right.text)
        }
      ),
      { numRuns: 3000 }
    )
  })
})
