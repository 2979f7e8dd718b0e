import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { ChildStack, layer, type Options } from "../../src/agent/ChildStack.ts"
import { CapabilityRegistry } from "../../src/catalog/CapabilityRegistry.ts"
import { usable } from "../../src/contract/Provider.ts"
import * as ToolCall from "../../src/contract/ToolCall.ts"
import { ThreadId } from "../../src/contract/Turn.ts"
import { MaxFileBytes } from "../../src/file/TextFile.ts"
import { layerDenyAll, SandboxGate } from "../../src/gate/SandboxGate.ts"
import { ToolHost } from "../../src/host/ToolHost.ts"
import * as RegistryLaws from "../../src/testing/contract/CapabilityRegistry.ts"
import * as HostLaws from "../../src/testing/contract/ToolHost.ts"
import * as Tool from "../../src/tool/Tool.ts"
import * as ToolProvider from "../../src/tool/ToolProvider.ts"
import { edit, EditExactOnly } from "../../src/tools/edit.ts"
import { ls } from "../../src/tools/ls.ts"
import { read } from "../../src/tools/read.ts"
import { write } from "../../src/tools/write.ts"
import { count } from "../support/counts.ts"
import { probe, recorder, Test, workspace } from "../support/plane.ts"

const files = ToolProvider.make({ id: "files", kind: "built-in", tools: [read, ls, write, edit] })

/** A main host and the stack of its children, over one plane in which everything is allowed. */
const planes = (options: Options = {}, test: Test.Options = {}) =>
  layer([files], options).pipe(
    Layer.provideMerge(Test.layer([files], { approvals: { approver: recorder().approver }, ...test }))
  )

const live = Effect.provide(NodeFileSystem.layer)

const call = (toolName: string, args: Readonly<Record<string, string>>) => ToolCall.make({ toolName, arguments: args })

describe("the registry and the host of children", () => {
  const empty = Layer.effect(CapabilityRegistry, Effect.map(ChildStack, ({ registry }) => registry)).pipe(
    Layer.provide(layer([])),
    Layer.provide(Test.services())
  )
  for (const { law, name } of [...RegistryLaws.laws, ...RegistryLaws.sharedLaws]) {
    it.live(name, () => Effect.provide(law, empty))
  }
  HostLaws.laws("").forEach(({ name }, index) => {
    it.scopedLive(name, () =>
      Effect.gen(function*() {
        const { root } = yield* workspace
        const law = HostLaws.laws(root)[index]
        yield* (law?.law ?? Effect.dieMessage("no such law"))
      }).pipe(
        Effect.provide(
          Layer.effect(ToolHost, Effect.map(ChildStack, ({ host }) => host)).pipe(
            Layer.provide(layer([HostLaws.provider])),
            Layer.provide(Test.services())
          )
        ),
        live
      ))
  })
})

