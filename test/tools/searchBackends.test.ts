import { assert, describe, it } from "@effect/vitest"
import { rgPath } from "@vscode/ripgrep"
import * as Effect from "effect/Effect"
import * as FC from "effect/FastCheck"
import { execFileSync, spawnSync } from "node:child_process"
import type { Json } from "../../src/contract/Json.ts"
import type { Match } from "../../src/tools/grep.ts"
import { count } from "../support/counts.ts"
import { over } from "./searchSupport.ts"

const rounds = { fastCheck: { numRuns: count({ quick: 15, soak: 400 }) } }
const timeout = count({ quick: 60_000, soak: 600_000 })

const names = ["a", "b", "ab", "a.log", "b.log", "x y", "#x", "!y", "A", "{a}", "é", "[a]"]
/** What git and ripgrep read alike: not braces, `***`, or classes such as `[:alpha:]`. */
const parts = [
  ...["a", "b", "*", "**", "?", "*.log", "a*", "[ab]", "[!a]", "x y", "x\\ y", "\\#x", "\\!y", "A", "é", "a.log"],
  ...["[a-b]*", "**a", "\\a", "\\[a\\]", "b ", "#x", "!y", "[]a]", "[a", "\\{a\\}"]
]

const path = FC.array(FC.constantFrom(...names), { minLength: 1, maxLength: 3 }).map((segments) => segments.join("/"))

const rule = FC.tuple(
  FC.constantFrom("", "", "", "!"),
  FC.constantFrom("", "", "", "/"),
  FC.array(FC.constantFrom(...parts), { minLength: 1, maxLength: 3 }),
  FC.constantFrom("", "", "", "/")
).map(([not, anchor, segments, end]) => not + anchor + segments.join("/") + end)

const rules = FC.tuple(FC.array(rule, { minLength: 1, maxLength: 3 }), FC.constantFrom("\n", "\r\n")).map(
  ([lines, ending]) => lines.map((line) => line + ending).join("")
)

const contents = FC.array(
  FC.constantFrom("foo", "Foo bar", "x foo foo", "", "\r", "żółć foo", "foo_1 2", "\u00a0foo", "if (foo) {", "😀 foo"),
  { maxLength: 8 }
).chain((lines) => FC.constantFrom(lines.join("\n"), `${lines.join("\n")}\n`, `\ufeff${lines.join("\n")}`))

/** A path that is the folder of another one is left out: it cannot be a file. */
const plausible = <A>(entries: ReadonlyArray<readonly [string, A]>): Record<string, A> => {
  const kept: Record<string, A> = {}
  for (const [name, value] of entries) {
    const clash = Object.keys(kept).some((other) =>
      other === name || other.startsWith(`${name}/`) || name.startsWith(`${other}/`)
    )
    if (!clash) kept[name] = value
  }
  return kept
}

const tree = FC.record({
  files: FC.array(FC.tuple(path, contents), { minLength: 1, maxLength: 25 }),
  top: rules,
  nested: FC.option(FC.tuple(FC.constantFrom(...names), FC.constantFrom(".gitignore", ".ignore", ".rgignore"), rules))
}).map(({ files, nested, top }) =>
  plausible([
    [".gitignore", top] as const,
    ...(nested === null ? [] : [[`${nested[0]}/${nested[1]}`, nested[2]] as const]),
    ...files
  ])
)

const patterns = [
  ...["foo", "^foo", "foo$", "\\bfoo", "[fF]oo", "(?i)FOO", "\\w+\\s\\d", "^\\s*foo", "o{2}", "a|b|foo.*foo", "[^f]oo"],
  ...["^$", "\\S+\\W", "[\\w-]+", "żół[^x] foo", "\\p{Lu}", "[[:upper:]]", "\\(foo\\)", ".😀?.f", "x?", "\\{$"]
]

const plain = ({ backend: _, ...rest }: { readonly backend: string }) => rest

