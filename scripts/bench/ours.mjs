/** Our side of every case. Each function resolves to a subject: `{ run(n), close? }`, where `run` does `n` operations. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Digest from "../../dist/layers/node/Digest.js"
import * as Main from "../../dist/layers/stacks/Main.js"
import * as Test from "../../dist/layers/stacks/Test.js"
import * as Digests from "../../dist/src/contract/Digest.js"
import { CapabilityRegistry, Catalog, ToolCall, ToolHost, ToolProvider } from "../../dist/src/index.js"
import * as Tool from "../../dist/src/tool/Tool.js"
import { toolSpecs } from "./tools.mjs"

/** The tool of the peers: one text in, `done` out. */
const noop = Tool.make("noop", {
  description: "Does nothing.",
  policy: "auto",
  parameters: Schema.Struct({ path: Schema.String }),
  success: Schema.String,
  handler: () => Effect.succeed("done")
})
const provider = ToolProvider.make({ id: "bench", kind: "built-in", tools: [noop] })
const call = () => ToolCall.make({ toolName: "noop", arguments: { path: "README.md" } })

/** Runs a session's calls in one fiber of a runtime that keeps the plane open. */
const calling = async (layer, inFlight) => {
  const runtime = ManagedRuntime.make(layer)
  const scope = await runtime.runPromise(Scope.make())
  const session = await runtime.runPromise(
    Effect.flatMap(ToolHost.ToolHost, (host) => Scope.extend(host.openTurn({ workspace: tmpdir() }), scope))
  )
  const one = Effect.suspend(() => session.execute(call()))
  return {
    run: (n) =>
      Effect.runPromise(
        inFlight === 1
          ? Effect.repeatN(one, n - 1)
          : Effect.forEach(Array.from({ length: n }), () => one, { concurrency: inFlight, discard: true })
      ),
    close: () => runtime.dispose()
  }
}

const memory = Test.layer([provider]).pipe(Layer.provide(Digest.layer))

/** `n` calls of one no-op tool, one after another inside one fiber, memory layers behind every gate. */
export const channelCall = () => calling(memory, 1)

/** The same, measured after 100,000 calls. */
export const channelCallLate = async () => {
  const subject = await calling(memory, 1)
  await subject.run(100_000)
  return subject
}

const durable = async (inFlight) => {
  const folder = mkdtempSync(join(tmpdir(), "portcullis-bench-"))
  const subject = await calling(Main.layer({ state: { filename: join(folder, "state.db") } }, [provider]), inFlight)
  return {
    ...subject,
    close: async () => {
      await subject.close()
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

/** The same with the ledger on SQLite at `synchronous=FULL`, one call after another. */
export const channelLedgerSequential = () => durable(1)

/** The same with 100 calls in flight; `n` counts calls. */
export const channelLedgerConcurrent = () => durable(100)

const toolsOf = (count) =>
  toolSpecs(count).map((spec) =>
    Tool.fromJsonSchema(spec.name, {
      description: spec.description,
      parameters: spec.parameters,
      handler: () => Effect.succeed(null)
    })
  )

const turn = {
  workspace: "/",
  roots: ["/"],
  threadMode: "agent",
  sandboxMode: "workspace-write",
  approvalPolicy: "on-request",
  providers: { allow: undefined, deny: new Set(["none"]) },
  tools: { allow: undefined, deny: new Set(["none"]) },
  skills: { allow: undefined, deny: new Set() }
}

/** A registry's snapshot without the cost of compiling validators, which is registration and not listing. */
const snapshotOf = (count) =>
  Effect.scoped(Effect.gen(function*() {
    const registry = yield* CapabilityRegistry.make()
    const tools = toolsOf(count).map((tool) => ({ ...tool, load: Effect.succeed(() => undefined) }))
    yield* registry.register(ToolProvider.make({ id: "bench", kind: "mcp", tools }))
    return yield* registry.snapshot
  }))

const listing = async (count, fresh) => {
  const { sha256, snapshot } = await Effect.runPromise(
    Effect.all({ sha256: Digests.Digest, snapshot: snapshotOf(count) }).pipe(Effect.provide(Digest.layer))
  )
  const options = { snapshot, turn, planTools: new Set(), sandbox: () => ({ _tag: "Pass" }) }
  let build = Catalog.makeBuilder(sha256)
  let last
  return {
    run: (n) => {
      for (let index = 0; index < n; index++) {
        if (fresh) build = Catalog.makeBuilder(sha256)
        last = build(options).fingerprint
      }
      return last
    }
  }
}

/** List and fingerprint of `tools` tools that have not changed since the last turn. */
export const catalogUnchanged = (tools) => listing(tools, false)

/** The first list and fingerprint of a host that was just given `tools` tools. */
export const catalogFirst = (tools) => listing(tools, true)

/** The module whose import is timed in a process of its own. */
export const entry = new URL("../../dist/src/index.js", import.meta.url).href
