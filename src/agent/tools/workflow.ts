/**
 * `workflow`: runs a script of stages over agents.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { Json } from "../../contract/Json.ts"
import { toolError } from "../../contract/ToolFailure.ts"
import type { Turn } from "../../contract/Turn.ts"
import * as FifoSemaphore from "../../internal/FifoSemaphore.ts"
import { fitJson } from "../../internal/fitJson.ts"
import { lastJson } from "../../internal/lastJson.ts"
import * as Tool from "../../tool/Tool.ts"
import { ToolInvocation } from "../../tool/ToolInvocation.ts"
import { AgentSystem } from "../AgentSystem.ts"
import { childCodes, type ChildFailure, failure, toolCodeOf, withChild, wordsOf } from "../childTurn.ts"
import * as Workflow from "../Workflow.ts"

export interface Options {
  /** Agents that one workflow starts at most, run-time lists counted. Default 64. */
  readonly maxAgents?: number
  /** Agents of one workflow that live at once. Default 16. */
  readonly concurrency?: number
}

export const Failure = Schema.Struct({
  /** Of the stage; the item of a pipeline in brackets. */
  path: Schema.String,
  label: Schema.String,
  /** What the agent failed with, `list_invalid`, or why it was not started. */
  code: Schema.String,
  error: Schema.String
})
export type Failure = typeof Failure.Type

export const Success = Schema.Struct({
  agentsStarted: Schema.Number,
  /** By name, in the order of the text; `null` for a name whose stage failed. */
  results: Json,
  /** The value of the last stage. */
  result: Json,
  /** Values were cut to fit: 25,000 characters each for `results` and `result`. */
  truncated: Schema.Boolean,
  /** The first 64 that were begun. */
  phases: Schema.Array(Schema.Struct({ path: Schema.String, title: Schema.String, completed: Schema.Boolean })),
  /** The first 64. */
  failures: Schema.Array(Failure)
})

/** Failure codes of its own; each has what was done by then in `details`. */
export const codes = [...childCodes, "list_invalid"] as const

const maxRendered = 25_000
const maxListed = 64

interface Run {
  /** Agents that may still be started by what is known of the lists, the started ones included. */
  planned: number
  started: number
  finished: number
  failed: number
  phase: string | null
  readonly phases: Array<{ readonly path: string; readonly title: string; completed: boolean }>
  readonly failures: Array<Failure>
}

interface Place extends Workflow.Place {
  readonly names: Map<string, Json>
}

const isArray = (value: Json | undefined): value is ReadonlyArray<Json> => Array.isArray(value)

const itemsOf = (value: Json): ReadonlyArray<Json> | undefined => {
  const list = typeof value === "string" ? lastJson(value, "array") : value
  return isArray(list) ? list : undefined
}

