/**
 * Stage scripts over agents, as data: nothing of a workflow is evaluated, so there is nothing to escape from.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { isObject, Json, snapshot } from "../contract/Json.ts"
import { delimited, delimitedNote } from "../internal/delimited.ts"
import { ProfileName } from "./Profile.ts"

/** One agent; its value is the summary of its report. */
export interface AgentStage {
  readonly agent: string
  readonly profile?: string
  readonly label?: string
  readonly as?: string
}

/** All at once; its value is the list of their values, `null` for a branch that failed. */
export interface ParallelStage {
  readonly parallel: ReadonlyArray<Stage>
  readonly as?: string
}

/** Every item through the stages, on its own; its value is the list of last values, `null` for an item that failed. */
export interface PipelineStage {
  readonly pipeline: { readonly over: string | ReadonlyArray<Json>; readonly stages: ReadonlyArray<Stage> }
  readonly as?: string
}

/** One after the other, under a title; its value is the last one's. */
export interface PhaseStage {
  readonly phase: string
  readonly stages: ReadonlyArray<Stage>
}

export type Stage = AgentStage | ParallelStage | PipelineStage | PhaseStage

const maxDepth = 8
const maxStages = 256

const exact = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })
const words = (max: number) => Schema.String.pipe(Schema.minLength(1), Schema.maxLength(max))

/** A declared type needs one of these words in its JSON Schema. */
const AnyJson = Json.annotations({
  identifier: "AnyJson",
  jsonSchema: {
    anyOf: [
      ...["string", "number", "boolean", "object", "null"].map((type) => ({ type })),
      { type: "array", items: {} }
    ]
  }
})

const as = exact(
  Schema.String.pipe(Schema.pattern(/^[A-Za-z][A-Za-z0-9_-]{0,63}$/)).annotations({
    description: "A name for the value, given once; later stages insert it as {{name}}. Not args, item or previous."
  })
)

export const Stage: Schema.Schema<Stage> = Schema.suspend((): Schema.Schema<Stage> =>
  Schema.Union(AgentStage, ParallelStage, PipelineStage, PhaseStage)
).annotations({ identifier: "Stage" })

/** Its length is judged with the rest of the script: a refinement here would bury a fault deep inside under its own words. */
const stages = (description: string) =>
  Schema.Array(Stage).annotations({ title: "stages", description, jsonSchema: { minItems: 1, maxItems: maxStages } })

const AgentStage: Schema.Schema<AgentStage> = Schema.Struct({
  agent: words(32_768).annotations({
    description: "The prompt of one agent. {{args.x}}, {{name}}, {{previous}} and {{item}} insert values."
  }),
  profile: exact(ProfileName.annotations({ description: "The profile it runs under." })),
  label: exact(words(120).annotations({ description: "What people see it called." })),
  as
}).annotations({ identifier: "AgentStage" })

const ParallelStage: Schema.Schema<ParallelStage> = Schema.Struct({
  parallel: stages("Stages that run at once. The value is the list of theirs, null for one that failed."),
  as
}).annotations({ identifier: "ParallelStage" })

const PipelineStage: Schema.Schema<PipelineStage> = Schema.Struct({
  pipeline: Schema.Struct({
    over: Schema.Union(Schema.Array(AnyJson), words(200)).annotations({
      description:
        "The items: a list, or one reference such as {{args.files}} or {{name}} whose value is a list or a " +
        "text that ends with a JSON list."
    }),
    stages: stages(
      "What each item goes through on its own, all items at once: {{item}} is the item, {{previous}} the value of the " +
        "stage before, for the first one the item. Names given in here are seen by later stages of the same item only."
    )
  }),
  as
}).annotations({ identifier: "PipelineStage" })

const PhaseStage: Schema.Schema<PhaseStage> = Schema.Struct({
  phase: words(200).annotations({ description: "A title for people who watch." }),
  stages: stages("Stages that run one after the other.")
}).annotations({ identifier: "PhaseStage" })

const Fields = Schema.Struct({
  meta: Schema.Struct({ name: words(100), description: words(1000) }),
  stages: stages("Stages that run one after the other; the value of the last is the result."),
  args: exact(AnyJson.annotations({ description: "Values for {{args}} and {{args.key}}." }))
})
export type Workflow = typeof Fields.Type

