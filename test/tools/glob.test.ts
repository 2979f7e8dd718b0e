import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { writeFileSync } from "node:fs"
import { find, glob } from "../../src/tools/glob.ts"
import { failureOf } from "./processSupport.ts"
import { over } from "./searchSupport.ts"

const last = { nextCursor: null, withheld: 0, unreadable: 0, ignored: false, backend: "ripgrep" }

describe("glob", () => {
  it("is listed, and find is the same but hidden", () => {
    assert.deepInclude(glob, {
      kind: "tool_call",
      policy: "auto",
      readOnly: true,
      parallelSafe: true,
      modelAdvertised: true
    })
    assert.deepInclude(find, {
      kind: "tool_call",
      policy: "auto",
      readOnly: true,
      parallelSafe: true,
      modelAdvertised: false
    })
    assert.deepStrictEqual(find.parameters, glob.parameters)
  })

  const files = {
    ".gitignore": "*.log\nbuild/\n",
    ".hidden.ts": "",
    ".git/x.ts": "",
    "a.ts": "",
    "a.log": "",
    "a/b.ts": "",
    "a/b/c.ts": "",
    "build/d.ts": "",
    "readme.md": ""
  }

  it.scopedLive("matches names at any depth without a slash, and paths with one", () =>
    Effect.gen(function*() {
      const { root, search } = yield* over(files)
      const paths = (pattern: string, path = ".") =>
        Effect.map(search("glob", { pattern, path }), ({ output }) => output.paths)
      assert.deepStrictEqual(yield* paths("*.ts"), [".hidden.ts", "a/b/c.ts", "a/b.ts", "a.ts"])
      assert.deepStrictEqual(yield* paths("./*.ts"), [".hidden.ts", "a.ts"])
      assert.deepStrictEqual(yield* paths("a/**/*.ts"), ["a/b/c.ts", "a/b.ts"])
      assert.deepStrictEqual(yield* paths("*.ts", "a"), ["a/b/c.ts", "a/b.ts"])
      assert.deepStrictEqual(yield* paths("b/*.ts", "a"), ["a/b/c.ts"])
      assert.deepStrictEqual(yield* paths(`${root}/a/*`), ["a/b.ts"])
      assert.deepStrictEqual(yield* paths("a.ts", "a.ts"), ["a.ts"])
    }))

  it.scopedLive("never lists ignored files or .git, whatever the pattern says", () =>
    Effect.gen(function*() {
      const { search } = yield* over(files)
      for (const pattern of ["*.log", "build/**", ".git/**", "**/x.ts"]) {
        const { output, shown } = yield* search("glob", { pattern })
        assert.deepStrictEqual(output, { paths: [], ...last })
        assert.strictEqual(shown, "No files match.")
      }
    }))

  it.scopedLive("is find under another name", () =>
    Effect.gen(function*() {
      const { search } = yield* over(files)
      assert.deepStrictEqual(
        (yield* search("find", { pattern: "*.md" })).output,
        (yield* search("glob", { pattern: "*.md" })).output
      )
    }))

  it.scopedLive("applies the limit after sorting name by name", () =>
    Effect.gen(function*() {
      const { search } = yield* over(
        Object.fromEntries(["b", "B", "a/z", "a.c", "é", "a"].map((name) => [name === "a" ? "a-" : name, ""]))
      )
      assert.deepStrictEqual((yield* search("glob", { pattern: "**" })).output.paths, [
        "B",
        "a/z",
        "a-",
        "a.c",
        "b",
        "é"
      ])
      const { output, shown } = yield* search("glob", { pattern: "**", limit: 2 })
      assert.deepStrictEqual(output, { ...last, withheld: null, paths: ["B", "a/z"], nextCursor: output.nextCursor })
      assert.include(shown, "there is more")
      assert.isString(output.nextCursor)
      assert.isNull((yield* search("glob", { pattern: "**", limit: 6 })).output.nextCursor)
    }))

  it.scopedLive("takes what looks like an option for a name", () =>
    Effect.gen(function*() {
      const { search } = yield* over({ "--hidden": "", "-e": "", "x": "" })
      assert.deepStrictEqual((yield* search("glob", { pattern: "--hidden" })).output.paths, ["--hidden"])
      assert.deepStrictEqual((yield* search("glob", { pattern: "*", path: "-e" })).output.paths, ["-e"])
    }))

  it.scopedLive("shows names with control characters or broken UTF-8 without passing them on raw", () =>
    Effect.gen(function*() {
      const { root, search } = yield* over({ "a\nb": "", "c\x1b[31m": "" })
      writeFileSync(Buffer.concat([Buffer.from(`${root}/n`), Buffer.of(0xff)]), "")
      const { output, shown } = yield* search("glob", { pattern: "*" })
      assert.deepStrictEqual(output.paths, ["a\nb", "c\x1b[31m", "n\ufffd"])
      assert.isFalse(shown.includes("\x1b"))
    }))

  it.scopedLive("refuses a pattern that is none and a path that is outside or absent", () =>
    Effect.gen(function*() {
      const { search } = yield* over(files)
      assert.strictEqual((yield* failureOf(search("glob", { pattern: "{a" }))).code, "pattern_invalid")
      assert.strictEqual((yield* failureOf(search("glob", { pattern: "" }))).code, "arguments_invalid")
      assert.strictEqual((yield* failureOf(search("glob", { pattern: "*", path: ".." }))).code, "outside_workspace")
      assert.strictEqual((yield* failureOf(search("glob", { pattern: "*", path: "nope" }))).code, "path_not_found")
    }))
})
