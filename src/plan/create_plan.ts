/**
 * `create_plan`: the one file that a plan turn writes (seed 5.3).
 *
 * A draft makes a new file and never replaces one, a reserved one neither; a refinement replaces the whole of a plan that
 * is there. Whatever the sandbox mode, nothing is written but a plan file in the primary root, and no link is followed on
 * the way from there, not even one that stays inside.
 *
 * @since 0.1.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Digest, short } from "../contract/Digest.ts"
import { type CodedError, toolError } from "../contract/ToolFailure.ts"
import { text } from "../contract/ToolResult.ts"
import { isPlan, PlanContext, type Turn } from "../contract/Turn.ts"
import * as FileChange from "../file/FileChange.ts"
import { changeCodes, pathCodes, quote } from "../file/FileError.ts"
import { utf8 } from "../file/TextFile.ts"
import { type Resolved, WorkspacePath } from "../file/WorkspacePath.ts"
import { cut } from "../internal/lines.ts"
import * as Tool from "../tool/Tool.ts"
import { ToolInvocation } from "../tool/ToolInvocation.ts"
import * as PlanPath from "./PlanPath.ts"

export interface Options {
  /** Directories from the primary root where older plans are: they may be refined there. Default none. */
  readonly legacyDirectories?: ReadonlyArray<string>
}

/** Failure codes of its own. */
export const codes = [
  "plan_context_required",
  "plan_operation_mismatch",
  "plan_workspace_mismatch",
  "plan_path_invalid",
  "plan_refine_only",
  "plan_path_mismatch",
  "plan_id_mismatch",
  "plan_exists",
  "plan_not_found",
  "workspace_path_escape"
] as const
type PlanError = CodedError<typeof codes[number]>

const maxMarkdownBytes = 1024 * 1024
const maxTitle = 200

const Markdown = Schema.String.pipe(
  Schema.pattern(/\S/),
  Schema.filter((markdown) => new TextEncoder().encode(markdown).length <= maxMarkdownBytes, {
    message: () => `a text of at most ${maxMarkdownBytes} bytes`,
    jsonSchema: { maxLength: maxMarkdownBytes }
  })
)

const optional = (maxLength: number, description: string) =>
  Schema.optionalWith(Schema.String.pipe(Schema.maxLength(maxLength)).annotations({ description }), { exact: true })

const Parameters = Schema.Struct({
  markdown: Markdown.annotations({ description: "The whole plan, in Markdown." }),
  title: optional(maxTitle, "Title of the plan; a new plan's file is named after it."),
  sourceRequest: optional(20_000, "What the user asked for, in their words."),
  operation: Schema.optionalWith(
    PlanContext.fields.operation.annotations({
      description: "draft makes a new plan, refine replaces one that is there."
    }),
    { exact: true }
  ),
  planId: optional(200, "Id of the plan; only when one was given to you."),
  planRelativePath: optional(1000, `File of the plan, such as ${PlanPath.directory}/name.md; refine needs it.`)
})
type Arguments = typeof Parameters.Type

const Success = Schema.Struct({
  planId: Schema.String,
  relativePath: Schema.String,
  absolutePath: Schema.String,
  operation: PlanContext.fields.operation,
  title: Schema.String,
  sourceRequest: Schema.NullOr(Schema.String),
  /** ISO 8601, UTC. */
  savedAt: Schema.String,
  /** First 16 hex digits of the SHA-256 of the file. */
  contentHash: Schema.String,
  byteSize: Schema.Number,
  summary: Schema.String
})

interface Target {
  readonly operation: PlanContext["operation"]
  readonly path: PlanPath.PlanPath
  /** Where a draft may go when that name is taken; none when somebody named the file. */
  readonly spares: ReadonlyArray<PlanPath.PlanPath>
  /** `undefined`: the plan is called after its file. */
  readonly planId: string | undefined
}

