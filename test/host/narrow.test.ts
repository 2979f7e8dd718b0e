/** Rights that are taken away from a turn while it runs. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as fc from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import {
  approvalPolicies,
  sandboxModes,
  stricterApproval,
  stricterSandbox,
  stricterThreadMode,
  threadModes
} from "../../src/contract/Policy.ts"
import * as ToolCall from "../../src/contract/ToolCall.ts"
import { admits, type TurnMode } from "../../src/contract/Turn.ts"
import type * as HookGate from "../../src/gate/HookGate.ts"
import { type Authority, ToolHost } from "../../src/host/ToolHost.ts"
import * as ToolProvider from "../../src/tool/ToolProvider.ts"
import { edit } from "../../src/tools/edit.ts"
import { ls } from "../../src/tools/ls.ts"
import { read } from "../../src/tools/read.ts"
import { write } from "../../src/tools/write.ts"
import { count } from "../support/counts.ts"
import { probe, Test, workspace } from "../support/plane.ts"

const live = Effect.provide(NodeFileSystem.layer)
const call = ToolCall.make({ callId: "c", toolName: "probe" })

/** What is taken away, and how a call of the probe then ends. */
const losses: ReadonlyArray<readonly [Authority, string]> = [
  [{ tools: { deny: ["probe"] } }, "tool_not_advertised"],
  [{ tools: { allow: [] } }, "tool_not_advertised"],
  [{ providers: { deny: ["probes"] } }, "tool_not_advertised"],
  [{ sandboxMode: "read-only" }, "sandbox_read_only"],
  [{ threadMode: "plan" }, "plan_mode_blocked"],
  [{ approvalPolicy: "never" }, "approval_policy_blocked"]
]

describe("a call that waits while its turn is narrowed", () => {
  for (const place of ["a hook", "an approval"] as const) {
    for (const [limits, code] of losses) {
      it.scopedLive(`in ${place} is refused after ${JSON.stringify(limits)}`, () =>
        Effect.gen(function*() {
          const { root } = yield* workspace
          const entered = yield* Deferred.make<void>()
          const goOn = yield* Deferred.make<void>()
          const stop = (here: typeof place) =>
            Effect.when(
              Effect.zipRight(Deferred.succeed(entered, undefined), Deferred.await(goOn)),
              () => here === place
            )
          const hook: HookGate.Hook = {
            phase: "PreToolUse",
            name: "hook",
            run: () => Effect.as(stop("a hook"), undefined)
          }
          const approver = {
            name: "approver",
            review: () => Effect.as(stop("an approval"), { decision: "allow", principal: "approver" } as const)
          }
          const { provider, runs } = probe({ kind: "file_change" })
          yield* Effect.gen(function*() {
            const session = yield* Effect.flatMap(ToolHost, (host) => host.openTurn({ workspace: root }))
            const running = yield* Effect.fork(session.execute(call))
            yield* Deferred.await(entered)
            yield* session.narrow(limits)
            yield* Deferred.succeed(goOn, undefined)
            assert.deepInclude(yield* Fiber.join(running), { code, executed: false })
            assert.strictEqual(runs.count, 0)
          }).pipe(Effect.provide(Test.layer([provider], { hooks: [hook], approvals: { approver } })))
        }).pipe(live))
    }
  }

  it.scopedLive("goes on when nothing that it needs was taken away", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const entered = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      const approver = {
        name: "approver",
        review: () =>
          Deferred.succeed(entered, undefined).pipe(
            Effect.zipRight(Deferred.await(goOn)),
            Effect.as({ decision: "allow", principal: "approver" } as const)
          )
      }
      const { provider, runs } = probe()
      yield* Effect.gen(function*() {
        const session = yield* Effect.flatMap(ToolHost, (host) => host.openTurn({ workspace: root }))
        const running = yield* Effect.fork(session.execute(call))
        yield* Deferred.await(entered)
        yield* session.narrow({ tools: { allow: ["probe"], deny: ["other"] }, skills: { allow: [] } })
        yield* Deferred.succeed(goOn, undefined)
        assert.strictEqual((yield* Fiber.join(running)).code, null)
        assert.strictEqual(runs.count, 1)
      }).pipe(Effect.provide(Test.layer([provider], { approvals: { approver } })))
    }).pipe(live))
})

