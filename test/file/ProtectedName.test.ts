import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as fc from "effect/FastCheck"
import { compile, defaultProtected, defaultWithheld, foldName } from "../../src/file/ProtectedName.ts"
import { count } from "../support/counts.ts"

const list = (patterns: ReadonlyArray<string>) => Either.getOrThrow(compile(patterns))
const isProtected = list(defaultProtected)
const isWithheld = list(defaultWithheld)

describe("ProtectedName", () => {
  it("protects names in every spelling that some file system takes for them", () => {
    for (
      const path of [
        ".git",
        ".git/",
        ".git/config",
        ".Git/config",
        ".GIT/hooks/pre-commit",
        "sub/.git/config",
        "/sub/.git/config",
        ".git./x",
        ".git /x",
        ".g\u200cit/config",
        ".gi\u00adt/config",
        ".g\ufe0fit/config",
        "\uff0e\uff47\uff49\uff54/config",
        "\u2024git/config",
        "GIT~1/x",
        "git~12/x",
        "GI7D4A~1/x",
        ".git::$INDEX_ALLOCATION/x",
        ".portcullis",
        ".portcullis/hooks.json",
        ".PORTCULLIS/rules",
        "PORTCU~1/rules",
        ".portcull\u0131s/x",
        ".portculli\u017f/x",
        ".portcullis/planner/x",
        ".portcullis/PLAN/x",
        ".portcullis/plan/.git/x",
        ".portcullis/plan/GIT~1/x",
        ".portcullis/plan/.portcullis/hooks.json"
      ]
    ) assert.isTrue(isProtected(path), path)
    for (
      const path of [
        ".gitignore",
        ".github/x",
        "git/x",
        ".gitattributes",
        ".portcullis/plan/a.md",
        ".portcullis/plan",
        "x.git/y",
        "文/.gitignore",
        "notes~1/a~2.b/c~"
      ]
    ) assert.isFalse(isProtected(path), path)
  })

  it("P11: withholds what holds secrets by custom, at any depth, and not what merely looks like it", () => {
    for (
      const path of [
        ...[".env", ".env.local", ".env~", ".env.production.bak", ".ENV", ".NETRC", "_netrc", ".npmrc"],
        ...["id_rsa", "id_ed25519", "ID_RSA", "server.key", "a.b.PEM", "x.p12", "x.pfx", ".git-credentials"],
        ...[".ssh", ".ssh/config", ".ssh/keys/x", ".gnupg/a", ".aws/credentials", ".docker/config.json"],
        ...[".kube/config", ".env.example/../.env", ".ssh/.env.example", ".env.EXAMPLE", ".env.example:x.env"],
        ...[
          ".env:$DATA",
          ".env::$DATA",
          ".env. .",
          "\uff0eenv",
          ".en\u200dv",
          ".\u24d4nv",
          "ENV~1.LOC",
          "ENVLOC~1.PRO"
        ],
        ...["SSH~1/x", "ID_ED2~1", "GIT-CR~1", "\u212dert.\u212aey", "\u0131d_r\u017fa", "certi~1.pem"]
      ]
    ) {
      assert.isTrue(isWithheld(path), path)
      assert.isTrue(isWithheld(`/home/me/${path}`), path)
      assert.isTrue(isWithheld(`/home/me/文/${path}/`), path)
    }
    for (
      const path of [
        ...[".env.example", ".env.sample", ".env.template", ".env.dist", ".environment.ts", "env", ".env/lib/x.py"],
        ...["key.ts", "pem", "a.keys", "monkey", "id_rsa.pub", "id_rsa_docs.md", "x.pem.md", "ssh/config"],
        ...[".sshrc", "config.json", ".docker/x", ".aws/config", "kube/config", "credentials", "", "/", "a~1b", "~"]
      ]
    ) assert.isFalse(isWithheld(path), path)
  })

  it("lets the last pattern that matches decide, and a leading slash hold from the top only", () => {
    const own = list([
      ...defaultWithheld,
      "!.npmrc",
      "!/fixtures/**",
      "secrets/",
      "/top",
      "\\!odd",
      "a[.]b",
      "{x,y}/z?"
    ])
    const rows: ReadonlyArray<readonly [string, boolean]> = [
      [".npmrc", false],
      [".NPMRC", true],
      ["fixtures/server.key", false],
      ["a/fixtures/server.key", true],
      ["fixtures/secrets/a", true],
      ["a/secrets", true],
      ["/top", true],
      ["a/top", false],
      ["!ODD", true],
      ["odd", false],
      ["q/A.B", true],
      ["y/zz", true],
      ["Y/Zz/c", false]
    ]
    for (const [path, expected] of rows) assert.strictEqual(own(path), expected, path)
    assert.isFalse(list([])(".git"))
    assert.isFalse(list(["!.git"])(".git"))
    assert.isTrue(list(["**"])("a"))
  })

  it("names the first pattern that is none", () => {
    for (const bad of ["", "!", "{a", "a/{b", "{a,b}".repeat(9)]) {
      assert.deepStrictEqual(compile([".git", bad, "{"]), Either.left(bad))
    }
  })

  it("takes for one name what a file system that folds takes for one, and no others", () => {
    const one: ReadonlyArray<readonly [string, string]> = [
      ["STRASSE", "stra\u00dfe"],
      ["STRA\u1e9eE", "strasse"],
      ["\u03a3\u03c3\u03c2", "\u03c2\u03c3\u03a3"],
      ["\u00e9", "e\u0301"],
      ["\u212a", "k"],
      ["\u0131", "I"],
      ["\ufb01le", "FILE"],
      ["a\u{e0001}b", "AB"],
      ["a. . .", "A"],
      ["\u1fb3", "\u1fbc"]
    ]
    for (const [left, right] of one) assert.strictEqual(foldName(left), foldName(right), `${left} ${right}`)
    const two: ReadonlyArray<readonly [string, string]> = [["a", "b"], ["a.b", "ab"], [".a", "a"], ["e", "\u00e9"]]
    for (const [left, right] of two) assert.notStrictEqual(foldName(left), foldName(right), `${left} ${right}`)
  })

  const names = [
    ...[".git/config", ".portcullis/rules.json"].map((path) => [isProtected, path] as const),
    ...[".env", ".env.local", "id_rsa", "server.key", ".ssh/config", ".docker/config.json", ".netrc", "stra\u00dfe.pem"]
      .map((path) => [isWithheld, path] as const)
  ]
  const variants: ReadonlyArray<(text: string) => string> = [
    (text) => text.toUpperCase(),
    (text) => text.toLowerCase(),
    (text) => text.normalize("NFD"),
    (text) => text.normalize("NFC"),
    (text) => text.normalize("NFKD"),
    (text) => text.replace("i", "\u0131"),
    (text) => text.replace("s", "\u017f"),
    (text) => text.replace("K", "\u212a")
  ]
  const ignorable = fc.constantFrom(
    "\u00ad",
    "\u034f",
    "\u061c",
    "\u115f",
    "\u180e",
    "\u200b",
    "\u2060",
    "\ufe00",
    "\ufeff"
  )
  const part = fc.record({
    flips: fc.array(fc.boolean(), { minLength: 20, maxLength: 20 }),
    variants: fc.array(fc.constantFrom(...variants), { maxLength: 4 }),
    ignored: fc.option(fc.tuple(fc.nat(20), ignorable)),
    tail: fc.constantFrom("", ".", " ", ". .", ":stream", "::$DATA", ".:x")
  })
  it.prop(
    "P04: catches any case, composition, ignorable or trailing variant of a name on a list",
    { name: fc.constantFrom(...names), parts: fc.array(part, { minLength: 2, maxLength: 2 }) },
    ({ name: [listed, path], parts }) => {
      const spelled = path.split("/").map((segment, index) => {
        const { flips, ignored, tail, variants } = parts[index % 2] ??
          { flips: [], ignored: null, tail: "", variants: [] }
        const flipped = Array.from(segment, (character, at) => flips[at] === true ? character.toUpperCase() : character)
        if (ignored !== null) flipped.splice(ignored[0], 0, ignored[1])
        return variants.reduce((text, variant) => variant(text), flipped.join("")) + tail
      }).join("/")
      assert.isTrue(listed(spelled), JSON.stringify(spelled))
      assert.isTrue(listed(`/a/b c/${spelled}`), JSON.stringify(spelled))
    },
    { fastCheck: { numRuns: count({ quick: 1000, soak: 30_000 }) } }
  )

  const glyph = fc.constantFrom(...".envkeysh*?/!{},[]\\~1:Aé\u00df ".split(""))
  it.prop(
    "answers from what any match must hold as it does from the patterns themselves",
    {
      patterns: fc.array(fc.string({ unit: glyph, minLength: 1, maxLength: 10 }), { minLength: 1, maxLength: 3 }),
      path: fc.string({ unit: glyph, maxLength: 14 })
    },
    ({ path, patterns }) => {
      const quick = compile(patterns)
      // A pattern that any path may match, and admits nothing, leaves nothing to be answered quickly.
      const slow = compile(["[", "!**", ...patterns])
      if (Either.isLeft(quick) || Either.isLeft(slow)) return
      assert.strictEqual(quick.right(path), slow.right(path))
    },
    { fastCheck: { numRuns: count({ quick: 3000, soak: 60_000 }) } }
  )
})
