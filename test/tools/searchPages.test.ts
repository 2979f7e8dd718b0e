import { assert, describe, it } from "@effect/vitest"
import { rgPath } from "@vscode/ripgrep"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { execFileSync, spawnSync } from "node:child_process"
import {
  chmodSync,
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync
} from "node:fs"
import type { Json } from "../../src/contract/Json.ts"
import { layerAt } from "../../src/process/Ripgrep.ts"
import type { Match } from "../../src/tools/grep.ts"
import { call, failureOf, turnIn } from "./processSupport.ts"
import { layer, over, type searching, tools } from "./searchSupport.ts"

const places = (output: { readonly matches: ReadonlyArray<Match> }) =>
  output.matches.map(({ line, path }) => `${path}:${line}`)

type Search = ReturnType<typeof searching>

/** All pages of a search, with their number. */
const pages = Effect.fnUntraced(function*(
  search: Search,
  name: "grep" | "glob",
  args: Readonly<Record<string, Json>>,
  of: (
    output: { readonly matches: ReadonlyArray<Match>; readonly paths: ReadonlyArray<string> }
  ) => ReadonlyArray<string>
) {
  const all: Array<string> = []
  let cursor: string | null = null
  let count = 0
  do {
    const found: Effect.Effect.Success<ReturnType<Search>> = yield* search(
      name,
      cursor === null ? args : { ...args, cursor }
    )
    all.push(...of(found.output))
    cursor = found.output.nextCursor
    count++
  } while (cursor !== null && count < 1000)
  return { all, count }
})

const both = (name: string, test: (by: "search" | "scan") => Effect.Effect<void, unknown, Scope.Scope>) => {
  for (const by of ["search", "scan"] as const) it.scopedLive(`${name} (${by})`, () => test(by))
}

/** Processes of this machine whose arguments hold a text. */
const running = (text: string): ReadonlyArray<string> =>
  readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(text)
    } catch {
      return false
    }
  })

describe("pages of a search", () => {
  const files = Object.fromEntries(
    Array.from({ length: 20 }, (_, index) => [
      `${["a", "b/c", "b-", "b.d", "é", "😀", "\uffee"][index % 7]}/f${index}.txt`,
      Array.from({ length: 1 + index % 6 }, (_, line) => `foo ${line}`).join("\nbar\n")
    ])
  )

  both("show every match once, in order, whatever their size", (by) =>
    Effect.gen(function*() {
      const { [by]: search } = yield* over(files)
      const whole = places((yield* search("grep", { pattern: "foo", limit: 1000 })).output)
      assert.strictEqual(new Set(whole).size, whole.length)
      for (const [limit, context] of [[4, 0], [7, 0], [10, 2], [1000, 0]] as const) {
        const { all, count } = yield* pages(search, "grep", { pattern: "foo", limit, context }, places)
        assert.deepStrictEqual(all, whole)
        assert.strictEqual(count, Math.ceil(whole.length / limit))
      }
      const names = (yield* search("glob", { pattern: "**" })).output.paths
      assert.strictEqual(names.length, 20)
      for (const limit of [1, 9, 20]) {
        const { all, count } = yield* pages(search, "glob", { pattern: "**", limit }, ({ paths }) => paths)
        assert.deepStrictEqual(all, names)
        assert.strictEqual(count, Math.ceil(20 / limit))
      }
    }))

  both("hold 50 KB at most, so that one long line fills none", (by) =>
    Effect.gen(function*() {
      const { [by]: search } = yield* over({
        "long.txt": `${"a".repeat(100_000)}foo${"b".repeat(117_000)}\n${"foo ".repeat(50_000)}\nfoo\n`,
        "many.txt": `${"é".repeat(200)}foo\n`.repeat(500)
      })
      const { output, shown } = yield* search("grep", { pattern: "foo", limit: 1000 })
      assert.isAtMost(Buffer.byteLength(shown), 51 * 1024 + 1000)
      assert.deepStrictEqual(places(output).slice(0, 4), ["long.txt:1", "long.txt:2", "long.txt:3", "many.txt:1"])
      assert.match(output.matches[0].text, /^\[\+99900 characters\]…a{100}foob{397}…\[\+116603 characters\]$/)
      const { all } = yield* pages(search, "grep", { pattern: "foo", limit: 1000 }, places)
      assert.strictEqual(new Set(all).size, 503)
      assert.strictEqual(all.length, 503)
    }))

  both("are bound to their search", (by) =>
    Effect.gen(function*() {
      const { [by]: search } = yield* over({ "a.txt": "foo\nfoo\nfoo\n", "b.txt": "foo\n" })
      const first = yield* search("grep", { pattern: "foo", limit: 1 })
      const cursor: string = first.output.nextCursor
      assert.include(first.shown, cursor)
      assert.deepStrictEqual(places((yield* search("grep", { pattern: "foo", limit: 9, cursor })).output), [
        "a.txt:2",
        "a.txt:3",
        "b.txt:1"
      ])
      const others: ReadonlyArray<Readonly<Record<string, Json>>> = [
        { pattern: "fo" },
        { pattern: "foo", path: "a.txt" },
        { pattern: "foo", glob: "*.txt" },
        { pattern: "foo", ignoreCase: true },
        { pattern: "foo", literal: true },
        { pattern: "foo", context: 1 }
      ]
      for (const other of others) {
        assert.strictEqual((yield* failureOf(search("grep", { ...other, cursor }))).code, "cursor_invalid")
      }
      const marked = Buffer.from(cursor, "base64url").toString()
      const garbled = [
        ...["", "x", "%%%", cursor.slice(1), cursor.slice(0, -4), Buffer.from("{}").toString("base64url")],
        Buffer.from(marked.replace("\"line\":1", "\"line\":-1")).toString("base64url"),
        Buffer.from(marked.replace("\"line\":1", "\"line\":null")).toString("base64url")
      ]
      for (const text of garbled) {
        assert.strictEqual((yield* failureOf(search("grep", { pattern: "foo", cursor: text }))).code, "cursor_invalid")
      }
      assert.strictEqual((yield* failureOf(search("glob", { pattern: "foo", cursor }))).code, "cursor_invalid")
    }))
})

