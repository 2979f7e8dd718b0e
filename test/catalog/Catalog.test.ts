import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { ProviderKind } from "../../src/contract/Provider.ts"
import { ToolHost } from "../../src/host/ToolHost.ts"
import * as ToolProvider from "../../src/tool/ToolProvider.ts"
import { probe, type ProbeOptions, Test } from "../support/plane.ts"

const provider = (kind: ProviderKind, tools: ReadonlyArray<ProbeOptions>) =>
  ToolProvider.make({ id: kind, kind, tools: tools.map((options) => probe(options).tool) })

/** The catalog of a turn over these providers. */
const catalog = (...providers: ReadonlyArray<ReturnType<typeof provider>>) =>
  Effect.flatMap(ToolHost, (host) => Effect.map(host.openTurn({ workspace: "." }), (session) => session.catalog)).pipe(
    Effect.scoped,
    Effect.provide(Test.layer(providers))
  )

describe("Catalog", () => {
  it.effect("puts built-in tools that are parallel-safe in the read-only lane, and nothing else", () =>
    Effect.gen(function*() {
      const { lane } = yield* catalog(
        provider("built-in", [
          { name: "read", parallelSafe: true },
          { name: "write" },
          { name: "change", parallelSafe: true, kind: "file_change" }
        ]),
        provider("mcp", [{ name: "grep", parallelSafe: true }])
      )
      assert.deepStrictEqual(["read", "write", "change", "grep", "nothing", "__proto__"].map(lane), [
        "read_only",
        "serial",
        "serial",
        "serial",
        "serial",
        "serial"
      ])
    }))

  it.effect("gives the delegation lane to delegate_task of a delegation provider alone", () =>
    Effect.gen(function*() {
      const real = yield* catalog(provider("delegation", [{ name: "delegate_task" }, { name: "list_agents" }]))
      assert.deepStrictEqual(["delegate_task", "list_agents"].map(real.lane), ["delegation", "serial"])
      const impostor = yield* catalog(provider("mcp", [{ name: "delegate_task" }]))
      assert.strictEqual(impostor.lane("delegate_task"), "serial")
    }))

  it.effect("knows which tools only ask the user", () =>
    Effect.gen(function*() {
      const { interactive } = yield* catalog(
        provider("built-in", [{ name: "ask", interactive: true }, { name: "read" }])
      )
      assert.deepStrictEqual(["ask", "read", "nothing"].map(interactive), [true, false, false])
    }))
})
