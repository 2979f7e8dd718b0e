import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { rightsOf } from "../../src/agent/Authority.ts"
import { ChildStack, layer as childStack } from "../../src/agent/ChildStack.ts"
import { CapabilityRegistry } from "../../src/catalog/CapabilityRegistry.ts"
import { usable } from "../../src/contract/Provider.ts"
import * as ToolCall from "../../src/contract/ToolCall.ts"
import { ToolHost } from "../../src/host/ToolHost.ts"
import * as ToolProvider from "../../src/tool/ToolProvider.ts"
import { type Action, Capability, ComputerError, make, type Options } from "../../src/tools/computer_use.ts"
import { place, program } from "../support/cli.ts"
import { eventually, probe, recorder, Test, workspace } from "../support/plane.ts"

const live = Effect.provide(NodeFileSystem.layer)

/** A machine that keeps what was done to it. */
const machine = () => {
  const done: Array<Action> = []
  const driver: NonNullable<Options["driver"]> = {
    act: (action) =>
      Effect.suspend(() => {
        done.push(action)
        return action.type === "key"
          ? Effect.fail(new ComputerError({ code: "unsupported_action", reason: "No keyboard." }))
          : Effect.succeed({
            screenshot: action.type === "wait" ? null : { mediaType: "image/png" as const, data: "iVBORw0=" }
          })
      })
  }
  return { done, driver }
}

const act = (action: unknown) => ToolCall.make({ toolName: "computer_use", arguments: { action } })
const screenshot = act({ type: "screenshot" })

/** A turn whose model can see. */
const seeing = (root: string) => ({ workspace: root, model: { inputModalities: ["text", "image"] } }) as const

const allowing = () => {
  const asks = recorder()
  return { asked: asks.asked, approvals: { approver: asks.approver } }
}

describe("computer_use", () => {
  it.scopedLive("acts for a main agent, each time after an approval, whatever hooks and policies say", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const { done, driver } = machine()
      const { approvals, asked } = allowing()
      yield* Effect.gen(function*() {
        const host = yield* ToolHost
        const session = yield* host.openTurn({
          ...seeing(root),
          approvalPolicy: "auto",
          sandboxMode: "danger-full-access"
        })
        const shot = yield* session.execute(screenshot)
        assert.deepStrictEqual(shot.output, { action: "screenshot", actionsLeft: 49 })
        assert.deepStrictEqual(shot.content[1], { type: "image", mediaType: "image/png", data: "iVBORw0=" })
        const click: Action = { type: "click", x: 10, y: 20, button: "right" }
        assert.strictEqual((yield* session.execute(act(click))).code, null)
        assert.strictEqual((yield* session.execute(act({ type: "wait", seconds: 1 }))).content.length, 1)
        const failed = yield* session.execute(act({ type: "key", keys: "ctrl+s" }))
        assert.strictEqual(failed.code, "unsupported_action")
        assert.deepStrictEqual(done.slice(0, 2), [{ type: "screenshot" }, click])
        assert.lengthOf(asked, 4)
      }).pipe(
        Effect.provide(Test.layer([make({ capability: Capability.mint(), driver })], {
          approvals,
          hooks: [{ phase: "PreToolUse", name: "yes", run: () => Effect.succeed({ decision: "allow" }) }]
        }))
      )
    }).pipe(live))

  it.scopedLive("does nothing in a read-only sandbox, nor where nobody agrees", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const { done, driver } = machine()
      yield* Effect.gen(function*() {
        const host = yield* ToolHost
        const readOnly = yield* host.execute(screenshot, { ...seeing(root), sandboxMode: "read-only" })
        assert.strictEqual(readOnly.code, "sandbox_command_blocked")
        assert.strictEqual((yield* host.execute(screenshot, seeing(root))).code, "approval_unavailable")
        assert.deepStrictEqual(done, [])
      }).pipe(Effect.provide(Test.layer([make({ capability: Capability.mint(), driver })])))
    }).pipe(live))

  it.scopedLive("is shown to models that see images, and to no other", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      yield* Effect.gen(function*() {
        const host = yield* ToolHost
        const blind = yield* host.openTurn({ workspace: root })
        assert.deepStrictEqual(blind.catalog.tools, [])
        assert.strictEqual((yield* blind.execute(screenshot)).code, "tool_not_advertised")
        const session = yield* host.openTurn(seeing(root))
        const [tool] = session.catalog.tools
        assert.deepInclude(tool, { name: "computer_use" })
        assert.strictEqual(tool?.parameters["type"], "object")
      }).pipe(Effect.provide(Test.layer([make({ capability: Capability.mint(), driver: machine().driver })])))
    }).pipe(live))

  it.scopedLive("refuses actions out of bounds before anybody is asked", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const { done, driver } = machine()
      const { approvals, asked } = allowing()
      yield* Effect.gen(function*() {
        const session = yield* Effect.flatMap(ToolHost, (host) => host.openTurn(seeing(root)))
        for (
          const action of [
            {},
            { type: "rm" },
            { type: "move", x: -1, y: 0 },
            { type: "move", x: 0.5, y: 0 },
            { type: "click", x: 0, y: 32_768 },
            { type: "click", x: 0, y: 0, count: 1000 },
            { type: "type", text: "" },
            { type: "type", text: "x".repeat(10_001) },
            { type: "key", keys: "a b" },
            { type: "scroll", x: 0, y: 0, direction: "up", amount: 101 },
            { type: "wait", seconds: 31 },
            { type: "screenshot", extra: true }
          ]
        ) {
          assert.strictEqual((yield* session.execute(act(action))).code, "arguments_invalid", JSON.stringify(action))
        }
        assert.deepStrictEqual([done, asked], [[], []])
      }).pipe(Effect.provide(Test.layer([make({ capability: Capability.mint(), driver })], { approvals })))
    }).pipe(live))

  it.scopedLive("stops at its budget of a turn, failed actions counted, and has it anew in the next", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const { done, driver } = machine()
      const { approvals } = allowing()
      const provider = make({ capability: Capability.mint(), driver, maxActionsPerTurn: 3 })
      yield* Effect.gen(function*() {
        const host = yield* ToolHost
        const spec = { ...seeing(root), threadId: "t" }
        const session = yield* host.openTurn(spec)
        const several = [screenshot, act({ type: "key", keys: "a" }), screenshot, screenshot, screenshot]
        const results = yield* Effect.forEach(
          several,
          (one, index) => session.execute({ ...one, callId: ToolCall.CallId.make(`c${index}`) }),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(
          results.map(({ code }) => code).sort(),
          ["action_budget_exhausted", "action_budget_exhausted", "unsupported_action", null, null].sort()
        )
        assert.lengthOf(done, 3)
        assert.strictEqual((yield* host.execute(screenshot, spec)).code, null)
      }).pipe(Effect.provide(Test.layer([provider], { approvals })))
    }).pipe(live))

  it.scopedLive("stops an action when the call is interrupted", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const { approvals } = allowing()
      const held = { down: false }
      const driver: NonNullable<Options["driver"]> = {
        act: () =>
          Effect.acquireUseRelease(
            Effect.sync(() => (held.down = true)),
            () => Effect.never,
            () => Effect.sync(() => (held.down = false))
          )
      }
      yield* Effect.gen(function*() {
        const host = yield* ToolHost
        const running = yield* Effect.fork(host.execute(screenshot, seeing(root)))
        yield* eventually(Effect.sync(() => held.down), (down) => down)
        yield* Fiber.interrupt(running)
        assert.isFalse(held.down)
      }).pipe(Effect.provide(Test.layer([make({ capability: Capability.mint(), driver })], { approvals })))
    }).pipe(live))
})

