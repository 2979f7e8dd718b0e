import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/TestClock"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as Subprocess from "../../layers/node/Subprocess.ts"
import * as CapabilityRegistry from "../../src/catalog/CapabilityRegistry.ts"
import { Digest, short } from "../../src/contract/Digest.ts"
import type { JsonObject } from "../../src/contract/Json.ts"
import * as ToolCall from "../../src/contract/ToolCall.ts"
import type { ToolResult } from "../../src/contract/ToolResult.ts"
import type { PlanContext, TurnSpecInput } from "../../src/contract/Turn.ts"
import { FileMutationQueue } from "../../src/file/FileMutationQueue.ts"
import type { Rule } from "../../src/gate/PermissionRules.ts"
import * as ToolHost from "../../src/host/ToolHost.ts"
import { createPlan, make } from "../../src/plan/create_plan.ts"
import * as Tool from "../../src/tool/Tool.ts"
import { ToolInvocation } from "../../src/tool/ToolInvocation.ts"
import * as ToolProvider from "../../src/tool/ToolProvider.ts"
import * as Bash from "../../src/tools/bash.ts"
import { edit } from "../../src/tools/edit.ts"
import { read } from "../../src/tools/read.ts"
import { write } from "../../src/tools/write.ts"
import { turnIn } from "../fixtures/files.ts"
import { executeIn, probe, Test } from "../support/plane.ts"
import { temporaryFolder } from "../support/temporaryFolder.ts"

const reservation = {
  planId: "plan-7",
  operation: "draft",
  relativePath: ".portcullis/plan/login.md"
} as const

const only = (tool: Tool.Tool<string, Test.Services, "main" | "shared">) =>
  Test.layer([ToolProvider.make({ id: "plans", kind: "built-in", tools: [tool] })])

interface Plain {
  readonly planId: string
  readonly relativePath: string
  readonly [key: string]: unknown
}
const outputOf = ({ output }: ToolResult): Plain => Object(output)

/** A workspace and the tool in plan turns over it. */
const desk = Effect.gen(function*() {
  const base = Fs.realpathSync(yield* temporaryFolder)
  const root = join(base, "ws")
  const plans = join(root, ".portcullis", "plan")
  const outside = join(base, "outside")
  Fs.mkdirSync(root)
  Fs.mkdirSync(outside)
  const plan = (args: JsonObject, spec: Partial<TurnSpecInput> = {}) =>
    executeIn({ workspace: root, threadMode: "plan", ...spec }, {
      toolName: "create_plan",
      arguments: { markdown: "# Add login\n\nSteps.\n", ...args }
    })
  const put = (name: string, content: string) => {
    Fs.mkdirSync(join(root, name, ".."), { recursive: true })
    Fs.writeFileSync(join(root, name), content)
  }
  return {
    base,
    root,
    plans,
    outside,
    plan,
    put,
    disk: (name: string) => Fs.readFileSync(join(root, name), "utf8"),
    names: () => Fs.existsSync(plans) ? Fs.readdirSync(plans).sort() : [],
    listed: (spec: Partial<TurnSpecInput>) =>
      Effect.scoped(
        Effect.flatMap(ToolHost.ToolHost, (host) =>
          Effect.map(Effect.orDie(host.openTurn({ workspace: root, ...spec })), ({ catalog }) =>
            catalog.tools.map(({ name }) =>
              name
            )))
      )
  }
})

