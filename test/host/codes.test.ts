import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as FileSystem from "@effect/platform/FileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import * as ToolCall from "../../src/contract/ToolCall.ts"
import { failureCodes, StateUnavailable, toolError } from "../../src/contract/ToolFailure.ts"
import type { ToolResult } from "../../src/contract/ToolResult.ts"
import type { TurnSpecInput } from "../../src/contract/Turn.ts"
import { ReadTracker } from "../../src/file/ReadTracker.ts"
import { ApprovalGate } from "../../src/gate/ApprovalGate.ts"
import * as HookGate from "../../src/gate/HookGate.ts"
import { OperationLedger } from "../../src/host/OperationLedger.ts"
import { steps } from "../../src/host/steps.ts"
import { ToolHost } from "../../src/host/ToolHost.ts"
import * as ProcessSandbox from "../../src/process/ProcessSandbox.ts"
import * as Tool from "../../src/tool/Tool.ts"
import * as ToolProvider from "../../src/tool/ToolProvider.ts"
import { eventually, probe, type ProbeOptions, recorder, Test, workspace } from "../support/plane.ts"

interface Case {
  readonly probe?: ProbeOptions
  readonly plane?: Test.Options
  readonly spec?: Omit<TurnSpecInput, "workspace">
  readonly call?: Partial<Parameters<typeof ToolCall.make>[0]>
  readonly code: string
  /** How often the handler was started; default never. */
  readonly runs?: number
  readonly check?: (result: ToolResult) => void
}

const auto = { approvalPolicy: "auto", sandboxMode: "danger-full-access" } as const
const hook = (run: HookGate.PreToolUse["run"], timeout?: number): HookGate.Hook => ({
  phase: "PreToolUse",
  name: "h",
  run,
  ...(timeout === undefined ? {} : { timeout })
})
const post = (run: HookGate.PostToolUse["run"]): HookGate.Hook => ({ phase: "PostToolUse", name: "h", run })
const failed = (cause: string) => (result: ToolResult) =>
  assert.nestedPropertyVal(result.output, "details.cause", cause)