describe("searching with and without ripgrep", () => {
  it.live.prop("lists what git lists", [tree], ([files]) =>
    Effect.scoped(Effect.gen(function*() {
      const { root, scan, search } = yield* over(files)
      const git = (...args: ReadonlyArray<string>) => execFileSync("git", args, { cwd: root, encoding: "utf8" })
      git("init", "-q")
      const ripgrep = yield* search("glob", { pattern: "**" })
      const own = yield* scan("glob", { pattern: "**" })
      assert.deepStrictEqual(plain(own.output), plain(ripgrep.output))
      if (Object.keys(files).some((name) => /\.(?:rg)?ignore$/.test(name))) return
      const listed = git("ls-files", "-z", "--others", "--exclude-standard").split("\0").filter((name) => name !== "")
      assert.deepStrictEqual([...ripgrep.output.paths].sort(), listed.sort(), JSON.stringify(files))
    })), { ...rounds, timeout })

  it.live.prop("finds the same lines, which are those of ripgrep itself", [
    tree,
    FC.constantFrom(...patterns),
    FC.record({ ignoreCase: FC.boolean(), context: FC.constantFrom(0, 0, 1, 3), literal: FC.boolean() })
  ], ([files, pattern, flags]) =>
    Effect.scoped(Effect.gen(function*() {
      const { root, scan, search } = yield* over(files)
      const args = { pattern, limit: 1000, ...flags }
      const ripgrep = yield* search("grep", args)
      const raw = spawnSync(rgPath, [
        ...["--no-config", "--hidden", "--no-require-git", "--json", "--sort=path"],
        ...(flags.literal ? ["--fixed-strings"] : []),
        ...(flags.ignoreCase ? ["--ignore-case"] : []),
        ...["-e", pattern, "./"]
      ], { cwd: root, encoding: "utf8" }).stdout.split("\n").flatMap((line) => {
        const record = line === "" ? { type: "" } : JSON.parse(line)
        return record.type === "match" ? [`${record.data.path.text.slice(2)}:${record.data.line_number}`] : []
      })
      assert.deepStrictEqual(ripgrep.output.matches.map(({ line, path }: Match) => `${path}:${line}`), raw)
      const own = yield* Effect.either(scan("grep", args))
      if (own._tag === "Right") assert.deepStrictEqual(plain(own.right.output), plain(ripgrep.output))
      else assert.match(String(own.left), /ripgrep is not here/)
    })), { ...rounds, timeout })
})

describe("a tree of many files", () => {
  const many = count({ quick: 3000, soak: 50_000 })

  it.scopedLive("is searched and listed as ripgrep itself does, page by page", () =>
    Effect.gen(function*() {
      const folders = ["a", "a-b", "a.b", "A", "é/x", "😀", "\uffee", "b\\n", "b/c d/e", ".h"]
      const { root, search } = yield* over(Object.fromEntries(
        Array.from({ length: many }, (_, index) => [
          `${folders[index % 10]}/${Math.floor(index / 10) % 50}/f${index}.${["ts", "md", "log"][index % 3]}`,
          Array.from({ length: 20 }, (_, line) => `${(index * 31 + line * 7) % 97 === 0 ? "few" : "other"} ${line}\n`)
            .join("")
        ]).concat([[".gitignore", "*.log\n!f77.log\n"], ["a/.ignore", "/7\n"], [".git/few.ts", "few\n"]])
      ))
      const given = (...args: ReadonlyArray<string>) =>
        execFileSync(rgPath, [
          ...["--no-config", "--hidden", "--no-require-git", "--glob=!.git", "--sort=path"],
          ...args,
          "./"
        ], { cwd: root, encoding: "utf8", maxBuffer: 1 << 30 })
      const all = function*(name: "grep" | "glob", args: Readonly<Record<string, Json>>) {
        const found: Array<string> = []
        let cursor: string | null = null
        do {
          const { output }: Effect.Effect.Success<ReturnType<typeof search>> = yield* search(
            name,
            cursor === null ? args : { ...args, cursor }
          )
          found.push(
            ...name === "glob"
              ? output.paths
              : output.matches.map(({ line, path, text }: Match) => `${path}:${line}:${text}`)
          )
          cursor = output.nextCursor
        } while (cursor !== null)
        return found
      }
      const listed = given("--files", "--null").split("\0").slice(0, -1).map((name) => name.slice(2))
      assert.isAbove(listed.length, many / 2)
      assert.deepStrictEqual(yield* all("glob", { pattern: "**", limit: 10_000 }), listed)
      assert.deepStrictEqual(
        yield* all("glob", { pattern: "a/**/*.ts", limit: count({ quick: 40, soak: 1000 }) }),
        listed.filter((name) => name.startsWith("a/") && name.endsWith(".ts"))
      )
      const lines = given("-n", "--no-heading", "-e", "few").split("\n").slice(0, -1).map((line) => line.slice(2))
      assert.isAbove(lines.length, many / 10)
      for (const context of [0, 2]) {
        assert.deepStrictEqual(
          yield* all("grep", { pattern: "few", limit: count({ quick: 70, soak: 1000 }), context }),
          lines
        )
      }
    }), timeout)
})
