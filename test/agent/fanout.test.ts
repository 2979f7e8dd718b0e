import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import * as Main from "../../layers/stacks/Main.ts"
import { AgentSystem } from "../../src/agent/AgentSystem.ts"
import { DelegationSemaphore } from "../../src/agent/DelegationSemaphore.ts"
import type { Event } from "../../src/contract/Event.ts"
import type { ThreadId } from "../../src/contract/Turn.ts"
import { EventJournal } from "../../src/journal/EventJournal.ts"
import type { ScriptedCall } from "../../src/testing/ScriptedModel.ts"
import { delegate, speaking } from "../support/agentPlane.ts"
import { count } from "../support/counts.ts"
import { eventually, executeIn } from "../support/plane.ts"
import { temporaryFolder } from "../support/temporaryFolder.ts"

const everybody = count({ quick: 100, soak: 1000 })
const interrupted = count({ quick: 40, soak: 1000 })
const budget = 8

/** Long enough to be seen half written. */
const before = (name: string): string => `I am ${name}\n${`${name} was here\n`.repeat(400)}first\n`
const after = (name: string): string => before(name).replace("first\n", "second\n")

const steps = (name: string): ReadonlyArray<ReadonlyArray<ScriptedCall>> => {
  const path = `${name}/own.txt`
  const read = { toolName: "read", arguments: { path } }
  const ls = { toolName: "ls", arguments: { path: name } }
  return [
    [{ toolName: "write", arguments: { path, content: before(name) } }],
    [read, ls, { toolName: "read", arguments: { path, offset: 100, limit: 3 } }],
    [{ toolName: "edit", arguments: { path, oldText: "first\n", newText: "second\n" } }],
    [read, { toolName: "grep", arguments: { pattern: "^second$", path: name } }],
    [{ toolName: "write", arguments: { path: `${name}/done.txt`, content: name } }],
    [{ toolName: "read", arguments: { path: `${name}/done.txt` } }, ls]
  ]
}

const named = (children: number): ReadonlyArray<string> =>
  Array.from({ length: children }, (_, index) => `child-${String(index + 1).padStart(4, "0")}`)

setFlagsFromString("--expose-gc")
const collect: () => void = runInNewContext("gc")
const heap = (): number => {
  collect()
  return process.memoryUsage().heapUsed
}

/** What a model has seen of its conversations, and the heap when it was asked for the hundredth last word. */
interface Watch {
  readonly active: Set<string>
  readonly done: Array<string>
  mostActive: number
  heapAfterHundred: number
}
const watch = (): Watch => ({ active: new Set(), done: [], mostActive: 0, heapAfterHundred: 0 })

const plane = (folder: string, names: ReadonlyArray<string>, seen: Watch) =>
  Main.layerAgents({
    state: { filename: Path.join(folder, "state.db") },
    agents: { concurrency: budget, limits: { callsPerResponse: names.length } }
  }).pipe(Layer.provideMerge(speaking(({ opening, said }) => {
    if (opening === "Go") {
      return said === 0 ? { calls: names.map((name) => delegate(name, { label: name })) } : { text: "all told" }
    }
    seen.active.add(opening)
    seen.mostActive = Math.max(seen.mostActive, seen.active.size)
    const calls = steps(opening)[said]
    if (calls !== undefined) return { calls }
    seen.active.delete(opening)
    if (seen.done.push(opening) === 100) seen.heapAfterHundred = heap()
    return { text: `[${opening}]` }
  })))

const everything = Effect.fnUntraced(function*(threadId: ThreadId) {
  const journal = yield* EventJournal
  const events: Array<Event> = []
  for (let after = 0;;) {
    const page = yield* journal.entries(threadId, { after })
    events.push(...page.map(({ event }) => event))
    const last = page.at(-1)
    if (last === undefined) return events
    after = last.sequence
  }
})

const start = Effect.fnUntraced(function*(folder: string) {
  const workspace = Path.join(folder, "ws")
  Fs.mkdirSync(workspace)
  const root = yield* (yield* AgentSystem).start({ spec: { workspace, approvalPolicy: "auto" } })
  return { root, workspace }
})

const atZero = { limit: budget, running: 0, lent: 0, waiting: 0 }

