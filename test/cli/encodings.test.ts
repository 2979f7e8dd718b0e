/** `portcullis call edit` on files of every encoding and line ending, by the bytes on disk. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { place, program } from "../support/cli.ts"

const cli = program("layers/cli/main.ts")

const utf8 = (text: string) => Buffer.from(text, "utf8")
const utf16 = (text: string) => Buffer.from(text, "utf16le")
const swapped = (text: string) => utf16(text).swap16()

/** What is on disk before, and what the edit of `two` into `2` and a new line leaves there. */
const files: Record<string, readonly [before: Buffer, after: Buffer]> = {
  "crlf": [utf8("one\r\ntwo\r\nthree\r\n"), utf8("one\r\n2\r\nand\r\nthree\r\n")],
  "mixed": [utf8("one\r\ntwo\nthree\r\nfour\n\rfive"), utf8("one\r\n2\nand\nthree\r\nfour\n\rfive")],
  "marked": [utf8("\ufefftwo\r\nthree"), utf8("\ufeff2\r\nand\r\nthree")],
  "utf16le": [utf16("\ufeffeins\r\ntwo\r\n\u{1f642}"), utf16("\ufeffeins\r\n2\r\nand\r\n\u{1f642}")],
  "utf16be": [swapped("\ufeffeins\ntwo\n\u{1f642}"), swapped("\ufeffeins\n2\nand\n\u{1f642}")]
}

describe("portcullis call edit", { timeout: 120_000 }, () => {
  it.scopedLive("keeps marks, encodings and line endings, and every byte outside the edit", () =>
    Effect.gen(function*() {
      const { env, workspace } = yield* place
      const call = (tool: string, args: object) =>
        cli.run(["call", tool, JSON.stringify(args), "--json", "--thread", "t", "--answer", "allow"], {
          cwd: workspace,
          env
        })
      for (const [path, [before, after]] of Object.entries(files)) {
        writeFileSync(join(workspace, path), before)
        assert.strictEqual((yield* call("read", { path })).code, 0)
        const edited = yield* call("edit", { path, oldText: "two", newText: "2\nand" })
        assert.strictEqual(edited.code, 0, edited.stdout)
        assert.isTrue(after.equals(readFileSync(join(workspace, path))), path)
      }
    }))

  it.scopedLive("E13: refuses a file in GBK with the offset of the first byte that does not fit, and leaves it", () =>
    Effect.gen(function*() {
      const { env, workspace } = yield* place
      const gbk = Buffer.from("2f2f20c4e3bac30a783d310a", "hex")
      writeFileSync(join(workspace, "f"), gbk)
      for (
        const [tool, args] of [["read", {}], ["edit", { oldText: "x=1", newText: "x=2" }], ["write", { content: "" }]]
      ) {
        const refused = yield* cli.run(
          ["call", String(tool), JSON.stringify({ path: "f", ...Object(args) }), "--json", "--answer", "allow"],
          { cwd: workspace, env }
        )
        assert.strictEqual(refused.code, 1)
        assert.deepNestedInclude(JSON.parse(refused.stdout), {
          "output.code": "file_not_text",
          "output.details.byteOffset": 3
        })
        assert.isTrue(gbk.equals(readFileSync(join(workspace, "f"))))
      }
    }))
})