const maxReferences = 16
/** Characters of a whole script, args included. */
const maxSize = 512 * 1024
/** Characters of one value in a prompt. */
const maxInserted = 50_000

/** A workflow that can be run: what is wrong with it is found before anything starts, each fault with its path. */
export const schema = (maxAgents: number): Schema.Schema<Workflow> =>
  Fields.pipe(Schema.filter((workflow) => problemsOf(workflow, maxAgents), { title: "Workflow", jsonSchema: {} }))

/** The template cut at its references: text at even places, what stood between the braces at odd ones. */
const piecesOf = (template: string): ReadonlyArray<string> =>
  template.split(/\{\{([^{}]*)\}\}/).map((piece, index) => index % 2 === 0 ? piece : piece.trim())

/** What `over` refers to, when it is one reference and nothing else. */
export const referenceOf = (over: string): string | undefined => {
  const [before, reference, after, ...more] = piecesOf(over.trim())
  return before === "" && after === "" && more.length === 0 ? reference : undefined
}

/** What `args` or `args.key.key` stands for; `undefined` for any other reference, and for keys that are not there. */
const inArgs = (args: Json | undefined, reference: string): Json | undefined => {
  const [first, ...keys] = reference.split(".")
  if (first !== "args" || !keys.every((key) => /^[\w-]+$/.test(key))) return undefined
  return keys.reduce<Json | undefined>(
    (value, key) => isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined,
    args
  )
}

const isJsonObject = (value: Json | undefined): value is { readonly [key: string]: Json } => isObject(value)
const isArray = (value: Json | undefined): value is ReadonlyArray<Json> => Array.isArray(value)

/** The items of a pipeline as far as they are known before the run. */
export const knownItems = (
  over: string | ReadonlyArray<Json>,
  args: Json | undefined
): ReadonlyArray<Json> | undefined => {
  if (typeof over !== "string") return over
  const value = inArgs(args, referenceOf(over) ?? "")
  return isArray(value) ? value : undefined
}

/**
 * How many agents the stages start at most. A list that is not known yet counts as one item, and so does an empty one, for
 * every pipeline costs something.
 */
export const agentsIn = (stages: ReadonlyArray<Stage>, args: Json | undefined): number =>
  stages.reduce((sum, stage) => {
    if ("agent" in stage) return sum + 1
    if ("parallel" in stage) return sum + agentsIn(stage.parallel, args)
    if ("phase" in stage) return sum + agentsIn(stage.stages, args)
    const { over, stages } = stage.pipeline
    return sum + Math.max(1, knownItems(over, args)?.length ?? 1) * agentsIn(stages, args)
  }, 0)

/** The names whose values outlive their stage: all but those of items. */
export const namesIn = (stages: ReadonlyArray<Stage>): ReadonlyArray<string> =>
  stages.flatMap((stage) => [
    ...("parallel" in stage ? namesIn(stage.parallel) : "phase" in stage ? namesIn(stage.stages) : []),
    ...("as" in stage && stage.as !== undefined ? [stage.as] : [])
  ])

/** What a reference may stand for at one place of a run. */
export interface Place {
  readonly args: Json | undefined
  readonly names: ReadonlyMap<string, Json>
  readonly item?: Json | undefined
  readonly previous?: Json | undefined
}

/** The value of a reference that was checked. A name whose stage failed is `null`. */
export const lookUp = (reference: string, { args, item, names, previous }: Place): Json =>
  (reference === "item"
    ? item
    : reference === "previous"
    ? previous
    : names.get(reference) ?? inArgs(args, reference)) ??
    null

/** The prompt with its values put in as delimited, escaped text. What was put in is never looked at again. */
export const fill = (template: string, place: Place): string => {
  const pieces = piecesOf(template)
  const filled = pieces.map((piece, index) => {
    if (index % 2 === 0) return piece
    const value = lookUp(piece, place)
    return delimited(piece, typeof value === "string" ? value : JSON.stringify(value), maxInserted)
  }).join("")
  return pieces.length === 1 ? filled : `${filled}\n\n${delimitedNote}`
}

type Path = ReadonlyArray<string | number>

interface Problem {
  readonly path: Path
  readonly message: string
}

/** What is there to be referred to at one place of the text. */
interface Known {
  readonly names: Set<string>
  readonly item: boolean
  readonly previous: boolean
}