describe("a fan-out", { timeout: 600_000 }, () => {
  it.scopedLive("runs as many at once as the budget has slots, first come, first served, and does all of its work", () =>
    Effect.gen(function*() {
      const folder = yield* temporaryFolder
      const seen = watch()
      const names = named(everybody)
      yield* Effect.gen(function*() {
        const { root, workspace } = yield* start(folder)
        const report = yield* root.ask("Go")
        assert.deepInclude(report, { status: "completed", summary: "all told" })
        const grown = heap() - seen.heapAfterHundred
        assert.isBelow(grown / 1024 ** 2, 32)
        assert.deepStrictEqual(yield* (yield* DelegationSemaphore).state, atZero)

        for (const name of names) {
          assert.deepStrictEqual(Fs.readdirSync(Path.join(workspace, name)).sort(), ["done.txt", "own.txt"])
          assert.strictEqual(Fs.readFileSync(Path.join(workspace, name, "own.txt"), "utf8"), after(name))
          assert.strictEqual(Fs.readFileSync(Path.join(workspace, name, "done.txt"), "utf8"), name)
        }

        const events = yield* everything(root.threadId)
        const turned = (wanted: string) =>
          events.flatMap((event) =>
            event._tag === "agent_changed" && event.label !== "root" && event.status === wanted ? [event.label] : []
          )
        assert.deepStrictEqual(turned("queued"), names)
        assert.deepStrictEqual(turned("running"), names)
        assert.deepStrictEqual(turned("completed").sort(), names)
        let running = 0
        let most = 0
        for (const event of events) {
          if (event._tag !== "agent_changed" || event.label === "root") continue
          if (event.status === "running") most = Math.max(most, ++running)
          if (event.status === "completed") running--
        }
        assert.deepStrictEqual([most, running, seen.mostActive], [budget, 0, budget])

        const told = events.flatMap((event) => event._tag === "call_settled" ? [event.result] : [])
        assert.strictEqual(new Set(told.map(({ callId }) => callId)).size, told.length)
        assert.deepStrictEqual(
          told.map(({ content }) => /\[(child-\d+)\]/.exec(JSON.stringify(content))?.[1] ?? "").sort(),
          names
        )

        const system = yield* AgentSystem
        const records = yield* system.list(root.threadId)
        assert.strictEqual(records.length, names.length)
        for (const { agentId, status, usage } of records) {
          assert.deepStrictEqual([status, usage.calls], ["completed", 10])
          assert.isUndefined(yield* system.find(agentId))
        }
      }).pipe(Effect.provide(plane(folder, names, seen)))
    }))

  it.scopedLive("ends with its parent half-way: every outcome is recorded, no file is half written, nothing is held", () =>
    Effect.gen(function*() {
      const folder = yield* temporaryFolder
      const seen = watch()
      const names = named(interrupted)
      yield* Effect.gen(function*() {
        const { root, workspace } = yield* start(folder)
        const asking = yield* Effect.fork(root.ask("Go"))
        yield* eventually(Effect.sync(() => seen.done.length), (done) => done >= interrupted / 2)
        const from = performance.now()
        yield* Fiber.interrupt(asking)
        assert.isBelow(performance.now() - from, 20_000)
        assert.deepStrictEqual(yield* (yield* DelegationSemaphore).state, atZero)

        const system = yield* AgentSystem
        const records = yield* system.list(root.threadId)
        assert.deepStrictEqual(records.map(({ label }) => label), names)
        for (const { agentId, label, report, status } of records) {
          assert.include(["completed", "interrupted"], status)
          assert.strictEqual(report?.status, status)
          assert.isUndefined(yield* system.find(agentId))
          if (status === "completed") assert.strictEqual(report?.summary, `[${label}]`)
        }
        const ended = records.filter(({ status }) => status === "completed").map(({ label }) => label)
        assert.isAtLeast(ended.length, interrupted / 2 - 1)
        assert.isBelow(ended.length, interrupted)

        // Nothing of it goes on in secret.
        const asked = seen.done.length
        const list = () => Fs.readdirSync(workspace, { recursive: true, encoding: "utf8" }).sort()
        const files = list()
        yield* Effect.sleep("100 millis")
        assert.deepStrictEqual([seen.done.length, list()], [asked, files])
        for (const file of files) {
          const [name = "", leaf, ...more] = file.split(Path.sep)
          if (leaf === undefined) continue
          assert.deepStrictEqual(more, [])
          const written = Fs.readFileSync(Path.join(workspace, file), "utf8")
          // A temporary file would have another name.
          if (leaf === "done.txt") assert.strictEqual(written, name)
          else assert.isTrue(leaf === "own.txt" && [before(name), after(name)].includes(written), file)
        }

        const others = { workspace, approvalPolicy: "auto", threadId: "other" } as const
        const reached = names.filter((name) => files.includes(Path.join(name, "own.txt")))
        yield* Effect.forEach(reached, (name) =>
          Effect.gen(function*() {
            const path = `${name}/own.txt`
            yield* executeIn(others, { toolName: "read", arguments: { path } })
            const { code } = yield* executeIn(others, { toolName: "write", arguments: { path, content: "mine" } })
            assert.isNull(code)
            assert.strictEqual(Fs.readFileSync(Path.join(workspace, path), "utf8"), "mine")
          }), { concurrency: 8, discard: true }).pipe(Effect.timeout("20 seconds"))

        // The root itself goes on.
        assert.strictEqual((yield* root.ask("Still there?")).status, "completed")
      }).pipe(Effect.provide(plane(folder, names, seen)))
    }))
})
