import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Fs from "node:fs"
import * as Path from "node:path"
import * as Main from "../../layers/stacks/Main.ts"
import { AgentSystem } from "../../src/agent/AgentSystem.ts"
import { DelegationSemaphore } from "../../src/agent/DelegationSemaphore.ts"
import { ApprovalGate } from "../../src/gate/ApprovalGate.ts"
import { delegate, speaking } from "../support/agentPlane.ts"
import { eventually } from "../support/plane.ts"
import { temporaryFolder } from "../support/temporaryFolder.ts"

/** Living processes of a group; zombies are dead. */
const livingIn = (group: number): ReadonlyArray<string> =>
  Fs.readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false
    try {
      const stat = Fs.readFileSync(`/proc/${pid}/stat`, "latin1")
      const [state = "", , pgrp] = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
      return Number(pgrp) === group && !"ZX".includes(state)
    } catch {
      return false
    }
  })

/** It does not die of a TERM, and neither does what it has started. */
const stubborn = "trap '' TERM; sleep 300 & echo $$ > group; sleep 300"

const plane = (folder: string) =>
  Main.layerAgents({
    state: { filename: Path.join(folder, "state.db") },
    approvals: { approver: "external" },
    agents: { concurrency: 2 }
  }).pipe(Layer.provideMerge(speaking(({ opening, said }) => {
    if (opening === "sleeps") return { calls: [{ toolName: "bash", arguments: { command: stubborn } }] }
    if (opening === "asks") return { calls: [{ toolName: "write", arguments: { path: "asked", content: "x" } }] }
    return opening === "Go" && said === 0
      ? { calls: ["sleeps", "asks", "waits"].map((label) => delegate(label, { label })) }
      : { text: "done" }
  })))

describe.skipIf(process.platform !== "linux")("the end of a parent whose child runs a command (D06)", () => {
  for (const how of ["interrupts its turn", "stops it"] as const) {
    it.scopedLive(`leaves no process, no question and no child behind when somebody ${how}`, () =>
      Effect.gen(function*() {
        const folder = yield* temporaryFolder
        const workspace = Path.join(folder, "ws")
        Fs.mkdirSync(workspace)
        yield* Effect.gen(function*() {
          const system = yield* AgentSystem
          const gate = yield* ApprovalGate
          const semaphore = yield* DelegationSemaphore
          const root = yield* system.start({ spec: { workspace, sandboxMode: "danger-full-access" } })
          const asking = yield* Effect.fork(root.ask("Go"))
          const questions = yield* eventually(gate.pending, ({ length }) => length === 2)
          const idOf = (toolName: string) => questions.find(({ question }) => question.toolName === toolName)?.id ?? ""
          yield* gate.decide(idOf("bash"), { decision: "allow", principal: "me" })
          const file = Path.join(workspace, "group")
          const read = Effect.sync(() => Fs.existsSync(file) ? Number(Fs.readFileSync(file, "utf8")) : 0)
          const group = yield* eventually(read, (pid) => pid > 1)
          yield* eventually(Effect.sync(() => livingIn(group).length), (living) => living >= 2)
          yield* eventually(semaphore.state, ({ running, waiting }) => running === 2 && waiting === 1)

          yield* how === "stops it" ? root.stop : Fiber.interrupt(asking)

          assert.deepStrictEqual(livingIn(group), [])
          assert.strictEqual((yield* gate.get(idOf("write"))).status, "cancelled")
          assert.deepStrictEqual(yield* gate.pending, [])
          assert.isFalse(Fs.existsSync(Path.join(workspace, "asked")))
          assert.deepStrictEqual(yield* semaphore.state, { limit: 2, running: 0, lent: 0, waiting: 0 })
          const records = yield* system.list(root.threadId)
          assert.deepStrictEqual(
            records.map(({ label, report, status }) => [label, status, report?.status, report?.usage.requests]),
            [
              ["sleeps", "interrupted", "interrupted", 1],
              ["asks", "interrupted", "interrupted", 1],
              ["waits", "interrupted", "interrupted", 0]
            ]
          )
          for (const { agentId } of records) assert.isUndefined(yield* system.find(agentId))
        }).pipe(Effect.provide(plane(folder)))
      }))
  }
})
