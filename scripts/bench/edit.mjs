/** Edits in memory: texts that look like source, one edit of twenty lines in the middle, and what it costs. */
import * as Either from "effect/Either"
import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as EditMatcher from "../../dist/src/file/EditMatcher.js"
import * as FileDiff from "../../dist/src/file/FileDiff.js"
import * as TextFile from "../../dist/src/file/TextFile.js"

/**
 * `bytes` of source. Every fifth line has curly quotes, a dash and trailing blanks in a `normalized` one; an `exact`
 * one has none of those. The edit's old text is as a model sends it: straight and trimmed.
 */
export const subject = (bytes, form) => {
  const lines = []
  for (let length = 0; length < bytes;) {
    const index = lines.length
    const value = index * 7919 % 1000
    const line = index % 5 > 0
      ? `  const line${index} = compute(${value}, "text", options.value)`
      : form === "normalized"
      ? `  say(“value ${value} of line ${index}”) // it’s – so   `
      : `  say("value ${value} of line ${index}") // it's - so`
    lines.push(line)
    length += new TextEncoder().encode(line).length + 1
  }
  const middle = lines.length >> 1
  const straight = (line) => line.replace(/[“”]/g, "\"").replace("’", "'").replace("–", "-").trimEnd()
  const oldText = lines.slice(middle, middle + 20).map(straight).join("\n")
  return { text: `${lines.join("\n")}\n`, edit: { oldText, newText: `${oldText}\n  done()` } }
}

const apply = ({ edit, text }) => Either.getOrThrow(EditMatcher.apply(text, [edit]))

export const matching = (item) => ({
  run: (n) => {
    for (let index = 0; index < n; index++) apply(item)
  }
})

/**
 * Our normalised match against the leniency of another: that one forgives indentation, ours quotes and trailing blanks, so
 * each gets a text that needs its own.
 */
export const normalised = ({ text }) => matching(subject(text.length, "normalized"))

/** The matcher and the diff with its patch. */
export const whole = (item) => ({
  run: (n) => {
    for (let index = 0; index < n; index++) FileDiff.ofRanges("f", item.text, apply(item).ranges)
  }
})

/**
 * What one edit takes above the idle process, in multiples of the file: its bytes, its text, the match, the diff with its
 * patch, the new text and the new bytes. The peak of the resident set of a process that does only this.
 */
export const memory = (bytes, form) => {
  const { edit, text } = subject(bytes, form)
  const folder = mkdtempSync(join(tmpdir(), "portcullis-bench-"))
  const file = join(folder, "file")
  const asked = join(folder, "edit.json")
  writeFileSync(file, text)
  writeFileSync(asked, JSON.stringify(edit))
  const size = statSync(file).size
  return {
    value: () => {
      const args = [import.meta.filename, file, asked]
      const grown = execFileSync(process.execPath, ["--expose-gc", ...args], { encoding: "utf8" })
      return Number(grown) / size
    },
    close: () => rmSync(folder, { recursive: true, force: true })
  }
}

if (process.argv[1] === import.meta.filename) {
  const small = subject(20_000, "normalized")
  for (let index = 0; index < 200; index++) {
    whole(small).run(1)
    TextFile.encode(Either.getOrThrow(TextFile.decode(new TextEncoder().encode(small.text))).text, TextFile.utf8)
  }
  globalThis.gc()
  const idle = process.memoryUsage.rss()
  const edit = JSON.parse(readFileSync(process.argv[3], "utf8"))
  const { encoding, text } = Either.getOrThrow(TextFile.decode(readFileSync(process.argv[2])))
  const edited = apply({ edit, text })
  const { patch } = FileDiff.ofRanges("f", text, edited.ranges)
  const bytes = Either.getOrThrow(TextFile.encode(edited.text, encoding))
  if (patch === null || bytes.length < text.length) throw new Error("The edit did not do what it should.")
  process.stdout.write(String(process.resourceUsage().maxRSS * 1024 - idle))
}
