import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as fc from "effect/FastCheck"
import { execFileSync } from "node:child_process"
import { lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { JsonObject } from "../../src/contract/Json.ts"
import type { ToolCall } from "../../src/contract/ToolCall.ts"
import type { Edit } from "../../src/file/EditMatcher.ts"
import * as FileHistory from "../../src/file/FileHistory.ts"
import * as TextFile from "../../src/file/TextFile.ts"
import * as ToolProvider from "../../src/tool/ToolProvider.ts"
import { edit } from "../../src/tools/edit.ts"
import { read } from "../../src/tools/read.ts"
import { write } from "../../src/tools/write.ts"
import { call, platform, services, turnIn, world } from "../fixtures/files.ts"
import vectors from "../fixtures/vectors/edit.json" with { type: "json" }
import { count } from "../support/counts.ts"
import { executeIn, Test, workspace } from "../support/plane.ts"

/** Bytes of a file: a text in UTF-8, or bytes as they are. */
type Bytes = string | ReadonlyArray<number>
const bytesOf = (bytes: Bytes): Uint8Array =>
  typeof bytes === "string" ? new TextEncoder().encode(bytes) : Uint8Array.from(bytes)

const utf16 = (text: string, order: "utf-16le" | "utf-16be"): ReadonlyArray<number> => [
  ...Either.getOrThrow(TextFile.encode(text, { charset: order, bom: true }))
]

const plain = (value: unknown): Record<string, unknown> => Object(value)

/** Puts a file, reads it, edits it: what the tool said, and the bytes that are there then. */
const edited = Effect.fnUntraced(function*(file: Bytes, edits: ReadonlyArray<Edit>) {
  const { turn, workspace } = yield* world
  const path = join(workspace, "f")
  writeFileSync(path, bytesOf(file))
  yield* Effect.ignore(call(read, turn, { path: "f" }))
  const args: JsonObject = { path: "f", edits: edits.map((each) => ({ ...each })) }
  const result = yield* Effect.either(call(edit, turn, args))
  return {
    workspace,
    code: Either.isLeft(result) ? plain(result.left)["code"] : undefined,
    error: Either.isLeft(result) ? plain(result.left) : {},
    output: Either.isRight(result) ? plain(result.right.output) : {},
    content: Either.isRight(result) ? result.right.content : [],
    disk: [...readFileSync(path)]
  }
})

interface Case {
  readonly file: Bytes
  readonly edits: ReadonlyArray<Edit>
  /** What is on disk then. */
  readonly disk?: Bytes
  /** How it is refused; the disk stays as it is. */
  readonly code?: string
}
const one = (file: Bytes, oldText: string, newText: string, disk: Bytes): Case => ({
  file,
  edits: [{ oldText, newText }],
  disk
})
const refused = (file: Bytes, code: string, ...edits: ReadonlyArray<Edit>): Case => ({ file, edits, code })

const gbk = [0x2f, 0x2f, 0x20, 0xc4, 0xe3, 0xba, 0xc3, 0x0a, 0x78, 0x3d, 0x31, 0x0a]
const dollars = ["$&", "$$", "$`", "$'", "$1", "$<n>", "cost $$5 & $&"]

const cases: Readonly<Record<string, ReadonlyArray<Case>>> = {
  "E01: a request with LF meets a file with CRLF, and the other way round": [
    one("a = 1\r\nb = 2\r\nc = 3\r\n", "a = 1\nb = 2", "a = 1\nb = 20", "a = 1\r\nb = 20\r\nc = 3\r\n"),
    one("a\nb\n", "a\r\nb", "a\r\nc", "a\nc\n"),
    one("“a”\r\nb  \r\nc\r\n", "\"a\"\nb\nc", "x\ny\nc", "x\r\ny\r\nc\r\n"),
    one(utf16("a\r\nb\r\n", "utf-16le"), "a\nb", "a\nB", utf16("a\r\nB\r\n", "utf-16le")),
    one(utf16("a\r\nb\r\n", "utf-16be"), "b", "b\nc", utf16("a\r\nb\r\nc\r\n", "utf-16be"))
  ],
  "E02: an inserted line takes the ending of the line it follows": [
    one("x\r\ny\r\n", "y", "y\nz\nw", "x\r\ny\r\nz\r\nw\r\n"),
    one("x\r\ny\r\nz\r\nw\r\n", "y\nz\nw", "y", "x\r\ny\r\n"),
    one("x\ny\r\n", "x", "x\nz", "x\nz\ny\r\n")
  ],
  "E03: mixed endings stay as they are, and a lone CR is data": [
    one("one\r\ntwo\nthree\r\nfour\n", "two", "TWO", "one\r\nTWO\nthree\r\nfour\n"),
    one("p\rq\nend\n", "end", "END", "p\rq\nEND\n"),
    one("a\r\r\nb\n", "a\r\r\nb", "a\r\r\nc", "a\r\r\nc\n"),
    refused("a\r\r\nb\n", "edit_not_found", { oldText: "a\r\nb", newText: "c" }),
    one("p\rq\r\n", "p\rq", "p\rQ", "p\rQ\r\n")
  ],
  "E04: a byte order mark stays, once": [
    one("\ufeffsécurisé\r\n", "sécurisé", "ok", "\ufeffok\r\n"),
    one("\ufeffsécurisé\r\n", "\ufeffsécu", "\ufefftécu", "\ufefftécurisé\r\n"),
    one("no mark\n", "\ufeffno", "\ufeffa", "a mark\n")
  ],
  "E05: dollar patterns are written as they are": dollars.flatMap((newText) => [
    one("log(1);\nend\n", "log(1);", newText, `${newText}\nend\n`),
    {
      file: "log(1);\nlog(1);\n",
      edits: [{ oldText: "log(1);", newText, replaceAll: true }],
      disk: `${newText}\n${newText}\n`
    }
  ]),
  "E07: a change of quotes alone is a change": [
    one("'%s'\n", "'%s'", "\u2018%s\u2019", [0xe2, 0x80, 0x98, 0x25, 0x73, 0xe2, 0x80, 0x99, 0x0a]),
    one("‘%s’\n", "'%s'", "'%s'", "'%s'\n"),
    one("a – b\n", "a – b", "a - b", "a - b\n")
  ],
  "E08: a normalised match changes its own span and nothing else": [
    one(
      "keep two spaces  \nx\u00b2 \ufb01 \u2013 dash\nname = 'a'   \ntail\t\n",
      "name = 'a'\ntail",
      "name = 'b'\ntail",
      "keep two spaces  \nx\u00b2 \ufb01 \u2013 dash\nname = 'b'\ntail\t\n"
    ),
    one("\u00a0“q” \r\n½ “x”\t\r\n", "½ \"x\"", "y", "\u00a0“q” \r\ny\t\r\n"),
    refused("ﬁne “x”\n", "edit_not_found", { oldText: "ine \"x\"", newText: "y" })
  ],
  "E09: blanks inside a line are not folded": [
    refused("alpha   beta\nmid\nalpha\tbeta\n", "edit_not_found", { oldText: "alpha beta", newText: "X" }),
    refused("alpha   beta\nmid\nalpha\tbeta\n", "edit_not_found", {
      oldText: "alpha beta",
      newText: "X",
      replaceAll: true
    }),
    refused("a – b\nm\na — b\n", "edit_ambiguous", { oldText: "a - b", newText: "X" })
  ],
  "E11: a line that is added to another comes after it, and nowhere where that is absent": [
    one(
      "def a():\n  1\n\ndef b():\n  2\n",
      "def a():",
      "def a():\n  log()",
      "def a():\n  log()\n  1\n\ndef b():\n  2\n"
    ),
    refused("def a():\n  1\n\ndef b():\n  2\n", "edit_not_found", {
      oldText: "def zz():",
      newText: "def zz():\n  log()"
    })
  ],
  "E27: edits that touch meet at a pair of surrogates, a CRLF, a byte order mark and the end, and take none of those": [
    {
      file: "\ufeffa😀b\r\nc",
      edits: [
        { oldText: "a", newText: "1" },
        { oldText: "😀", newText: "𝟚" },
        { oldText: "b", newText: "3" },
        { oldText: "\nc", newText: "\n4\n5" }
      ],
      disk: "\ufeff1𝟚3\r\n4\r\n5"
    },
    { file: "\ufeffa", edits: [{ oldText: "\ufeffa", newText: "" }], disk: "\ufeff" }
  ],
  "E28: a Chinese text keeps its wide punctuation where an edit was written with narrow one": [
    one("甲，乙　\r\n「丙」（丁）：１\r\n戊！\r\n", "「丙」(丁):1", "己", "甲，乙　\r\n己\r\n戊！\r\n"),
    {
      file: "甲，乙\n甲,乙\nﾃﾞ\n",
      edits: [{ oldText: "デ\n", newText: "" }, { oldText: "甲,乙", newText: "" }],
      disk: "甲，乙\n\n"
    }
  ],
  "E13: what is not text cannot be read and so not be edited, and what is UTF-16 stays UTF-16": [
    refused(gbk, "file_not_text", { oldText: "x=1", newText: "x=2" }),
    refused([0x63, 0x61, 0x66, 0xe9, 0x0a], "file_not_text", { oldText: "caf", newText: "x" }),
    refused([0x61, 0x80], "file_not_text", { oldText: "a", newText: "x" }),
    refused([0xc0, 0xaf, 0x61], "file_not_text", { oldText: "a", newText: "x" }),
    one(utf16("x=1 – ok\n", "utf-16le"), "x=1 - ok", "x=2", utf16("x=2\n", "utf-16le"))
  ],
  "E15: a newline at the end comes and goes with the edit only": [
    one("a\nb", "b", "c", "a\nc"),
    one("a\n", "a", "b\n", "b\n\n"),
    one("a\n", "a\n", "b", "b"),
    one("a\r\nb", "b", "b\nc", "a\r\nb\r\nc")
  ],
  "E16: indentation is not tolerated": [
    refused("\tif x {\n\t\treturn 1\n\t}\n", "edit_not_found", {
      oldText: "    if x {\n        return 1\n    }",
      newText: "    if x {\n        return 2\n    }"
    }),
    refused("a:\n  - b\n", "edit_not_found", { oldText: "a:\n    - b", newText: "a: []" })
  ],
  "E17: several edits meet the text as it was, all of them or none": [
    refused("abcdef\n", "edit_overlap", { oldText: "abcd", newText: "1" }, { oldText: "cdef", newText: "2" }),
    { file: "abcdef\n", edits: [{ oldText: "a", newText: "b" }, { oldText: "b", newText: "c" }], disk: "bccdef\n" },
    { file: "abcdef\n", edits: [{ oldText: "b", newText: "c" }, { oldText: "a", newText: "b" }], disk: "bccdef\n" },
    refused("“a”\nb\n", "edit_overlap", { oldText: "\"a\"", newText: "1" }, { oldText: "a", newText: "2" }),
    refused("abc\n", "edit_not_found", { oldText: "a", newText: "1" }, { oldText: "zz", newText: "2" })
  ],
  "E18: an old text that is empty is invalid": [
    refused("a\n", "edit_invalid", { oldText: "", newText: "x" }),
    refused("", "edit_invalid", { oldText: "", newText: "x" }),
    refused("a\n", "edit_invalid", { oldText: "\ufeff", newText: "x", replaceAll: true })
  ]
}

describe("edit, on the bytes of a disk", () => {
  for (const [name, each] of Object.entries(cases)) {
    it.scopedLive(name, () =>
      Effect.gen(function*() {
        for (const { code, disk, edits, file } of each) {
          const result = yield* edited(file, edits)
          assert.strictEqual(result.code, code, JSON.stringify(edits))
          assert.deepStrictEqual(result.disk, [...bytesOf(disk ?? file)], JSON.stringify([file, edits]))
        }
      }).pipe(Effect.provide(services)))
  }

  it.scopedLive("every row of the table", () =>
    Effect.gen(function*() {
      for (const row of vectors.rows) {
        const result = yield* edited(row.file, row.edits)
        assert.strictEqual(result.code, row.code, row.case)
        assert.deepStrictEqual(result.disk, [...bytesOf(row.expect ?? row.file)], row.case)
        if (row.strategy !== undefined) assert.strictEqual(result.output["strategy"], row.strategy, row.case)
        if (row.details !== undefined) assert.deepInclude(result.error["details"], row.details, row.case)
      }
    }).pipe(Effect.provide(services)))

  it.scopedLive("gives the revision that a read of the edited file gives", () =>
    Effect.gen(function*() {
      const { turn, workspace } = yield* world
      writeFileSync(join(workspace, "f"), "a\r\nb\r\n")
      yield* call(read, turn, { path: "f" })
      const changed = yield* call(edit, turn, { path: "f", oldText: "a\nb", newText: "a\nc" })
      const again = yield* call(read, turn, { path: "f" })
      assert.strictEqual(plain(changed.output)["revision"], plain(again.output)["revision"])
    }).pipe(Effect.provide(services)))

  it.scopedLive("E12: an edit composed before another one is refused, and the file keeps the first", () =>
    Effect.gen(function*() {
      const { turn, workspace } = yield* world
      const path = join(workspace, "f")
      writeFileSync(path, "head\nblock B\ntail\n")
      yield* call(read, turn, { path: "f" })
      yield* call(edit, turn, { path: "f", oldText: "block B", newText: "block C" })
      const second = yield* Effect.flip(call(edit, turn, { path: "f", oldText: "block B", newText: "block D" }))
      assert.strictEqual(plain(second)["code"], "edit_not_found")
      assert.strictEqual(readFileSync(path, "utf8"), "head\nblock C\ntail\n")
    }).pipe(Effect.provide(services)))

  it.scopedLive("E12: the refusal names the thread's own change that replaced the text, and no other", () =>
    Effect.gen(function*() {
      const { turn, workspace } = yield* world
      const path = join(workspace, "f")
      writeFileSync(path, "head\r\nblock B\r\ntail\r\n")
      const refusal = (oldText: string, in_ = turn) =>
        Effect.map(Effect.flip(call(edit, in_, { path: "f", oldText, newText: "x" })), (error) => plain(error))
      const other = turnIn(workspace, { thread: "other" })
      yield* call(read, turn, { path: "f" })
      yield* call(edit, turn, { path: "f", oldText: "block B\ntail", newText: "block C" })
      yield* call(edit, turn, { path: "f", oldText: "head", newText: "HEAD" })
      yield* call(read, other, { path: "f" })
      const said = yield* refusal("block B\ntail")
      assert.strictEqual(said["code"], "edit_not_found")
      assert.match(String(said["message"]), / It was there until your own call \S+ \(edit\) replaced it\.$/)
      assert.notInclude(String((yield* refusal("never there"))["message"]), "your own call")
      assert.notInclude(String((yield* refusal("block B\ntail", other))["message"]), "your own call")
    }).pipe(Effect.provide(FileHistory.layerMemory()), Effect.provide(services)))

  const refusedPaths = {
    "P12: an edit through a loop of links, or of a file named as a folder, touches nothing": [
      "loop",
      "f/",
      "f/.",
      "loop/g"
    ],
    "P13: an edit through a link to what is protected or withheld touches neither that nor the link": [
      "to-config",
      "folder/config",
      "to-env"
    ]
  }
  for (const [name, paths] of Object.entries(refusedPaths)) {
    it.scopedLive(name, () =>
      Effect.gen(function*() {
        const { turn, workspace } = yield* world
        const at = (name: string) => join(workspace, name)
        mkdirSync(at(".git"))
        for (const name of ["f", "g", ".git/config", ".env"]) writeFileSync(at(name), "one\n")
        symlinkSync("loop", at("loop"))
        symlinkSync(".git/config", at("to-config"))
        symlinkSync(".git", at("folder"))
        symlinkSync(".env", at("to-env"))
        for (const path of paths) {
          yield* Effect.ignore(call(read, turn, { path }))
          const error = yield* Effect.flip(call(edit, turn, { path, oldText: "one", newText: "two" }))
          assert.match(String(plain(error)["code"]), /^[a-z_]+$/, path)
        }
        for (const name of ["f", "g", ".git/config", ".env"]) {
          assert.strictEqual(readFileSync(at(name), "utf8"), "one\n")
        }
        for (const name of ["loop", "to-config", "folder", "to-env"]) {
          assert.isTrue(lstatSync(at(name)).isSymbolicLink())
        }
      }).pipe(Effect.provide(services)))
  }

  it.scopedLive("never quotes a file in a refusal", () =>
    Effect.gen(function*() {
      const file = "\tsecret one {\n\t\treturn secret two\n\t}\nsecret – x\nm\nsecret — x\n"
      for (
        const edits of [
          [{ oldText: "  secret one {\n  return", newText: "y" }],
          [{ oldText: "    secret one {\n        return secret two\n    }", newText: "y" }],
          [{ oldText: "secret - x", newText: "y" }],
          [{ oldText: "secret one", newText: "y" }, { oldText: "one {", newText: "z" }],
          [{ oldText: "secret one", newText: "secret one" }]
        ]
      ) {
        const { code, error } = yield* edited(file, edits)
        assert.match(String(code), /^edit_/)
        assert.notInclude(JSON.stringify([error, error["message"]]), "secret")
      }
    }).pipe(Effect.provide(services)))

  it.scopedLive("tells the model what matched and where the first change is, and keeps the patch for programs", () =>
    Effect.gen(function*() {
      const { content, output, workspace } = yield* edited("\ufeffa\r\n“b”\r\n", [{
        oldText: "a\n\"b\"",
        newText: "a\nc"
      }])
      assert.deepStrictEqual(content, [{
        type: "text",
        text: `Edited f: 1 replaced (normalized match), first changed line 2, revision ${
          String(output["revision"])
        }.\n@@ -1,2 +1,2 @@\n a\n-“b”\n+c`
      }])
      assert.strictEqual(output["bytesWritten"], 9)
      writeFileSync(join(workspace, "f"), "\ufeffa\r\n“b”\r\n")
      execFileSync("git", ["apply", "-"], { cwd: workspace, input: String(output["patch"]) })
      assert.strictEqual(readFileSync(join(workspace, "f"), "utf8"), "\ufeffa\r\nc\r\n")
      const wide = yield* edited(utf16("a\n", "utf-16le"), [{ oldText: "a", newText: "b" }])
      assert.isNull(wide.output["patch"])
      assert.strictEqual(wide.output["diff"], "@@ -1,1 +1,1 @@\n-a\n+b")
    }).pipe(Effect.provide(services)))

  for (const toolName of ["edit", "write"]) {
    it.scopedLive(`tells how much of a cut call of ${toolName} arrived, and to go on in small steps`, () =>
      Effect.gen(function*() {
        const { root } = yield* workspace
        const raw = `{"path":"f","edits":[{"oldText":"a","newText":"${"x".repeat(500)}`
        const sent: ReadonlyArray<Partial<ToolCall>> = [
          { arguments: raw },
          { arguments: { __raw: raw } },
          { arguments: { __raw: raw, toolName, callId: "c" } },
          { arguments: `${raw}"}]}`, truncated: true }
        ]
        for (const [index, { arguments: args, truncated }] of sent.entries()) {
          const call = { callId: `c${index}`, toolName, arguments: args, ...(truncated === true ? { truncated } : {}) }
          const result = yield* executeIn({ workspace: root, sandboxMode: "danger-full-access" }, call)
          const output = plain(result.output)
          const received = truncated === true ? raw.length + 4 : raw.length
          assert.strictEqual(output["code"], "arguments_truncated")
          assert.include(String(output["error"]), `cut off after ${received} characters`)
          assert.include(
            String(output["error"]),
            "write a small skeleton first, then fill it in with several small edits"
          )
          assert.deepInclude(output["details"], { received })
        }
        assert.deepStrictEqual(readdirSync(root), [])
      }).pipe(
        Effect.provide([
          Test.layer([ToolProvider.make({ id: "files", kind: "built-in", tools: [edit, write] })]),
          platform
        ])
      ))
  }

  it("gives back the bytes of every file that is not refused", () => {
    const texts = fc.fullUnicodeString({ maxLength: 30 }).chain((text) =>
      fc.constantFrom<TextFile.Encoding>(
        { charset: "utf-8", bom: false },
        { charset: "utf-8", bom: true },
        { charset: "utf-16le", bom: true },
        { charset: "utf-16be", bom: true }
      ).map((encoding) => [...Either.getOrThrow(TextFile.encode(text, encoding))])
    )
    let taken = 0
    fc.assert(
      fc.property(fc.oneof(fc.array(fc.nat(255), { maxLength: 20 }), texts), (bytes) => {
        const decoded = TextFile.decode(Uint8Array.from(bytes))
        if (Either.isLeft(decoded)) return
        taken++
        const again = Either.getOrThrow(TextFile.encode(decoded.right.text, decoded.right.encoding))
        assert.deepStrictEqual([...again], bytes)
      }),
      { numRuns: count({ quick: 1000, soak: 20_000 }) }
    )
    assert.isAbove(taken, 300)
  })
})
