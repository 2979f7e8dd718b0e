import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as fc from "effect/FastCheck"
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import * as EditMatcher from "../../src/file/EditMatcher.ts"
import { between, ofRanges } from "../../src/file/FileDiff.ts"
import * as TextFile from "../../src/file/TextFile.ts"
import { count } from "../support/counts.ts"

const diff = (text: string, ...edits: ReadonlyArray<EditMatcher.Edit>): string =>
  ofRanges("f", text, Either.getOrThrow(EditMatcher.apply(text, edits)).ranges).diff

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

/** Milliseconds of processor time since then: other processes may have the processors meanwhile. */
const spent = (started: NodeJS.CpuUsage): number => process.cpuUsage(started).user / 1000

describe("FileDiff", () => {
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
    const close = diff(`${"x".repeat(99)}a\n\n`.repeat(5000), { oldText: "a", newText: "b", replaceAll: true })
    assert.isBelow(close.split("\n").length, 250)
    assert.match(close, /\n… 14\d{3} more lines$/)
    const wide = diff(`${"x".repeat(1000)}\n`.repeat(5000), { oldText: "x\n", newText: "y\n", replaceAll: true })
    assert.isBelow(wide.length, 34_000)
    const gone = diff("a\n".repeat(999), { oldText: "a\n".repeat(999), newText: "b\n" })
    assert.match(gone, /^@@.*(?:\n-a){100}\n… 899 more lines\n\+b$/)
    const long = diff(`${"x".repeat(100_000)}a`, { oldText: "a", newText: "b" })
    assert.isBelow(long.length, 5000)
    const started = process.cpuUsage()
    diff("a".repeat(10_000), { oldText: "a", newText: "b", replaceAll: true })
    assert.isBelow(spent(started), 1000)
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
          const shown = ofRanges("f", text, edited.right.ranges).diff
          if (!text.endsWith("\n") || !edited.right.text.endsWith("\n")) return
          assert.strictEqual(patched(text, shown), edited.right.text)
        }
      ),
      { numRuns: 3000 }
    )
  })

  it("counts the changes that a whole rewrite makes, not the lines between them", () => {
    const before = Array.from({ length: 1000 }, (_, line) => `line ${line}\n`)
    const after = before.map((line, index) => index === 3 || index === 900 ? "new\n" : line)
    const { diff, patch } = between("f", before.join(""), after.join(""))
    assert.lengthOf(diff.split("\n").filter((line) => /^[+-]/.test(line)), 4)
    assert.strictEqual(patch, `--- a/f\n+++ b/f\n${diff}\n`)
  })

  it("shows only the lines inside a replaced span that differ", () => {
    const shown = diff("1\n2\n3\n4\n5\n", { oldText: "2\n3\n4", newText: "two\n3\n4\nfour" })
    assert.strictEqual(shown, "@@ -1,5 +1,6 @@\n 1\n-2\n+two\n 3\n 4\n+four\n 5")
  })

  it("shows no byte order mark and no carriage return to a model", () => {
    const { diff, patch } = between("f", "a\r\nb\r\n", "a\r\nc\r\n", { charset: "utf-8", bom: true })
    assert.strictEqual(diff, "@@ -1,2 +1,2 @@\n a\n-b\n+c")
    assert.strictEqual(patch, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n \ufeffa\r\n-b\r\n+c\r\n")
  })

  it("has no patch where git could take none", () => {
    assert.isNull(between("f", "a", "a").patch)
    assert.isNull(between("f", undefined, "").patch)
    assert.isNull(between("f", "", undefined).patch)
    assert.isNull(between("f", "a", "b", { charset: "utf-16le", bom: true }).patch)
    assert.isNull(between("f", undefined, "x".repeat(300_000)).patch)
    assert.isNull(between("f", undefined, "é".repeat(140_000)).patch)
    for (const path of ["/f", "../f", "a/../f", ".git/config", "a/.GIT/x", "", "a//b", "a\0", "\ud800"]) {
      assert.isNull(between(path, "a", "b").patch, path)
    }
  })

  it("gives a patch whose header git cannot read as anything else", () => {
    const { patch } = between("d/é \"x\"\t\\", "a\n", undefined)
    assert.strictEqual(
      patch,
      "--- \"a/d/\\303\\251 \\\"x\\\"\\t\\\\\"\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n"
    )
  })

  it("takes time in proportion to what it compares", () => {
    const started = process.cpuUsage()
    const lines = (word: string) => Array.from({ length: 400_000 }, (_, line) => `${word} ${line % 7}\n`).join("")
    between("f", lines("a"), lines("b"))
    between("f", "a\n".repeat(1_000_000), "b\n".repeat(1_000_000))
    between("f", "a\nb\n".repeat(50_000), "b\na\na\n".repeat(50_000))
    between("f", `${"x".repeat(1_000_000)}\n`.repeat(8), `${"x".repeat(1_000_000)}y\n`.repeat(8))
    assert.isBelow(spent(started), 6000)
  })

  const line = fc.stringOf(fc.constantFrom("a", "b", "é", " ", "\t", "\r", "“", "\f", "-", "+", "@", "\\", "\u2028"), {
    maxLength: 3
  })
  const text = fc.array(fc.tuple(line, fc.constantFrom("\n", "\n", "\r\n", "")), { maxLength: 40 })
    .map((lines) => lines.map((parts) => parts.join("")).join(""))
  const name = fc.constantFrom(
    "f",
    "with space",
    "d/é",
    "-x",
    "q\"uote",
    "back\\slash",
    "tab\tnew\nline",
    "x 2010-07-05 19:41:17 +0000",
    "\u0001\u007f",
    "a/b",
    "dev/null",
    "😀"
  )
  const sample = fc.record({
    name,
    before: fc.option(text, { nil: undefined, freq: 8 }),
    after: fc.option(text, { nil: undefined, freq: 8 }),
    spans: fc.array(fc.tuple(fc.nat(120), fc.nat(6), fc.constantFrom("", "x", "\n", "b\r\nc\n", "a")), {
      maxLength: 4
    }),
    edited: fc.boolean(),
    bom: fc.boolean()
  })

  it("gives what git makes the new file of, from the old one, byte for byte", { timeout: 120_000 }, () => {
    const folder = mkdtempSync(join(tmpdir(), "portcullis-patch-"))
    let applied = 0
    for (let round = 0; round < count({ quick: 3, soak: 12 }); round++) {
      const root = join(folder, String(round))
      const expected: Array<readonly [path: string, bytes: Uint8Array | undefined]> = []
      let patches = ""
      for (const [index, each] of fc.sample(sample, 300).entries()) {
        const path = `${index}/${each.name}`
        const encoding = { charset: "utf-8", bom: each.bom } as const
        const bytes = (content: string) => Either.getOrThrow(TextFile.encode(content, encoding))
        const { before } = each
        let after = each.after
        let change = between(path, before, after, encoding)
        if (each.edited && before !== undefined) {
          const ranges = rangesIn(before, each.spans)
          after = ranges.reduceRight((all, { end, start, text }) => all.slice(0, start) + text + all.slice(end), before)
          change = ofRanges(path, before, ranges, encoding)
        }
        if (change.patch === null) {
          const empty = (before ?? "") === "" && (after ?? "") === "" && !each.bom
          assert.isTrue(before === after || empty, JSON.stringify([before, after]))
          continue
        }
        applied++
        mkdirSync(dirname(join(root, path)), { recursive: true })
        if (before !== undefined) writeFileSync(join(root, path), bytes(before))
        expected.push([path, after === undefined ? undefined : bytes(after)])
        patches += change.patch
      }
      const git = spawnSync("git", ["apply", "-"], {
        cwd: root,
        input: patches,
        encoding: "utf8",
        env: { ...process.env, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CEILING_DIRECTORIES: folder }
      })
      assert.strictEqual(git.status, 0, git.stderr)
      for (const [path, bytes] of expected) {
        const now = existsSync(join(root, path)) ? [...readFileSync(join(root, path))] : undefined
        assert.deepStrictEqual(now, bytes === undefined ? undefined : [...bytes], path)
      }
    }
    rmSync(folder, { recursive: true, force: true })
    assert.isAbove(applied, 500)
  })
})

/** Ascending spans of a text, none inside a surrogate pair. */
const rangesIn = (text: string, spans: ReadonlyArray<readonly [number, number, string]>) => {
  let last = 0
  return [...spans].sort(([left], [right]) => left - right).flatMap(([at, length, text_]) => {
    const start = Math.max(at, last)
    const end = Math.min(start + length, text.length)
    if (start >= end) return []
    last = end
    return [{ start, end, text: text_ }]
  })
}
