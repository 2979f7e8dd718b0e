import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import { readFileSync } from "node:fs"
import { posix, win32 } from "node:path"
import { foldName } from "../../src/file/ProtectedName.ts"
import { candidates, directory, parse, same, slug } from "../../src/plan/PlanPath.ts"
import { count } from "../support/counts.ts"

interface Vectors {
  readonly rows: ReadonlyArray<{ readonly path: string; readonly ok: boolean }>
}
const vectors: Vectors = JSON.parse(
  readFileSync(new URL("../fixtures/vectors/plan-path.json", import.meta.url), "utf8")
)

describe("a plan path", () => {
  for (const { ok, path } of vectors.rows) {
    it(`${JSON.stringify(path)} is ${ok ? "one" : "none"}`, () => {
      assert.strictEqual(parse(path) !== undefined, ok)
    })
  }

  it("has the canonical directory and the name as given", () => {
    assert.deepStrictEqual(parse(".\\.PORTCULLIS//./Plan/Größe 结果.MD"), {
      relativePath: ".portcullis/plan/Größe 结果.MD",
      stem: "Größe 结果",
      legacy: false
    })
  })

  const names = [
    "a\0.md",
    "a\n.md",
    "a.md\0",
    "a.md.",
    "a.md ",
    "a.md:x",
    "a:x.md",
    "a.md::$DATA",
    "..md",
    "...md",
    " .md",
    "a\u202e.md",
    "a\u200b.md",
    "a\ufeff.md",
    "..\uff0fa.md",
    "..\uff3ca.md",
    "..\u2215a.md",
    "..\u2044a.md",
    "\u2105.md",
    "a\ud800.md",
    "nul.md",
    "CON .md",
    "com\u00b9.md",
    "a.md/.",
    "./a.md/b.md",
    `${"x".repeat(253)}.md`,
    `${"结".repeat(85)}.md`
  ]
  for (const name of names) {
    it(`is not made of the name ${JSON.stringify(name).slice(0, 40)}`, () => {
      assert.isUndefined(parse(`${directory}/${name}`))
    })
  }

  it("may be in a legacy directory that is given, however that is spelled, and says so", () => {
    const legacy = ["./.OldTool\\plan/"]
    assert.deepStrictEqual(parse(".oldtool//plan/A.md", legacy), {
      relativePath: ".oldtool/plan/A.md",
      stem: "A",
      legacy: true
    })
    assert.isUndefined(parse(".oldtool/plan/A.md"))
    assert.isUndefined(parse(".oldtool/plan/sub/A.md", legacy))
    assert.isFalse(parse(".portcullis/plan/a.md", [directory])?.legacy)
    for (const folder of ["", ".", "/", "..", "../x", "/abs"]) {
      for (const path of ["a.md", "../a.md", "../x/a.md", "/abs/a.md"]) assert.isUndefined(parse(path, [folder]), path)
    }
  })

  const piece = fc.oneof(
    fc.constantFrom(".portcullis", ".Portcullis", "plan", "PLAN", "plan.", "a", ".md", "a.md", ".MD", "md"),
    fc.constantFrom("/", "/", "\\", "//", "./", "../", "..", ".", " ", ":", "::$DATA", "\0", "\n", "~", "C:"),
    fc.constantFrom("\uff0f", "\u2215", "\u2024", "\u2025", "\u200b", "\u202e", "\ud800", "İ", "K", "ſ", "nul"),
    fc.string({ maxLength: 3 })
  )
  const path = fc.oneof(
    fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join("")),
    fc.array(piece, { maxLength: 6 }).map((pieces) => `.portcullis/plan/${pieces.join("")}`),
    fc.array(piece, { maxLength: 4 }).map((pieces) => `.portcullis/plan/${pieces.join("")}.md`)
  )
  it.prop(
    "leads to a file directly in the directory on every platform, and is its own canonical form",
    { path },
    ({ path }) => {
      const plan = parse(path)
      if (plan === undefined) return
      const { relativePath } = plan
      for (const [platform, root] of [[posix, "/ws"], [win32, "C:\\ws"]] as const) {
        const folder = platform.join(root, ".portcullis", "plan")
        const written = platform.resolve(root, relativePath)
        assert.strictEqual(platform.dirname(written), folder)
        assert.strictEqual(
          platform.dirname(platform.resolve(root, path.replaceAll("\\", "/"))).toLowerCase(),
          folder.toLowerCase()
        )
        const name = platform.basename(written)
        assert.strictEqual(foldName(name), name.normalize("NFKC").toLowerCase().toUpperCase().normalize("NFKC"))
      }
      assert.deepStrictEqual(parse(relativePath), plan)
    },
    { fastCheck: { numRuns: count({ quick: 2000, soak: 200_000 }) } }
  )
})

describe("the slug of a title", () => {
  const rows: ReadonlyArray<readonly [string, string]> = [
    ["Add a Login Page", "add-a-login-page"],
    ["  __Fix__ #42: a/b\\c?  ", "fix-#42-a-b-c"],
    ["重构 登录 模块", "重构-登录-模块"],
    ["Ｆｕｌｌ　ｗｉｄｔｈ", "full-width"],
    ["v1.2 release", "v1.2-release"],
    ["...", "plan"],
    ["", "plan"],
    ["\u202e\0", "plan"],
    ["../../etc/passwd", "etc-passwd"],
    ["NUL", "plan-nul"],
    ["x".repeat(300), "x".repeat(96)],
    ["结".repeat(300), "结".repeat(66)]
  ]
  for (const [title, expected] of rows) {
    it(`${JSON.stringify(title).slice(0, 40)} is ${expected.slice(0, 40)}`, () => {
      assert.strictEqual(slug(title), expected)
    })
  }

  it.prop(
    "is a name at every number, for any title",
    { title: fc.oneof(fc.string(), fc.fullUnicodeString({ maxLength: 300 })) },
    ({ title }) => {
      const plans = candidates(title, 1_700_000_000_000)
      assert.strictEqual(plans.length, 51)
      for (const plan of plans) assert.deepStrictEqual(parse(plan.relativePath), plan)
      assert.isAtMost(Array.from(slug(title)).length, 101)
    },
    { fastCheck: { numRuns: count({ quick: 200, soak: 10_000 }) } }
  )

  it("is numbered from 2 to 50, and then gets the time", () => {
    const stems = candidates("A", 17).map(({ stem }) => stem)
    assert.deepStrictEqual([stems[0], stems[1], stems[49], stems[50]], ["a", "a-2", "a-50", "a-17"])
  })
})

describe("two plan paths", () => {
  it("are the same when only case and composition differ", () => {
    const plan = (name: string) => parse(`${directory}/${name}.md`) ?? assert.fail(name)
    assert.isTrue(same(plan("Gr\u00f6\u00dfe"), plan("gro\u0308\u00dfe")))
    assert.isFalse(same(plan("a"), plan("b")))
  })
})