describe("the capability to control the machine", () => {
  const capability = Capability.mint()

  it("cannot be written down, copied or imitated", () => {
    assert.isTrue(Capability.holds(capability))
    assert.strictEqual(JSON.stringify(capability), "{}")
    const imitations: ReadonlyArray<unknown> = [
      undefined,
      null,
      "{}",
      {},
      JSON.parse(JSON.stringify(capability)),
      structuredClone(capability),
      { ...capability },
      Object.assign({}, capability),
      Object.create(Capability.prototype),
      Object.create(capability),
      new Proxy(capability, {}),
      Object.setPrototypeOf({ minted: true, "#minted": true }, Capability.prototype)
    ]
    for (const imitation of imitations) assert.isFalse(Capability.holds(imitation))
    assert.deepStrictEqual(Reflect.ownKeys(capability), [])
  })

  it.scopedLive("and a driver are needed both; without, the tool is unavailable and says why, even when switched on", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const { done, driver } = machine()
      const { approvals } = allowing()
      const cases: ReadonlyArray<readonly [Options, string]> = [
        [{}, "this process holds no capability to control the machine"],
        [{ driver }, "this process holds no capability to control the machine"],
        [
          { driver, capability: structuredClone(capability) },
          "this process holds no capability to control the machine"
        ],
        [{ capability }, "no driver for this machine is installed"]
      ]
      for (const [options, reason] of cases) {
        const provider = make(options)
        assert.deepStrictEqual(provider.policy, { enabled: true, available: false, reason })
        yield* Effect.gen(function*() {
          const host = yield* ToolHost
          const refused = yield* host.execute(screenshot, seeing(root))
          assert.strictEqual(refused.code, "tool_not_advertised")
          assert.include(JSON.stringify(refused.output), reason)
          yield* (yield* CapabilityRegistry).setPolicy("computerUse", usable)
          const forced = yield* host.execute(screenshot, seeing(root))
          assert.strictEqual(forced.code, "computer_use_unavailable")
        }).pipe(Effect.provide(Test.layer([provider], { approvals })))
      }
      assert.deepStrictEqual(done, [])
    }).pipe(live))
})

