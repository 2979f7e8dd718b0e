import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as FileSystem from "@effect/platform/FileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { ApprovalPolicy, Confinement, Runs, SandboxMode, ToolKind, ToolPolicy } from "../../src/contract/Policy.ts"
import type * as HookGate from "../../src/gate/HookGate.ts"
import approvalTable from "../fixtures/vectors/approval.json" with { type: "json" }
import sandboxTable from "../fixtures/vectors/sandbox.json" with { type: "json" }
import { executeIn, probe, recorder, Test, workspace } from "../support/plane.ts"

interface ApprovalRow {
  readonly approvalPolicy: ApprovalPolicy
  readonly toolPolicy: ToolPolicy
  readonly tool?: string
  readonly allowListed?: boolean
  readonly because?: "explicit" | "outside_write" | "unconfined_command" | "ordinary"
  readonly hook?: "silent" | "allow" | "ask" | "deny"
  readonly sandbox?: SandboxMode
  readonly expect: string
}

const hookSaying = (decision: ApprovalRow["hook"]): ReadonlyArray<HookGate.Hook> =>
  decision === undefined || decision === "silent"
    ? []
    : [{ phase: "PreToolUse", name: "says", run: () => Effect.succeed({ decision }) }]

describe("vectors/approval.json through the host", () => {
  const rows = approvalTable.rows as ReadonlyArray<ApprovalRow>
  rows.forEach((row, index) => {
    it.scopedLive(`row ${index}: ${JSON.stringify(row)}`, () =>
      Effect.gen(function*() {
        const fileSystem = yield* FileSystem.FileSystem
        const { outside, root } = yield* workspace
        yield* fileSystem.writeFileString(`${outside}/f.txt`, "x")
        const because = row.because ?? "ordinary"
        const asks = recorder()
        const { provider, runs, tool } = probe({
          name: row.tool ?? "probe",
          policy: row.toolPolicy,
          interactive: row.tool === "user_input",
          kind: because === "unconfined_command"
            ? "command_execution"
            : because === "outside_write"
            ? "file_change"
            : "tool_call",
          explicitApproval: because === "explicit",
          ...(because === "outside_write"
            ? { targets: () => [{ path: `${outside}/f.txt`, requiresRead: false, quotes: [] }] }
            : {})
        })
        const result = yield* executeIn({
          workspace: root,
          approvalPolicy: row.approvalPolicy,
          sandboxMode: row.sandbox ?? "danger-full-access"
        }, { toolName: tool.name }).pipe(Effect.provide(Test.layer([provider], {
          confinement: "partial",
          approvals: { approver: asks.approver },
          hooks: hookSaying(row.hook),
          host: { trustedTools: row.allowListed === true ? [tool.name] : [] }
        })))
        switch (row.expect) {
          case "run":
            assert.deepStrictEqual([result.code, runs.count, asks.asked.length], [null, 1, 0])
            break
          case "ask":
            assert.deepStrictEqual([result.code, runs.count, asks.asked.length], [null, 1, 1])
            if (because !== "ordinary") assert.include(asks.asked[0]?.reasons ?? [], because)
            break
          default:
            assert.deepStrictEqual([result.code, runs.count, asks.asked.length], [row.expect, 0, 0])
        }
      }).pipe(Effect.provide(NodeFileSystem.layer)))
  })
})

interface SandboxRow {
  readonly runs: Runs
  readonly confinement: Confinement
  readonly mode: SandboxMode
  readonly kind: ToolKind
  readonly expect: string
}

describe("vectors/sandbox.json through the host", () => {
  const rows = sandboxTable.rows as ReadonlyArray<SandboxRow>
  for (const row of rows) {
    for (const claimed of ["no claim", "claimed"] as const) {
      it.scopedLive(`${row.runs} ${row.kind} in ${row.mode} under ${row.confinement} (${claimed}): ${row.expect}`, () =>
        Effect.gen(function*() {
          const { root } = yield* workspace
          const asks = recorder()
          // A claimed kind can only tighten: declaring less and claiming the row's kind is judged like the row.
          const { provider, runs } = probe({
            policy: "auto",
            kind: claimed === "claimed" ? "tool_call" : row.kind,
            runs: row.runs
          })
          const result = yield* executeIn({ workspace: root, approvalPolicy: "auto", sandboxMode: row.mode }, {
            toolName: "probe",
            claimedKind: claimed === "claimed" ? row.kind : "tool_call"
          }).pipe(
            Effect.provide(
              Test.layer([provider], { confinement: row.confinement, approvals: { approver: asks.approver } })
            )
          )
          const expected = row.expect === "pass"
            ? [null, 1, 0]
            : row.expect === "pass_if_approved"
            ? [null, 1, 1]
            : [row.expect, 0, 0]
          assert.deepStrictEqual([result.code, runs.count, asks.asked.length], expected)
        }).pipe(Effect.provide(NodeFileSystem.layer)))
    }
  }
})
