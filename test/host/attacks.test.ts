/** Ways past the gates that were found by trying, each closed. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as FileSystem from "@effect/platform/FileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import type { Json } from "../../src/contract/Json.ts"
import type { ToolKind } from "../../src/contract/Policy.ts"
import * as ToolCall from "../../src/contract/ToolCall.ts"
import type { ToolResult } from "../../src/contract/ToolResult.ts"
import type { TurnSpecInput } from "../../src/contract/Turn.ts"
import { ApprovalGate } from "../../src/gate/ApprovalGate.ts"
import type * as HookGate from "../../src/gate/HookGate.ts"
import * as PermissionRules from "../../src/gate/PermissionRules.ts"
import * as OperationLedger from "../../src/host/OperationLedger.ts"
import { ToolHost } from "../../src/host/ToolHost.ts"
import { EventJournal } from "../../src/journal/EventJournal.ts"
import * as Tool from "../../src/tool/Tool.ts"
import * as ToolProvider from "../../src/tool/ToolProvider.ts"
import { eventually, probe, recorder, Test, workspace } from "../support/plane.ts"

const ids = { threadId: "t", turnId: "u" }
const auto = { approvalPolicy: "auto", sandboxMode: "danger-full-access" } as const

const execute = (
  tool: Tool.Tool<string, never, "shared">,
  call: Omit<Parameters<typeof ToolCall.make>[0], "toolName">,
  options: Test.Options = {},
  spec: Partial<TurnSpecInput> = auto
): Effect.Effect<ToolResult> =>
  Effect.gen(function*() {
    const { root } = yield* workspace
    const provider = ToolProvider.make({ id: "p", kind: "built-in", tools: [tool] })
    return yield* Effect.flatMap(ToolHost, (host) =>
      host.execute(ToolCall.make({ toolName: tool.name, ...call }), { workspace: root, ...ids, ...spec })).pipe(
        Effect.provide(Test.layer([provider], options))
      )
  }).pipe(Effect.scoped, Effect.provide(NodeFileSystem.layer), Effect.orDie)

const hooked = (hook: HookGate.Hook): Test.Options => ({ hooks: [hook] })

describe("what a model sends", () => {
  const tool = Tool.make("probe", {
    description: "",
    policy: "auto",
    parameters: Schema.Struct({
      force: Schema.optionalWith(Schema.Boolean, { exact: true }),
      options: Schema.optionalWith(Schema.Struct({ rm: Schema.Boolean }), { exact: true })
    }),
    success: Schema.String,
    handler: () => Effect.succeed("ran")
  })
  const dangerous = (args: Json): boolean => /"(force|rm)":true/.test(JSON.stringify(args))
  const guard = hooked({
    phase: "Guard",
    name: "g",
    run: (call) => Effect.succeed(dangerous(call.arguments) ? "no" : undefined)
  })
  for (const args of [{ force: true }, { force: "true" }, { options: { rm: true } }, { options: "{\"rm\":true}" }]) {
    it.live(`does not get past a guard by a form that decoding mends: ${JSON.stringify(args)}`, () =>
      Effect.map(execute(tool, { arguments: args }, guard), ({ code }) => assert.strictEqual(code, "guard_denied")))
  }

  it.live("does not get past a deny rule by claiming another kind", () =>
    Effect.gen(function*() {
      const { tool } = probe({ policy: "auto", kind: "file_change" })
      const rules: ReadonlyArray<PermissionRules.Rule> = [
        { name: "r", decision: "deny", reason: "no", matches: ({ kind }) => kind === "file_change" }
      ]
      const claims: ReadonlyArray<ToolKind | undefined> = [undefined, "tool_call", "file_change", "command_execution"]
      for (const claimedKind of claims) {
        assert.strictEqual((yield* execute(tool, { claimedKind }, { rules })).code, "rule_denied")
      }
    }))

  it.live("is not executed as anything but what was approved, whatever a normaliser does with its object", () =>
    Effect.gen(function*() {
      const kept = { v: "safe" }
      const tool = Tool.fromJsonSchema("probe", {
        description: "",
        parameters: { type: "object" },
        normalize: () => kept,
        handler: (args) => Effect.succeed(args["v"] ?? null)
      })
      const approver = {
        name: "a",
        review: () =>
          Effect.sync(() => {
            kept.v = "evil"
            return { decision: "allow", principal: "a" } as const
          })
      }
      const result = yield* execute(tool, {}, { approvals: { approver } }, {})
      assert.deepStrictEqual([result.output, result.effectiveArguments], ["safe", { v: "safe" }])
    }))
})

describe("an answer", () => {
  it.scopedLive("holds for the file that was asked about, not for what its name leads to later", () =>
    Effect.gen(function*() {
      const fileSystem = yield* FileSystem.FileSystem
      const { outside, root } = yield* workspace
      yield* fileSystem.writeFileString(`${outside}/harmless`, "x")
      yield* fileSystem.writeFileString(`${outside}/secret`, "x")
      yield* fileSystem.symlink(`${outside}/harmless`, `${root}/link`)
      const asks = recorder()
      const { provider, runs } = probe({
        policy: "auto",
        kind: "file_change",
        targets: () => [{ path: "link", requiresRead: false, quotes: [] }]
      })
      const approver = {
        name: "a",
        review: (record: Parameters<typeof asks.approver.review>[0]) =>
          Effect.zipRight(
            Effect.orDie(Effect.zipRight(
              fileSystem.remove(`${root}/link`),
              fileSystem.symlink(`${outside}/secret`, `${root}/link`)
            )),
            asks.approver.review(record)
          )
      }
      yield* Effect.gen(function*() {
        const host = yield* ToolHost
        const call = ToolCall.make({ callId: "c", toolName: "probe" })
        for (let repeat = 0; repeat < 3; repeat++) {
          const result = yield* host.execute(call, { workspace: root, ...ids })
          if (repeat < 2) assert.strictEqual(result.code, "approval_superseded")
        }
        const seen = asks.asked.flatMap(({ outsideTargets }) => outsideTargets)
        assert.isTrue(
          runs.count === 0 || seen.includes(`${outside}/secret`),
          "it ran only if that file was asked about"
        )
      }).pipe(Effect.provide(Test.layer([provider], { approvals: { approver } })))
    }).pipe(Effect.provide(NodeFileSystem.layer)))

  it.scopedLive("is judged by the rules and modes as they are when it comes", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      for (const change of ["rule", "plan", "read-only"] as const) {
        const rules = yield* Ref.make<PermissionRules.RuleSet>(PermissionRules.none)
        const { provider, runs } = probe({ kind: "file_change" })
        const live = Layer.succeed(PermissionRules.PermissionRules, { current: Ref.get(rules) })
        const plane = ToolHostOver(provider, live)
        yield* Effect.gen(function*() {
          const gate = yield* ApprovalGate
          const session = yield* Effect.flatMap(ToolHost, (host) => host.openTurn({ workspace: root, ...ids }))
          const waiting = yield* Effect.fork(session.execute(ToolCall.make({ toolName: "probe" })))
          const [open] = yield* eventually(gate.pending, (list) => list.length === 1)
          if (change === "plan") yield* session.setMode({ threadMode: "plan" })
          if (change === "read-only") yield* session.setMode({ sandboxMode: "read-only" })
          if (change === "rule") {
            yield* Ref.set(
              rules,
              PermissionRules.compile([{ name: "stop", decision: "deny", reason: "stop", matches: () => true }])
            )
          }
          yield* gate.decide(open?.id ?? "", { decision: "allow", principal: "p" })
          const { code } = yield* Fiber.join(waiting)
          const expected = { rule: "rule_denied", plan: "plan_mode_blocked", "read-only": "sandbox_read_only" }
          assert.deepStrictEqual([code, runs.count], [expected[change], 0])
        }).pipe(Effect.scoped, Effect.provide(plane))
      }
    }).pipe(Effect.provide(NodeFileSystem.layer)))

  it.scopedLive("is used once: the operation it was given to has used it up", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const asks = recorder()
      const { provider, runs } = probe({ policy: "on-request" })
      const ledger = OperationLedger.layerMemory({ keep: 1 })
      yield* Effect.gen(function*() {
        const host = yield* ToolHost
        for (const callId of ["c", "d", "c"]) {
          yield* host.execute(ToolCall.make({ callId, toolName: "probe" }), { workspace: root, ...ids })
        }
        assert.strictEqual(asks.asked.length, runs.count, "every execution was asked about")
      }).pipe(Effect.provide(Test.layer([provider], { ledger, approvals: { approver: asks.approver } })))
    }).pipe(Effect.provide(NodeFileSystem.layer)))

  it.live("is given by somebody who was told what hooks and rules say", () =>
    Effect.gen(function*() {
      const asks = recorder()
      const { tool } = probe({ policy: "auto" })
      yield* execute(tool, {}, {
        ...hooked({
          phase: "PreToolUse",
          name: "h",
          run: () => Effect.succeed({ decision: "ask", reason: "it is Friday" })
        }),
        rules: [{ name: "r", decision: "ask", reason: "it deploys", matches: () => true }],
        approvals: { approver: asks.approver }
      })
      assert.deepStrictEqual(asks.asked.map(({ notes, reasons }) => [reasons, notes]), [
        [["hook", "rule"], ["it is Friday", "it deploys"]]
      ])
    }))

  it.live("is not sought under approval policy never, not even for a question to the user", () =>
    Effect.gen(function*() {
      const asks = recorder()
      const { tool } = probe({ policy: "auto", interactive: true })
      const options = {
        ...hooked({ phase: "PreToolUse", name: "h", run: () => Effect.succeed({ decision: "ask" }) }),
        approvals: { approver: asks.approver }
      }
      const result = yield* execute(tool, {}, options, { approvalPolicy: "never" })
      assert.deepStrictEqual([result.code, asks.asked.length], ["approval_policy_blocked", 0])
    }))
})

/** A plane whose rules may change. */
const ToolHostOver = (
  provider: ToolProvider.ToolProvider,
  rules: Layer.Layer<PermissionRules.PermissionRules>
) => Test.layer([provider], { approvals: { approver: "external" }, rules })

