/**
 * What every `ToolHost` does. The laws want a host over `provider` alone, with nobody to approve, and `workspace`, an
 * existing folder.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as ToolCall from "../../contract/ToolCall.ts"
import { ToolHost } from "../../host/ToolHost.ts"
import * as Tool from "../../tool/Tool.ts"
import * as ToolProvider from "../../tool/ToolProvider.ts"
import { equal, expect, type Law, law } from "./Law.ts"

const base = { description: "", policy: "auto", parameters: Schema.Struct({}), success: Schema.String } as const

const tools = [
  Tool.make("fine", { ...base, handler: () => Effect.succeed("fine") }),
  Tool.make("dies", { ...base, handler: () => Effect.die("dead") }),
  Tool.make("stops", { ...base, handler: () => Effect.interrupt }),
  Tool.make("hangs", { ...base, handler: () => Effect.never }),
  Tool.make("asks", { ...base, policy: "on-request", handler: () => Effect.succeed("asked") })
]

/** Tools that succeed, die, interrupt themselves, hang, and want approval. */
export const provider = ToolProvider.make({ id: "laws", kind: "built-in", tools })

export const laws = (workspace: string): ReadonlyArray<Law<ToolHost>> => [
  law(
    "every call ends as a result with a code or without one",
    Effect.scoped(Effect.gen(function*() {
      const session = yield* Effect.flatMap(ToolHost, (host) => host.openTurn({ workspace }))
      const expected = {
        fine: null,
        dies: "tool_execution_failed",
        stops: "tool_execution_failed",
        asks: "approval_unavailable",
        none: "tool_unknown"
      }
      for (const [toolName, code] of Object.entries(expected)) {
        const result = yield* session.execute(ToolCall.make({ toolName }))
        yield* equal([result.code, result.isError], [code, code !== null], toolName)
      }
    }))
  ),
  law(
    "the same call again is its recorded result again",
    Effect.gen(function*() {
      const host = yield* ToolHost
      const call = ToolCall.make({ callId: "c", toolName: "fine" })
      const spec = { workspace, threadId: "t", turnId: "u" }
      const first = yield* host.execute(call, spec)
      yield* equal(yield* host.execute(call, spec), { ...first, replayed: true }, "the second result")
    })
  ),
  law(
    "an interruption from outside is no result, and the call is not run again",
    Effect.scoped(Effect.gen(function*() {
      const session = yield* Effect.flatMap(
        ToolHost,
        (host) => host.openTurn({ workspace, threadId: "t", turnId: "interrupted" })
      )
      const call = ToolCall.make({ callId: "c", toolName: "hangs" })
      const running = yield* Effect.fork(session.execute(call))
      // Other arguments under its id are refused for themselves until the call is claimed, and as a conflict from then on.
      const other = Effect.zipRight(Effect.yieldNow(), session.execute({ ...call, arguments: { other: true } }))
      yield* Effect.repeat(other, { until: ({ code }) => code === "idempotency_conflict" })
      yield* expect(Exit.isInterrupted(yield* Fiber.interrupt(running)), "the interruption became something else")
      const { code } = yield* session.execute(call)
      yield* equal(code, "tool_outcome_unknown", "the code of the same call")
    }))
  ),
  law(
    "a turn that is closed starts nothing",
    Effect.gen(function*() {
      const host = yield* ToolHost
      const scope = yield* Scope.make()
      const session = yield* Scope.extend(host.openTurn({ workspace }), scope)
      yield* Scope.close(scope, Exit.void)
      yield* equal((yield* session.execute(ToolCall.make({ toolName: "fine" }))).code, "tool_not_started", "code")
    })
  ),
  law(
    "what is taken away from a turn stays away, and its catalog stays as it was",
    Effect.scoped(Effect.gen(function*() {
      const session = yield* Effect.flatMap(ToolHost, (host) => host.openTurn({ workspace }))
      const listed = session.catalog.fingerprint.toolNames
      const narrowed = yield* session.narrow({
        tools: { deny: ["dies"] },
        sandboxMode: "read-only",
        threadMode: "plan"
      })
      yield* session.narrow({ tools: { allow: ["dies", "fine"] } })
      const { approvalPolicy, sandboxMode, threadMode } = yield* session.setMode({
        sandboxMode: "danger-full-access",
        threadMode: "agent"
      })
      yield* equal(
        { approvalPolicy, sandboxMode, threadMode },
        { approvalPolicy: narrowed.approvalPolicy, sandboxMode: "read-only", threadMode: "plan" },
        "the modes"
      )
      const expected = { fine: "plan_mode_blocked", dies: "tool_not_advertised", asks: "tool_not_advertised" }
      for (const [toolName, code] of Object.entries(expected)) {
        yield* equal((yield* session.execute(ToolCall.make({ toolName }))).code, code, toolName)
      }
      yield* equal(session.catalog.fingerprint.toolNames, listed, "the catalog")
    }))
  ),
  law(
    "a turn without a folder to work in is refused",
    Effect.scoped(Effect.gen(function*() {
      const refused = yield* Effect.flip(
        Effect.flatMap(ToolHost, (host) => host.openTurn({ workspace: `${workspace}/none` }))
      )
      yield* equal(refused.code, "workspace_unavailable", "code")
    }))
  )
]