describe("a child's host", () => {
  it.scopedLive("shares the gates and the files of the main host, but not its tools", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const asks = recorder()
      const { provider, runs } = probe()
      yield* Effect.gen(function*() {
        const { host, registry } = yield* ChildStack
        const main = yield* CapabilityRegistry
        yield* main.register(provider)
        const child = yield* host.openTurn({ workspace: root, threadId: "child" })
        assert.strictEqual((yield* child.execute(call("write", { path: "a", content: "1" }))).code, null)
        assert.strictEqual(readFileSync(join(root, "a"), "utf8"), "1")
        assert.deepStrictEqual(asks.asked.map(({ threadId, toolName }) => [threadId, toolName]), [["child", "write"]])
        assert.strictEqual((yield* child.execute(call("probe", {}))).code, "tool_unknown")
        yield* registry.register(provider)
        const later = yield* host.openTurn({ workspace: root, threadId: "child" })
        assert.strictEqual((yield* later.execute(call("probe", {}))).code, null)
        assert.strictEqual(runs.count, 1)
      }).pipe(Effect.provide(planes({}, { approvals: { approver: asks.approver } })))
    }).pipe(live))

  it.scopedLive("has what the main registry has switched off or found broken no longer, from the next turn on", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      yield* Effect.gen(function*() {
        const main = yield* CapabilityRegistry
        const { follow, host, registry } = yield* ChildStack
        yield* follow(main)
        const listed = Effect.map(host.execute(call("ls", {}), { workspace: root }), ({ code }) => code)
        const policyIn = (from: CapabilityRegistry["Type"]) =>
          Effect.map(from.snapshot, ({ providers }) => providers.get("files")?.policy)
        const open = yield* host.openTurn({ workspace: root, threadId: "open" })
        assert.strictEqual(yield* registry.snapshot, yield* registry.snapshot)
        for (
          const off of [
            { enabled: false, available: true, reason: "off" },
            { enabled: true, available: false, reason: "broken" }
          ]
        ) {
          yield* main.setPolicy("files", off)
          assert.deepStrictEqual(yield* policyIn(registry), off)
          assert.strictEqual(yield* listed, "tool_not_advertised")
          // A turn that is open has what it pinned, as one of the main host has.
          assert.strictEqual((yield* open.execute(call("ls", {}))).code, null)
        }
        yield* main.setPolicy("files", usable)
        assert.strictEqual(yield* listed, null)
        // The other way round nothing is given back.
        const own = { enabled: false, available: true, reason: "not for children" }
        yield* registry.setPolicy("files", own)
        yield* main.setPolicy("files", { enabled: false, available: true, reason: "off" })
        assert.deepStrictEqual(yield* policyIn(registry), own)
        yield* main.setPolicy("files", usable)
        assert.strictEqual(yield* listed, "tool_not_advertised")
      }).pipe(Effect.provide(planes()))
    }).pipe(live))

  it.scopedLive("is clamped by an authority of its own, which cannot give the reserved names back", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      yield* Effect.gen(function*() {
        const { host } = yield* ChildStack
        const session = yield* host.openTurn({
          workspace: root,
          sandboxMode: "danger-full-access",
          tools: { allow: ["read", "computer_use"] }
        })
        const turn = yield* session.turn
        assert.strictEqual(turn.sandboxMode, "read-only")
        assert.isTrue(["browser_use", "computer_use", "ls"].every((name) => turn.tools.deny.has(name)))
        assert.deepStrictEqual(session.catalog.fingerprint.toolNames, ["read"])
      }).pipe(Effect.provide(planes({ authority: { sandboxMode: "read-only", tools: { deny: ["ls"] } } })))
    }).pipe(live))

  it.scopedLive("knows its children's reads alone, also in file tools that are registered later", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      yield* Effect.gen(function*() {
        const main = yield* ToolHost
        const { host, reads, registry } = yield* ChildStack
        yield* registry.replace(files)
        writeFileSync(join(root, "f"), "one\n")
        const spec = { workspace: root, threadId: "same" }
        const edit = (newText: string) => call("edit", { path: "f", oldText: "one", newText })
        yield* main.execute(call("read", { path: "f" }), spec)
        assert.strictEqual((yield* host.execute(edit("child"), spec)).code, "read_before_edit_required")
        yield* host.execute(call("read", { path: "f" }), spec)
        yield* reads.clear(ThreadId.make("same"))
        assert.strictEqual((yield* host.execute(edit("child"), spec)).code, "read_before_edit_required")
        yield* host.execute(call("read", { path: "f" }), spec)
        assert.strictEqual((yield* host.execute(edit("one more"), spec)).code, null)
        assert.strictEqual((yield* main.execute(edit("main"), spec)).code, "stale_read")
        assert.strictEqual(readFileSync(join(root, "f"), "utf8"), "one more\n")
      }).pipe(Effect.provide(planes()))
    }).pipe(live))

  it.scopedLive("a thousand children push neither the root's reads out nor each other's", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      yield* Effect.gen(function*() {
        const main = yield* ToolHost
        const { host } = yield* ChildStack
        writeFileSync(join(root, "f"), "one\n")
        const read = call("read", { path: "f" })
        const edit = call("edit", { path: "f", oldText: "one", newText: "one" })
        yield* main.execute(read, { workspace: root, threadId: "root" })
        const children = Array.from({ length: count({ quick: 300, soak: 1000 }) }, (_, index) => `child_${index}`)
        for (const threadId of children) yield* host.execute(read, { workspace: root, threadId })
        for (const threadId of ["root", ...children.slice(0, 3)]) {
          const edited = yield* (threadId === "root" ? main : host).execute(edit, { workspace: root, threadId })
          // Past the read check: the edit itself has nothing to do.
          assert.strictEqual(edited.code, "edit_no_change", threadId)
        }
      }).pipe(Effect.provide(planes()))
    }).pipe(live))
})