describe("create_plan", () => {
  it("declares what the gates judge by", () => {
    const { kind, policy, reach, readOnly } = createPlan
    assert.deepStrictEqual([kind, policy, reach, readOnly], ["file_change", "auto", "main", false])
  })

  it.scopedLive("shows itself in plan turns that can write, and in no other", () =>
    Effect.gen(function*() {
      const { listed, plan, names } = yield* desk
      assert.deepStrictEqual(yield* listed({}), [])
      assert.deepStrictEqual(yield* listed({ threadMode: "plan" }), ["create_plan"])
      assert.deepStrictEqual(yield* listed({ plan: reservation }), ["create_plan"])
      assert.deepStrictEqual(yield* listed({ threadMode: "plan", sandboxMode: "read-only" }), [])
      assert.strictEqual((yield* plan({}, { threadMode: "agent" })).code, "tool_not_advertised")
      assert.strictEqual((yield* plan({}, { sandboxMode: "read-only" })).code, "sandbox_read_only")
      assert.deepStrictEqual(names(), [])
    }).pipe(Effect.provide(only(createPlan))))

  it.scopedLive("writes a draft without asking anybody, under a name made of its title", () =>
    Effect.gen(function*() {
      const { disk, plan, root } = yield* desk
      const result = yield* plan({ title: "Größe: 登录!", sourceRequest: "please" })
      assert.strictEqual(result.code, null)
      const { contentHash, savedAt, ...rest } = outputOf(result)
      assert.deepStrictEqual(rest, {
        planId: "größe-登录!",
        relativePath: ".portcullis/plan/größe-登录!.md",
        absolutePath: join(root, ".portcullis/plan/größe-登录!.md"),
        operation: "draft",
        title: "Größe: 登录!",
        sourceRequest: "please",
        byteSize: 20,
        summary: "Saved the plan \"Größe: 登录!\" to \".portcullis/plan/größe-登录!.md\" (20 bytes)."
      })
      assert.strictEqual(contentHash, short(yield* Effect.map(Digest, (sha256) => sha256("# Add login\n\nSteps.\n"))))
      assert.match(String(savedAt), /^\d{4}-\d\d-\d\dT.*Z$/)
      assert.strictEqual(disk(rest.relativePath), "# Add login\n\nSteps.\n")
    }).pipe(Effect.provide(only(createPlan))))

  it.scopedLive("names a draft after its first heading when it has no title, and after nothing else", () =>
    Effect.gen(function*() {
      const { names, plan } = yield* desk
      yield* plan({})
      yield* plan({ markdown: "no heading" })
      yield* plan({ markdown: "# \n#no\n##  Second  \n", title: "  " })
      assert.deepStrictEqual(names(), ["add-login.md", "plan.md", "second.md"])
    }).pipe(Effect.provide(only(createPlan))))

  it.scopedLive("refuses blank, huge and ill-formed plans, and unknown words", () =>
    Effect.gen(function*() {
      const { names, plan } = yield* desk
      const rows: ReadonlyArray<readonly [JsonObject, string]> = [
        [{ markdown: " \n\t" }, "arguments_invalid"],
        [{ markdown: "x".repeat(1024 * 1024 + 1) }, "arguments_invalid"],
        [{ markdown: "结".repeat(400_000) }, "arguments_invalid"],
        [{ operation: "replace" }, "arguments_invalid"],
        [{ title: "x".repeat(201) }, "arguments_invalid"],
        [{ workspaceRoot: "/" }, "arguments_invalid"]
      ]
      for (const [args, code] of rows) assert.strictEqual((yield* plan(args)).code, code)
      assert.deepStrictEqual(names(), [])
    }).pipe(Effect.provide(only(createPlan))))

  it.scoped("numbers names that are taken, whatever has them, and then puts the time behind", () =>
    Effect.gen(function*() {
      const { names, plan, plans, put } = yield* desk
      yield* TestClock.setTime(1_700_000_000_000)
      put(".portcullis/plan/a.md", "kept")
      Fs.mkdirSync(join(plans, "a-2.md"))
      put(".portcullis/plan/a-3.md", "\0")
      assert.strictEqual(outputOf(yield* plan({ title: "A" })).planId, "a-4")
      for (let number = 5; number <= 50; number++) put(`.portcullis/plan/a-${number}.md`, "")
      const last = outputOf(yield* plan({ title: "A" }))
      assert.strictEqual(last.relativePath, ".portcullis/plan/a-1700000000000.md")
      assert.strictEqual(last["savedAt"], "2023-11-14T22:13:20.000Z")
      assert.strictEqual((yield* plan({ title: "A" })).code, "plan_exists")
      assert.strictEqual(names().length, 51)
    }).pipe(Effect.provide(only(createPlan))))

  it.scopedLive("gives each of many drafts at once a name of its own", () =>
    Effect.gen(function*() {
      const { disk, names, plan } = yield* desk
      const results = yield* Effect.forEach(
        Array.from({ length: 20 }, (_, index) => `plan ${index}`),
        (markdown) => Effect.map(plan({ markdown, title: "same" }), (result) => ({ markdown, ...outputOf(result) })),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(new Set(results.map(({ relativePath }) => relativePath)).size, 20)
      assert.strictEqual(names().length, 20)
      for (const { markdown, relativePath } of results) assert.strictEqual(disk(relativePath), markdown)
    }).pipe(Effect.provide(only(createPlan))))

  it.scopedLive("takes the next name when somebody outside gets the first in between", () =>
    Effect.gen(function*() {
      const { disk, plan, put } = yield* desk
      const queue = yield* FileMutationQueue
      const rival: FileMutationQueue["Type"] = {
        ...queue,
        withFile: (path, effect) => {
          if (path.endsWith("/same.md")) put(".portcullis/plan/same.md", "theirs")
          return queue.withFile(path, effect)
        }
      }
      const result = yield* Effect.provide(
        plan({ title: "same" }),
        ToolHost.layer().pipe(
          Layer.provide(CapabilityRegistry.layer([
            ToolProvider.make({ id: "plans", kind: "built-in", tools: [createPlan] })
          ])),
          Layer.provide(Layer.succeed(FileMutationQueue, rival)),
          Layer.provide(Test.services())
        )
      )
      assert.strictEqual(outputOf(result).relativePath, ".portcullis/plan/same-2.md")
      assert.strictEqual(disk(".portcullis/plan/same.md"), "theirs")
    }).pipe(Effect.provide(Test.services())))

  it.scopedLive("writes where a plan path says, and refuses any other", () =>
    Effect.gen(function*() {
      const { disk, names, plan, root } = yield* desk
      const given = yield* plan({ planRelativePath: ".\\.PORTCULLIS//plan\\Mine.md", planId: "id-1" })
      assert.deepInclude(outputOf(given), { relativePath: ".portcullis/plan/Mine.md", planId: "id-1" })
      for (const path of ["src/a.md", ".portcullis/plan/../rules.md", join(root, ".portcullis/plan/a.md"), ""]) {
        assert.strictEqual((yield* plan({ planRelativePath: path })).code, "plan_path_invalid", path)
      }
      assert.deepStrictEqual([names(), Fs.readdirSync(root)], [["Mine.md"], [".portcullis"]])
      assert.strictEqual(disk(".portcullis/plan/Mine.md"), "# Add login\n\nSteps.\n")
    }).pipe(Effect.provide(only(createPlan))))

  it.scopedLive("never replaces a plan by a draft, and refines only one that is there", () =>
    Effect.gen(function*() {
      const { disk, names, plan, put } = yield* desk
      const planRelativePath = ".portcullis/plan/a.md"
      assert.strictEqual((yield* plan({ planRelativePath, operation: "refine" })).code, "plan_not_found")
      put(planRelativePath, "first")
      for (const spec of [{}, { plan: { ...reservation, relativePath: planRelativePath } }]) {
        assert.strictEqual((yield* plan({ planRelativePath }, spec)).code, "plan_exists")
      }
      assert.strictEqual((yield* plan({ operation: "refine" })).code, "plan_path_invalid")
      assert.strictEqual(disk(planRelativePath), "first")
      const refined = yield* plan({ planRelativePath, operation: "refine", markdown: "second" })
      assert.deepInclude(outputOf(refined), { operation: "refine", planId: "a", byteSize: 6 })
      assert.deepStrictEqual([disk(planRelativePath), names()], ["second", ["a.md"]])
    }).pipe(Effect.provide(only(createPlan))))

  it.scopedLive("refines in legacy directories that the host names, and drafts in none of them", () =>
    Effect.gen(function*() {
      const { disk, plan, put, root } = yield* desk
      put(".old/plan/a.md", "first")
      const refine = { planRelativePath: ".old/plan/a.md", operation: "refine", markdown: "second" }
      assert.strictEqual((yield* plan(refine)).code, null)
      assert.strictEqual(disk(".old/plan/a.md"), "second")
      for (const spec of [{}, { plan: { ...reservation, relativePath: ".old/plan/b.md" } }]) {
        assert.strictEqual((yield* plan({ planRelativePath: ".old/plan/b.md" }, spec)).code, "plan_refine_only")
      }
      assert.deepStrictEqual(Fs.readdirSync(root), [".old"])
      assert.strictEqual((yield* Effect.provide(plan(refine), only(createPlan))).code, "plan_path_invalid")
    }).pipe(Effect.provide(only(make({ legacyDirectories: [".old/plan"] })))))
})

describe("create_plan with a reserved plan", () => {
  it.scopedLive("writes that very file and says what was reserved", () =>
    Effect.gen(function*() {
      const { disk, plan, root } = yield* desk
      const context = {
        ...reservation,
        workspaceRoot: `${root.toUpperCase()}//`,
        title: "Login",
        sourceRequest: "do it"
      }
      const result = yield* plan(
        { planRelativePath: "./.Portcullis/plan/LOGIN.md", planId: "plan-7", operation: "draft" },
        { threadMode: "agent", plan: context }
      )
      assert.deepInclude(outputOf(result), {
        planId: "plan-7",
        relativePath: reservation.relativePath,
        title: "Login",
        sourceRequest: "do it"
      })
      assert.strictEqual(disk(reservation.relativePath), "# Add login\n\nSteps.\n")
      const refined = yield* plan({ markdown: "new" }, { plan: { ...reservation, operation: "refine" } })
      assert.deepInclude(outputOf(refined), { operation: "refine", byteSize: 3 })
    }).pipe(Effect.provide(only(createPlan))))

  it.scopedLive("refuses whatever differs, in the order of the checks", () =>
    Effect.gen(function*() {
      const { plan, root, names } = yield* desk
      const bad = {
        ...reservation,
        workspaceRoot: join(root, "sub"),
        relativePath: "src/main.ts"
      }
      const given: JsonObject = { operation: "refine", planRelativePath: ".portcullis/plan/other.md", planId: "plan-8" }
      const { operation: _, ...sameOperation } = given
      const { planRelativePath: __, ...samePath } = sameOperation
      const rows: ReadonlyArray<readonly [JsonObject, PlanContext, string]> = [
        [given, bad, "plan_operation_mismatch"],
        [sameOperation, bad, "plan_workspace_mismatch"],
        [sameOperation, { ...bad, workspaceRoot: root }, "plan_path_invalid"],
        [sameOperation, { ...reservation, relativePath: ".old/plan/a.md" }, "plan_refine_only"],
        [sameOperation, reservation, "plan_path_mismatch"],
        [{ planRelativePath: "src/main.ts" }, reservation, "plan_path_mismatch"],
        [samePath, reservation, "plan_id_mismatch"]
      ]
      for (const [args, context, code] of rows) {
        assert.strictEqual((yield* plan(args, { plan: context })).code, code)
      }
      assert.deepStrictEqual(names(), [])
    }).pipe(Effect.provide(only(make({ legacyDirectories: [".old/plan"] })))))

  it.scopedLive("requires a plan turn even where nothing else stands before it", () =>
    Effect.gen(function*() {
      const { root } = yield* desk
      const prepare = yield* createPlan.load
      const args = { markdown: "x" }
      const { run } = yield* prepare(args)
      const digest = ""
      const invocation: ToolInvocation["Type"] = {
        turn: turnIn(root, { sandboxMode: "danger-full-access" }),
        call: {
          callId: ToolCall.CallId.make("c"),
          toolName: "create_plan",
          kind: "file_change",
          arguments: args,
          digest
        },
        grants: [],
        progress: () => Effect.void,
        observe: () => Effect.void
      }
      const refused = yield* Effect.flip(Effect.provideService(Effect.suspend(run), ToolInvocation, invocation))
      assert.strictEqual(Object(refused).code, "plan_context_required")
      assert.deepStrictEqual(Fs.readdirSync(root), [])
    }).pipe(Effect.provide(Test.services())))
})

describe("create_plan and links", () => {
  const modes = ["workspace-write", "danger-full-access"] as const
  for (const sandboxMode of modes) {
    it.scopedLive(`follows none below the root, under ${sandboxMode}`, () =>
      Effect.gen(function*() {
        const { outside, plan, put, root } = yield* desk
        put("src/main.ts", "code")
        Fs.mkdirSync(join(root, "src", "plan"))
        const links: ReadonlyArray<readonly [string, string]> = [
          [outside, ".portcullis"],
          ["src", ".portcullis"],
          [outside, ".portcullis/plan"],
          ["../src", ".portcullis/plan"],
          ["../../.git", ".portcullis/plan"],
          [join(outside, "new.md"), ".portcullis/plan/a.md"],
          ["../../src/main.ts", ".portcullis/plan/a.md"]
        ]
        for (const [to, at] of links) {
          Fs.mkdirSync(join(root, at, ".."), { recursive: true })
          Fs.symlinkSync(to, join(root, at))
          for (const operation of ["draft", "refine"]) {
            const result = yield* plan({ planRelativePath: ".portcullis/plan/a.md", operation }, { sandboxMode })
            assert.strictEqual(result.code, "workspace_path_escape", `${at} to ${to}`)
          }
          Fs.rmSync(join(root, ".portcullis"), { recursive: true })
        }
        const hard = ".portcullis/plan/a.md"
        Fs.mkdirSync(join(root, hard, ".."), { recursive: true })
        Fs.linkSync(join(root, "src/main.ts"), join(root, hard))
        const refined = yield* plan({ planRelativePath: hard, operation: "refine" }, { sandboxMode })
        assert.strictEqual(refined.code, "workspace_path_escape")
        assert.deepStrictEqual(Fs.readdirSync(outside), [])
        assert.deepStrictEqual(Fs.readdirSync(join(root, "src"), { recursive: true }).sort(), ["main.ts", "plan"])
        assert.strictEqual(Fs.readFileSync(join(root, "src/main.ts"), "utf8"), "code")
      }).pipe(Effect.provide(only(createPlan))))
  }

  it.scopedLive("takes a workspace that is itself reached by a link", () =>
    Effect.gen(function*() {
      const { base, names, plan, root } = yield* desk
      Fs.symlinkSync(root, join(base, "alias"))
      const result = yield* plan({ title: "a" }, { workspace: join(base, "alias") })
      assert.strictEqual(outputOf(result)["absolutePath"], join(base, "alias", ".portcullis/plan/a.md"))
      assert.deepStrictEqual(names(), ["a.md"])
    }).pipe(Effect.provide(only(createPlan))))
})

describe("a plan turn", () => {
  const remote = probe({ name: "mcp_server_change", kind: "command_execution", runs: "remote", policy: "auto" })
  const change = probe({ name: "change", kind: "tool_call", policy: "auto" })
  const tools = [read, write, edit, createPlan, Bash.make(), remote.tool, change.tool] as const
  const allow: Rule = { name: "always", decision: "allow", reason: "remembered", matches: () => true }
  const planeWith = (options: Test.Options) =>
    ToolHost.layer().pipe(
      Layer.provideMerge(CapabilityRegistry.layer([ToolProvider.make({ id: "all", kind: "built-in", tools })])),
      Layer.provideMerge(Layer.merge(Test.services(options), Subprocess.layer()))
    )

  const calls: ReadonlyArray<Parameters<typeof ToolCall.make>[0]> = [
    ...["git commit --amend -m x", "echo hi > f", "python3 -c \"open('f','w')\""].map((command) => ({
      toolName: "bash",
      arguments: { command }
    })),
    { toolName: "write", arguments: { path: "f", content: "x" } },
    { toolName: "write", arguments: { path: ".portcullis/plan/sneaky.md", content: "x" } },
    { toolName: "edit", arguments: { path: "seen.txt", edits: [{ oldText: "one", newText: "two" }] } },
    { toolName: "mcp_server_change", arguments: {} },
    { toolName: "change", arguments: {} }
  ]

  it.scopedLive("refuses everything that could change anything at execution, whatever was allowed before", () =>
    Effect.gen(function*() {
      const { names, put, root } = yield* desk
      put("seen.txt", "one")
      const loose = {
        workspace: root,
        threadId: "t",
        approvalPolicy: "auto",
        sandboxMode: "danger-full-access"
      } as const
      assert.strictEqual((yield* executeIn(loose, { toolName: "read", arguments: { path: "seen.txt" } })).code, null)
      for (const spec of [{ threadMode: "plan" }, { plan: reservation }] as const) {
        for (const call of calls) {
          const { code, executed } = yield* executeIn({ ...loose, ...spec }, call)
          assert.deepStrictEqual([code, executed], ["plan_mode_blocked", false], JSON.stringify(call))
        }
      }
      assert.deepStrictEqual(Fs.readdirSync(root), ["seen.txt"])
      assert.deepStrictEqual([remote.runs.count, change.runs.count, names()], [0, 0, []])
      assert.strictEqual(Fs.readFileSync(join(root, "seen.txt"), "utf8"), "one")
    }).pipe(Effect.provide(planeWith({ rules: [allow] }))))

  it.scopedLive("begins for a call that waits for an answer as soon as the mode is switched", () =>
    Effect.gen(function*() {
      const { root } = yield* desk
      const asked = yield* Deferred.make<void>()
      const answered = yield* Deferred.make<void>()
      const approver = {
        name: "slow",
        review: () =>
          Deferred.succeed(asked, undefined).pipe(
            Effect.zipRight(Deferred.await(answered)),
            Effect.as({ decision: "allow", principal: "user" } as const)
          )
      }
      yield* Effect.gen(function*() {
        const host = yield* ToolHost.ToolHost
        const session = yield* host.openTurn({ workspace: root })
        const call = ToolCall.make({ toolName: "write", arguments: { path: "f", content: "x" } })
        const fiber = yield* Effect.fork(session.execute(call))
        yield* Deferred.await(asked)
        yield* session.setMode({ threadMode: "plan" })
        yield* Deferred.succeed(answered, undefined)
        assert.strictEqual((yield* Fiber.join(fiber)).code, "plan_mode_blocked")
        assert.deepStrictEqual(Fs.readdirSync(root), [])
        const made = yield* session.execute(
          ToolCall.make({ toolName: "create_plan", arguments: { markdown: "x", title: "t" } })
        )
        assert.strictEqual(made.code, null)
        assert.deepStrictEqual(Fs.readdirSync(join(root, ".portcullis/plan")), ["t.md"])
      }).pipe(Effect.scoped, Effect.provide(planeWith({ approvals: { approver } })))
    }))
})
