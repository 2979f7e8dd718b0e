import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as fc from "effect/FastCheck"
import * as Schema from "effect/Schema"
import * as Profile from "../../src/agent/Profile.ts"
import { count } from "../support/counts.ts"

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

const parse = (content: string | Uint8Array, file = "reviewer.md") =>
  Effect.either(Profile.parse(file, typeof content === "string" ? utf8(content) : content))

const parsed = (content: string | Uint8Array, file?: string) => Effect.map(parse(content, file), Either.getOrThrow)

/** `code:line` of each problem. */
const found = (content: string | Uint8Array, file?: string) =>
  Effect.map(
    parse(content, file),
    Either.match({
      onLeft: (problems) => problems.map(({ code, line }) => `${code}:${line}`),
      onRight: () => ["none"]
    })
  )

const header = (yaml: string, body = "Body."): string => `---\n${yaml}\n---\n${body}\n`
const headed = (yaml: string): string => header(`description: d\n${yaml}`)

const whole = header(
  `# who it is
name: reviewer
description: "Reviews: #1 in the house"
toolPolicy: inherit
allowedTools: [read, grep, computer_use]
blockedTools:
  - bash
  - 'write' # never
blockedMcpServers: []
blockedSkills: [
  "deploy", # on its own line
]`,
  "\nLook at it.\n\n--- not a fence\n"
)

const profile: Profile.Profile = {
  name: "reviewer",
  description: "Reviews: #1 in the house",
  toolPolicy: "inherit",
  allowedTools: ["read", "grep", "computer_use"],
  blockedTools: ["bash", "write"],
  blockedMcpServers: [],
  blockedSkills: ["deploy"],
  systemPrompt: "Look at it.\n\n--- not a fence"
}

