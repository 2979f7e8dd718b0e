/**
 * Declaring a tool: what a model is told, what the gates judge by, and what runs.
 *
 * Only `name`, `description` and `parameters` can reach a model (seed 2). A handler's requirements stay in the tool's
 * type until `CapabilityRegistry.layer` takes them, so a missing service is a compile error there.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as JSONSchema from "effect/JSONSchema"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import { isObject, type Json, type JsonObject, outputLimits, snapshot } from "../contract/Json.ts"
import type { Reach, Runs, ToolKind, ToolPolicy } from "../contract/Policy.ts"
import { ArgumentsRefused, OutputInvalid, type ToolFailureCode } from "../contract/ToolFailure.ts"
import { contentOf, type ContentPart, text } from "../contract/ToolResult.ts"
import type { Turn } from "../contract/Turn.ts"
import { coerce } from "../internal/coerce.ts"
import { compileJsonSchema, type SchemaInvalid } from "../internal/jsonSchema.ts"
import type { ToolInvocation } from "./ToolInvocation.ts"

/** What a model is told of a tool, and nothing else. */
export interface ToolSpec {
  readonly name: string
  readonly description: string
  /** JSON Schema of an object. */
  readonly parameters: JsonObject
}

/** A file that a call is about to change, as its arguments name it. */
export interface FileTarget {
  readonly path: string
  /** Existing content must have been read in this thread first (step 9). */
  readonly requiresRead: boolean
  /** Text that the call expects in the file: a partial read licenses it when it is there exactly once. */
  readonly quotes: ReadonlyArray<string>
}

/**
 * What a handler may fail with: something with a message, and, if it has a code, one that the tool declares or that any
 * tool may fail with. Failures without a code become `tool_execution_failed`.
 */
export interface HandlerError<Code extends string> {
  readonly message: string
  readonly code?: Code | ToolFailureCode
}

/** What a handler produced, encoded and rendered. */
export interface Produced {
  readonly output: Json
  readonly content: ReadonlyArray<ContentPart>
}

/** A call's arguments decoded, with all that depends on them bound to the decoded value. */
export interface Prepared<out R> {
  readonly arguments: JsonObject
  readonly targets: ReadonlyArray<FileTarget>
  /** Whether the tool demands explicit approval here. Pure; may throw, which is `approval_classification_failed`. */
  readonly explicitApproval: boolean | ((turn: Turn) => boolean)
  /** Calls the handler; its success is encoded and rendered. May throw where the handler does. */
  readonly run: () => Effect.Effect<Produced, unknown, R | ToolInvocation>
}

export type Prepare<R> = (argumentsObject: JsonObject) => Either.Either<Prepared<R>, ArgumentsRefused>

export interface Tool<out Name extends string, out R, out ToolReach extends Reach> {
  readonly name: Name
  readonly description: string
  readonly parameters: JsonObject
  readonly kind: ToolKind
  readonly policy: ToolPolicy
  readonly runs: Runs
  readonly reach: ToolReach
  readonly readOnly: boolean
  readonly parallelSafe: boolean
  /** It only asks the user something: exempt from sandbox and approval (seed 6.1). */
  readonly interactive: boolean
  readonly modelAdvertised: boolean
  readonly codes: ReadonlySet<string>
  readonly timeout: Duration.DurationInput | undefined
  readonly shouldAdvertise: ((turn: Turn) => boolean) | undefined
  readonly finalize: ((content: ReadonlyArray<ContentPart>) => ReadonlyArray<ContentPart>) | undefined
  /** Compiles the validator; done once, at registration. */
  readonly load: Effect.Effect<Prepare<R>, SchemaInvalid>
}

export type Any = Tool<string, unknown, Reach>
export type Requirements<T> = T extends Tool<string, infer R, Reach> ? R : never
export type ReachOf<T> = T extends Tool<string, unknown, infer ToolReach> ? ToolReach : never

