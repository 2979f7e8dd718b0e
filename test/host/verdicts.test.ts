import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "effect/FastCheck"
import * as Schedule from "effect/Schedule"
import * as ToolCall from "../../src/contract/ToolCall.ts"
import type * as HookGate from "../../src/gate/HookGate.ts"
import { ToolHost } from "../../src/host/ToolHost.ts"
import { count } from "../support/counts.ts"
import { probe, recorder, Test, workspace } from "../support/plane.ts"

type Word = "silent" | "allow" | "ask" | "deny" | "fail" | "guard silent" | "guard deny" | "guard fail"
const words: ReadonlyArray<Word> = [
  "silent",
  "allow",
  "ask",
  "deny",
  "fail",
  "guard silent",
  "guard deny",
  "guard fail"
]

const speaker = (word: Word, index: number): HookGate.Hook => {
  const name = `${word} ${index}`
  switch (word) {
    case "silent":
      return { phase: "PreToolUse", name, run: () => Effect.succeed(undefined) }
    case "allow":
    case "ask":
    case "deny":
      return { phase: "PreToolUse", name, run: () => Effect.succeed({ decision: word }) }
    case "fail":
      return { phase: "PreToolUse", name, run: () => Effect.fail("broken") }
    case "guard silent":
      return { phase: "Guard", name, run: () => Effect.succeed(undefined) }
    case "guard deny":
      return { phase: "Guard", name, run: () => Effect.succeed("no") }
    case "guard fail":
      return { phase: "Guard", name, run: () => Effect.fail("broken") }
  }
}

/** What the settled choices say of a set of words, told independently of any order. */
const expected = (said: ReadonlyArray<Word>): { readonly code: string | null; readonly asked: number } => {
  if (said.includes("deny")) return { code: "hook_denied", asked: 0 }
  if (said.includes("fail")) return { code: "hook_failed", asked: 0 }
  if (said.includes("guard deny") || said.includes("guard fail")) return { code: "guard_denied", asked: 0 }
  if (said.includes("ask")) return { code: null, asked: 1 }
  return { code: null, asked: said.includes("allow") ? 0 : 1 }
}

describe("hooks and guards", () => {
  it.scopedLive(
    "give the same verdict in any order: deny, then failure, then guards, then ask, then allow",
    () =>
      Effect.gen(function*() {
        const { root } = yield* workspace
        const sets = fc.sample(fc.array(fc.constantFrom(...words), { maxLength: 6 }), {
          numRuns: count({ quick: 60, soak: 1500 }),
          seed: 11
        })
        for (const said of sets) {
          const asks = recorder()
          const { provider, runs } = probe({ policy: "on-request" })
          const result = yield* Effect.flatMap(
            ToolHost,
            (host) => host.execute(ToolCall.make({ toolName: "probe" }), { workspace: root })
          ).pipe(
            Effect.provide(Test.layer([provider], { hooks: said.map(speaker), approvals: { approver: asks.approver } }))
          )
          const { asked, code } = expected(said)
          assert.deepStrictEqual(
            { code: result.code, asked: asks.asked.length, runs: runs.count },
            { code, asked, runs: code === null ? 1 : 0 },
            JSON.stringify(said)
          )
        }
      }).pipe(Effect.provide(NodeFileSystem.layer)),
    300_000
  )

  it.scopedLive("what hooks rewrite is what rules, approver, handler and result see", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const asks = recorder()
      const { provider } = probe({ policy: "on-request" })
      const hooks: ReadonlyArray<HookGate.Hook> = [
        { phase: "PreToolUse", name: "a", run: () => Effect.succeed({ decision: "allow", arguments: { path: "x" } }) },
        {
          phase: "PreToolUse",
          name: "b",
          run: (seen) => Effect.succeed({ decision: "ask", arguments: { path: `${JSON.stringify(seen.arguments)}!` } })
        }
      ]
      const result = yield* Effect.flatMap(ToolHost, (host) =>
        host.execute(ToolCall.make({ toolName: "probe", arguments: { path: "original" } }), { workspace: root })).pipe(
          Effect.provide(Test.layer([provider], { hooks, approvals: { approver: asks.approver } }))
        )
      const effective = { path: "{\"path\":\"x\"}!" }
      assert.deepStrictEqual(result.effectiveArguments, effective)
      assert.deepStrictEqual(
        asks.asked.map((question) =>
          question.arguments
        ),
        [effective]
      )
      assert.isFalse(result.isError)
    }).pipe(Effect.provide(NodeFileSystem.layer)))

  it.scopedLive("a retry passes every inner wrapper again, and its result is the tool's", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      const trace: Array<string> = []
      const { provider, runs } = probe({
        policy: "auto",
        body: Effect.suspend(() =>
          trace.push("body") && runs.count < 3 ? Effect.fail({ message: "flaky" }) : Effect.succeed("third time")
        )
      })
      const around = (name: string, wrap: (next: HookGate.Execution) => HookGate.Execution): HookGate.Hook => ({
        phase: "Around",
        name,
        run: (_call, _turn, next) => {
          trace.push(name)
          return wrap(next)
        }
      })
      const result = yield* Effect.flatMap(ToolHost, (host) =>
        host.execute(ToolCall.make({ toolName: "probe" }), { workspace: root })).pipe(
          Effect.provide(Test.layer([provider], {
            hooks: [
              around("outer", (next) =>
                next),
              around("retry", (next) => Effect.retry(next, Schedule.recurs(5))),
              around("inner", (next) => next)
            ]
          }))
        )
      assert.deepInclude(result, { isError: false, output: "third time" })
      assert.deepStrictEqual(trace, ["outer", "retry", "inner", "body", "inner", "body", "inner", "body"])
    }).pipe(Effect.provide(NodeFileSystem.layer)))
})