class Mine extends Context.Tag("test/Mine")<Mine, string>() {}
class Theirs extends Context.Tag("test/Theirs")<Theirs, string>() {}

/** Tells which services its handler can reach. */
const reaching = Tool.make("reaching", {
  description: "",
  policy: "auto",
  parameters: Schema.Struct({}),
  success: Schema.Array(Schema.String),
  handler: () =>
    Effect.gen(function*() {
      yield* Theirs
      const { unsafeMap } = yield* Effect.context<never>()
      return [...unsafeMap.keys()].sort()
    })
})

describe("a child's tools", () => {
  it.scopedLive("reach the services that are named, and no other of whoever built the stack or runs the call", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const stack = layer([ToolProvider.make({ id: "p", kind: "built-in", tools: [reaching] })], { shares: [Theirs] })
        .pipe(
          Layer.provide([Test.layer([]), Layer.succeed(Theirs, "theirs"), Layer.succeed(Mine, "mine")]),
          Layer.provide(Layer.succeed(EditExactOnly, true))
        )
      const { output } = yield* Effect.flatMap(
        ChildStack,
        ({ host }) => host.execute(call("reaching", {}), { workspace: root })
      ).pipe(
        Effect.provideService(Mine, "mine"),
        Effect.provide(Layer.provide(stack, Layer.succeed(Mine, "mine"))),
        Effect.provideService(MaxFileBytes, 10)
      )
      assert.deepStrictEqual(output, [
        "@effect/platform/FileSystem",
        "@effect/platform/Path",
        "effect/Scope",
        "portcullis/ApprovalGate",
        "portcullis/EditExactOnly",
        "portcullis/EventJournal",
        "portcullis/FileAccess",
        "portcullis/FileHistory",
        "portcullis/FileMutationQueue",
        "portcullis/HookGate",
        "portcullis/MaxFileBytes",
        "portcullis/OperationLedger",
        "portcullis/PermissionRules",
        "portcullis/ProcessSandbox",
        "portcullis/ReadTracker",
        "portcullis/SandboxGate",
        "portcullis/ToolInvocation",
        "portcullis/WorkspacePath",
        "test/Theirs"
      ])
    }).pipe(live))

  it.scopedLive("keep the gates of the stack, whatever the one who registers them has", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const gate = ToolProvider.make({
        id: "gate",
        kind: "built-in",
        tools: [
          Tool.make("gate", {
            description: "",
            policy: "auto",
            parameters: Schema.Struct({}),
            success: Schema.String,
            handler: () =>
              Effect.gen(function*() {
                const table = yield* (yield* SandboxGate).table("danger-full-access")
                return table("command_execution", "host", false)._tag
              })
          })
        ]
      })
      yield* Effect.gen(function*() {
        const { host, registry } = yield* ChildStack
        yield* Effect.provide(registry.register(gate), layerDenyAll)
        assert.strictEqual((yield* host.execute(call("gate", {}), { workspace: root })).output, "Pass")
      }).pipe(Effect.provide(planes()))
    }).pipe(live))
})
