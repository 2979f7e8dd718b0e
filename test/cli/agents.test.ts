import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Fs from "node:fs"
import * as Path from "node:path"
import * as Main from "../../layers/stacks/Main.ts"
import { AgentSystem } from "../../src/agent/AgentSystem.ts"
import type { ToolResult } from "../../src/contract/ToolResult.ts"
import { EventJournal } from "../../src/journal/EventJournal.ts"
import { delegate, speaking } from "../support/agentPlane.ts"
import { bundle } from "../support/childProcess.ts"
import { place, program } from "../support/cli.ts"
import { recorder } from "../support/plane.ts"

const cli = program("layers/cli/main.ts")

/** What would let a process draw on, or act on, the screen of its host, or speak for it. */
const powers = {
  DISPLAY: ":0",
  WAYLAND_DISPLAY: "wayland-0",
  XAUTHORITY: "/root/.Xauthority",
  DBUS_SESSION_BUS_ADDRESS: "unix:path=/run/bus",
  SSH_AUTH_SOCK: "/run/ssh",
  PORTCULLIS_CAPABILITY: "computer_use",
  OPENAI_API_KEY: "sk-secret"
}

/** What commands of a child answered when it ran them with its shell, under full access and with everything allowed. */
const inChild = (folder: string, workspace: string, commands: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const system = yield* AgentSystem
    const root = yield* system.start({ spec: { workspace, sandboxMode: "danger-full-access" } })
    assert.strictEqual((yield* root.ask("Go")).status, "completed")
    const [child] = yield* system.list(root.threadId)
    assert.isDefined(child)
    const entries = yield* (yield* EventJournal).entries(child.threadId)
    return entries.flatMap(({ event }): ReadonlyArray<ToolResult> =>
      event._tag === "call_settled" ? [event.result] : []
    )
  }).pipe(Effect.provide(
    Main.layerAgents({
      state: { filename: Path.join(folder, "state.db") },
      approvals: { approver: recorder().approver },
      subprocess: { hostEnv: { ...process.env, ...powers } }
    }).pipe(Layer.provide(speaking(({ opening, said }) => {
      if (said > 0) return { text: "done" }
      return opening === "Go"
        ? { calls: [delegate("shell")] }
        : { calls: commands.map((command) => ({ toolName: "bash", arguments: { command } })) }
    })))
  ))

const output = (result: ToolResult | undefined): string => JSON.stringify(result?.output)

describe("the shell of a child", { timeout: 60_000 }, () => {
  it.scopedLive("is no way to computer_use: the command line refuses it there too", () =>
    Effect.gen(function*() {
      const { base, env, workspace } = yield* place
      const main = yield* bundle("../../layers/cli/main.ts")
      const script = Path.join(base, "script.json")
      const action = { action: { type: "screenshot" } }
      Fs.writeFileSync(
        script,
        JSON.stringify({ turns: [{ calls: [{ toolName: "computer_use", arguments: action }] }, { text: "Done." }] })
      )
      const portcullis = `'${process.execPath}' '${main}'`
      const state = `--state '${base}/child.db' --sandbox danger-full-access --answer allow --json`
      const asked = `call computer_use '${JSON.stringify(action)}' ${state}`
      const results = yield* inChild(base, workspace, [
        `HOME='${env.HOME}' ${portcullis} ${asked}`,
        `export HOME='${env.HOME}' DISPLAY=:0 PORTCULLIS_CAPABILITY=computer_use COMPUTER_USE=1; ${portcullis} ${asked}`,
        `HOME='${env.HOME}' ${portcullis} run Go --model 'scripted:${script}' ${state}`
      ])
      assert.strictEqual(results.length, 3)
      for (const result of results) {
        assert.match(output(result), /\\"code\\":\\"tool_not_advertised\\"/)
        assert.match(output(result), /\\"executed\\":false/)
        assert.notMatch(output(result), /\\"executed\\":true/)
      }
      assert.deepStrictEqual(results.map(({ code }) => code), ["command_failed", "command_failed", null])
    }))

  it.scopedLive("has nothing in its environment that could stand for a right", () =>
    Effect.gen(function*() {
      const { base, workspace } = yield* place
      const [result] = yield* inChild(base, workspace, ["env -0 | tr '\\0' '\\n' | cut -d= -f1"])
      const { output: printed } = result?.output as { readonly output: string }
      const names = printed.trim().split("\n")
      assert.includeMembers(names, ["PATH", "PORTCULLIS_RUN"])
      for (const name of Object.keys(powers)) assert.notInclude(names, name)
      for (const name of names) {
        assert.match(
          name,
          /^(PATH|HOME|USER|LOGNAME|SHELL|TMPDIR|TMP|TEMP|LANG|LC_\w+|TERM|COLORTERM|NO_COLOR|XDG_\w+_(HOME|DIR)|PAGER|GIT_PAGER|GIT_TERMINAL_PROMPT|PORTCULLIS_RUN|PWD|OLDPWD|SHLVL|_)$/
        )
      }
    }))
})

describe("portcullis run with a model that delegates", { timeout: 60_000 }, () => {
  it.scopedLive("does what the children are asked for, tells their answers, and ends with 0", () =>
    Effect.gen(function*() {
      const { base, env, workspace } = yield* place
      const script = Path.join(base, "script.json")
      const child = (name: string) => ({
        when: `Write ${name}.`,
        turns: [
          { calls: [{ toolName: "write", arguments: { path: name, content: `by the child of ${name}` } }] },
          { text: `${name} is written` }
        ]
      })
      Fs.writeFileSync(
        script,
        JSON.stringify({
          turns: [{ calls: [delegate("Write a."), delegate("Write b.")] }, { text: "Both are there." }],
          conversations: [child("a"), child("b")]
        })
      )
      const ended = yield* cli.run(["run", "Go", "--model", `scripted:${script}`, "--answer", "allow", "--json"], {
        cwd: workspace,
        env
      })
      assert.deepStrictEqual([ended.code, ended.stderr], [0, ""])
      for (const name of ["a", "b"]) {
        assert.strictEqual(Fs.readFileSync(Path.join(workspace, name), "utf8"), `by the child of ${name}`)
      }
      const events = ended.stdout.trimEnd().split("\n").map((line) => JSON.parse(line))
      const summaries = events.flatMap(({ result, type }) => type === "settled" ? [result.output.summary] : [])
      assert.deepStrictEqual(summaries, ["a is written", "b is written"])
      assert.deepInclude(events.at(-1), { type: "ended", stopped: "done", calls: 2, text: "Both are there." })
    }))
})