const cases: { readonly [name: string]: Case } = {
  "an unknown name comes with near ones": {
    probe: { name: "read" },
    call: { toolName: "raed" },
    code: "tool_unknown",
    check: (result) => assert.nestedPropertyVal(result.output, "details.near[0]", "read")
  },
  "a name of Object.prototype is no tool": { call: { toolName: "constructor" }, code: "tool_unknown" },
  "a denied name is not advertised": {
    spec: { tools: { deny: ["probe"] } },
    code: "tool_not_advertised",
    check: (result) => assert.nestedPropertyVal(result.output, "details.filter", "names")
  },
  "an empty allow list allows nothing": { spec: { tools: { allow: [] } }, code: "tool_not_advertised" },
  "a denied provider is not advertised": {
    spec: { providers: { deny: ["probes"] } },
    code: "tool_not_advertised",
    check: (result) => assert.nestedPropertyVal(result.output, "details.filter", "provider")
  },
  "a call for another provider's tool is refused": { call: { providerId: "other" }, code: "tool_not_advertised" },
  "a tool that hides itself cannot be called": {
    probe: { shouldAdvertise: () => false },
    code: "tool_not_advertised",
    check: (result) => assert.nestedPropertyVal(result.output, "details.filter", "advertise")
  },
  "a disabled tool says so": { probe: { policy: "never" }, code: "tool_disabled" },
  "read-only blocks changes": {
    probe: { kind: "file_change" },
    spec: { ...auto, sandboxMode: "read-only" },
    code: "sandbox_read_only"
  },
  "an external sandbox that nobody runs blocks writes": {
    probe: { kind: "file_change" },
    spec: { ...auto, sandboxMode: "external-sandbox" },
    code: "sandbox_write_blocked"
  },
  "an unconfined command is blocked under workspace-write": {
    probe: { kind: "command_execution", runs: "sandboxed" },
    spec: { ...auto, sandboxMode: "workspace-write" },
    code: "sandbox_command_blocked"
  },
  "a sandbox that cannot be had refuses commands": {
    probe: { kind: "command_execution", runs: "sandboxed" },
    spec: { ...auto, sandboxMode: "workspace-write" },
    plane: { confinement: ProcessSandbox.layerUnavailable("no runner") },
    code: "sandbox_unavailable"
  },
  "a claimed kind tightens": {
    spec: { ...auto, sandboxMode: "read-only" },
    call: { claimedKind: "file_change" },
    code: "sandbox_read_only"
  },
  "a hook denies": {
    spec: auto,
    plane: { hooks: [hook(() => Effect.succeed({ decision: "deny", reason: "not today" }))] },
    code: "hook_denied",
    check: (result) => assert.nestedPropertyVal(result.output, "details.reason", "not today")
  },
  "a hook that dies fails closed": {
    spec: auto,
    plane: { hooks: [hook(() => Effect.die("boom"))] },
    code: "hook_failed",
    check: failed("crashed")
  },
  "a hook that throws fails closed": {
    spec: auto,
    plane: {
      hooks: [hook(() => {
        throw new Error("thrown")
      })]
    },
    code: "hook_failed",
    check: failed("crashed")
  },
  "a hook that interrupts itself fails closed": {
    spec: auto,
    plane: { hooks: [hook(() => Effect.interrupt)] },
    code: "hook_failed",
    check: failed("crashed")
  },
  "a hook that answers outside the closed set fails closed": {
    spec: auto,
    plane: { hooks: [hook(() => Effect.succeed(JSON.parse("{\"decision\":\"DENY\"}")))] },
    code: "hook_failed",
    check: failed("bad_output")
  },
  "a hook that rewrites the arguments into no JSON fails closed": {
    spec: auto,
    plane: { hooks: [hook(() => Effect.succeed({ arguments: { path: "\ud800" } }))] },
    code: "hook_failed",
    check: failed("bad_output")
  },
  "a guard denies what a hook allowed": {
    spec: auto,
    plane: {
      hooks: [
        hook(() => Effect.succeed({ decision: "allow" })),
        { phase: "Guard", name: "g", run: () => Effect.succeed("no") }
      ]
    },
    code: "guard_denied"
  },
  "a guard that fails denies": {
    spec: auto,
    plane: { hooks: [{ phase: "Guard", name: "g", run: () => Effect.fail("broken") }] },
    code: "guard_denied"
  },
  "arguments of a response that was cut are not run": {
    spec: auto,
    call: { truncated: true, arguments: { path: "a" } },
    code: "arguments_truncated"
  },
  "arguments that do not close are not run": {
    spec: auto,
    call: { arguments: "{\"path\":\"a\",\"content\":\"hel" },
    code: "arguments_truncated",
    check: (result) => assert.nestedPropertyVal(result.output, "details.received", 26)
  },
  "arguments that do not close inside a raw envelope are not run": {
    spec: auto,
    call: { arguments: { __raw: "{\"commands\":[\"ls\",\"pwd\"" } },
    code: "arguments_truncated"
  },
  "50 MB of arguments are too large": {
    spec: auto,
    call: { arguments: { path: "x".repeat(50 * 1024 * 1024) } },
    code: "arguments_too_large"
  },
  "arguments nested 100,000 deep are too large": {
    spec: auto,
    call: { arguments: `{"path":${"[".repeat(100_000)}${"]".repeat(100_000)}}` },
    code: "arguments_too_large"
  },
  "arguments that are not JSON are invalid": { spec: auto, call: { arguments: "path=a" }, code: "arguments_invalid" },
  "arguments that are an array are invalid": { spec: auto, call: { arguments: ["a"] }, code: "arguments_invalid" },
  "arguments with __proto__ are invalid": {
    spec: auto,
    call: { arguments: "{\"path\":\"a\",\"__proto__\":{\"x\":1}}" },
    code: "arguments_invalid"
  },
  "arguments with a lone surrogate are invalid": {
    spec: auto,
    call: { arguments: { path: "\ud99c" } },
    code: "arguments_invalid"
  },
  "arguments with an unknown property are invalid": {
    spec: auto,
    call: { arguments: { pth: "a" } },
    code: "arguments_invalid"
  },
  "arguments of the wrong type are invalid": {
    spec: auto,
    call: { arguments: { path: { a: 1 } } },
    code: "arguments_invalid"
  },
  "arguments that hold a function are invalid": {
    spec: auto,
    call: { arguments: { path: () => "a" } },
    code: "arguments_invalid"
  },
  "a plan turn runs no changing tool": {
    probe: { kind: "file_change" },
    spec: { ...auto, threadMode: "plan" },
    code: "plan_mode_blocked"
  },
  "a plan context alone makes a plan turn": {
    spec: { ...auto, plan: { planId: "p", operation: "draft", relativePath: "a.md" } },
    code: "plan_mode_blocked"
  },
  "a rule denies": {
    spec: auto,
    plane: { rules: [{ name: "r", decision: "deny", matches: (query) => query.toolName === "probe", reason: "no" }] },
    code: "rule_denied"
  },
  "a deny rule sees the call as the model made it": {
    spec: auto,
    call: { arguments: { path: "secret" } },
    plane: {
      hooks: [hook(() => Effect.succeed({ arguments: { path: "harmless" } }))],
      rules: [{
        name: "r",
        decision: "deny",
        matches: (query) => JSON.stringify(query.arguments).includes("secret"),
        reason: "no"
      }]
    },
    code: "rule_denied"
  },
  "approval policy never blocks": { spec: { ...auto, approvalPolicy: "never" }, code: "approval_policy_blocked" },
  "a predicate that throws is no approval": {
    probe: {
      explicitApproval: () => {
        throw new Error("x")
      }
    },
    spec: auto,
    code: "approval_classification_failed"
  },
  "a no is a result": {
    spec: { approvalPolicy: "always" },
    plane: { approvals: { approver: recorder("deny").approver } },
    code: "approval_denied",
    check: (result) => assert.strictEqual(result.approval?.decision, "deny")
  },
  "no approver is an answer at once": { spec: { approvalPolicy: "always" }, code: "approval_unavailable" },
  "a typed failure without a code is an execution failure with its words": {
    probe: { body: Effect.fail({ message: "disk full" }) },
    spec: auto,
    code: "tool_execution_failed",
    runs: 1,
    check: (result) => assert.propertyVal(result.output, "error", "disk full")
  },
  "a defect is an execution failure": {
    probe: { body: Effect.die(new Error("bug")) },
    spec: auto,
    code: "tool_execution_failed",
    runs: 1,
    check: (result) => assert.match(JSON.stringify(result.output), /bug/)
  },
  "a thrown string is an execution failure with its words": {
    probe: {
      body: Effect.sync(() => {
        throw "plain words"
      })
    },
    spec: auto,
    code: "tool_execution_failed",
    runs: 1,
    check: (result) => assert.match(JSON.stringify(result.output), /plain words/)
  },
  "a handler that interrupts itself is an execution failure": {
    probe: { body: Effect.interrupt },
    spec: auto,
    code: "tool_execution_failed",
    runs: 1
  },
  "an undeclared code is an execution failure": {
    probe: { body: Effect.fail(Object.assign(new Error("x"), { code: "ENOENT" })) as Effect.Effect<never, Error> },
    spec: auto,
    code: "tool_execution_failed",
    runs: 1
  },
  "a declared code is kept, with its details": {
    probe: { codes: ["mine"], body: Effect.fail(toolError("mine", "m", { at: 3 })) },
    spec: auto,
    code: "mine",
    runs: 1,
    check: (result) => assert.nestedPropertyVal(result.output, "details.at", 3)
  },
  "details never override code and error": {
    probe: { codes: ["mine"], body: Effect.fail(toolError("mine", "m", { code: "other", error: "other" })) },
    spec: auto,
    code: "mine",
    runs: 1,
    check: (result) => assert.include(result.output, { code: "mine", error: "m" })
  },
  "a finalizer that throws leaves a coded result": {
    probe: {
      finalize: () => {
        throw new Error("x")
      }
    },
    spec: auto,
    code: "tool_output_invalid",
    runs: 1
  },
  "a PostToolUse hook that fails keeps the output": {
    spec: auto,
    plane: { hooks: [post(() => Effect.fail("broken"))] },
    code: "hook_failed",
    runs: 1,
    check: (result) => assert.nestedInclude(result.output, { "details.executed": true, "details.output": "done" })
  },
  "a PostToolUse hook that blocks gives feedback and keeps the output": {
    spec: auto,
    plane: { hooks: [post(() => Effect.succeed({ block: "bad style" }))] },
    code: "hook_denied",
    runs: 1,
    check: (result) => assert.nestedInclude(result.output, { "details.executed": true, "details.output": "done" })
  },
  "a typed 429 is a rate limit": {
    probe: { body: Effect.fail(Object.assign(new Error("slow down"), { status: 429 })) },
    spec: auto,
    code: "rate_limited",
    runs: 1
  }
}

