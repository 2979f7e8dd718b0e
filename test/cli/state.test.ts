import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { place, program } from "../support/cli.ts"

const cli = program("layers/cli/main.ts")

const write = ["call", "write", "{\"path\":\"a\",\"content\":\"x\"}", "--answer", "allow"]

const refused = (
  ended: { readonly code: number | null; readonly stdout: string; readonly stderr: string },
  line: RegExp
) => {
  assert.strictEqual(ended.code, 2)
  assert.strictEqual(ended.stdout, "")
  assert.match(ended.stderr, line)
  assert.strictEqual(ended.stderr.trimEnd().split("\n").length, 1)
}

describe("the state file", { timeout: 60_000 }, () => {
  it.scopedLive("lives in the user's state directory, one a workspace, for the user alone", () =>
    Effect.gen(function*() {
      const { base, env, workspace } = yield* place
      assert.strictEqual((yield* cli.run(write, { cwd: workspace, env })).code, 0)
      const [folder = "", ...others] = readdirSync(join(base, "state/portcullis"))
      assert.match(folder, /^[0-9a-f]{16}$/)
      assert.deepStrictEqual(others, ["locks"])
      const file = join(base, "state/portcullis", folder, "state.db")
      assert.strictEqual(statSync(file).mode & 0o777, 0o600)
      assert.strictEqual(statSync(join(base, "state/portcullis", folder)).mode & 0o777, 0o700)
      assert.deepStrictEqual(readdirSync(workspace), ["a"])

      symlinkSync(workspace, join(base, "link"))
      const ledger = yield* cli.run(["ledger", "--workspace", join(base, "link"), "--json"], { env })
      assert.strictEqual(JSON.parse(ledger.stdout).length, 1)
    }))

  it.scopedLive("is refused inside the workspace, however it got there", () =>
    Effect.gen(function*() {
      const { base, env, workspace } = yield* place
      symlinkSync(workspace, join(base, "link"))
      symlinkSync(join(workspace, "not-yet"), join(base, "dangling"))
      for (
        const state of [
          "s.db",
          "new/s.db",
          join(base, "link/s.db"),
          join(base, "link/new/s.db"),
          join(base, "dangling")
        ]
      ) {
        refused(
          yield* cli.run([...write, "--state", state], { cwd: workspace, env }),
          /^portcullis: the state file .*(inside the workspace|leads nowhere)/
        )
      }
      refused(yield* cli.run(write, { cwd: base, env }), /inside the workspace; name another with --state/)
      assert.deepStrictEqual(readdirSync(workspace), [])
      assert.deepStrictEqual(readdirSync(join(base, "state")), [])
    }))

  it.scopedLive("is refused and left as it is when it is broken, newer or of another program", () =>
    Effect.gen(function*() {
      const { base, env, workspace } = yield* place
      const file = join(base, "s.db")
      const attempt = Effect.gen(function*() {
        const before = readFileSync(file)
        const ended = yield* cli.run([...write, "--state", file], { cwd: workspace, env })
        const ledger = yield* cli.run(["ledger", "--state", file], { cwd: workspace, env })
        assert.isTrue(readFileSync(file).equals(before))
        assert.strictEqual(ledger.stderr, ended.stderr)
        return ended
      })
      writeFileSync(file, "not a database ".repeat(20))
      refused(yield* attempt, /^portcullis: .*s\.db cannot be used: it is not a database\n/)

      const good = join(base, "good.db")
      assert.strictEqual((yield* cli.run([...write, "--state", good], { cwd: workspace, env })).code, 0)
      const newer = readFileSync(good)
      newer.writeUInt32BE(99, 60)
      writeFileSync(file, newer)
      refused(yield* attempt, /cannot be used: it has format 99, this version knows up to \d+\n/)

      const foreign = readFileSync(good)
      foreign.writeUInt32BE(1, 68)
      writeFileSync(file, foreign)
      refused(yield* attempt, /cannot be used: it belongs to another program\n/)

      mkdirSync(join(base, "folder.db"))
      refused(
        yield* cli.run([...write, "--state", join(base, "folder.db")], { cwd: workspace, env }),
        /not a regular file/
      )
    }))

  it.scopedLive("is not created by a look into the ledger, nor by doctor", () =>
    Effect.gen(function*() {
      const { base, env, workspace } = yield* place
      const ledger = yield* cli.run(["ledger"], { cwd: workspace, env })
      assert.deepStrictEqual([ledger.code, ledger.stdout], [0, "No operations.\n"])
      const unknown = yield* cli.run(["ledger", "reconcile", "op_x", "--outcome", "failed"], { cwd: workspace, env })
      assert.deepStrictEqual([unknown.code, unknown.stderr], [1, "portcullis: There is no operation op_x.\n"])
      const doctor = yield* cli.run(["doctor", "--json"], {
        cwd: workspace,
        env: { ...env, OPENAI_API_KEY: "sk-secret" }
      })
      assert.strictEqual(doctor.code, 0)
      const checks: ReadonlyArray<{ readonly name: string; readonly works: boolean }> = JSON.parse(doctor.stdout)
      for (const name of ["node", "sqlite", "state", "ripgrep"]) {
        assert.isTrue(checks.some((check) => check.name === name && check.works), name)
      }
      assert.notInclude(doctor.stdout + doctor.stderr, "sk-secret")
      assert.deepStrictEqual(readdirSync(join(base, "state")), [])
      assert.deepStrictEqual(readdirSync(workspace), [])
    }))

  it.scopedLive("is not looked for when the command line is wrong", () =>
    Effect.gen(function*() {
      const { base, env, workspace } = yield* place
      refused(
        yield* cli.run([...write, "--sandbox", "full"], { cwd: workspace, env }),
        /^portcullis: --sandbox must be one of /
      )
      refused(
        yield* cli.run([...write, "--nonsense"], { cwd: workspace, env }),
        /^portcullis: call has no option "--nonsense"\n/
      )
      refused(yield* cli.run([...write, "--workspace", "gone"], { cwd: workspace, env }), /gone" is not a directory\n/)
      refused(
        yield* cli.run(["\u202e\n\u009b2J"], { cwd: workspace, env }),
        /^portcullis: there is no command "\\u\{202e\}\\n\\u\{9b\}2J"\n/
      )
      assert.deepStrictEqual(readdirSync(join(base, "state")), [])
    }))
})