describe("a child", () => {
  const { done, driver } = machine()
  const real = make({ capability: Capability.mint(), driver })
  /** What a caller may pass who holds nothing back from a child. */
  const disguises: ReadonlyArray<ToolProvider.ToolProvider> = [
    real,
    { ...real, reach: "shared" },
    { ...real, reach: "shared", id: "other" },
    { ...real, reach: "shared", id: "other", tools: real.tools.map((tool) => ({ ...tool, reach: "shared" as const })) },
    {
      ...real,
      reach: "shared",
      tools: real.tools.map((tool) => ({ ...tool, reach: "shared" as const, name: "harmless" }))
    }
  ]

  it.scopedLive("does not get computer_use by the providers of its stack", () =>
    Effect.gen(function*() {
      for (const disguise of disguises) {
        const built = childStack([Object.assign({}, disguise, { reach: "shared" as const })])
        const refused = yield* Effect.flip(Layer.build(Layer.provide(built, Test.services())))
        assert.strictEqual(refused.code, "main_only_tool")
      }
    }))

  it.scopedLive("does not get it later, by a forged call, by its lists, or by what its parent holds", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const { approvals } = allowing()
      yield* Effect.gen(function*() {
        const main = yield* ToolHost
        const { host, registry } = yield* ChildStack
        for (const disguise of disguises) {
          for (const attempt of [registry.register(disguise), registry.replace(disguise)]) {
            assert.strictEqual((yield* Effect.flip(attempt)).code, "main_only_tool")
          }
        }
        assert.strictEqual((yield* registry.snapshot).tools.size, 0)
        assert.isFalse(yield* registry.setPolicy("computerUse", usable))

        const parent = yield* main.openTurn(seeing(root))
        assert.deepStrictEqual(parent.catalog.fingerprint.toolNames, ["computer_use"])
        const turn = yield* parent.turn
        const rights = rightsOf(turn, [{ allowedTools: ["computer_use"] }])
        const open = { approvalPolicy: "auto", sandboxMode: "danger-full-access" } as const
        const specs = [
          rights,
          open,
          { ...open, tools: { allow: ["computer_use"] } },
          { ...open, tools: { deny: [] }, providers: { allow: ["computerUse"] } }
        ]
        for (const spec of specs) {
          for (const extra of [{}, { providerId: "computerUse" }, { claimedKind: "tool_call" as const }]) {
            const forged = yield* host.execute({ ...screenshot, ...extra }, { ...seeing(root), ...spec })
            assert.strictEqual(forged.code, "tool_unknown")
          }
        }
        const onMain = yield* main.execute(screenshot, { ...seeing(root), ...rights })
        assert.strictEqual(onMain.code, "tool_not_advertised", "its rights alone keep it away, on any host")
        assert.deepStrictEqual(done, [])
      }).pipe(
        Effect.provide(childStack([]).pipe(Layer.provideMerge(Test.layer([real], { approvals }))))
      )
    }).pipe(live))

  it.scopedLive("does not get it by an answer that was remembered for its parent's thread", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const approver = {
        name: "always",
        review: () => Effect.succeed({ decision: "allow", principal: "always", scope: "always" } as const)
      }
      yield* Effect.gen(function*() {
        const main = yield* ToolHost
        const { host } = yield* ChildStack
        const spec = { ...seeing(root), threadId: "t" }
        assert.strictEqual((yield* main.execute(screenshot, spec)).code, null)
        assert.strictEqual((yield* host.execute(screenshot, spec)).code, "tool_unknown")
        assert.lengthOf(done, 1)
      }).pipe(
        Effect.provide(
          childStack([probe().provider]).pipe(Layer.provideMerge(Test.layer([real], { approvals: { approver } })))
        )
      )
    }).pipe(live))
})

describe("the command line", { timeout: 60_000 }, () => {
  const cli = program("layers/cli/main.ts")

  it.scopedLive("refuses computer_use, whatever its environment says, and hides it with the reason", () =>
    Effect.gen(function*() {
      const at = yield* place
      const forged = JSON.stringify(Capability.mint())
      const env = {
        ...at.env,
        PORTCULLIS_COMPUTER_USE: "1",
        PORTCULLIS_CAPABILITY: forged,
        PORTCULLIS_COMPUTER_CAPABILITY: forged
      }
      for (const variables of [at.env, env]) {
        const options = { cwd: at.workspace, env: variables }
        const called = yield* cli.run(
          ["call", "computer_use", "{}", "--answer", "allow", "--sandbox", "danger-full-access", "--json"],
          options
        )
        assert.strictEqual(called.code, 1)
        assert.deepInclude(JSON.parse(called.stdout), { code: "tool_not_advertised", executed: false })
      }
      const listed = yield* cli.run(["catalog", "--explain", "--json"], { cwd: at.workspace, env: at.env })
      const { hidden, tools } = JSON.parse(listed.stdout)
      assert.notInclude(tools.map(({ name }: { readonly name: string }) => name), "computer_use")
      assert.include(
        hidden.find(({ toolName }: { readonly toolName: string }) => toolName === "computer_use").reason,
        "no capability"
      )
    }))
})