const maxProblems = 10
const reserved = ["args", "item", "previous"]

const problemsOf = (workflow: Workflow, maxAgents: number): ReadonlyArray<Problem> => {
  if (!snapshot(workflow, { maxSize, maxDepth: 64 }).ok) {
    return [{ path: [], message: `The script with its args is larger than ${maxSize} characters.` }]
  }
  const { args, stages } = workflow
  const problems: Array<Problem> = []
  const declared = new Set<string>()
  let count = 0

  const fault = (path: Path, message: string): void => void problems.push({ path, message })

  const refer = (reference: string, path: Path, known: Known): void => {
    const there = reference === "item"
      ? known.item
      : reference === "previous"
      ? known.previous
      : known.names.has(reference) || inArgs(args, reference) !== undefined
    if (there) return
    fault(
      path,
      `{{${
        reference.slice(0, 64)
      }}} stands for nothing here: it is no args.key, no name of a stage that is over by then, ` +
        "and no {{item}} or {{previous}} that there is. Text with braces of its own has to come from args."
    )
  }

  const template = (text: string, path: Path, known: Known): void => {
    const pieces = piecesOf(text)
    if (pieces.length > 2 * maxReferences + 1) fault(path, `More than ${maxReferences} references in one prompt.`)
    pieces.slice(0, 2 * maxReferences + 1).forEach((piece, index) => {
      if (index % 2 === 1) refer(piece, path, known)
      else if (piece.includes("{{")) {
        fault(path, "Braces that are opened and never closed. Text with braces of its own has to come from args.")
      }
    })
  }

  const items = (over: string | ReadonlyArray<Json>, path: Path, known: Known): void => {
    if (typeof over !== "string") return
    const reference = referenceOf(over)
    if (reference === undefined) return fault(path, "Give a list, or one reference such as {{name}} and nothing else.")
    refer(reference, path, known)
    const value = inArgs(args, reference)
    if (value !== undefined && !isArray(value)) fault(path, `{{${reference.slice(0, 64)}}} is not a list.`)
  }

  const some = (list: ReadonlyArray<Stage>, path: Path): void => {
    if (list.length === 0) fault(path, "There is no stage here.")
  }

  const sequence = (list: ReadonlyArray<Stage>, path: Path, known: Known, depth: number): void => {
    some(list, path)
    list.forEach((stage, index) =>
      one(stage, [...path, index], index === 0 ? known : { ...known, previous: true }, depth)
    )
  }

  const one = (stage: Stage, path: Path, known: Known, depth: number): void => {
    if (depth > maxDepth) return fault(path, `Stages are nested more than ${maxDepth} deep.`)
    if (++count > maxStages) return
    if ("agent" in stage) template(stage.agent, [...path, "agent"], known)
    else if ("phase" in stage) sequence(stage.stages, [...path, "stages"], known, depth + 1)
    else if ("parallel" in stage) {
      some(stage.parallel, [...path, "parallel"])
      // They run at once, so none sees what another is called.
      const branches = stage.parallel.map((branch, index) => {
        const own = { ...known, names: new Set(known.names) }
        one(branch, [...path, "parallel", index], own, depth + 1)
        return own.names
      })
      for (const names of branches) for (const name of names) known.names.add(name)
    } else {
      const { over, stages } = stage.pipeline
      items(over, [...path, "pipeline", "over"], known)
      const own = { names: new Set(known.names), item: true, previous: true }
      sequence(stages, [...path, "pipeline", "stages"], own, depth + 1)
    }
    if (!("as" in stage) || stage.as === undefined) return
    if (reserved.includes(stage.as)) fault([...path, "as"], `${stage.as} has a meaning already.`)
    if (declared.has(stage.as)) fault([...path, "as"], `The name ${stage.as} is given twice.`)
    declared.add(stage.as)
    known.names.add(stage.as)
  }

  sequence(stages, ["stages"], { names: new Set(), item: false, previous: false }, 1)
  if (count > maxStages) fault(["stages"], `More than ${maxStages} stages.`)
  const agents = agentsIn(stages, args)
  if (agents > maxAgents) fault(["stages"], `These stages start ${agents} agents, and ${maxAgents} are allowed.`)
  return problems.slice(0, maxProblems)
}
