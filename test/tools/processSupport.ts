/** What the tests of process and search tools share: a turn over a temporary workspace, and one call of one tool. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import * as Path from "node:path"
import { type Json, snapshot } from "../../src/contract/Json.ts"
import type { Reach, SandboxMode } from "../../src/contract/Policy.ts"
import { CallId } from "../../src/contract/ToolCall.ts"
import { SandboxBlocked } from "../../src/contract/ToolFailure.ts"
import { names, ThreadId, type Turn, TurnId } from "../../src/contract/Turn.ts"
import { fileError } from "../../src/file/FileError.ts"
import { WorkspacePath } from "../../src/file/WorkspacePath.ts"
import type { Tool } from "../../src/tool/Tool.ts"
import { ToolInvocation } from "../../src/tool/ToolInvocation.ts"

export const workspace = Effect.acquireRelease(
  Effect.sync(() => realpathSync(mkdtempSync(Path.join(tmpdir(), "portcullis-")))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

export const write = (root: string, files: Readonly<Record<string, string | Uint8Array>>): void => {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(Path.dirname(Path.join(root, path)), { recursive: true })
    writeFileSync(Path.join(root, path), content)
  }
}

export const turnIn = (root: string, sandboxMode: SandboxMode = "danger-full-access"): Turn => ({
  threadId: ThreadId.make("thread"),
  turnId: TurnId.make("turn"),
  workspace: root,
  roots: [root],
  threadMode: "agent",
  plan: undefined,
  sandboxMode,
  approvalPolicy: "auto",
  providers: names(undefined),
  tools: names(undefined),
  skills: names(undefined),
  clientSurface: "cli",
  model: { inputModalities: ["text"] },
  lineage: []
})

/** Enough of `WorkspacePath` to search with. */
export const paths: WorkspacePath["Type"] = {
  resolve: (turn, path) =>
    Effect.sync(() => {
      const lexical = Path.resolve(turn.workspace, path)
      const exists = existsSync(lexical)
      const physical = exists ? realpathSync(lexical) : lexical
      const relative = Path.relative(turn.workspace, physical)
      const inside = !relative.startsWith("..")
      return { lexical, physical, relative: inside ? relative || "." : physical, inside, exists, ancestor: undefined }
    }),
  forRead: (turn, path) =>
    Effect.flatMap(paths.resolve(turn, path), (resolved) =>
      resolved.inside
        ? Effect.succeed(resolved)
        : Effect.fail(fileError("outside_workspace", `${path} is outside the workspace.`))),
  forWrite: (turn, path) => paths.resolve(turn, path),
  identify: () => Effect.fail(new SandboxBlocked({ code: "sandbox_write_blocked", reason: "not here" })),
  withholds: () => false
}

/** Decodes the arguments as step 7 does and runs the handler, as step 15 does. */
export const call = <R>(
  tool: Tool<string, R, Reach>,
  args: Readonly<Record<string, Json>>,
  turn: Turn,
  onProgress: (value: Json) => void = () => {}
) =>
  Effect.gen(function*() {
    const prepare = yield* Effect.orDie(tool.load)
    const plain = snapshot(args)
    const prepared = prepare(plain.ok ? Object(plain.value) : {})
    if (Either.isLeft(prepared)) return yield* prepared.left
    const invocation: ToolInvocation["Type"] = {
      turn,
      call: {
        callId: CallId.make("call"),
        toolName: tool.name,
        kind: tool.kind,
        arguments: prepared.right.arguments,
        digest: ""
      },
      grants: [],
      progress: (value) => Effect.sync(() => onProgress(value)),
      observe: () => Effect.void
    }
    const produced = yield* Effect.provideService(Effect.suspend(prepared.right.run), ToolInvocation, invocation)
    return {
      output: Object(produced.output),
      shown: produced.content.map((part) => part.type === "text" ? part.text : "").join("")
    }
  })

/** The failure of a call, which must be a coded one. */
export const failureOf = <A, R>(effect: Effect.Effect<A, unknown, R>) =>
  Effect.flatMap(Effect.flip(effect), (error) =>
    error !== null && typeof error === "object" && "code" in error
      ? Effect.succeed({ code: error.code, error, details: "details" in error ? Object(error.details) : {} })
      : Effect.dieMessage(`not a coded failure: ${String(error)}`))