const runStages = Effect.fnUntraced(function*(
  { args, meta, stages }: Workflow.Workflow,
  { concurrency = 16, maxAgents = 64 }: Options,
  system: AgentSystem["Type"],
  { progress, turn }: { readonly progress: ToolInvocation["Type"]["progress"]; readonly turn: Turn }
) {
  const slots = yield* FifoSemaphore.make(Math.max(1, concurrency))
  const names = new Map<string, Json>()
  const run: Run = {
    planned: Workflow.agentsIn(stages, args),
    started: 0,
    finished: 0,
    failed: 0,
    phase: null,
    phases: [],
    failures: []
  }

  const tell = Effect.suspend(() => {
    const { failed, finished, phase, started } = run
    return progress({ workflow: meta.name, phase, agentsStarted: started, agentsFinished: finished, failures: failed })
  })

  const failed = (path: string, label: string, { code, error }: ChildFailure): Effect.Effect<never, Failure> =>
    Effect.suspend(() => {
      const entry = { path, label, code, error }
      run.failed++
      if (run.failures.length < maxListed) run.failures.push(entry)
      return Effect.zipRight(tell, Effect.fail(entry))
    })

  const agent = (stage: Workflow.AgentStage, path: string, place: Place): Effect.Effect<Json, Failure> => {
    const label = stage.label ?? `${meta.name} ${path}`
    return withChild(
      system,
      turn,
      { label, ...stage.profile === undefined ? {} : { profile: stage.profile } },
      Effect.fnUntraced(function*(ask) {
        run.started++
        yield* tell
        const report = yield* Effect.ensuring(
          ask(Workflow.fill(stage.agent, place)),
          Effect.sync(() => void run.finished++)
        )
        return yield* wordsOf(report)
      })
    ).pipe(
      Effect.tap(tell),
      Effect.catchAll((why) => failed(path, label, why)),
      slots.withPermit
    )
  }

  /** A failed branch leaves `null` and an entry in `failures`. Where no agent can be started at all, none need try. */
  const branches = <A>(
    over: ReadonlyArray<A>,
    each: (item: A, index: number) => Effect.Effect<Json, Failure>
  ): Effect.Effect<ReadonlyArray<Json>, Failure> =>
    Effect.forEach(
      over,
      (item, index) =>
        Effect.catchAll(
          each(item, index),
          (entry) => entry.code === "depth_exceeded" ? Effect.fail(entry) : Effect.succeed(null)
        ),
      { concurrency: "unbounded" }
    )

  const pipeline = ({ pipeline: { over, stages } }: Workflow.PipelineStage, path: string, place: Place) =>
    Effect.gen(function*() {
      const known = Workflow.knownItems(over, args)
      const reference = typeof over === "string" ? Workflow.referenceOf(over) ?? "" : ""
      const items = known ?? itemsOf(Workflow.lookUp(reference, place))
      if (items === undefined) {
        return yield* failed(
          path,
          meta.name,
          failure("list_invalid", `{{${reference}}} is no list and ends with none.`)
        )
      }
      if (known === undefined) {
        // One item was planned for. What a run-time list adds is planned before any of it starts.
        const more = (Math.max(1, items.length) - 1) * Workflow.agentsIn(stages, args)
        if (run.planned + more > maxAgents) {
          const reason = `${items.length} items need more agents than are left of ${maxAgents}.`
          return yield* failed(path, meta.name, failure("delegation_limit", reason))
        }
        run.planned += more
      }
      return yield* branches(items, (item, index) =>
        item === null
          ? Effect.succeed(null)
          : sequence(stages, `${path}/pipeline[${index}]/stages`, {
            ...place,
            names: new Map(place.names),
            item,
            previous: item
          }))
    })

  const phase = (stage: Workflow.PhaseStage, path: string, place: Place): Effect.Effect<Json, Failure> =>
    Effect.suspend(() => {
      const entry = { path, title: stage.phase, completed: false }
      if (run.phases.length < maxListed) run.phases.push(entry)
      run.phase = stage.phase
      return Effect.zipRight(tell, sequence(stage.stages, `${path}/stages`, place)).pipe(
        Effect.tap(() => void (entry.completed = true))
      )
    })

  const one = (stage: Workflow.Stage, path: string, place: Place): Effect.Effect<Json, Failure> => {
    if ("agent" in stage) return agent(stage, path, place)
    if ("phase" in stage) return phase(stage, path, place)
    if ("pipeline" in stage) return pipeline(stage, path, place)
    return branches(stage.parallel, (branch, index) => named(branch, `${path}/parallel/${index}`, place))
  }

  const named = (stage: Workflow.Stage, path: string, place: Place): Effect.Effect<Json, Failure> =>
    Effect.tap(one(stage, path, place), (value) => {
      if ("as" in stage && stage.as !== undefined) place.names.set(stage.as, value)
    })

  /** A stage that fails ends its sequence. */
  const sequence = (list: ReadonlyArray<Workflow.Stage>, path: string, place: Place): Effect.Effect<Json, Failure> =>
    Effect.reduce(
      list,
      place.previous ?? null,
      (previous, stage, index) => named(stage, `${path}/${index}`, { ...place, previous })
    )

  const ended = yield* Effect.either(sequence(stages, "/stages", { args, names }))
  const results = fitJson(
    Object.fromEntries(Workflow.namesIn(stages).map((name) => [name, names.get(name) ?? null])),
    maxRendered
  )
  const result = fitJson(Either.getOrElse(ended, () => null), maxRendered)
  const outcome: typeof Success.Type = {
    agentsStarted: run.started,
    results: results.value,
    result: result.value,
    truncated: results.truncated || result.truncated,
    phases: run.phases,
    failures: run.failures
  }
  if (Either.isRight(ended)) return outcome
  const { code, error, path } = ended.left
  return yield* toolError(
    code === "list_invalid" ? code : toolCodeOf(ended.left),
    `The stage ${path} failed, and with it the workflow (${code}): ${error}`,
    outcome
  )
})

/**
 * The tool. A failed agent ends the sequence it stands in: a branch of a parallel stage and an item of a pipeline give
 * `null` then, and the others go on; at the top the workflow ends with what the agent's failure is: `delegation_limit`,
 * `depth_exceeded`, `profile_unknown`, `list_invalid`, or `agent_failed` for all that happened inside an agent.
 *
 * A script with a fault is `arguments_invalid`, before anything starts. Every agent is stopped when its stage is over, and
 * interruption stops all of them before it completes. The caller's slot is lent for as long as the workflow runs.
 */
export const make = (options: Options = {}) => {
  const { maxAgents = 64 } = options
  return Tool.make("workflow", {
    description:
      "Run several agents by a script of stages and get their results. A stage is an agent with a prompt, stages in " +
      "parallel, a pipeline that takes each item of a list through stages, or a phase of stages in sequence. Agents see " +
      "nothing of this conversation: put what they need into their prompts. Values are inserted as {{args.key}}, {{name}} " +
      "(of an earlier stage with that \"as\"), {{previous}} and {{item}}. A failed branch or item gives null; a failed " +
      `stage in sequence ends the sequence. At most ${maxAgents} agents are started in all.`,
    kind: "tool_call",
    policy: "auto",
    codes,
    parameters: Workflow.schema(maxAgents),
    success: Success,
    handler: (workflow) =>
      Effect.gen(function*() {
        const invocation = yield* ToolInvocation
        const system = yield* AgentSystem
        return yield* system.waiting(invocation.turn, runStages(workflow, options, system, invocation))
      })
  })
}
