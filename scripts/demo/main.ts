/**
 * The main job: an agent finds and repairs a bug in a small repository, meets the gates on its way, and has four others
 * review what it did.
 *
 *     npm start [-- --model openai:NAME | anthropic:NAME | scripted:FILE]
 *
 * Without `--model` a script plays the model, so no key is needed. Exits with 0 only if the repository's own tests pass in
 * the end, run by the host, and if nothing but its sources was changed. The copy is removed, whatever happens.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { parseArgs } from "node:util"
import { CliError, usage } from "../../layers/cli/CliError.ts"
import { manifest } from "../../layers/cli/manifest.ts"
import * as models from "../../layers/cli/models.ts"
import { sandbox } from "../../layers/cli/plane.ts"
import { system } from "../../layers/cli/run.ts"
import { runMain } from "../../layers/cli/runMain.ts"
import * as Terminal from "../../layers/cli/Terminal.ts"
import * as Main from "../../layers/stacks/Main.ts"
import { type AgentEvent, AgentSystem } from "../../src/agent/AgentSystem.ts"
import type { Message } from "../../src/agent/Model.ts"
import * as TurnLoop from "../../src/agent/TurnLoop.ts"
import type { SandboxMode } from "../../src/contract/Policy.ts"
import { OperationLedger } from "../../src/host/OperationLedger.ts"
import { ToolHost } from "../../src/host/ToolHost.ts"
import { display } from "../../src/internal/display.ts"
import { ProcessSandbox } from "../../src/process/ProcessSandbox.ts"
import * as gates from "./gates.ts"
import * as report from "./report.ts"
import * as repository from "./repository.ts"

const first = "The tests of this repository fail. Find out why and repair it. Commands may not be available yet; " +
  "if you need them, find the bug by reading, say what you found and stop."
const third = "Now have the repaired repository reviewed before I commit it, and tell me what the reviewers found."
const second = "You may run `npm test` now. Repair the bug and show that the tests pass."

/** Both turns of the agent over the copy in `base`; succeeds with whether it can be called repaired. */
const job = Effect.fnUntraced(function*(original: string, base: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const terminal = yield* Terminal.Terminal
  const host = yield* ToolHost
  const { stdout } = process
  const paint = report.makePaint(stdout.isTTY === true && process.env["NO_COLOR"] === undefined)
  const title = (text: string) => terminal.out(`\n${paint.bold(text)}\n`)
  const said = (fine: boolean, text: string) => terminal.out(`  ${fine ? paint.green("✓") : paint.red("✗")} ${text}\n`)
  const copy = path.join(base, "repository")

  const confinement = yield* Effect.orElseSucceed((yield* ProcessSandbox).report, () => "none" as const)
  const mode = confinement === "none" ? "danger-full-access" : "workspace-write"
  const broken = yield* repository.test(copy, mode)
  yield* title("Portcullis: an agent repairs a small repository")
  yield* terminal.out(
    `  copy      ${copy}\n  tests     ${broken.counts} before\n  hooks     guard ${gates.guard.name}\n` +
      `  rules     deny ${gates.rule.name}\n  approval  on-request, answered by ${gates.approver.name}\n`
  )
  if (broken.passes) {
    yield* said(false, "there is nothing to repair")
    return false
  }

  /** A turn of its own sees the tools that its mode allows; what was read before counts in it. */
  const turn = (turnId: string, sandboxMode: SandboxMode, messages: ReadonlyArray<Message>, prompt: string) =>
    Effect.scoped(Effect.gen(function*() {
      const spec = { workspace: copy, threadId: "demo", turnId, sandboxMode, clientSurface: "cli" } as const
      const session = yield* host.openTurn(spec)
      const { fingerprint, toolNames } = session.catalog.fingerprint
      yield* terminal.out(`  catalog ${fingerprint}: ${toolNames.join(" ")}\n`)
      const onEvent = report.follow(terminal, paint)
      return yield* TurnLoop.run({ session, system, onEvent, messages, prompt })
    }))

  yield* title("Looking for the bug, under workspace-write")
  const looked = yield* turn("look", "workspace-write", [], first)

  yield* title(`Repairing it, under ${mode}`)
  yield* terminal.out(
    confinement === "none"
      ? "  Nothing here confines commands, so for the tests the host opens this throw-away copy to full access.\n" +
        "  Hooks, rules and approvals hold as before.\n"
      : `  Commands are confined (${confinement}): the tests run in a sandbox, for the agent and for the host.\n`
  )
  const repaired = yield* turn("repair", mode, looked.messages, second)

  yield* title("Reviewing it: four agents side by side, two at a time")
  const reviewed = yield* Effect.scoped(review(copy, mode, paint))

  yield* title("The ledger: what was executed, once each")
  yield* terminal.out(report.ledger([...(yield* (yield* OperationLedger).list())].reverse(), paint))

  yield* title("Checked by the host")
  const tested = yield* repository.test(copy, mode)
  const changed = yield* repository.changed(original, copy)
  const beside = (yield* fs.readDirectory(base)).filter((name) => !/^(repository|state\.db.*|spill)$/.test(name))
  const contained = beside.length === 0 && changed.every((name) => name.startsWith("src/"))
  yield* said(tested.passes, `tests: ${tested.counts}`)
  yield* said(contained, `changed: ${[...changed, ...beside.map((name) => `../${name}`)].join(", ") || "nothing"}`)
  yield* said(repaired.stopped === "done", `the agent ended by itself: ${repaired.stopped}`)
  yield* said(reviewed.fine, `reviewers: ${reviewed.counts}`)
  return tested.passes && contained && repaired.stopped === "done" && reviewed.fine
})

