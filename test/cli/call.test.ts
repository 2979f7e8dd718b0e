import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { ToolResult } from "../../src/contract/ToolResult.ts"
import { hasTerminals, type Options, place, program } from "../support/cli.ts"

const cli = program("layers/cli/main.ts")

const decode = Schema.decodeUnknownSync(Schema.parseJson(ToolResult))

/** One call in a place; its exit code agrees with its result. */
const call = (
  at: Effect.Effect.Success<typeof place>,
  args: ReadonlyArray<string>,
  options: Options = {}
) =>
  Effect.map(
    cli.run(["call", ...args, "--json"], { cwd: at.workspace, ...options, env: { ...at.env, ...options.env } }),
    ({ code, stderr, stdout }) => {
      assert.strictEqual(stderr, "")
      const result = decode(stdout)
      assert.strictEqual(code, result.isError ? 1 : 0)
      return result
    }
  )

const writeX = ["write", "{\"path\":\"a\",\"content\":\"x\"}"]

describe("portcullis call", { timeout: 60_000 }, () => {
  it.scopedLive("refuses a write in a read-only sandbox, whatever kind is claimed, and in a plan turn", () =>
    Effect.gen(function*() {
      const at = yield* place
      for (const extra of [[], ["--claim-kind", "tool_call"]]) {
        const result = yield* call(at, [...writeX, "--sandbox", "read-only", "--answer", "allow", ...extra])
        assert.strictEqual(result.code, "sandbox_read_only")
        assert.strictEqual(result.toolKind, "file_change")
        assert.isFalse(result.executed)
      }
      assert.strictEqual((yield* call(at, [...writeX, "--plan", "--answer", "allow"])).code, "plan_mode_blocked")
      assert.deepStrictEqual(readdirSync(at.workspace), [])
    }))

  it.scopedLive("names near tools for an unknown one", () =>
    Effect.gen(function*() {
      const result = yield* call(yield* place, ["raed", "{}"])
      assert.strictEqual(result.code, "tool_unknown")
      assert.deepNestedInclude(result.output, { "details.near": ["read"] })
    }))

  it.scopedLive("runs nothing but questions under the approval policy never", () =>
    Effect.gen(function*() {
      const at = yield* place
      const never = ["--approval", "never"]
      const bash = yield* call(at, [
        "bash",
        "{\"command\":\"touch x\"}",
        ...never,
        "--sandbox",
        "danger-full-access",
        "--answer=allow"
      ])
      assert.strictEqual(bash.code, "approval_policy_blocked")
      assert.isFalse(existsSync(join(at.workspace, "x")))
      const asked = yield* call(at, ["user_input", "{\"prompt\":\"?\"}", ...never, "--reply", "yes"])
      assert.isFalse(asked.isError)
      assert.deepNestedInclude(asked.output, { "answers[0].values": ["yes"] })
    }))

  it.scopedLive("asks nobody when nobody is there, and says so at once", () =>
    Effect.gen(function*() {
      const at = yield* place
      const result = yield* call(at, writeX)
      assert.strictEqual(result.code, "approval_unavailable")
      assert.isBelow(result.finishedAt - result.startedAt, 2000)
      const question = yield* call(at, ["user_input", "{\"prompt\":\"?\"}"])
      assert.strictEqual(question.code, "user_input_unavailable")
      assert.isFalse(existsSync(join(at.workspace, "a")))
    }))

  it.scopedLive("replays the same call without a question, and runs it once", () =>
    Effect.gen(function*() {
      const at = yield* place
      const ids = ["--call-id", "c1", "--turn", "t1"]
      const first = yield* call(at, [...writeX, ...ids, "--answer", "allow"])
      assert.deepInclude(first, { isError: false, executed: true, replayed: false })
      assert.deepInclude(first.approval, { decision: "allow", principal: "--answer" })
      const file = join(at.workspace, "a")
      assert.strictEqual(readFileSync(file, "utf8"), "x")
      writeFileSync(file, "changed since")
      const { ino, mtimeMs } = statSync(file)

      const second = yield* call(at, [...writeX, ...ids, "--answer", "deny"])
      assert.deepStrictEqual(second, { ...first, replayed: true })
      assert.strictEqual(readFileSync(file, "utf8"), "changed since")
      assert.deepInclude(statSync(file), { ino, mtimeMs })

      const other = yield* call(at, ["write", "{\"path\":\"a\",\"content\":\"y\"}", ...ids, "--answer", "allow"])
      assert.strictEqual(other.code, "idempotency_conflict")
      assert.strictEqual(readFileSync(file, "utf8"), "changed since")
    }))

  it.scopedLive("lets a read in one process license an edit in the next", () =>
    Effect.gen(function*() {
      const at = yield* place
      const file = join(at.workspace, "a.txt")
      writeFileSync(file, "one two\n")
      const edit = ["edit", "{\"path\":\"a.txt\",\"oldText\":\"two\",\"newText\":\"three\"}", "--answer", "allow"]
      assert.strictEqual((yield* call(at, edit)).code, "read_before_edit_required")
      assert.strictEqual(readFileSync(file, "utf8"), "one two\n")
      assert.isFalse((yield* call(at, ["read", "{\"path\":\"a.txt\"}"])).isError)
      assert.strictEqual((yield* call(at, [...edit, "--thread", "another"])).code, "read_before_edit_required")
      assert.isFalse((yield* call(at, edit)).isError)
      assert.strictEqual(readFileSync(file, "utf8"), "one three\n")
    }))

  it.scopedLive("answers arguments that are no plain JSON object with a code", () =>
    Effect.gen(function*() {
      const at = yield* place
      const deep = `{"path":${"[".repeat(100_000)}${"]".repeat(100_000)}}`
      const cases: ReadonlyArray<readonly [string, string]> = [
        ["nonsense", "arguments_invalid"],
        ["[1]", "arguments_invalid"],
        ["{\"path\":\"a\",\"content\":\"hel", "arguments_truncated"],
        ["{\"__proto__\":{\"path\":\"a\"},\"path\":\"a\",\"content\":\"x\"}", "arguments_invalid"],
        ["{\"path\":\"a\",\"content\":\"\\ud99c\"}", "arguments_invalid"],
        [deep, "arguments_too_large"],
        [`{"path":"a","content":"${"x".repeat(8 * 1024 * 1024)}"}`, "arguments_too_large"]
      ]
      for (const [input, code] of cases) {
        const result = yield* call(at, ["write", "-", "--answer", "allow"], { input })
        assert.strictEqual(result.code, code, input.slice(0, 60))
        assert.isFalse(result.executed)
      }
      assert.deepStrictEqual(readdirSync(at.workspace), [])
    }))

  it.scopedLive("takes arguments from stdin as they are, and nothing that is not UTF-8", () =>
    Effect.gen(function*() {
      const at = yield* place
      const input = JSON.stringify({ path: "b", content: "naïve 🏷\n" })
      assert.isFalse((yield* call(at, ["write", "-", "--answer", "allow"], { input })).isError)
      assert.strictEqual(readFileSync(join(at.workspace, "b"), "utf8"), "naïve 🏷\n")
      const bytes = Buffer.concat([
        Buffer.from("{\"path\":\"c\",\"content\":\""),
        Buffer.from([0xff]),
        Buffer.from("\"}")
      ])
      const ended = yield* cli.run(["call", "write", "-", "--answer", "allow"], {
        cwd: at.workspace,
        env: at.env,
        input: bytes
      })
      assert.deepStrictEqual(ended, { code: 2, signal: null, stdout: "", stderr: "portcullis: stdin is not UTF-8\n" })
      assert.isFalse(existsSync(join(at.workspace, "c")))
    }))

  it.scopedLive("runs one of two processes that make the same call", () =>
    Effect.gen(function*() {
      const at = yield* place
      const bash = ["bash", "{\"command\":\"echo ran >> log; sleep 0.3\"}", "--call-id", "c", "--turn", "t"]
      const danger = ["--sandbox", "danger-full-access", "--answer", "allow"]
      const results = yield* Effect.all([call(at, [...bash, ...danger]), call(at, [...bash, ...danger])], {
        concurrency: 2
      })
      assert.strictEqual(readFileSync(join(at.workspace, "log"), "utf8"), "ran\n")
      assert.isTrue(results.some((result) => !result.isError))
      for (const result of results) {
        if (result.isError) assert.strictEqual(result.code, "tool_invocation_in_progress")
      }
    }))

  it.scopedLive.skipIf(!hasTerminals)(
    "asks the person at the terminal, once, and takes silence for a no",
    () =>
      Effect.gen(function*() {
        const at = yield* place
        const ask = (input: string) =>
          cli.run(["call", ...writeX], { cwd: at.workspace, env: at.env, terminal: true, input })
        const no = yield* ask("")
        assert.match(no.stdout, /write \(file_change\) in .*\[y\/N\] .*approval_denied, .*denied by terminal/s)
        assert.deepStrictEqual(readdirSync(at.workspace), [])
        const yes = yield* ask("y\n")
        assert.match(yes.stdout, /write: ok, \d+ ms, allowed by terminal/)
        assert.strictEqual(readFileSync(join(at.workspace, "a"), "utf8"), "x")
      })
  )

  it.scopedLive("prints for people what would act on a terminal in escapes", () =>
    Effect.gen(function*() {
      const at = yield* place
      writeFileSync(join(at.workspace, "a"), "one\u001b[2J\u202etwo\n")
      const { stdout } = yield* cli.run(["call", "read", "{\"path\":\"a\"}"], { cwd: at.workspace, env: at.env })
      assert.match(stdout, /^read: ok, \d+ ms\none\\u\{1b\}\[2J\\u\{202e\}two\n$/)
    }))
})
