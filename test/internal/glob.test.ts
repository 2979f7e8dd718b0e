import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import { compile } from "../../src/internal/glob.ts"

const table: ReadonlyArray<readonly [pattern: string, yes: ReadonlyArray<string>, no: ReadonlyArray<string>]> = [
  ["*.ts", ["a.ts", "x/y/a.ts", ".ts"], ["a.tsx", "a.ts/b"]],
  ["src/*.ts", ["src/a.ts"], ["src/x/a.ts", "x/src/a.ts"]],
  ["./src/*.ts", ["src/a.ts"], ["x/src/a.ts"]],
  ["/a.ts", ["a.ts"], ["x/a.ts"]],
  ["src/**/*.ts", ["src/a.ts", "src/x/y/a.ts"], ["a.ts", "src.ts"]],
  ["**/b/**", ["b/c", "a/b/c/d"], ["b", "a/b"]],
  ["src/", ["src/a", "src/x/a"], ["src", "x/src/a"]],
  ["a?c", ["abc", "a😀c"], ["ac", "a/c", "abbc"]],
  ["x/?/y", ["x/a/y"], ["x//y", "x/ab/y"]],
  ["[a-c]x", ["ax", "d/bx"], ["dx", "x"]],
  ["[!a-c]x", ["dx"], ["ax"]],
  ["[]]x", ["]x"], ["x"]],
  ["[ab", ["[ab"], ["a"]],
  ["*.{ts,tsx}", ["a.ts", "b/a.tsx"], ["a.js"]],
  ["{src,test/{a,b}}/*", ["src/x", "test/a/x", "test/b/x"], ["test/x"]],
  ["\\*.ts", ["*.ts"], ["a.ts"]],
  ["\\{a,b\\}", ["{a,b}"], ["a"]],
  ["a**b", ["ab", "axxb"], ["a/b"]],
  ["(a+)+$", ["(a+)+$"], ["aa"]],
  ["--hidden", ["--hidden"], ["hidden"]]
]

describe("glob patterns", () => {
  for (const [pattern, yes, no] of table) {
    it(`reads ${pattern}`, () => {
      const fits = compile(pattern)
      assert.deepStrictEqual(yes.filter((path) => fits?.(path) !== true), [])
      assert.deepStrictEqual(no.filter((path) => fits?.(path) !== false), [])
    })
  }

  it("refuses an open brace, nothing, and more alternatives than it will hold", () => {
    for (const pattern of ["{a", "", "{a,b}".repeat(20)]) assert.isUndefined(compile(pattern))
  })

  it("takes an escaped path as that very path", () => {
    const name = fc.string({ unit: "binary", minLength: 1, maxLength: 8 }).map((_) => _.replaceAll("/", "_"))
    fc.assert(fc.property(fc.array(name, { minLength: 2, maxLength: 4 }), (parts) => {
      const path = parts.map((part) => part === "." ? "_" : part).join("/")
      assert.isTrue(compile(path.replace(/[\\*?[\]{},]/g, "\\$&"))?.(path))
    }))
  })

  it("is quick for patterns made to be slow", () => {
    const before = performance.now()
    assert.isFalse(compile("*a".repeat(250))?.("a".repeat(240) + "b"))
    assert.isFalse(compile("**/a/".repeat(100) + "b")?.("a/".repeat(400) + "c"))
    assert.isUndefined(compile("{".repeat(500)))
    assert.isBelow(performance.now() - before, 500)
  })
})
