import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { randomInt } from "node:crypto"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { livingWith, place, program, until } from "../support/cli.ts"

const cli = program("layers/cli/main.ts")

/** A duration for `sleep` that no other process has, to find its holders by. */
const uniqueSleep = () => `300.${randomInt(1e9, 9e9)}`

describe("a signal", { timeout: 60_000 }, () => {
  for (const [signal, code] of [["SIGTERM", 143], ["SIGINT", 130]] as const) {
    it.scopedLive(`${signal} ends a call with ${code}: its processes are dead, and the ledger says that nobody knows`, () =>
      Effect.gen(function*() {
        const { env, workspace } = yield* place
        const sleep = uniqueSleep()
        const options = {
          cwd: workspace,
          env,
          input: JSON.stringify({ command: `sleep ${sleep} & setsid sleep ${sleep}; wait` })
        }
        const danger = ["--sandbox", "danger-full-access", "--answer", "allow"]
        const bash = ["call", "bash", "-", "--call-id", "c1", "--turn", "t1", ...danger, "--json"]

        const { ended, process } = yield* cli.start(bash, options)
        yield* until(() => livingWith(sleep).length >= 3)
        process.kill(signal)
        const first = yield* ended
        assert.deepStrictEqual([first.code, first.stdout], [code, ""])
        assert.deepStrictEqual(livingWith(sleep), [])

        const second = yield* cli.run(bash, options)
        assert.deepInclude(JSON.parse(second.stdout), { code: "tool_outcome_unknown", executed: false })
        assert.deepStrictEqual(livingWith(sleep), [])

        const [entry] = JSON.parse((yield* cli.run(["ledger", "--json"], options)).stdout)
        assert.deepInclude(entry, { state: "unknown", toolName: "bash", callId: "c1", turnId: "t1", threadId: "cli" })
        const reconcile = ["ledger", "reconcile", entry.id, "--outcome", "completed"]
        const settled = yield* cli.run(reconcile, options)
        assert.strictEqual(settled.code, 0)
        const twice = yield* cli.run(reconcile, options)
        assert.deepStrictEqual([twice.code, twice.stdout], [1, ""])
        assert.match(twice.stderr, /is not unknown/)

        const third = yield* cli.run(bash, options)
        assert.strictEqual(third.code, 0)
        assert.deepInclude(JSON.parse(third.stdout), { replayed: true, isError: false })
        assert.deepStrictEqual(livingWith(sleep), [])
      }))
  }

  it.scopedLive("does not stop a call whose reader is gone: it runs to its end and exits as ever", () =>
    Effect.gen(function*() {
      const { env, workspace } = yield* place
      const { ended, process } = yield* cli.start(
        ["call", "write", "{\"path\":\"a\",\"content\":\"x\"}", "--answer", "allow", "--json"],
        { cwd: workspace, env }
      )
      process.stdout?.destroy()
      const { code, stderr } = yield* ended
      assert.deepStrictEqual([code, stderr], [0, ""])
      assert.isTrue(existsSync(join(workspace, "a")))
    }))
})