/** Two spellings of one folder. Case makes no difference: this asks what was meant, and writes nothing by it. */
const sameFolder = (path: Path.Path, left: string, right: string): boolean => {
  const fold = (folder: string) => path.resolve(folder).replaceAll("\\", "/").normalize("NFC").toLowerCase()
  return fold(left) === fold(right)
}

const parsed = (
  given: string,
  operation: PlanContext["operation"],
  legacy: ReadonlyArray<string>
): Effect.Effect<PlanPath.PlanPath, PlanError> => {
  const plan = PlanPath.parse(given, legacy)
  if (plan === undefined) {
    return Effect.fail(
      toolError("plan_path_invalid", `${quote(given)} is no plan: give ${PlanPath.directory}/<name>.md.`)
    )
  }
  return plan.legacy && operation === "draft"
    ? Effect.fail(
      toolError("plan_refine_only", `${quote(given)} is in an old plan directory; draft in ${PlanPath.directory}.`)
    )
    : Effect.succeed(plan)
}

/** What the host reserved; a call may say less than that and nothing else (seed 5.3, in its order). */
const reserved = Effect.fnUntraced(function*(
  context: PlanContext,
  turn: Turn,
  args: Arguments,
  legacy: ReadonlyArray<string>
): Effect.fn.Return<Target, PlanError, Path.Path> {
  const { operation, planId, relativePath, workspaceRoot } = context
  if (args.operation !== undefined && args.operation !== operation) {
    return yield* toolError("plan_operation_mismatch", `The operation of this turn is ${operation}.`)
  }
  if (workspaceRoot !== undefined && !sameFolder(yield* Path.Path, workspaceRoot, turn.workspace)) {
    return yield* toolError("plan_workspace_mismatch", "The plan was reserved in another workspace than this turn's.")
  }
  const plan = yield* parsed(relativePath, operation, legacy)
  if (args.planRelativePath !== undefined) {
    const given = PlanPath.parse(args.planRelativePath, legacy)
    if (given === undefined || !PlanPath.same(given, plan)) {
      return yield* toolError("plan_path_mismatch", `The plan of this turn is ${quote(plan.relativePath)}.`)
    }
  }
  if (args.planId !== undefined && args.planId !== planId) {
    return yield* toolError("plan_id_mismatch", `The plan of this turn has the id ${quote(planId)}.`)
  }
  return { operation, path: plan, spares: [], planId }
})

const chosen = Effect.fnUntraced(function*(
  args: Arguments,
  title: string,
  legacy: ReadonlyArray<string>
): Effect.fn.Return<Target, PlanError> {
  const { operation = "draft", planId, planRelativePath } = args
  if (planRelativePath !== undefined) {
    return { operation, path: yield* parsed(planRelativePath, operation, legacy), spares: [], planId }
  }
  if (operation === "refine") {
    return yield* toolError("plan_path_invalid", "Say in planRelativePath which plan to refine.")
  }
  const [path, ...spares] = PlanPath.candidates(title, yield* Clock.currentTimeMillis)
  return { operation, path, spares, planId }
})

const linked = (plan: PlanPath.PlanPath): PlanError =>
  toolError(
    "workspace_path_escape",
    `${quote(plan.relativePath)} is or goes through a link; plans are not written there.`
  )

/** A link below the root could have a plan turn write anything, so none is followed, wherever it leads. */
const straight = (resolved: Resolved, plan: PlanPath.PlanPath): Effect.Effect<void, PlanError> =>
  resolved.relative === plan.relativePath ? Effect.void : Effect.fail(linked(plan))

const exists = (plan: PlanPath.PlanPath): PlanError =>
  toolError(
    "plan_exists",
    `There is a file ${quote(plan.relativePath)} already. A draft never replaces one; refine it.`
  )

