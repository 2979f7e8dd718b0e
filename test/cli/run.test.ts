import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { place, program, root } from "../support/cli.ts"
import { confines } from "../support/sandbox.ts"

const cli = program("layers/cli/main.ts")
const demo = program("scripts/demo/main.ts")

const script = (base: string, turns: ReadonlyArray<unknown>): string => {
  const file = join(base, "script.json")
  writeFileSync(file, JSON.stringify({ turns }))
  return `scripted:${file}`
}

const writeA = { toolName: "write", arguments: { path: "a", content: "x" } }

describe("portcullis run", { timeout: 60_000 }, () => {
  it.scopedLive("prints what the agent says and what became of its calls", () =>
    Effect.gen(function*() {
      const { base, env, workspace } = yield* place
      const model = script(base, [{ text: "I write.", calls: [writeA, { toolName: "raed" }] }, {
        text: "Done.\u001b[2J"
      }])
      const ended = yield* cli.run(["run", "Write a.", "--model", model, "--answer", "allow"], { cwd: workspace, env })
      assert.deepStrictEqual([ended.code, ended.stderr], [0, ""])
      assert.strictEqual(readFileSync(join(workspace, "a"), "utf8"), "x")
      assert.strictEqual(
        ended.stdout.replace(/\d+ ms/g, "N ms"),
        `I write.
> write {"path":"a","content":"x"}
> raed {}
  write: ok, N ms, allowed by --answer
  raed: tool_unknown, N ms, not executed
    tool_unknown: There is no tool named "raed". Did you mean read?
    {"toolName":"raed","near":["read"]}
Done.\\u{1b}[2J

done: 2 calls in 2 steps
`
      )
    }))

  it.scopedLive("prints one object a line, and the end", () =>
    Effect.gen(function*() {
      const { base, env, workspace } = yield* place
      const model = script(base, [{ calls: [writeA] }, { text: "Done." }])
      const { code, stdout } = yield* cli.run(["run", "--model", model, "--json"], { cwd: workspace, env })
      const events = stdout.trimEnd().split("\n").map((line) => JSON.parse(line))
      assert.strictEqual(code, 0)
      assert.deepStrictEqual(events.map(({ type }) => type), ["request", "part", "settled", "request", "part", "ended"])
      assert.strictEqual(events[2].result.code, "approval_unavailable")
      assert.deepInclude(events[5], { stopped: "done", steps: 2, calls: 1, text: "Done." })
    }))

  it.scopedLive("ends with 1 when the model fails", () =>
    Effect.gen(function*() {
      const { base, env, workspace } = yield* place
      const model = script(base, [{ text: "I", error: { code: "model_refused", reason: "no" } }])
      const { code, stderr } = yield* cli.run(["run", "--model", model], { cwd: workspace, env })
      assert.deepStrictEqual([code, stderr], [1, "portcullis: model_refused: no\n"])
    }))

  it.scopedLive("says what is missing for a model, before it opens anything", () =>
    Effect.gen(function*() {
      const { base, env, workspace } = yield* place
      const run = (args: ReadonlyArray<string>, extra: Readonly<Record<string, string>> = {}) =>
        Effect.map(
          cli.run(["run", ...args], { cwd: workspace, env: { ...env, ...extra } }),
          ({ code, stderr, stdout }) => {
            assert.deepStrictEqual([code, stdout], [2, ""])
            return stderr
          }
        )
      assert.match(yield* run(["Hello"]), /needs --model: scripted:FILE, openai:NAME or anthropic:NAME\n/)
      assert.match(yield* run(["--model", "openai:x"]), /run needs PROMPT\n/)
      assert.match(yield* run(["Hello", "--model", "openai:x"]), /OPENAI_API_KEY is not set\n/)
      assert.match(yield* run(["Hello", "--model", "anthropic:x"]), /ANTHROPIC_API_KEY is not set\n/)
      assert.match(yield* run(["Hello", "--model", "scripted:gone.json"]), /the script gone\.json: /)
      writeFileSync(join(base, "bad.json"), "{\"turns\":[{\"txt\":1}]}")
      assert.match(yield* run(["--model", `scripted:${join(base, "bad.json")}`]), /Not a script of a model/)
      // With the package this would be a request to the vendor.
      if (!existsSync(join(root, "node_modules/@effect/ai-openai"))) {
        const stderr = yield* run(["Hello", "--model", "openai:x"], { OPENAI_API_KEY: "sk-secret" })
        assert.notInclude(stderr, "sk-secret")
        assert.match(stderr, /npm install @effect\/ai-openai@\^0\.41\.0/)
      }
      assert.deepStrictEqual(readdirSync(join(base, "state")), [])
    }))

  it.scopedLive("lists the tools of a turn, and why the others are hidden", () =>
    Effect.gen(function*() {
      const { env, workspace } = yield* place
      const catalog = (...args: ReadonlyArray<string>) =>
        Effect.map(cli.run(["catalog", "--json", ...args], { cwd: workspace, env }), ({ stdout }) => JSON.parse(stdout))
      const names = ({ tools }: { readonly tools: ReadonlyArray<{ readonly name: string }> }) =>
        tools.map(({ name }) => name)
      const agent = yield* catalog("--explain")
      assert.match(agent.fingerprint, /^[0-9a-f]{16}$/)
      assert.includeMembers(names(agent), ["read", "write", "edit"])
      if (confines) assert.include(names(agent), "bash")
      else {
        assert.deepInclude(agent.hidden.find((one: { readonly toolName: string }) => one.toolName === "bash"), {
          filter: "sandbox"
        })
      }
      const plan = yield* catalog("--plan")
      assert.notInclude(names(plan), "write")
      assert.notProperty(plan, "hidden")
      assert.include(names(yield* catalog("--sandbox", "danger-full-access")), "bash")
    }))
})

describe("the demo", { timeout: 60_000 }, () => {
  const copies = () => readdirSync(tmpdir()).filter((name) => name.startsWith("portcullis-demo-"))

  it.scopedLive("repairs the repository through all gates and leaves nothing behind", () =>
    Effect.gen(function*() {
      const { env } = yield* place
      const before = copies()
      const { code, stderr, stdout } = yield* demo.run([], { env })
      assert.deepStrictEqual([code, stderr], [0, ""], stdout)
      for (
        const told of [
          confines ? "Commands are confined (full)" : "sandbox_command_blocked",
          "guard_denied",
          "sandbox_write_blocked",
          "command_failed",
          "approval_denied",
          "rule_denied",
          "✓ tests: 7 pass, 0 fail",
          "✓ changed: src/statistics.js",
          "the copy is removed"
        ]
      ) assert.include(stdout, told)
      assert.deepStrictEqual(copies().filter((name) => !before.includes(name)), [])
      assert.include(readFileSync(join(root, "scripts/demo/repository/src/statistics.js"), "utf8"), "values.sort()")
    }))

  it.scopedLive("does not take an agent's word for it", () =>
    Effect.gen(function*() {
      const { base, env } = yield* place
      const model = script(base, [{ text: "I have looked." }, { text: "All tests pass now." }])
      const { code, stdout } = yield* demo.run(["--model", model], { env })
      assert.strictEqual(code, 1)
      assert.include(stdout, "✗ tests: 3 pass, 4 fail")
    }))

  it.scopedLive("says what it needs", () =>
    Effect.gen(function*() {
      const { env } = yield* place
      const ended = yield* demo.run(["--model", "openai:x"], { env })
      assert.deepStrictEqual(ended, { code: 2, signal: null, stdout: "", stderr: "demo: OPENAI_API_KEY is not set\n" })
    }))
})