/** The same thread as an agent that delegates; what was said in it before it takes from the journal. */
const review = Effect.fnUntraced(function*(copy: string, sandboxMode: SandboxMode, paint: report.Paint) {
  const terminal = yield* Terminal.Terminal
  const agents = yield* AgentSystem
  const events: Array<AgentEvent> = []
  yield* Effect.forkScoped(Stream.runForEach(agents.events, (event) => Effect.sync(() => void events.push(event))))
  const agent = yield* agents.start({
    spec: { workspace: copy, threadId: "demo", sandboxMode, clientSurface: "cli" },
    system
  })
  const answer = yield* agent.ask(third)
  const reviewers = yield* agents.list(agent.threadId)
  yield* terminal.out(report.timeline(events, paint))
  for (const { label, report: ended } of reviewers) {
    yield* terminal.out(report.speech(display(label), ended?.summary ?? ended?.error?.error ?? "", paint))
  }
  yield* terminal.out(report.speech("agent", answer.summary, paint))
  const done = reviewers.filter(({ status }) => status === "completed").length
  return {
    fine: answer.status === "completed" && done === reviewers.length && reviewers.length > 0,
    counts: `${done} of ${reviewers.length} done, at most ${report.peak(events)} at once`
  }
})

const demo = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const package_ = yield* manifest
  if (Option.isNone(package_)) return yield* usage("the demo runs inside its package")
  const home = path.join(package_.value.folder, "scripts/demo")
  const { values } = yield* Effect.try({
    try: () => parseArgs({ options: { model: { type: "string" } } }),
    catch: () => usage("the demo takes --model openai:NAME, anthropic:NAME or scripted:FILE")
  })
  const model = yield* models.layer(values.model ?? `scripted:${path.join(home, "model.json")}`)

  const work = Effect.gen(function*() {
    const base = yield* fs.realPath(yield* fs.makeTempDirectoryScoped({ prefix: "portcullis-demo-" }))
    const original = path.join(home, "repository")
    yield* fs.copy(original, path.join(base, "repository"))
    const plane = Main.layerAgents({
      state: { filename: path.join(base, "state.db") },
      approvals: { approver: gates.approver },
      hooks: [gates.guard],
      rules: [gates.rule],
      sandbox,
      agents: { concurrency: 2 }
    })
    const done = yield* job(original, base).pipe(Effect.provide(Layer.provideMerge(plane, model)))
    return { base, done }
  })
  const { base, done } = yield* Effect.scoped(work)
  const removed = !(yield* fs.exists(base))
  yield* (yield* Terminal.Terminal).out(removed ? "  the copy is removed\n" : `  the copy is still at ${base}\n`)
  return done && removed ? 0 : 1
}).pipe(
  Effect.catchAll((error) =>
    Effect.flatMap(
      Terminal.Terminal,
      (terminal) => Effect.as(terminal.err(`demo: ${error.message}\n`), error instanceof CliError ? 2 : 1)
    )
  )
)

runMain(Effect.provide(demo, Layer.mergeAll(Terminal.layer(process), NodeFileSystem.layer, NodePath.layer)))