/** Everything but name, schemas and handler. */
export interface Options<Args, Success, ToolReach extends Reach, Code extends string> {
  readonly description: string
  /** Default `tool_call`. */
  readonly kind?: ToolKind
  /** Default `on-request`. */
  readonly policy?: ToolPolicy
  /** Where it acts; default `sandboxed`, but `host` for a command: nothing confines what was not made for it. */
  readonly runs?: Runs
  /** Who may hold it; default `shared`. */
  readonly reach?: ToolReach
  /** It changes nothing: admitted in plan turns, re-run instead of `tool_outcome_unknown`. Default `false`. */
  readonly readOnly?: boolean
  /** Several calls may run at once. Default `false`. */
  readonly parallelSafe?: boolean
  readonly interactive?: boolean
  /** `false` keeps it out of lists but executable, for an alias. Default `true`. */
  readonly modelAdvertised?: boolean
  /** Failure codes of its own. */
  readonly codes?: ReadonlyArray<Code>
  /** Default: none. */
  readonly timeout?: Duration.DurationInput
  readonly explicitApproval?: boolean | ((args: Args, turn: Turn) => boolean)
  /** Pure and synchronous; a tool that has one is hidden when no turn is given. */
  readonly shouldAdvertise?: (turn: Turn) => boolean
  /** Canonicalises decoded arguments before hooks, policy, hashing and execution. Pure. */
  readonly normalize?: (args: Args) => Args
  readonly targets?: (args: Args) => ReadonlyArray<FileTarget>
  /** What the model sees of a success; default the output as text. Pure. */
  readonly render?: (output: Success, args: Args) => ReadonlyArray<ContentPart>
  /** The last word on the content of any outcome, called exactly once a call. Pure. */
  readonly finalize?: (content: ReadonlyArray<ContentPart>) => ReadonlyArray<ContentPart>
}

/**
 * A tool with typed `parameters` and `success`.
 *
 * Unknown argument properties are refused. The handler may be interrupted at any time; its finalizers run before the
 * interruption completes.
 */
export const make = <
  const Name extends string,
  Args,
  ArgsEncoded,
  Success,
  SuccessEncoded,
  E extends HandlerError<Code> = never,
  R = never,
  const ToolReach extends Reach = "shared",
  const Code extends string = never
>(
  name: Name,
  options: Options<Args, Success, ToolReach, Code> & {
    readonly parameters: Schema.Schema<Args, ArgsEncoded>
    readonly success: Schema.Schema<Success, SuccessEncoded>
    readonly handler: (args: Args) => Effect.Effect<Success, E, R>
  }
): Tool<Name, Exclude<R, ToolInvocation>, NoInfer<ToolReach>> => {
  const decode = ParseResult.decodeUnknownEither(options.parameters, { onExcessProperty: "error" })
  const encodeArguments = ParseResult.encodeEither(options.parameters)
  const encodeSuccess = ParseResult.encodeEither(options.success)
  const parameters = schemaOf(options.parameters)
  const prepare: Prepare<Exclude<R, ToolInvocation>> = (received) => {
    const direct = decode(received)
    const coerced = Either.isRight(direct) ? received : coerce(parameters, received)
    const decoded = coerced === received ? direct : decode(coerced)
    if (Either.isLeft(decoded)) return Either.left(invalid(decoded.left))
    const args = options.normalize === undefined ? decoded.right : options.normalize(decoded.right)
    const effective = options.normalize === undefined ? coerced : reencode(encodeArguments(args))
    if (effective === undefined) return notPlain
    return Either.right(
      bind(
        options,
        args,
        effective,
        (success) => Either.mapLeft(encodeSuccess(success), (issue) => ParseResult.TreeFormatter.formatIssueSync(issue))
      )
    )
  }
  return assemble(name, parameters, options, Effect.succeed(prepare))
}

/** A tool whose parameters are a raw JSON Schema, validated by Ajv; its output is any plain JSON. */
export const fromJsonSchema = <
  const Name extends string,
  E extends HandlerError<Code> = never,
  R = never,
  const ToolReach extends Reach = "shared",
  const Code extends string = never
>(
  name: Name,
  options: Options<JsonObject, Json, ToolReach, Code> & {
    readonly parameters: JsonObject
    readonly handler: (args: JsonObject) => Effect.Effect<Json, E, R>
  }
): Tool<Name, Exclude<R, ToolInvocation>, NoInfer<ToolReach>> => {
  const load = Effect.map(
    compileJsonSchema(options.parameters),
    (validate): Prepare<Exclude<R, ToolInvocation>> => (received) => {
      const direct = validate(received)
      const coerced = direct === undefined ? received : coerce(options.parameters, received)
      const problem = coerced === received ? direct : validate(coerced)
      if (problem !== undefined) {
        return Either.left(new ArgumentsRefused({ code: "arguments_invalid", reason: problem }))
      }
      const args = options.normalize === undefined ? coerced : reencode(Either.right(options.normalize(coerced)))
      return args === undefined ? notPlain : Either.right(bind(options, args, args, Either.right))
    }
  )
  return assemble(name, options.parameters, options, load)
}