const optional = <A>(arbitrary: fc.Arbitrary<A>) => fc.option(arbitrary, { nil: undefined })
const given = <A extends object>(value: A) =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined))
const modes = {
  threadMode: optional(fc.constantFrom(...threadModes)),
  sandboxMode: optional(fc.constantFrom(...sandboxModes)),
  approvalPolicy: optional(fc.constantFrom(...approvalPolicies))
}
const tools = ["a", "b", "c"]
const filter = fc.record({ allow: optional(fc.subarray(tools)), deny: optional(fc.subarray(tools)) }).map(given)
const change: fc.Arbitrary<{ readonly narrow: Authority } | { readonly setMode: TurnMode }> = fc.oneof(
  fc.record({ ...modes, tools: optional(filter), providers: optional(filter), skills: optional(filter) }).map((
    limits
  ) => ({
    narrow: given(limits)
  })),
  fc.record(modes).map((mode) => ({ setMode: given(mode) }))
)

describe("a turn that is narrowed", () => {
  it.scopedLive("never gets anything back, whatever modes are set before and after", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      yield* Effect.gen(function*() {
        const host = yield* ToolHost
        const histories = fc.sample(fc.array(change, { maxLength: 8 }), {
          numRuns: count({ quick: 200, soak: 5000 }),
          seed: 7
        })
        for (const history of histories) {
          const session = yield* host.openTurn({ workspace: root })
          const gone: Array<Authority> = []
          for (const step of history) {
            if ("narrow" in step) gone.push(step.narrow)
            const turn = yield* ("narrow" in step ? session.narrow(step.narrow) : session.setMode(step.setMode))
            assert.deepStrictEqual(turn, yield* session.turn)
            for (const { approvalPolicy, sandboxMode, threadMode, ...lists } of gone) {
              assert.strictEqual(turn.threadMode, stricterThreadMode(turn.threadMode, threadMode ?? "agent"))
              assert.strictEqual(turn.approvalPolicy, stricterApproval(turn.approvalPolicy, approvalPolicy ?? "auto"))
              assert.strictEqual(
                turn.sandboxMode,
                stricterSandbox(turn.sandboxMode, sandboxMode ?? "danger-full-access")
              )
              for (const list of ["tools", "providers", "skills"] as const) {
                const allowed = lists[list]?.allow ?? tools
                const denied = lists[list]?.deny ?? []
                for (const name of tools) {
                  if (!allowed.includes(name) || denied.includes(name)) assert.isFalse(admits(turn[list], name))
                }
              }
            }
          }
        }
      }).pipe(Effect.scoped, Effect.provide(Test.layer([])))
    }).pipe(live))

  it.scopedLive("may set its modes within what is left, up to the host's authority", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      yield* Effect.gen(function*() {
        const session = yield* Effect.flatMap(
          ToolHost,
          (host) => host.openTurn({ workspace: root, sandboxMode: "read-only" })
        )
        yield* session.narrow({ sandboxMode: "workspace-write" })
        assert.strictEqual((yield* session.turn).sandboxMode, "read-only")
        const widened = yield* session.setMode({ sandboxMode: "danger-full-access", approvalPolicy: "auto" })
        assert.deepInclude(widened, { sandboxMode: "workspace-write", approvalPolicy: "suggest" })
      }).pipe(Effect.provide(Test.layer([], { host: { authority: { approvalPolicy: "suggest" } } })))
    }).pipe(live))

  it.scopedLive("does not report its own loss as a change of the tools", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      yield* Effect.gen(function*() {
        const session = yield* Effect.flatMap(ToolHost, (host) => host.openTurn({ workspace: root }))
        yield* session.narrow({ tools: { allow: [] }, sandboxMode: "read-only", threadMode: "plan" })
        assert.isUndefined(yield* session.drift)
        assert.deepStrictEqual(session.catalog.fingerprint.toolNames, ["probe"])
      }).pipe(Effect.provide(Test.layer([probe().provider])))
    }).pipe(live))
})

describe("a turn that forgets", () => {
  it.scopedLive("has to read again before it edits, and its thread alone", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      writeFileSync(join(root, "f"), "one\n")
      const files = ToolProvider.make({ id: "files", kind: "built-in", tools: [read, ls, write, edit] })
      const auto = { workspace: root, approvalPolicy: "auto", sandboxMode: "danger-full-access" } as const
      yield* Effect.gen(function*() {
        const host = yield* ToolHost
        const one = yield* host.openTurn({ ...auto, threadId: "one" })
        const other = yield* host.openTurn({ ...auto, threadId: "other" })
        const edit = ToolCall.make({ toolName: "edit", arguments: { path: "f", oldText: "one", newText: "two" } })
        for (const session of [one, other]) {
          yield* session.execute(ToolCall.make({ toolName: "read", arguments: { path: "f" } }))
        }
        yield* one.forget
        assert.strictEqual((yield* one.execute(edit)).code, "read_before_edit_required")
        assert.strictEqual((yield* other.execute(edit)).code, null)
      }).pipe(Effect.provide(Test.layer([files])))
    }).pipe(live))
})