describe("Profile", () => {
  it.effect("reads every key, and the body as the prompt", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* parsed(whole), profile)
    }))

  it.effect("reads a byte order mark, CRLF, and both at once as if they were not there", () =>
    Effect.gen(function*() {
      const crlf = whole.replaceAll("\n", "\r\n")
      for (const text of [`\ufeff${whole}`, crlf, `\ufeff${crlf}`]) {
        assert.deepStrictEqual(yield* parsed(text), profile)
      }
    }))

  it.effect("has room for every list full, one name a line, each with a comment", () =>
    Effect.gen(function*() {
      const full = Array.from({ length: 32 }, (_, n) => `  - "${"n".repeat(60)}${n}" # why`).join("\n")
      const lists = ["allowedTools", "blockedTools", "blockedMcpServers", "blockedSkills"]
      const read = yield* parsed(headed(lists.map((key) => `${key}:\n${full}`).join("\n")))
      assert.deepStrictEqual(
        [read.allowedTools, read.blockedTools, read.blockedMcpServers, read.blockedSkills].map((names) =>
          names?.length
        ),
        [32, 32, 32, 32]
      )
    }))

  it.effect("takes the name from the file, and reads only, when the file does not say otherwise", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* parsed("---\ndescription: d\n---", ".portcullis/agents/my-agent.md"), {
        name: "my-agent",
        description: "d",
        toolPolicy: "readOnly"
      })
      assert.deepStrictEqual(yield* found("---\ndescription: d\n---", "My Agent.md"), ["value_invalid:1"])
    }))

  it.effect("follows YAML about # and takes every plain value as the text it is", () =>
    Effect.gen(function*() {
      const description = (value: string) =>
        Effect.map(parsed(header(`description: ${value}`)), (one) => one.description)
      assert.strictEqual(yield* description("issue#4 and # a comment"), "issue#4 and")
      assert.strictEqual(yield* description("'a # b'"), "a # b")
      assert.strictEqual(yield* description("no"), "no")
      assert.strictEqual(yield* description("|\n  two\n  lines"), "two\nlines\n")
      assert.strictEqual((yield* parsed(headed("name: 007"))).name, "007")
    }))

  const table: ReadonlyArray<readonly [title: string, content: string | Uint8Array, problems: ReadonlyArray<string>]> =
    [
      ["an empty file", "", ["front_matter_missing:1"]],
      ["no front matter", "# A prompt\n", ["front_matter_missing:1"]],
      ["a blank line before the front matter", `\n${whole}`, ["front_matter_missing:1"]],
      ["a missing closing fence", "---\ndescription: d\n--- \u00a0x\n", ["front_matter_unclosed:1"]],
      ["an empty front matter", "---\n---\n", ["key_missing:1"]],
      ["a list as front matter", header("- a"), ["yaml_invalid:2"]],
      ["a text as front matter", header("hello"), ["yaml_invalid:2"]],
      ["broken YAML", headed("name: \"x"), ["yaml_invalid:4"]],
      ["a tab as indentation", headed("blockedTools:\n\t- a"), ["yaml_invalid:4"]],
      ["an unclosed bracket", headed("blockedTools: [a,\nname: b"), ["yaml_refused:4"]],
      ["an unknown key", headed("color: red\nallowedTool: [a]"), ["unknown_key:3", "unknown_key:4"]],
      ["the prompt as a key", headed("systemPrompt: x"), ["unknown_key:3"]],
      ["a merge key", headed("<<: x"), ["unknown_key:3"]],
      ["the key __proto__", headed("__proto__: [a]\nconstructor: x"), ["unknown_key:3", "unknown_key:4"]],
      ["a key given twice", headed("name: a\nname: b"), ["duplicate_key:4"]],
      ["a list for a text", headed("\nname:\n  - a"), ["value_invalid:5"]],
      ["a list for the description", header("description: [d]"), ["value_invalid:2"]],
      ["a text for a list", headed("allowedTools: read, grep"), ["value_invalid:3"]],
      ["nothing for a list", headed("allowedTools:"), ["value_invalid:3"]],
      ["a map for a list", headed("allowedTools:\n  read: yes"), ["value_invalid:4"]],
      ["a list in a list", headed("allowedTools:\n  - read\n  -\n    - grep"), ["value_invalid:6"]],
      ["an empty description", header("description: ''"), ["value_invalid:2"]],
      ["a description of 501", header(`description: ${"d".repeat(501)}`), ["value_invalid:2"]],
      ["an unknown policy", headed("toolPolicy: full"), ["value_invalid:3"]],
      ["names that do not fit", headed("name: ../x"), ["value_invalid:3"]],
      ["an empty name in a list", headed("blockedTools:\n  - a\n  - ''"), ["value_invalid:5"]],
      ["33 names", headed(`blockedTools: [${Array.from({ length: 33 }, (_, n) => `t${n}`).join(", ")}]`), [
        "value_invalid:3"
      ]],
      ["a NUL", headed("name: a\0b"), ["control_character:3"]],
      ["an escape sequence in the body", header("description: d", "a\n\u001b[31m"), ["control_character:5"]],
      ["a lone CR", header("description: a\rb"), ["control_character:2"]],
      ["a control character spelled in quotes", header("description: \"a\\u001b[31m\""), ["control_character:2"]],
      ["half a surrogate pair in a list", headed("blockedTools:\n  - a\n  - \"\\ud800\""), ["control_character:5"]],
      ["Latin-1", Uint8Array.from([...utf8("---\ndescription: "), 0xe9, ...utf8("\n---\n")]), ["not_utf8:2"]],
      ["UTF-16", Uint8Array.from([0xff, 0xfe, 0x2d, 0x00]), ["not_utf8:1"]],
      ["64 KiB and 1", header("description: d", "x".repeat(65_536)), ["file_too_large:1"]],
      ["a directive", header("%TAG ! x"), ["yaml_refused:2"]],
      ["more front matter than there are keys for", headed("# x\n".repeat(2000)), ["yaml_refused:999"]]
    ]
  for (const [title, content, problems] of table) {
    it.effect(`diagnoses ${title} by line`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* found(content), problems)
      }))
  }

  const deep = 8000
  const refused: ReadonlyArray<readonly [title: string, yaml: string]> = [
    ["an alias", "name: *a"],
    ["an anchor", "name: &a x"],
    ["a tag", "name: !!binary aGk="],
    ["a tag without a name", "name: ! x"],
    ["a second document", "--- x"],
    ["the end of a document", "..."],
    ["a map in braces", "name: {a: b}"],
    ["a key marked with ?", "? name"],
    ["lists a billion laughs deep", "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]"],
    ["deep brackets", `blockedTools: ${"[".repeat(deep)}`],
    ["deep brackets behind closing ones", `blockedTools: ${"]".repeat(deep)}${"[".repeat(deep)}`],
    ["deep braces", `blockedTools: ${"{".repeat(deep)}`],
    ["deep dashes", `${"- ".repeat(deep)}`],
    ["deep keys", `${"? ".repeat(deep)}`],
    ["deep pairs", `${"a: ".repeat(deep / 2)}`],
    ["deep pairs in brackets", `blockedTools: [${"\"\":".repeat(deep / 2)}]`]
  ]
  for (const [title, yaml] of refused) {
    it.effect(`refuses ${title} before building anything of it`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* found(header(yaml)), ["yaml_refused:2"])
      }))
  }

  it.effect("names the byte, the key and the key that was meant, and shows nothing a terminal acts on", () =>
    Effect.gen(function*() {
      const problems = (content: string | Uint8Array, file?: string) =>
        Effect.map(parse(content, file), (result) => Either.getOrThrow(Either.flip(result)))
      const [latin] = yield* problems(Uint8Array.from([...utf8("---\n"), 0xe9]), "a\u001b.md")
      assert.deepStrictEqual(latin, {
        code: "not_utf8",
        file: "a\\u{1b}.md",
        line: 2,
        problem: "The byte at offset 4 is not UTF-8."
      })
      const [unknown, hidden] = yield* problems(headed("allowedTool: x\n\"k\u202ey\": x"))
      assert.strictEqual(unknown?.problem, "There is no key \"allowedTool\". Did you mean allowedTools?")
      assert.strictEqual(hidden?.problem, "There is no key \"k\\u{202e}y\".")
    }))

  it.effect("reports every problem of a file at once, in the order of its lines, at most 20", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* found(header("color: red\ntoolPolicy: full\nname: [x]\nname: y")), [
        "key_missing:1",
        "unknown_key:2",
        "value_invalid:3",
        "value_invalid:4",
        "duplicate_key:5"
      ])
      assert.lengthOf(yield* found(headed(Array.from({ length: 100 }, (_, n) => `k${n}: x`).join("\n"))), 20)
    }))

  const isProfile = Schema.is(Profile.Profile)
  const isProblems = Schema.is(Schema.NonEmptyArray(Profile.ProfileProblem))

  const total = Effect.fnUntraced(function*(file: string, bytes: Uint8Array) {
    const lines = bytes.filter((byte) => byte === 0x0a).length + 1
    const result = yield* Effect.either(Profile.parse(file, bytes))
    if (Either.isRight(result)) return assert.isTrue(isProfile(result.right))
    assert.isTrue(isProblems(result.left))
    for (const { line } of result.left) assert.isTrue(line >= 1 && line <= lines, `line ${line} of ${lines}`)
  })
  const runs = { fastCheck: { numRuns: count({ quick: 100, soak: 1000 }) } }

  it.effect.prop("gives a profile or problems for any bytes", [fc.string(), fc.uint8Array({ maxLength: 300 })], ([
    file,
    bytes
  ]) => total(file, bytes), runs)

  const piece = fc.constantFrom(
    ..."-?:,[]{}#&*!|>'\"%@`~<=\\ \n\t\r\0",
    ..."\n: |\n - |---\n|...\n|\r\n|name|description|toolPolicy|allowedTools|readOnly|: x|  |\\u0000|\ud83d\ude00|\ufeff"
      .split("|"),
    ": |\n",
    "''",
    "\"\""
  )
  it.effect.prop(
    "gives a profile or problems for any front matter",
    [fc.array(piece, { maxLength: 60 })],
    ([pieces]) => total("x.md", utf8(header(pieces.join("")))),
    runs
  )
})
