import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as CapabilityRegistry from "../../src/catalog/CapabilityRegistry.ts"
import * as ToolCall from "../../src/contract/ToolCall.ts"
import { ToolHost } from "../../src/host/ToolHost.ts"
import { EventJournal } from "../../src/journal/EventJournal.ts"
import * as Tool from "../../src/tool/Tool.ts"
import * as ToolProvider from "../../src/tool/ToolProvider.ts"
import { Test, workspace } from "../support/plane.ts"

const tool = (name: string, description = `The tool ${name}.`) =>
  Tool.make(name, {
    description,
    policy: "auto",
    parameters: Schema.Struct({ n: Schema.optionalWith(Schema.Number, { exact: true }) }),
    success: Schema.String,
    handler: () => Effect.succeed(name)
  })

const provider = (id: string, ...names: ReadonlyArray<string>) =>
  ToolProvider.make({ id, kind: "built-in", tools: names.map((name) => tool(name)) })

const openCatalog = (spec: { readonly workspace: string }) => Effect.flatMap(ToolHost, (host) => host.openTurn(spec))

describe("CapabilityRegistry", () => {
  it.scoped("refuses a provider id and a tool name that exist, and stays as it was", () =>
    Effect.gen(function*() {
      const registry = yield* CapabilityRegistry.make()
      yield* registry.register(provider("one", "a", "b"))
      const before = yield* registry.snapshot
      const sameId = yield* Effect.flip(registry.register(provider("one", "c")))
      assert.strictEqual(sameId.code, "duplicate_tool_provider")
      const sameName = yield* Effect.flip(registry.register(provider("two", "c", "b")))
      assert.strictEqual(sameName.code, "duplicate_tool_name")
      const twice = yield* Effect.flip(registry.register(provider("three", "d", "d")))
      assert.strictEqual(twice.code, "duplicate_tool_name")
      assert.strictEqual(yield* registry.snapshot, before)
    }))

  it.scoped("forgets a provider when its scope closes, and its names are free again", () =>
    Effect.gen(function*() {
      const registry = yield* CapabilityRegistry.make()
      const scope = yield* Scope.make()
      yield* Scope.extend(registry.register(provider("one", "a")), scope)
      assert.isTrue((yield* registry.snapshot).tools.has("a"))
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* registry.snapshot).tools.size, 0)
      yield* registry.register(provider("one", "a"))
    }))

  it.scoped("refuses names that not every model can carry, and schemas that are none", () =>
    Effect.gen(function*() {
      const registry = yield* CapabilityRegistry.make()
      for (const name of ["", "a b", "a.b", "名", "x".repeat(65), "read\n"]) {
        const refused = yield* Effect.flip(registry.register(provider("p", name)))
        assert.strictEqual(refused.code, "invalid_tool", name)
      }
      const raw = Tool.fromJsonSchema("raw", {
        description: "",
        parameters: { type: "strng" },
        handler: () => Effect.succeed(null)
      })
      const refused = yield* Effect.flip(registry.register(ToolProvider.make({ id: "p", kind: "mcp", tools: [raw] })))
      assert.strictEqual(refused.code, "invalid_tool")
      assert.strictEqual((yield* registry.snapshot).providers.size, 0)
    }))

  it.scopedLive("a catalog of 1,000 tools has one fingerprint in any order of registration", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const names = Array.from({ length: 1000 }, (_, index) => `tool_${index}`)
      const fingerprints = new Set<string>()
      for (const order of [names, names.toReversed(), names.toSorted((left, right) => left.localeCompare(right))]) {
        const providers = [0, 1, 2, 3].map((part) => provider(`p${part}`, ...order.slice(part * 250, (part + 1) * 250)))
        const session = yield* openCatalog({ workspace: root }).pipe(Effect.provide(Test.layer(providers)))
        assert.strictEqual(session.catalog.tools.length, 1000)
        fingerprints.add(session.catalog.fingerprint.fingerprint)
      }
      assert.strictEqual(fingerprints.size, 1)
    }).pipe(Effect.provide(NodeFileSystem.layer)))

  it.scopedLive("a hot change is invisible inside a turn, reported once, and applies from the next", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      yield* Effect.gen(function*() {
        const registry = yield* CapabilityRegistry.CapabilityRegistry
        const host = yield* ToolHost
        const session = yield* host.openTurn({ workspace: root, threadId: "t" })
        assert.isUndefined(yield* session.drift)
        yield* registry.register(provider("late", "late"))
        const drift = yield* session.drift
        assert.deepInclude(drift, { grade: "additive", deferred: true })
        assert.isUndefined(yield* session.drift, "the same change is reported once")
        assert.deepStrictEqual(session.catalog.tools.map(({ name }) => name), ["early"])
        const inside = yield* session.execute(ToolCall.make({ toolName: "late" }))
        assert.strictEqual(inside.code, "tool_unknown")
        const next = yield* host.openTurn({ workspace: root, threadId: "t" })
        assert.deepStrictEqual(next.catalog.tools.map(({ name }) => name), ["early", "late"])
        assert.deepInclude(yield* next.drift, { grade: "additive", deferred: false })
        assert.isFalse((yield* next.execute(ToolCall.make({ toolName: "late" }))).isError)
        const turn = yield* session.turn
        const journal = yield* EventJournal
        const changes = (yield* journal.entries(turn.threadId)).filter(({ event }) =>
          event._tag === "tool_catalog_changed"
        )
        assert.lengthOf(changes, 2)
        const plan = yield* host.openTurn({ workspace: root, threadId: "t", threadMode: "plan" })
        assert.isUndefined(yield* plan.drift, "another mode shows other tools, and that is no drift")
      }).pipe(Effect.provide(Test.layer([provider("p", "early")])))
    }).pipe(Effect.provide(NodeFileSystem.layer)))

  it.scopedLive("explains for every hidden tool which filter hid it, in the order of the filters", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const off = ToolProvider.make({
        id: "off",
        kind: "web",
        tools: [tool("fetch")],
        policy: { enabled: true, available: false, reason: "no backend" }
      })
      const make = (name: string, extra: object) => ({ ...tool(name), ...extra })
      const mixed = ToolProvider.make({
        id: "mixed",
        kind: "built-in",
        tools: [
          make("denied", {}),
          make("changes", { kind: "file_change" }),
          make("shy", { readOnly: true, shouldAdvertise: () => false }),
          make("broken", {
            readOnly: true,
            shouldAdvertise: () => {
              throw new Error("x")
            }
          }),
          make("alias", { readOnly: true, modelAdvertised: false }),
          make("command", { readOnly: true, kind: "command_execution" }),
          make("read", { readOnly: true })
        ]
      })
      const session = yield* Effect.flatMap(
        ToolHost,
        (host) => host.openTurn({ workspace: root, threadMode: "plan", tools: { deny: ["denied", "fetch"] } })
      ).pipe(
        Effect.provide(Test.layer([off, mixed]))
      )
      assert.deepStrictEqual(session.catalog.tools.map(({ name }) => name), ["read"])
      assert.deepStrictEqual(
        session.catalog.explain().map(({ filter, toolName }) => [toolName, filter]),
        [
          ["alias", "hidden"],
          ["broken", "advertise"],
          ["changes", "plan"],
          ["command", "sandbox"],
          ["denied", "names"],
          ["fetch", "provider"],
          ["shy", "advertise"]
        ]
      )
      assert.include(session.catalog.explain().find(({ toolName }) => toolName === "fetch")?.reason, "no backend")
    }).pipe(Effect.provide(NodeFileSystem.layer)))

  it.scopedLive("nobody gets more by asking: the host's authority clamps a turn and its later modes", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const session = yield* Effect.flatMap(ToolHost, (host) =>
        host.openTurn({
          workspace: root,
          sandboxMode: "danger-full-access",
          approvalPolicy: "auto",
          tools: { allow: ["a", "b"] }
        })).pipe(Effect.provide(Test.layer([provider("p", "a", "b", "c")], {
          host: { authority: { sandboxMode: "workspace-write", approvalPolicy: "always", tools: { deny: ["b"] } } }
        })))
      const turn = yield* session.turn
      assert.deepInclude(turn, { sandboxMode: "workspace-write", approvalPolicy: "always", threadMode: "agent" })
      assert.deepStrictEqual(session.catalog.tools.map(({ name }) => name), ["a"])
      const later = yield* session.setMode({ sandboxMode: "danger-full-access", approvalPolicy: "auto" })
      assert.deepInclude(later, { sandboxMode: "workspace-write", approvalPolicy: "always" })
      const plan = yield* session.setMode({ threadMode: "plan", sandboxMode: "read-only" })
      assert.deepInclude(plan, { sandboxMode: "read-only", threadMode: "plan" })
    }).pipe(Effect.provide(NodeFileSystem.layer)))
})
