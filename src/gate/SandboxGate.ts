/**
 * Gate one: may this kind of call run at all (seed 6.1; decisions, Gates: workspace-write × command).
 *
 * Judged by the tool's kind, by where it runs and by what the process sandbox reports, and by nothing a model says except
 * to tighten: callers pass the stricter of declared and claimed kind.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import type { Confinement, Runs, SandboxMode, ToolKind } from "../contract/Policy.ts"
import { SandboxBlocked } from "../contract/ToolFailure.ts"
import { ProcessSandbox } from "../process/ProcessSandbox.ts"

export type SandboxVerdict =
  | { readonly _tag: "Pass" }
  /** Only after an explicit approval, whatever the approval policy. */
  | { readonly _tag: "Approve" }
  | { readonly _tag: "Block"; readonly code: SandboxBlocked["code"]; readonly reason: string }

/** The verdicts of one mode, as things stand. */
export type SandboxTable = (kind: ToolKind, runs: Runs, interactive: boolean) => SandboxVerdict

export class SandboxGate extends Context.Tag("portcullis/SandboxGate")<SandboxGate, {
  readonly table: (mode: SandboxMode) => Effect.Effect<SandboxTable>
}>() {}

const pass: SandboxVerdict = { _tag: "Pass" }
const approve: SandboxVerdict = { _tag: "Approve" }
const block = (code: SandboxBlocked["code"], reason: string): SandboxVerdict => ({ _tag: "Block", code, reason })

const readOnly = block(
  "sandbox_read_only",
  "The sandbox mode is read-only, so nothing can be changed. Ask for workspace-write if a change is needed."
)
const externalWrite = block(
  "sandbox_write_blocked",
  "The sandbox mode is external-sandbox, which file tools of this process do not enforce, so they do not write."
)
const command = (mode: SandboxMode): SandboxVerdict =>
  block(
    "sandbox_command_blocked",
    mode === "workspace-write"
      ? "Commands cannot run: the sandbox mode is workspace-write and nothing here can confine them."
      : `Commands cannot run in sandbox mode ${mode}.`
  )

/** `vectors/sandbox.json`, as a function. */
const judge = (
  report: Either.Either<Confinement, SandboxBlocked>,
  mode: SandboxMode,
  kind: ToolKind,
  runs: Runs
): SandboxVerdict => {
  if (mode === "danger-full-access" || kind === "tool_call") return pass
  if (kind === "file_change") {
    switch (mode) {
      case "read-only":
        return readOnly
      case "workspace-write":
        return pass
      case "external-sandbox":
        return Either.isRight(report) && report.right === "external" ? pass : externalWrite
    }
  }
  if (mode === "read-only") return command(mode)
  if (runs !== "sandboxed") return mode === "workspace-write" ? approve : command(mode)
  if (Either.isLeft(report)) return block(report.left.code, report.left.reason)
  if (mode === "external-sandbox") return report.right === "external" ? pass : command(mode)
  switch (report.right) {
    case "none":
      return command(mode)
    case "partial":
      return approve
    case "full":
    case "external":
      return pass
  }
}

export const make: Effect.Effect<SandboxGate["Type"], never, ProcessSandbox> = Effect.map(
  ProcessSandbox,
  (sandbox) =>
    SandboxGate.of({
      table: (mode) =>
        Effect.map(Effect.either(sandbox.report), (report): SandboxTable => (kind, runs, interactive) =>
          interactive ? pass : judge(report, mode, kind, runs))
    })
)

export const layer: Layer.Layer<SandboxGate, never, ProcessSandbox> = Layer.effect(SandboxGate, make)

/** For tests of what lies behind this gate. */
export const layerAllowAll: Layer.Layer<SandboxGate> = Layer.succeed(SandboxGate, {
  table: () => Effect.succeed(() => pass)
})

/** For tests: everything but questions to the user is `sandbox_command_blocked`. */
export const layerDenyAll: Layer.Layer<SandboxGate> = Layer.succeed(SandboxGate, {
  table: (mode) => Effect.succeed((_kind, _runs, interactive) => interactive ? pass : command(mode))
})