const deeplyFrozen = (value: unknown): boolean =>
  typeof value !== "object" || value === null || (Object.isFrozen(value) && Object.values(value).every(deeplyFrozen))

const reached = new Set<string>()

const judge = (result: ToolResult, code: string): void => {
  reached.add(code)
  assert.strictEqual(result.code, code, JSON.stringify(result.output))
  assert.isTrue(result.isError)
  assert.propertyVal(result.output, "code", code)
  assert.isTrue(deeplyFrozen(result), "the result is frozen through and through")
  assert.deepStrictEqual(JSON.parse(JSON.stringify(result)), result, "the result is plain JSON")
  assert.isTrue(JSON.stringify(result).isWellFormed())
}

const run = <A, E, R>(effect: Effect.Effect<A, E, R>, provider: ToolProvider.ToolProvider, plane: Test.Options = {}) =>
  Effect.provide(effect, Test.layer([provider], plane))

describe("every refusal is a result with a code", () => {
  for (const [name, row] of Object.entries(cases)) {
    it.scopedLive(`${name}: ${row.code}`, () =>
      Effect.gen(function*() {
        const { root } = yield* workspace
        const { provider, runs } = probe({ policy: "auto", ...row.probe })
        yield* run(
          Effect.gen(function*() {
            const host = yield* ToolHost
            const spec = { workspace: root, ...row.spec }
            const result = yield* host.execute(ToolCall.make({ toolName: "probe", ...row.call }), spec)
            judge(result, row.code)
            assert.strictEqual(runs.count, row.runs ?? 0)
            assert.strictEqual(result.executed, row.runs === 1)
            row.check?.(result)
            // The next call works, or is refused for the same standing reason.
            const again = yield* host.execute(ToolCall.make({ toolName: "probe", ...row.call }), spec)
            assert.strictEqual(again.code, row.code)
          }),
          provider,
          row.plane
        )
      }).pipe(Effect.provide(NodeFileSystem.layer)))
  }

  const ids = { threadId: "t", turnId: "u" }
  const call = (args: { readonly path?: string } = {}) =>
    ToolCall.make({ callId: "c1", toolName: "probe", arguments: args })

  it.scopedLive("a running call refuses its twin: tool_invocation_in_progress", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const entered = yield* Deferred.make<void>()
      const { provider, runs } = probe({
        policy: "auto",
        body: Effect.zipRight(Deferred.succeed(entered, undefined), Effect.never)
      })
      yield* run(
        Effect.gen(function*() {
          const host = yield* ToolHost
          const first = yield* Effect.fork(host.execute(call(), { workspace: root, ...ids, ...auto }))
          yield* Deferred.await(entered)
          judge(yield* host.execute(call(), { workspace: root, ...ids, ...auto }), "tool_invocation_in_progress")
          yield* Fiber.interrupt(first)
          judge(yield* host.execute(call(), { workspace: root, ...ids, ...auto }), "tool_outcome_unknown")
          assert.strictEqual(runs.count, 1)
        }),
        provider
      )
    }).pipe(Effect.provide(NodeFileSystem.layer)))

  it.scopedLive("other arguments under the same call id: idempotency_conflict", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const { provider, runs } = probe({ policy: "auto" })
      yield* run(
        Effect.gen(function*() {
          const host = yield* ToolHost
          const spec = { workspace: root, ...ids, ...auto }
          const first = yield* host.execute(call({ path: "a" }), spec)
          assert.isFalse(first.isError)
          judge(yield* host.execute(call({ path: "b" }), spec), "idempotency_conflict")
          const replayed = yield* host.execute(call({ path: "a" }), spec)
          assert.deepStrictEqual(replayed, { ...first, replayed: true })
          assert.strictEqual(runs.count, 1)
        }),
        provider
      )
    }).pipe(Effect.provide(NodeFileSystem.layer)))

  it.scopedLive("an unread file and a changed one: read_before_edit_required, stale_read", () =>
    Effect.gen(function*() {
      const fileSystem = yield* FileSystem.FileSystem
      const { root } = yield* workspace
      yield* fileSystem.writeFileString(`${root}/f`, "one")
      const { provider, runs } = probe({
        policy: "auto",
        kind: "file_change",
        targets: () => [{ path: "f", requiresRead: true, quotes: [] }]
      })
      yield* run(
        Effect.gen(function*() {
          const host = yield* ToolHost
          const session = yield* host.openTurn({ workspace: root, approvalPolicy: "auto" })
          const unread = yield* session.execute(ToolCall.make({ toolName: "probe" }))
          judge(unread, "read_before_edit_required")
          assert.nestedPropertyVal(unread.output, "details.nextAction.tool", "read")
          const turn = yield* session.turn
          const tracker = yield* ReadTracker
          yield* tracker.observe(turn.threadId, { access: "read", path: `${root}/f`, hash: "not this", partial: false })
          judge(yield* session.execute(ToolCall.make({ toolName: "probe" })), "stale_read")
          assert.strictEqual(runs.count, 0)
        }),
        provider
      )
    }).pipe(Effect.provide(NodeFileSystem.layer)))

  it.scopedLive("an answer that comes when the turn is over: tool_not_started", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const { provider, runs } = probe({ policy: "on-request" })
      yield* run(
        Effect.gen(function*() {
          const host = yield* ToolHost
          const gate = yield* ApprovalGate
          const scope = yield* Scope.make()
          const session = yield* Scope.extend(host.openTurn({ workspace: root }), scope)
          const waiting = yield* Effect.fork(session.execute(ToolCall.make({ toolName: "probe" })))
          const [open] = yield* eventually(gate.pending, (list) => list.length === 1)
          yield* Scope.close(scope, Exit.void)
          yield* gate.decide(open?.id ?? "", { decision: "allow", principal: "late" })
          judge(yield* Fiber.join(waiting), "tool_not_started")
          judge(yield* session.execute(ToolCall.make({ toolName: "probe" })), "tool_not_started")
          assert.strictEqual(runs.count, 0)
        }),
        provider,
        { approvals: { approver: "external" } }
      )
    }).pipe(Effect.provide(NodeFileSystem.layer)))

  it.scopedLive("an answer for another call of the same operation: approval_superseded", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const path = { current: "a" }
      const { provider, runs } = probe({ policy: "on-request" })
      yield* run(
        Effect.gen(function*() {
          const host = yield* ToolHost
          const gate = yield* ApprovalGate
          const spec = { workspace: root, ...ids }
          const waiting = yield* Effect.fork(host.execute(call(), spec))
          const open = yield* eventually(gate.pending, (list) => list.length === 1)
          // What is asked about changes under the same operation, as a hook's rewrite after a restart would.
          path.current = "b"
          const second = yield* Effect.fork(host.execute(call(), spec))
          judge(yield* Fiber.join(second), "approval_superseded")
          judge(yield* Fiber.join(waiting), "approval_superseded")
          assert.strictEqual(open.length, 1)
          assert.strictEqual(runs.count, 0)
        }),
        provider,
        {
          approvals: { approver: "external" },
          hooks: [hook(() => Effect.sync(() => ({ arguments: { path: path.current } })))]
        }
      )
    }).pipe(Effect.provide(NodeFileSystem.layer)))

  it.scoped("a question that nobody answers in time: approval_expired", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const { provider, runs } = probe({ policy: "on-request" })
      yield* run(
        Effect.gen(function*() {
          const host = yield* ToolHost
          const gate = yield* ApprovalGate
          const session = yield* host.openTurn({ workspace: root })
          const waiting = yield* Effect.fork(session.execute(ToolCall.make({ toolName: "probe" })))
          yield* Effect.repeat(Effect.zipRight(Effect.yieldNow(), gate.pending), { until: (list) => list.length === 1 })
          yield* TestClock.adjust("2 minutes")
          judge(yield* Fiber.join(waiting), "approval_expired")
          assert.lengthOf(yield* gate.pending, 0)
          assert.strictEqual(runs.count, 0)
        }),
        provider,
        { approvals: { approver: "external", timeToLive: "1 minute" } }
      )
    }).pipe(Effect.provide(NodeFileSystem.layer)))

  it.scoped("a tool that never ends is stopped: tool_timeout", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const stopped = yield* Deferred.make<void>()
      const { provider } = probe({
        policy: "auto",
        timeout: "1 minute",
        body: Effect.onInterrupt(Effect.never, () => Deferred.succeed(stopped, undefined))
      })
      yield* run(
        Effect.gen(function*() {
          const session = yield* Effect.flatMap(ToolHost, (host) => host.openTurn({ workspace: root }))
          const running = yield* Effect.fork(session.execute(ToolCall.make({ toolName: "probe" })))
          yield* TestClock.adjust("2 minutes")
          judge(yield* Fiber.join(running), "tool_timeout")
          assert.isTrue(yield* Deferred.isDone(stopped))
        }),
        provider
      )
    }).pipe(Effect.provide(NodeFileSystem.layer)))

  it.scoped("a hook that does not answer in time: hook_failed", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const { provider, runs } = probe({ policy: "auto" })
      yield* run(
        Effect.gen(function*() {
          const session = yield* Effect.flatMap(ToolHost, (host) => host.openTurn({ workspace: root }))
          const running = yield* Effect.fork(session.execute(ToolCall.make({ toolName: "probe" })))
          yield* TestClock.adjust("1 seconds")
          const result = yield* Fiber.join(running)
          judge(result, "hook_failed")
          failed("timed_out")(result)
          assert.strictEqual(runs.count, 0)
        }),
        provider,
        { hooks: [hook(() => Effect.never, 200)] }
      )
    }).pipe(Effect.provide(NodeFileSystem.layer)))

  it.scopedLive("output that the tool's schema refuses: tool_output_invalid", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const bad = Tool.make("bad", {
        description: "",
        policy: "auto",
        parameters: Schema.Struct({}),
        success: Schema.Int,
        handler: () => Effect.succeed(1.5)
      })
      const provider = ToolProvider.make({ id: "p", kind: "built-in", tools: [bad] })
      yield* run(
        Effect.gen(function*() {
          const host = yield* ToolHost
          judge(yield* host.execute(ToolCall.make({ toolName: "bad" }), { workspace: root }), "tool_output_invalid")
        }),
        provider
      )
    }).pipe(Effect.provide(NodeFileSystem.layer)))

  it.scopedLive("a ledger that cannot be written stops a call before its effect: state_unavailable", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const { provider, runs } = probe({ policy: "auto" })
      const full = new StateUnavailable({ reason: "disk full", executed: false })
      const broken = Layer.succeed(OperationLedger, {
        peek: () => Effect.succeed({ _tag: "Absent" }),
        claim: () => Effect.fail(full),
        outcome: () => Effect.fail(full),
        settle: () => Effect.fail(full),
        abandon: () => Effect.fail(full),
        reconcile: () => Effect.fail(full),
        list: () => Effect.fail(full)
      })
      yield* run(
        Effect.gen(function*() {
          const host = yield* ToolHost
          judge(yield* host.execute(ToolCall.make({ toolName: "probe" }), { workspace: root }), "state_unavailable")
          assert.strictEqual(runs.count, 0)
        }),
        provider,
        { ledger: broken }
      )
    }).pipe(Effect.provide(NodeFileSystem.layer)))

  it("every code of the step table was reached through the host", () => {
    const table = new Set(steps.flatMap((step) => step.codes))
    assert.deepStrictEqual([...table].filter((code) => !reached.has(code)), [])
    for (const code of table) assert.include(failureCodes, code)
  })
})