const bind = <Args, Success, R>(
  options: Options<Args, Success, Reach, string> & {
    readonly handler: (args: Args) => Effect.Effect<Success, unknown, R>
  },
  args: Args,
  effective: JsonObject,
  encode: (success: Success) => Either.Either<unknown, string>
): Prepared<Exclude<R, ToolInvocation>> => ({
  arguments: effective,
  targets: options.targets === undefined ? noTargets : options.targets(args),
  explicitApproval: explicitFor(options.explicitApproval, args),
  // `R` is the union of these two, which the compiler cannot tell of a type parameter.
  run: (): Effect.Effect<Produced, unknown, Exclude<R, ToolInvocation> | ToolInvocation> =>
    Effect.flatMap(
      options.handler(args) as Effect.Effect<Success, unknown, Exclude<R, ToolInvocation> | ToolInvocation>,
      (success) => {
        const encoded = encode(success)
        if (Either.isLeft(encoded)) return Effect.fail(new OutputInvalid({ reason: encoded.left }))
        const output = snapshot(encoded.right, outputLimits)
        if (!output.ok) {
          return Effect.fail(new OutputInvalid({ reason: `${output.problem} at ${output.path || "/"}` }))
        }
        if (options.render === undefined) {
          return Effect.succeed({ output: output.value, content: [text(asText(output.value))] })
        }
        const content = contentOf(options.render(success, args))
        return content === undefined
          ? Effect.fail(new OutputInvalid({ reason: "what it renders is no content, or too much" }))
          : Effect.succeed({ output: output.value, content })
      }
    )
})

const explicitFor = <Args>(
  demand: boolean | ((args: Args, turn: Turn) => boolean) | undefined,
  args: Args
): boolean | ((turn: Turn) => boolean) => typeof demand === "function" ? (turn) => demand(args, turn) : demand === true

const noTargets: ReadonlyArray<FileTarget> = []

/** Strings as they are, everything else as JSON. */
export const asText = (output: Json): string => typeof output === "string" ? output : JSON.stringify(output)

const invalid = (error: ParseResult.ParseIssue): ArgumentsRefused =>
  new ArgumentsRefused({
    code: "arguments_invalid",
    reason: `The arguments do not fit the tool's parameters: ${ParseResult.TreeFormatter.formatIssueSync(error)}`
      .slice(0, 4000).toWellFormed()
  })

const notPlain = Either.left(
  new ArgumentsRefused({ code: "arguments_invalid", reason: "The normalised arguments are not plain JSON." })
)

const reencode = (encoded: Either.Either<unknown, unknown>): JsonObject | undefined => {
  if (Either.isLeft(encoded)) return undefined
  const plain = snapshot(encoded.right)
  return plain.ok && isJsonObject(plain.value) ? plain.value : undefined
}

const isJsonObject = (value: Json): value is JsonObject => isObject(value)

const schemaOf = (schema: Schema.Schema.All): JsonObject => {
  const { $schema: _, ...parameters } = JSONSchema.make(schema as Schema.Schema<unknown>)
  const plain = snapshot(parameters)
  return plain.ok && isJsonObject(plain.value) ? plain.value : { type: "object" }
}

const assemble = <Name extends string, Args, Success, R, ToolReach extends Reach>(
  name: Name,
  parameters: JsonObject,
  options: Options<Args, Success, ToolReach, string>,
  load: Effect.Effect<Prepare<R>, SchemaInvalid>
): Tool<Name, R, ToolReach> => ({
  name,
  description: options.description,
  parameters,
  kind: options.kind ?? "tool_call",
  policy: options.policy ?? "on-request",
  runs: options.runs ?? (options.kind === "command_execution" ? "host" : "sandboxed"),
  // An omitted `reach` leaves the type parameter at its default, which is this very word.
  reach: options.reach ?? ("shared" as ToolReach),
  readOnly: options.readOnly ?? false,
  parallelSafe: options.parallelSafe ?? false,
  interactive: options.interactive ?? false,
  modelAdvertised: options.modelAdvertised ?? true,
  codes: new Set(options.codes),
  timeout: options.timeout,
  shouldAdvertise: options.shouldAdvertise,
  finalize: options.finalize,
  load
})
