import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { execFileSync } from "node:child_process"
import { chmodSync, existsSync, writeFileSync } from "node:fs"
import * as Ripgrep from "../../src/process/Ripgrep.ts"
import * as Recorded from "../../src/testing/Subprocess.ts"
import { grep, type Match } from "../../src/tools/grep.ts"
import { call, failureOf, turnIn } from "./processSupport.ts"
import { files, over, searching } from "./searchSupport.ts"

const places = (output: { readonly matches: ReadonlyArray<Match> }) =>
  output.matches.map(({ line, path }) => `${path}:${line}`)

describe("grep", () => {
  it("is an automatic, parallel reader", () => {
    assert.deepInclude(grep, {
      kind: "tool_call",
      policy: "auto",
      readOnly: true,
      parallelSafe: true,
      modelAdvertised: true
    })
  })

  it.scopedLive("returns matches by path and then by line number, not by its digits", () =>
    Effect.gen(function*() {
      const { search } = yield* over({
        "b.txt": Array.from({ length: 12 }, (_, index) => `foo ${index}`).join("\n"),
        "a/x.txt": "foo\n",
        "a.txt": "bar\n  foo foo\n"
      })
      const { output, shown } = yield* search("grep", { pattern: "foo" })
      assert.deepStrictEqual(places(output), [
        "a/x.txt:1",
        "a.txt:2",
        ...Array.from({ length: 12 }, (_, index) => `b.txt:${index + 1}`)
      ])
      assert.deepStrictEqual(output.matches[1], { path: "a.txt", line: 2, column: 3, text: "  foo foo" })
      assert.isNull(output.nextCursor)
      assert.isTrue(shown.startsWith("a/x.txt:1: foo\na.txt:2:   foo foo\nb.txt:1: foo 0\n"))
    }))

  it.scopedLive("finds nothing as a success", () =>
    Effect.gen(function*() {
      const { search } = yield* over({ "a.txt": "x\n" })
      const { output, shown } = yield* search("grep", { pattern: "foo" })
      assert.deepStrictEqual(output, {
        ...{ matches: [], nextCursor: null, withheld: 0, oversized: 0, unreadable: 0 },
        ...{ ignored: false, backend: "ripgrep" }
      })
      assert.strictEqual(shown, "No matches.")
    }))

  it.scopedLive("applies the limit after sorting, over all files", () =>
    Effect.gen(function*() {
      const files = Object.fromEntries(
        Array.from({ length: 60 }, (_, index) => [`f${String(index).padStart(2, "0")}.txt`, "foo\nfoo\nfoo\n"])
      )
      const { search } = yield* over(files)
      for (let round = 0; round < 3; round++) {
        const { output, shown } = yield* search("grep", { pattern: "foo", limit: 4 })
        assert.deepStrictEqual(places(output), ["f00.txt:1", "f00.txt:2", "f00.txt:3", "f01.txt:1"])
        assert.isString(output.nextCursor)
        assert.include(shown, "there is more")
      }
      assert.strictEqual((yield* search("grep", { pattern: "foo" })).output.matches.length, 100)
      const exact = yield* search("grep", { pattern: "foo", limit: 180 })
      assert.strictEqual(exact.output.matches.length, 180)
      assert.isNull(exact.output.nextCursor)
    }))

  describe("takes for text what looks like an option", () => {
    for (const pattern of ["--pre=./payload.sh", "-e", "--", "-f/etc/passwd", "- [ ]", "--files", "-rf"]) {
      it.scopedLive(pattern, () =>
        Effect.gen(function*() {
          const { root, search } = yield* over({
            "a.txt": `first\nhere: ${pattern} there\n`,
            "payload.sh": "#!/bin/sh\ntouch ran\ncat\n"
          })
          chmodSync(`${root}/payload.sh`, 0o755)
          const { output } = yield* search("grep", { pattern, literal: true })
          assert.deepStrictEqual(places(output), ["a.txt:2"])
          assert.isFalse(existsSync(`${root}/ran`))
        }))
    }

    it.scopedLive("in a path and in a filter", () =>
      Effect.gen(function*() {
        const { search } = yield* over({ "-rf": "foo\n", "--hidden": "foo\n", "a.txt": "foo\n" })
        assert.deepStrictEqual(places((yield* search("grep", { pattern: "foo", path: "-rf" })).output), ["-rf:1"])
        assert.deepStrictEqual(places((yield* search("grep", { pattern: "foo", glob: "--hidden" })).output), [
          "--hidden:1"
        ])
      }))
  })

  it.scopedLive("refuses a regular expression with a fault instead of finding nothing", () =>
    Effect.gen(function*() {
      const { search } = yield* over({ "a.txt": "(foo\n" })
      for (const pattern of ["(", "[z-a]", "a{2,1}", "(?=x)", "a\nb", "a\0b"]) {
        assert.strictEqual(
          (yield* failureOf(search("grep", { pattern }))).code,
          "pattern_invalid",
          JSON.stringify(pattern)
        )
      }
      assert.deepStrictEqual(places((yield* search("grep", { pattern: "(", literal: true })).output), ["a.txt:1"])
      assert.strictEqual((yield* failureOf(search("grep", { pattern: "x", glob: "{a" }))).code, "pattern_invalid")
      assert.strictEqual((yield* failureOf(search("grep", { pattern: "" }))).code, "arguments_invalid")
    }))

  it.scopedLive("minds case unless told not to", () =>
    Effect.gen(function*() {
      const { search } = yield* over({ "a.txt": "Foo\nfoo\n" })
      assert.deepStrictEqual(places((yield* search("grep", { pattern: "foo" })).output), ["a.txt:2"])
      assert.deepStrictEqual(places((yield* search("grep", { pattern: "FOO", ignoreCase: true })).output), [
        "a.txt:1",
        "a.txt:2"
      ])
    }))

  it.scopedLive("gives each match its own surroundings, other matches among them", () =>
    Effect.gen(function*() {
      const { search } = yield* over({ "a.txt": "1\n2\nfoo 3\nfoo 4\n5\n6\n7\n8\n9\nfoo 10\n", "b.txt": "foo\n" })
      const { output, shown } = yield* search("grep", { pattern: "foo", context: 2 })
      assert.deepStrictEqual(output.matches, [
        { path: "a.txt", line: 3, column: 1, text: "foo 3", before: ["1", "2"], after: ["foo 4", "5"] },
        { path: "a.txt", line: 4, column: 1, text: "foo 4", before: ["2", "foo 3"], after: ["5", "6"] },
        { path: "a.txt", line: 10, column: 1, text: "foo 10", before: ["8", "9"], after: [] },
        { path: "b.txt", line: 1, column: 1, text: "foo", before: [], after: [] }
      ])
      assert.isTrue(shown.startsWith("a.txt-1- 1\na.txt-2- 2\na.txt:3: foo 3\na.txt-4- foo 4\na.txt-5- 5\n"))
      assert.strictEqual((yield* failureOf(search("grep", { pattern: "foo", context: 21 }))).code, "arguments_invalid")
    }))

  it.scopedLive("cuts long lines around the match, on code points, and counts what is missing", () =>
    Effect.gen(function*() {
      const { search } = yield* over({
        "a.txt": `${"😀".repeat(700)}\n`,
        "b.txt": `${"é".repeat(1000)}foo${"é".repeat(1000)}\n`,
        "c.txt": `${"x".repeat(1000)}foo`
      })
      const [first] = (yield* search("grep", { pattern: "😀$" })).output.matches
      assert.strictEqual(first.column, 700)
      assert.strictEqual(first.text, `[+200 characters]…${"😀".repeat(500)}`)
      const [second, third] = (yield* search("grep", { pattern: "foo" })).output.matches
      assert.strictEqual(second.column, 1001)
      assert.strictEqual(second.text, `[+900 characters]…${"é".repeat(100)}foo${"é".repeat(397)}…[+603 characters]`)
      assert.strictEqual(third.text, `[+503 characters]…${"x".repeat(497)}foo`)
    }))

  it.scopedLive("reads CRLF, control characters, and bytes that are no UTF-8 in lines and names", () =>
    Effect.gen(function*() {
      const { root, search } = yield* over({
        "a.txt": "foo\r\n\x1b[31mfoo\r\n",
        "b.txt": Uint8Array.of(0x63, 0xe9, 0x20, 0x66, 0x6f, 0x6f, 0x0a)
      })
      writeFileSync(Buffer.concat([Buffer.from(`${root}/n`), Buffer.of(0xff)]), "foo\n")
      const { output } = yield* search("grep", { pattern: "foo" })
      assert.deepStrictEqual(output.matches, [
        { path: "a.txt", line: 1, column: 1, text: "foo" },
        { path: "a.txt", line: 2, column: 6, text: "\\x1b[31mfoo" },
        { path: "b.txt", line: 1, column: 4, text: "c\ufffd foo" },
        { path: "n\ufffd", line: 1, column: 1, text: "foo" }
      ])
    }))

  it.scopedLive("leaves a match out, and says so, whose line is larger than it will hold", () =>
    Effect.gen(function*() {
      const { search } = yield* over({ "a.txt": `${"x".repeat(7 * 1024 * 1024)}foo\nfoo\n` })
      const { output, shown } = yield* search("grep", { pattern: "foo" })
      assert.deepStrictEqual(places(output), ["a.txt:2"])
      assert.strictEqual(output.oversized, 1)
      assert.include(shown, "left out")
    }))

  it.scopedLive("filters by name or path without bringing back what is ignored", () =>
    Effect.gen(function*() {
      const { search } = yield* over({
        ".gitignore": "*.log\nbuild/\n",
        "a.ts": "foo\n",
        "a.log": "foo\n",
        "src/b.ts": "foo\n",
        "src/c.md": "foo\n",
        "build/d.ts": "foo\n"
      })
      const where = (glob: string) =>
        Effect.map(search("grep", { pattern: "foo", glob }), ({ output }) => places(output))
      assert.deepStrictEqual(yield* where("*.ts"), ["a.ts:1", "src/b.ts:1"])
      assert.deepStrictEqual(yield* where("src/**"), ["src/b.ts:1", "src/c.md:1"])
      assert.deepStrictEqual(yield* where("**/*.{ts,log}"), ["a.ts:1", "src/b.ts:1"])
      assert.deepStrictEqual(yield* where("*.log"), [])
      assert.deepStrictEqual(yield* where("!*.ts"), ["src/c.md:1"])
      assert.deepStrictEqual(yield* where("!src/**"), ["a.ts:1"])
    }))

  it.scopedLive("searches hidden files but never .git, not when it is named either", () =>
    Effect.gen(function*() {
      const { search } = yield* over({
        ".envrc": "foo\n",
        ".git/config": "foo\n",
        "sub/.git": "foo\n",
        "sub/.GIT/x": "foo\n",
        ".github/w": "foo\n"
      })
      assert.deepStrictEqual(places((yield* search("grep", { pattern: "foo" })).output), [".envrc:1", ".github/w:1"])
      assert.deepStrictEqual(places((yield* search("grep", { pattern: "foo", path: ".git" })).output), [])
      assert.deepStrictEqual(places((yield* search("grep", { pattern: "foo", path: ".git/config" })).output), [])
      assert.deepStrictEqual(places((yield* search("grep", { pattern: "foo", glob: ".git/**" })).output), [])
    }))

  it.scopedLive("answers about ignored files as git does", () =>
    Effect.gen(function*() {
      const names = [
        "a.log",
        "keep.log",
        "build/x",
        "only-root",
        "sub/only-root",
        "#x",
        "sp ace",
        "sub/in.tmp",
        "sub/out.tmp",
        "plain",
        "up.bak"
      ]
      const { root } = yield* over({
        ".gitignore": "*.bak\n",
        ...Object.fromEntries(names.map((name) => [`ws/${name}`, "foo\n"])),
        "ws/.gitignore": "*.log\r\n!keep.log\r\nbuild/\r\n/only-root\r\n\\#x\r\nsp\\ ace\r\n*.tmp\r\n",
        "ws/sub/.gitignore": "!in.tmp\n"
      })
      const git = (...args: ReadonlyArray<string>) => execFileSync("git", args, { cwd: root, encoding: "utf8" })
      git("init", "-q")
      const kept = git("ls-files", "-z", "--others", "--exclude-standard", "ws").split("\0").filter((name) =>
        name !== ""
      )
      const expected = kept.map((name) => name.slice(3)).filter((name) => !name.endsWith(".gitignore")).sort()
      const { output } = yield* searching(`${root}/ws`)("grep", { pattern: "foo" })
      assert.deepStrictEqual(output.matches.map(({ path }: Match) => path), expected)
      assert.deepStrictEqual(expected, ["keep.log", "plain", "sub/in.tmp", "sub/only-root"])
      const explicit = yield* searching(`${root}/ws`)("grep", { pattern: "foo", path: "a.log" })
      assert.deepStrictEqual(places(explicit.output), ["a.log:1"])
    }))

  it.scopedLive("counts what it could not read and still returns the rest", () =>
    Effect.gen(function*() {
      const { root, search } = yield* over({ "a.txt": "foo\n" })
      execFileSync("ln", ["-s", "nowhere", "dangling"], { cwd: root })
      execFileSync("mkfifo", ["pipe"], { cwd: root })
      assert.deepStrictEqual(places((yield* search("grep", { pattern: "foo" })).output), ["a.txt:1"])
    }))

  it.scopedLive("returns a hit that speaks of rate limits as the ordinary success it is", () =>
    Effect.gen(function*() {
      const { search } = yield* over({ "notes.md": "http 429: rate limited, retry after 5 minutes\n" })
      assert.deepStrictEqual(places((yield* search("grep", { pattern: "429" })).output), ["notes.md:1"])
    }))

  it.scopedLive("refuses what is outside and what is not there", () =>
    Effect.gen(function*() {
      const { search } = yield* over({ "a.txt": "foo\n" })
      assert.strictEqual(
        (yield* failureOf(search("grep", { pattern: "foo", path: "../.." }))).code,
        "outside_workspace"
      )
      assert.strictEqual((yield* failureOf(search("grep", { pattern: "foo", path: "nope" }))).code, "path_not_found")
    }))

  it.effect("fails with a code when ripgrep cannot be started, is too slow, or is killed", () =>
    Effect.gen(function*() {
      const asked = (answer: Recorded.Answer) =>
        failureOf(call(grep, { pattern: "x" }, turnIn("/"))).pipe(
          Effect.provide(Layer.mergeAll(Recorded.layer([answer]), Ripgrep.layerAt("/rg"), files)),
          Effect.map(({ code }) => code)
        )
      assert.strictEqual(yield* asked({ ending: { _tag: "SpawnFailed", reason: "ENOENT" } }), "search_failed")
      assert.strictEqual(yield* asked({ ending: { _tag: "Signalled", signal: "SIGBUS" } }), "search_failed")
      assert.strictEqual(yield* asked({ ending: { _tag: "TimedOut", afterMs: 30_000 } }), "search_timed_out")
    }))

  it.effect("survives records that are not what they should be", () =>
    Effect.gen(function*() {
      const stdout = [
        "not json",
        "{\"type\":\"match\"}",
        "{\"type\":\"match\",\"data\":{\"path\":{\"bytes\":\"!!\"},\"lines\":{\"bytes\":\"!!\"},\"line_number\":null,\"submatches\":[]}}",
        "{\"type\":\"begin\"}",
        "{\"type\":\"begin\",\"data\":{\"path\":{\"text\":\"/w/a\"}}}",
        "{\"type\":\"match\",\"data\":{\"path\":{\"text\":\"/w/a\"},\"lines\":{\"bytes\":\"!!\"},\"line_number\":1,\"submatches\":[{\"start\":99}]}}",
        "{\"type\":\"summary\"}",
        ""
      ].join("\n")
      const { output } = yield* call(grep, { pattern: "x" }, turnIn("/")).pipe(
        Effect.provide(
          Layer.mergeAll(Recorded.layer([{ stdout }, {}]), Ripgrep.layerAt("/rg"), files)
        )
      )
      assert.deepStrictEqual(output.matches, [{ path: "w/a", line: 1, column: 1, text: "" }])
    }))
})