const save = Effect.fnUntraced(function*(
  plan: PlanPath.PlanPath,
  operation: PlanContext["operation"],
  markdown: string
): Effect.fn.Return<FileChange.Changed<Resolved>, FileChange.ChangeError | PlanError, FileChange.ChangeServices> {
  const { turn } = yield* ToolInvocation
  const fs = yield* FileSystem.FileSystem
  const seen = yield* (yield* WorkspacePath).resolve(turn, plan.relativePath)
  yield* straight(seen, plan)
  if (operation === "draft" && seen.exists) return yield* exists(plan)
  const target = { path: plan.relativePath, requiresRead: false, quotes: [] }
  return yield* FileChange.change(target, (before, resolved) =>
    Effect.gen(function*() {
      yield* straight(resolved, plan)
      if (operation === "draft" && before !== undefined) return yield* exists(plan)
      if (operation === "refine") {
        if (before === undefined) {
          return yield* toolError("plan_not_found", `There is no plan ${quote(plan.relativePath)} to refine.`)
        }
        // A file with several hard links is written in place, and so would be whatever else they name.
        const info = yield* Effect.option(fs.stat(resolved.physical))
        if (Option.exists(Option.flatMap(info, ({ nlink }) => nlink), (links) => links > 1)) return yield* linked(plan)
      }
      return { text: markdown, encoding: utf8, whole: true, value: resolved }
    }))
})

/** Somebody has the name: before, or since it was looked at. */
const isTaken = (error: { readonly code: string }): boolean =>
  error.code === "plan_exists" || error.code === "path_changed"

/** Saves to the first path whose name nobody has; the last one's refusal stands. */
const firstFree = ({ operation, path, spares }: Target, markdown: string) => {
  const saveTo = (plan: PlanPath.PlanPath) =>
    Effect.map(save(plan, operation, markdown), (changed) => ({ changed, plan }))
  return spares.reduce((tried, spare) => Effect.catchIf(tried, isTaken, () => saveTo(spare)), saveTo(path))
}

const titleOf = (args: Arguments, context: PlanContext | undefined): string => {
  const heading = /^#{1,6}[ \t]+(\S.*)$/m.exec(args.markdown)?.[1]
  const title = [args.title, context?.title, heading].find((candidate) => candidate?.trim()) ?? "Plan"
  return cut(title.trim(), maxTitle)
}

/**
 * The tool. In a turn whose plan is reserved it writes that very file or refuses; in any other plan turn a draft without
 * a path gets a free name made of its title. Two drafts at once never get the same one. For the main agent only.
 */
export const make = ({ legacyDirectories = [] }: Options = {}) =>
  Tool.make("create_plan", {
    description:
      "Saves the plan of this turn as a Markdown file: a new one, or with operation refine in place of one " +
      "that is there. Give all of the plan. It is the only thing a plan turn can write.",
    kind: "file_change",
    policy: "auto",
    reach: "main",
    codes: [...codes, ...pathCodes, ...changeCodes],
    parameters: Parameters,
    success: Success,
    shouldAdvertise: isPlan,
    handler: Effect.fnUntraced(function*(args) {
      const { turn } = yield* ToolInvocation
      const sha256 = yield* Digest
      if (!isPlan(turn)) return yield* toolError("plan_context_required", "Plans are written in plan turns only.")
      const title = titleOf(args, turn.plan)
      const target = yield* (turn.plan === undefined
        ? chosen(args, title, legacyDirectories)
        : reserved(turn.plan, turn, args, legacyDirectories))
      const { changed, plan } = yield* firstFree(target, args.markdown)
      return {
        planId: target.planId ?? plan.stem,
        relativePath: plan.relativePath,
        absolutePath: changed.value.lexical,
        operation: target.operation,
        title,
        sourceRequest: args.sourceRequest ?? turn.plan?.sourceRequest ?? null,
        savedAt: DateTime.formatIso(yield* DateTime.now),
        contentHash: short(sha256(args.markdown)),
        byteSize: changed.bytesWritten,
        summary: `Saved the plan ${quote(title)} to ${quote(plan.relativePath)} (${changed.bytesWritten} bytes).`
      }
    }),
    render: ({ summary }) => [text(summary)]
  })

/** The tool with its defaults. */
export const createPlan = make()