describe("a search", () => {
  both(
    "P11: leaves withheld files out and says how many, telling nothing of what is in them",
    (by) =>
      Effect.gen(function*() {
        const { [by]: search } = yield* over({
          ".env": `KEY=s3cret\n${"x".repeat(9 * 1024 * 1024)}KEY\n`,
          "sub/.env": "KEY=2\n",
          ".env.example": "KEY=\n",
          ".gitignore": "ignored\n",
          "ignored/.env": "KEY=3\n"
        })
        const told = []
        for (const pattern of ["KEY", "KEY=s3cret", "KEY=nothing"]) {
          const { output, shown } = yield* search("grep", { pattern })
          assert.include(shown, "[2 files withheld]")
          assert.notInclude(shown, "s3cret")
          told.push({ ...output, matches: [] })
          assert.deepStrictEqual(places(output), pattern === "KEY" ? [".env.example:1"] : [])
        }
        assert.deepStrictEqual(told[0], told[1])
        assert.deepStrictEqual(told[0], told[2])
        assert.include((yield* search("grep", { pattern: "KEY", path: "sub" })).shown, "[1 file withheld]")
        assert.notInclude((yield* search("grep", { pattern: "KEY", glob: "*.md" })).shown, "withheld")
        const listed = yield* search("glob", { pattern: ".env*" })
        assert.deepStrictEqual(listed.output.paths, [".env.example"])
        assert.strictEqual(listed.output.withheld, 2)
      })
  )

  both("P10: looks into an ignored path that is named, and says so", (by) =>
    Effect.gen(function*() {
      const { [by]: search } = yield* over({
        ".gitignore": "build/\n*.log\n/out/**\n",
        "build/a.txt": "foo\n",
        "build/x/b.txt": "foo\n",
        "build/c.log": "foo\n",
        "a.log": "foo\n",
        "src/a.txt": "foo\n"
      })
      const where = (path: string) =>
        Effect.map(search("grep", { pattern: "foo", path }), ({ output, shown }) => {
          assert.strictEqual(shown.includes("ignored by git"), output.ignored)
          return [output.ignored, ...places(output)]
        })
      assert.deepStrictEqual(yield* where("build"), [true, "build/a.txt:1", "build/c.log:1", "build/x/b.txt:1"])
      assert.deepStrictEqual(yield* where("build/x"), [true, "build/x/b.txt:1"])
      assert.deepStrictEqual(yield* where("build/a.txt"), [true, "build/a.txt:1"])
      assert.deepStrictEqual(yield* where("a.log"), [true, "a.log:1"])
      assert.deepStrictEqual(yield* where("src"), [false, "src/a.txt:1"])
      assert.deepStrictEqual(yield* where("."), [false, "src/a.txt:1"])
    }))

  both("P06: opens no FIFO, link or device", (by) =>
    Effect.gen(function*() {
      const { [by]: search, root } = yield* over({ "a.txt": "foo\n", "elsewhere/b.txt": "foo\n" })
      execFileSync("mkfifo", ["pipe"], { cwd: root })
      execFileSync("ln", ["-s", "nowhere", "dangling"], { cwd: root })
      execFileSync("ln", ["-s", "elsewhere", "link"], { cwd: root })
      execFileSync("ln", ["-s", "a.txt", "link.txt"], { cwd: root })
      assert.deepStrictEqual(places((yield* search("grep", { pattern: "foo" })).output), [
        "a.txt:1",
        "elsewhere/b.txt:1"
      ])
      assert.deepStrictEqual((yield* search("glob", { pattern: "**" })).output.paths, ["a.txt", "elsewhere/b.txt"])
      assert.strictEqual((yield* failureOf(search("grep", { pattern: "x", path: "pipe" }))).code, "not_a_regular_file")
      assert.strictEqual((yield* failureOf(search("glob", { pattern: "x", path: "pipe" }))).code, "not_a_regular_file")
    }))

  both("reads UTF-16 and passes over binary files, but for one that is named", (by) =>
    Effect.gen(function*() {
      const utf16 = Buffer.from("\ufefffoo żółć\nbar foo\n", "utf16le")
      const { [by]: search } = yield* over({
        "le.txt": utf16,
        "be.txt": Buffer.from(utf16).swap16(),
        "bom.txt": "\ufefffoo\n",
        "binary": "foo\n\0foo\n",
        "late": `${"foo\n".repeat(20_000)}\0foo\n`,
        "latin.txt": Buffer.from("\xe9 foo\n", "latin1")
      })
      const { output } = yield* search("grep", { pattern: "^foo", limit: 1000, glob: "!late" })
      assert.deepStrictEqual(places(output), ["be.txt:1", "bom.txt:1", "le.txt:1"])
      assert.strictEqual(output.matches[2].text, "foo żółć")
      assert.deepStrictEqual(places((yield* search("grep", { pattern: "foo", path: "binary" })).output), [
        "binary:1",
        "binary:3"
      ])
      assert.deepStrictEqual((yield* search("grep", { pattern: "foo", path: "latin.txt" })).output.matches, [
        { path: "latin.txt", line: 1, column: 3, text: "\ufffd foo" }
      ])
    }))

  describe("P08: takes awkward patterns for text or refuses them", () => {
    const patterns = [
      ...["--pre=./payload.sh", "--pre", "-e", "--", "-f/etc/passwd", "(", "- [ ]", "--hostname-bin=./payload.sh", "-"],
      ...[
        "$(./payload.sh)",
        "`./payload.sh`",
        "; ./payload.sh",
        "a\nb",
        "\n",
        "--search-zip",
        "\\",
        "[",
        "{",
        "*",
        "\ud800"
      ]
    ]
    for (const pattern of patterns) {
      both(JSON.stringify(pattern), (by) =>
        Effect.gen(function*() {
          const { [by]: search, root } = yield* over({
            "a.txt": `first\nhere: ${pattern} there\n`,
            "payload.sh": "#!/bin/sh\ntouch ran\n"
          })
          chmodSync(`${root}/payload.sh`, 0o755)
          for (const literal of [true, false]) {
            for (const extra of [{}, { glob: pattern }]) {
              const found = yield* Effect.either(search("grep", { pattern, literal, ...extra }))
              if (found._tag === "Left") {
                assert.include(["pattern_invalid", "arguments_invalid"], Object(found.left).code)
              } else if (literal && !("glob" in extra)) {
                assert.include(places(found.right.output), "a.txt:2")
              }
            }
          }
          const named = yield* Effect.either(search("grep", { pattern: "x", path: pattern }))
          assert.isTrue(named._tag === "Left" || pattern === "\\")
          assert.isFalse(existsSync(`${root}/ran`))
        }))
    }
  })

  both("leaves out a line of 100 MB and goes on", (by) =>
    Effect.gen(function*() {
      const { [by]: search, root } = yield* over({ "b.txt": "foo\n" })
      const file = openSync(`${root}/a.txt`, "w")
      for (let index = 0; index < 100; index++) writeSync(file, "foo_bar ".repeat(128 * 1024))
      writeSync(file, "foo\nfoo\n")
      closeSync(file)
      const { output } = yield* search("grep", { pattern: "foo$" })
      assert.deepStrictEqual(places(output), ["a.txt:2", "b.txt:1"])
      assert.strictEqual(output.oversized, 1)
    }))

  both("finds nothing in .git, whatever leads there", (by) =>
    Effect.gen(function*() {
      const { [by]: search, root } = yield* over({
        ".git/config": "foo\n",
        ".git/hooks/a": "foo\n",
        "sub/.GIT/a": "foo\n",
        "a.txt": "foo\n"
      })
      execFileSync("ln", ["-s", ".git", "link"], { cwd: root })
      execFileSync("ln", ["-s", ".git/config", "config"], { cwd: root })
      for (
        const path of [".git", ".git/config", ".git/hooks", "link", "link/hooks", "link/config", "config", "sub/.GIT"]
      ) {
        assert.deepStrictEqual(places((yield* search("grep", { pattern: "foo", path })).output), [], path)
        assert.deepStrictEqual((yield* search("glob", { pattern: "**", path })).output.paths, [], path)
      }
      assert.deepStrictEqual(places((yield* search("grep", { pattern: "foo" })).output), ["a.txt:1"])
    }))

  both("goes on from where a page ended when files come and go meanwhile", (by) =>
    Effect.gen(function*() {
      const { [by]: search, root } = yield* over({ "b.txt": "foo\nfoo\n", "c.txt": "foo\n", "d/e.txt": "foo\n" })
      const { output: { nextCursor: cursor } } = yield* search("grep", { pattern: "foo", limit: 1 })
      rmSync(`${root}/b.txt`)
      for (const name of ["a.txt", "c0.txt"]) writeFileSync(`${root}/${name}`, "foo\n")
      const { output } = yield* search("grep", { pattern: "foo", cursor })
      assert.deepStrictEqual(places(output), ["c.txt:1", "c0.txt:1", "d/e.txt:1"])
      assert.isNull(output.nextCursor)
    }))

  both("takes a cursor of invented places for what it says and no more", (by) =>
    Effect.gen(function*() {
      const { [by]: search } = yield* over({ ".env": "foo\n", "a.txt": "foo\nfoo\n" })
      const { output: { nextCursor } } = yield* search("grep", { pattern: "foo", limit: 1 })
      const mark = JSON.parse(Buffer.from(nextCursor, "base64url").toString())
      const from = (key: string, line: number) =>
        Effect.map(
          search("grep", {
            pattern: "foo",
            cursor: Buffer.from(JSON.stringify({ ...mark, key, line })).toString("base64url")
          }),
          ({ output }) => places(output)
        )
      assert.deepStrictEqual(yield* from("", 0), ["a.txt:1", "a.txt:2"])
      assert.deepStrictEqual(yield* from(".env", 0), ["a.txt:1", "a.txt:2"])
      assert.deepStrictEqual(yield* from("..\0..\0etc", 0), ["a.txt:1", "a.txt:2"])
      assert.deepStrictEqual(yield* from("\uffff\n\"\\", 7), [])
      assert.deepStrictEqual(yield* from("a.txt", Number.MAX_SAFE_INTEGER), [])
      assert.deepStrictEqual(yield* from("a.txt", 1), ["a.txt:2"])
    }))

  it.scopedLive("of a pattern that is on 100 MB of lines keeps a page of them", () =>
    Effect.gen(function*() {
      const line = `${"foo ".repeat(500)}\n`
      const { search } = yield* over(
        Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`f${index}.txt`, line.repeat(250)]))
      )
      yield* search("grep", { pattern: "foo", limit: 1000, context: 20 })
      const before = process.memoryUsage()
      const found = yield* search("grep", { pattern: "foo", limit: 1000, context: 20 })
      const after = process.memoryUsage()
      assert.isNotNull(found.output.nextCursor)
      assert.isBelow(Buffer.byteLength(found.shown), 60 * 1024)
      assert.isBelow(after.rss - before.rss, 100 * 1024 * 1024)
    }))

  const another = spawnSync("setpriv", ["--reuid=65534", "--clear-groups", rgPath, "--version"]).status === 0
  it.scopedLive.runIf(another)("counts what ripgrep may not read and returns the rest", () =>
    Effect.gen(function*() {
      const { root } = yield* over({ "a.txt": "foo\n", "b.txt": "foo\n", "closed/c.txt": "foo\n" })
      const program = `${root}/.program`
      writeFileSync(program, `#!/bin/sh\nexec setpriv --reuid=65534 --clear-groups ${rgPath} "$@"\n`, { mode: 0o755 })
      chmodSync(root, 0o755)
      chmodSync(`${root}/b.txt`, 0o600)
      chmodSync(`${root}/closed`, 0o700)
      const search = (name: "grep" | "glob", args: Readonly<Record<string, Json>>) =>
        Effect.provide(call(tools[name], args, turnIn(root)), Layer.mergeAll(layer, layerAt(program)))
      const found = yield* search("grep", { pattern: "foo" })
      assert.deepStrictEqual(places(found.output), ["a.txt:1"])
      assert.strictEqual(found.output.unreadable, 2)
      const nothing = yield* search("grep", { pattern: "absent" })
      assert.deepStrictEqual(places(nothing.output), [])
      assert.strictEqual(nothing.output.unreadable, 2)
      const listed = yield* search("glob", { pattern: "*.txt" })
      assert.deepStrictEqual([listed.output.paths, listed.output.unreadable], [["a.txt", "b.txt"], 1])
      assert.strictEqual((yield* failureOf(search("grep", { pattern: "(" }))).code, "pattern_invalid")
    }))

  both("outlives a tree that changes under it", (by) =>
    Effect.gen(function*() {
      const { [by]: search, root } = yield* over(
        Object.fromEntries(Array.from({ length: 2000 }, (_, index) => [`d${index % 50}/f${index}.txt`, "foo\n"]))
      )
      const fiber = yield* Effect.fork(search("grep", { pattern: "foo$", limit: 1000 }))
      for (let index = 0; index < 50; index++) {
        rmSync(`${root}/d${index}`, { recursive: true })
        yield* Effect.yieldNow()
      }
      yield* Fiber.join(fiber)
      rmSync(root, { recursive: true })
      assert.strictEqual((yield* failureOf(search("glob", { pattern: "*" }))).code, "path_not_found")
    }))

  it.scopedLive("that is interrupted leaves no process", () =>
    Effect.gen(function*() {
      const { root, search } = yield* over(
        Object.fromEntries(
          Array.from({ length: 300 }, (_, index) => [`f${index}.txt`, `${"x".repeat(200)}\n`.repeat(2000)])
        )
      )
      for (const wait of [0, 2, 5, 10, 20, 40]) {
        const fiber = yield* Effect.fork(search("grep", { pattern: "(x+y?){20,40}z" }))
        yield* Effect.sleep(wait)
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(running(root), [])
      }
      const { output } = yield* search("grep", { pattern: "x" })
      assert.strictEqual(output.matches.length, 100)
      assert.deepStrictEqual(running(root), [])
    }))

  it.scopedLive("without ripgrep can be interrupted", () =>
    Effect.gen(function*() {
      const { scan } = yield* over(
        Object.fromEntries(
          Array.from({ length: 300 }, (_, index) => [`f${index}.txt`, `${"x".repeat(200)}\n`.repeat(2000)])
        )
      )
      const started = performance.now()
      yield* Effect.timeoutOption(scan("grep", { pattern: "(x+y?){20,40}z" }), 100)
      assert.isBelow(performance.now() - started, 5000)
    }))

  it.scopedLive("without ripgrep refuses what only ripgrep takes", () =>
    Effect.gen(function*() {
      const { scan } = yield* over({ "a.txt": "foo\n" })
      for (
        const pattern of ["\\bfoo", "\\<foo", "(?x) foo", "[a&&b]", "[[a]]", "a{,3}", "(?=f)", "\\Qf", "\\1", "[\\W]"]
      ) {
        const { code, error } = yield* failureOf(scan("grep", { pattern }))
        assert.strictEqual(code, "pattern_invalid", pattern)
        assert.include(String(error), "ripgrep is not here")
      }
    }))
})