describe("modes", () => {
  it.scopedLive("that are none change nothing, and changes at once are all made", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      yield* Effect.gen(function*() {
        const session = yield* Effect.flatMap(ToolHost, (host) => host.openTurn({ workspace: root }))
        const bad = yield* Effect.flip(session.setMode(JSON.parse("{\"sandboxMode\":\"readonly\"}")))
        assert.strictEqual(bad.code, "turn_spec_invalid")
        yield* Effect.all([session.setMode({ threadMode: "plan" }), session.setMode({ approvalPolicy: "always" })], {
          concurrency: 2
        })
        assert.deepInclude(yield* session.turn, {
          threadMode: "plan",
          approvalPolicy: "always",
          sandboxMode: "workspace-write"
        })
      }).pipe(Effect.provide(Test.layer([])))
    }).pipe(Effect.provide(NodeFileSystem.layer)))
})

const evil = (): unknown =>
  Object.defineProperty(Object.create(Error.prototype), "message", {
    get: () => {
      throw new Error("gotcha")
    }
  })

describe("whatever a tool or a hook hands over", () => {
  const body = (effect: Effect.Effect<string, Tool.HandlerError<string>>, extra: object = {}) =>
    probe({ policy: "auto", body: effect, ...extra }).tool
  const big = "p".repeat(9 * 1024 * 1024)
  const post = (answer: unknown) =>
    hooked({ phase: "PostToolUse", name: "h", run: () => Effect.succeed(JSON.parse(JSON.stringify(answer))) })
  const around = (answer: unknown): Test.Options =>
    hooked({
      phase: "Around",
      name: "h",
      run: (_call, _turn, next) => Effect.map(next, (outcome) => Object.assign({}, outcome, answer))
    })

  const cases: { readonly [name: string]: readonly [Tool.Tool<string, never, "shared">, Test.Options, string | null] } =
    {
      "a defect whose message throws": [body(Effect.die(evil())), {}, "tool_execution_failed"],
      "a render that is no list": [body(Effect.succeed("x"), { render: () => undefined }), {}, "tool_output_invalid"],
      "a render with bytes for base64": [
        body(Effect.succeed("x"), {
          render: () => [{ type: "image", mediaType: "image/png", data: new Uint8Array(3) }]
        }),
        {},
        "tool_output_invalid"
      ],
      "a finalizer that makes nothing": [
        body(Effect.succeed("x"), { finalize: () => undefined }),
        {},
        "tool_output_invalid"
      ],
      "a wrapper that makes no content": [body(Effect.succeed("x")), around({ content: 1 }), "tool_output_invalid"],
      "a wrapper that makes an error without a code": [
        body(Effect.succeed("x")),
        around({ isError: true, code: null }),
        "tool_output_invalid"
      ],
      "a post hook that answers null": [body(Effect.succeed("x")), post(null), "hook_failed"],
      "a post hook that blocks with a number": [body(Effect.succeed("x")), post({ block: 5 }), "hook_failed"],
      "an observer that dies of something unspeakable": [
        body(Effect.succeed("x")),
        hooked({ phase: "Observer", name: "h", run: () => Effect.die(evil()) }),
        null
      ],
      "nine megabytes through a wrapper": [body(Effect.succeed(big)), around({}), null]
    }
  for (const [name, [tool, options, code]] of Object.entries(cases)) {
    it.live(`${name} ends as a result, settled once: ${code ?? "success"}`, () =>
      Effect.gen(function*() {
        const result = yield* execute(tool, {}, options)
        assert.strictEqual(result.code, code, JSON.stringify(result.output).slice(0, 300))
        assert.isTrue(result.executed)
        assert.deepStrictEqual(JSON.parse(JSON.stringify(result)), result)
      }))
  }

  it.live("is kept whole when a hook fails after it, large as it is", () =>
    Effect.gen(function*() {
      const fails = hooked({ phase: "PostToolUse", name: "h", run: () => Effect.fail("x") })
      const result = yield* execute(body(Effect.succeed(big)), {}, fails)
      assert.strictEqual(result.code, "hook_failed")
      assert.nestedPropertyVal(result.output, "details.output", big)
    }))

  it.live("is not changed afterwards by who made it, and has no broken text", () =>
    Effect.gen(function*() {
      const part = { type: "text", text: "first \ud800" }
      const tool = body(Effect.succeed("x"), { render: () => Object.freeze([part]) })
      const result = yield* execute(tool, {})
      part.text = "changed"
      assert.deepStrictEqual(result.content, [{ type: "text", text: "first \ufffd" }])
    }))

  it.live("does not give away what else an error holds", () =>
    Effect.gen(function*() {
      const error = Object.assign(new Error("401"), {
        request: { headers: { authorization: "Bearer secret" } },
        response: { status: 401, headers: { "set-cookie": "secret", "retry-after": "3" } }
      })
      const result = yield* execute(body(Effect.fail(error)), {})
      assert.notInclude(JSON.stringify(result), "secret")
      assert.deepNestedInclude(result.output, { "details.status": 401, "details.headers": { "retry-after": "3" } })
    }))

  it.live("is a tool's word only where a tool may have it", () =>
    Effect.gen(function*() {
      const forged = Object.assign(new Error("x"), { code: "tool_not_started" }) as Error
      assert.strictEqual((yield* execute(body(Effect.fail(forged)), {})).code, "tool_execution_failed")
    }))

  it.scopedLive("an observer that hangs holds up nobody for long", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const told = yield* Deferred.make<void>()
      const hangs: HookGate.Hook = {
        phase: "Observer",
        name: "h",
        run: () => Effect.zipRight(Deferred.succeed(told, undefined), Effect.never)
      }
      const { provider } = probe({ policy: "auto" })
      yield* Effect.gen(function*() {
        const host = yield* ToolHost
        const running = yield* Effect.fork(
          host.execute(ToolCall.make({ toolName: "probe" }), { workspace: root, ...ids })
        )
        yield* Deferred.await(told)
        yield* Fiber.interrupt(running).pipe(Effect.timeoutFail({ duration: "60 seconds", onTimeout: () => "stuck" }))
        const ledger = yield* OperationLedger.OperationLedger
        assert.deepStrictEqual((yield* ledger.list()).map(({ state }) => state), ["settled"])
      }).pipe(Effect.provide(Test.layer([provider], { hooks: [hangs] })))
    }).pipe(Effect.provide(NodeFileSystem.layer)), 90_000)

  it.scopedLive("two calls of one id leave one start and one item in the journal", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const release = yield* Deferred.make<void>()
      const { provider } = probe({ policy: "auto", body: Effect.as(Deferred.await(release), "done") })
      yield* Effect.gen(function*() {
        const host = yield* ToolHost
        const journal = yield* EventJournal
        const session = yield* host.openTurn({ workspace: root, ...ids })
        const call = ToolCall.make({ callId: "c", toolName: "probe" })
        const first = yield* Effect.fork(session.execute(call))
        yield* eventually((yield* OperationLedger.OperationLedger).list(), (list) => list.length === 1)
        assert.strictEqual((yield* session.execute(call)).code, "tool_invocation_in_progress")
        yield* Deferred.succeed(release, undefined)
        yield* Fiber.join(first)
        const turn = yield* session.turn
        const tags = (yield* journal.entries(turn.threadId)).map(({ event }) => event._tag)
        assert.deepStrictEqual(tags.filter((tag) => tag.startsWith("call_")), ["call_started", "call_settled"])
      }).pipe(Effect.provide(Test.layer([provider])))
    }).pipe(Effect.provide(NodeFileSystem.layer)))
})
