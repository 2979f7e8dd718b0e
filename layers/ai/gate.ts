/** An app's own toolkit of `@effect/ai`, behind our gates. */
import * as AiError from "@effect/ai/AiError"
import * as AiTool from "@effect/ai/Tool"
import type * as Toolkit from "@effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as JSONSchema from "effect/JSONSchema"
import * as ParseResult from "effect/ParseResult"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import type * as Scope from "effect/Scope"
import { CapabilityRegistry, type RegistrationError } from "../../src/catalog/CapabilityRegistry.ts"
import { isObject, JsonObject } from "../../src/contract/Json.ts"
import type { Runs, ToolKind, ToolPolicy } from "../../src/contract/Policy.ts"
import * as ToolCall from "../../src/contract/ToolCall.ts"
import { ArgumentsRefused, OutputInvalid } from "../../src/contract/ToolFailure.ts"
import type { ToolResult } from "../../src/contract/ToolResult.ts"
import type { TurnSpecInput } from "../../src/contract/Turn.ts"
import { ToolHost, type TurnRefused } from "../../src/host/ToolHost.ts"
import * as Tool from "../../src/tool/Tool.ts"
import * as ToolProvider from "../../src/tool/ToolProvider.ts"
import { Refusal, refusalOf, textOf } from "./refusal.ts"

type Tools = Record<string, AiTool.Any>
type ByName<T, A> = { readonly [Name in keyof T]?: A | undefined }

export interface Options<T extends Tools> {
  /** The turn that the calls belong to; it is open as long as the scope. */
  readonly turn: TurnSpecInput
  /** Id of the provider that the tools are registered under; default `toolkit`. */
  readonly providerId?: string | undefined
  /** What each tool does to the world; default `tool_call`. */
  readonly kind?: ByName<T, ToolKind> | undefined
  /** Default `on-request`. */
  readonly policy?: ByName<T, ToolPolicy> | undefined
  /** Where each tool acts; default `host`: its handler is code of this process. */
  readonly runs?: ByName<T, Runs> | undefined
  /** Which tools change nothing; default the tool's `Readonly` annotation. */
  readonly readOnly?: ByName<T, boolean> | undefined
}

/** A tool with its parameters and success as they were; every failure is a value, one of its own or a `Refusal`. */
export type GatedTool<T> = T extends AiTool.Tool<infer Name, infer Config, infer _Requirements> ? AiTool.Tool<Name, {
    readonly parameters: Config["parameters"]
    readonly success: Config["success"]
    readonly failure: Schema.Union<[Config["failure"], typeof Refusal]>
    readonly failureMode: "return"
  }>
  : never

export type Gated<T extends Tools> = { readonly [Name in keyof T]: GatedTool<T[Name]> }

/**
 * Puts a toolkit behind the gates; `generateText` and `streamText` take the result in its place.
 *
 * Registers the tools with the `CapabilityRegistry`, opens the turn, and sends each call through it to the toolkit's own
 * handler. Both end with the scope. What the handlers require per request is taken from the environment once, here.
 *
 * The tools' own failures come back as values whatever their `failureMode` was, and so does every refusal, as a `Refusal`:
 * a call never fails the request. Tools that the turn's filters hide are not shown to the provider. Tools that the
 * provider runs itself never reach the gates and are passed on as they are.
 *
 * Arguments are checked by the tool's own schema, which must decode synchronously and without services; unknown properties
 * are refused. `@effect/ai` answers some faults itself, with `MalformedOutput` for the whole request: an unknown or hidden
 * tool name, and parameters that the tool's schema refuses. `streamText` does so before any call of that chunk runs,
 * `generateText` after they all ran. It does not hand over the model's call ids, so each call gets a new one and a replay is
 * not recognised.
 *
 * Fails when a tool or the provider id is registered already, a tool cannot be registered, or the turn is refused. A
 * parameter schema that has no JSON Schema is a defect, as it is to a provider.
 */
export const gate = <T extends Tools>(
  toolkit: Toolkit.Toolkit<T>,
  options: Options<T>
): Effect.Effect<
  Toolkit.WithHandler<Gated<T>>,
  RegistrationError | TurnRefused,
  CapabilityRegistry | ToolHost | Scope.Scope | AiTool.HandlersFor<T> | AiTool.Requirements<T[keyof T]>
> =>
  Effect.gen(function*() {
    const registry = yield* CapabilityRegistry
    const host = yield* ToolHost
    const original: Toolkit.WithHandler<T> = yield* toolkit
    const context = yield* Effect.context<AiTool.Requirements<T[keyof T]>>()
    // What the caller of a call provides goes before what was there when the toolkit was gated, as in @effect/ai.
    const within = <A, E>(effect: Effect.Effect<A, E, AiTool.Requirements<T[keyof T]>>): Effect.Effect<A, E> =>
      Effect.mapInputContext(effect, (now: Context.Context<never>) => Context.merge(context, now))
    // `handle` cannot be called by a name that is known at run time only; it checks name and parameters itself.
    const handle = original.handle as (
      name: string,
      params: unknown
    ) => Effect.Effect<AiTool.HandlerResult<AiTool.Any>, unknown, AiTool.Requirements<T[keyof T]>>

    const gated = Object.entries<AiTool.Any>(toolkit.tools).filter(([, tool]) => needsHandler(tool))
    yield* registry.register(ToolProvider.make({
      id: options.providerId ?? "toolkit",
      kind: "built-in",
      tools: gated.map(([name, tool]) =>
        declare(tool, {
          kind: options.kind?.[name] ?? "tool_call",
          policy: options.policy?.[name] ?? "on-request",
          runs: options.runs?.[name] ?? "host",
          readOnly: options.readOnly?.[name] ?? Context.get(tool.annotations, AiTool.Readonly)
        }, (args) => within(serve(tool, handle(name, args))))
      )
    }))

    const session = yield* host.openTurn(options.turn)
    const shown = new Set(session.catalog.tools.map((spec) => spec.name))
    const tools = { ...toolkit.tools }
    for (const [name, tool] of gated) {
      // Hidden tools keep their place in the type, but @effect/ai, which goes by enumerable properties, does not see them.
      Object.defineProperty(tools, name, { value: widen(tool), enumerable: shown.has(name) })
    }

    const execute = Effect.fnUntraced(function*(name: string, params: unknown) {
      const result = yield* session.execute(ToolCall.make({ toolName: name, arguments: params }))
      const tool = toolkit.tools[name]
      return tool === undefined ? refused(refusalOf(result)) : yield* within(typed(tool, result))
    })
    // One widened tool for each tool, and `execute` gives what its schemas decode to: more than the compiler can follow.
    const widened: unknown = { tools, handle: execute }
    return widened as Toolkit.WithHandler<Gated<T>>
  })

const needsHandler = (tool: AiTool.Any): boolean => !AiTool.isProviderDefined(tool) || tool.requiresHandler

/** The same tool, whatever its prototype, with its failures widened. */
const widen = (tool: AiTool.Any): AiTool.Any =>
  Object.assign(Object.create(Object.getPrototypeOf(tool)), tool, {
    failureSchema: Schema.Union(tool.failureSchema, Refusal),
    failureMode: "return"
  })

/** A failure that the tool's own schema describes. */
class ToolkitFailure extends Schema.TaggedError<ToolkitFailure>("portcullis/ToolkitFailure")("ToolkitFailure", {
  code: Schema.Literal("toolkit_failure"),
  message: Schema.String,
  details: Schema.Struct({ failure: Schema.Unknown })
}) {}

/** The tool for our registry: its arguments are checked by its own schema and stay encoded, as its handler wants them. */
const declare = (
  tool: AiTool.Any,
  gates: { readonly kind: ToolKind; readonly policy: ToolPolicy; readonly runs: Runs; readonly readOnly: boolean },
  handler: (args: JsonObject) => Effect.Effect<unknown, OwnError>
): Tool.Tool<string, never, "shared"> => {
  const decode = ParseResult.decodeUnknownEither(plainSchema(tool.parametersSchema), { onExcessProperty: "error" })
  const jsonSchema: JSONSchema.JsonSchema7 = AiTool.getJsonSchemaFromSchemaAst(tool.parametersSchema.ast)
  return Tool.make(tool.name, {
    ...gates,
    description: tool.description ?? AiTool.getDescriptionFromSchemaAst(tool.parametersSchema.ast) ?? "",
    codes: ["toolkit_failure"],
    parameters: JsonObject.pipe(Schema.filter((args) => {
      const decoded = decode(args)
      return Either.isRight(decoded) ? undefined : decoded.left
    }, { jsonSchema })),
    success: Schema.Unknown,
    handler
  })
}

type OwnError = ToolkitFailure | ArgumentsRefused | OutputInvalid

/** What the toolkit's handler came to, encoded. */
const serve = <R>(
  tool: AiTool.Any,
  handled: Effect.Effect<AiTool.HandlerResult<AiTool.Any>, unknown, R>
): Effect.Effect<unknown, OwnError, R> =>
  handled.pipe(
    Effect.catchAll((error) => Effect.flatMap(known(tool, error), Effect.fail)),
    Effect.flatMap(({ encodedResult, isFailure, result }) =>
      isFailure ? Effect.fail(ownFailure(result, encodedResult)) : Effect.succeed(encodedResult ?? null)
    )
  )

const ownFailure = (failure: unknown, encoded: unknown): ToolkitFailure =>
  new ToolkitFailure({
    code: "toolkit_failure",
    message: messageOf(failure),
    details: { failure: encoded }
  })

const messageOf = (failure: unknown): string => {
  const message = Predicate.hasProperty(failure, "message") ? failure.message : failure
  return typeof message === "string" ? message : "The tool failed."
}

/** What a toolkit's handler failed with: a failure of the tool's own, else a complaint of the toolkit itself. */
const known = (
  tool: AiTool.Any,
  error: unknown
): Effect.Effect<OwnError> =>
  Effect.match(Schema.encodeUnknown(plainSchema(tool.failureSchema))(error), {
    onSuccess: (encoded) => ownFailure(error, encoded),
    onFailure: () => {
      const reason = AiError.isAiError(error) && error._tag !== "HttpRequestError" && error._tag !== "HttpResponseError"
        ? error.description ?? "no reason given"
        : "the tool failed with something that its failure schema does not know"
      return AiError.isAiError(error) && error._tag === "MalformedOutput"
        ? new ArgumentsRefused({ code: "arguments_invalid", reason })
        : new OutputInvalid({ reason })
    }
  })

interface Outcome {
  readonly isFailure: boolean
  readonly result: unknown
  readonly encodedResult: unknown
}

const refused = (refusal: Refusal): Outcome => ({ isFailure: true, result: refusal, encodedResult: refusal })

/** A result of the channel in the tool's own types. */
const typed = (tool: AiTool.Any, result: ToolResult): Effect.Effect<Outcome> => {
  if (result.isError) {
    const refusal = refusalOf(result)
    if (refusal.code !== "toolkit_failure" || !isObject(refusal.details)) return Effect.succeed(refused(refusal))
    const encodedResult = refusal.details["failure"]
    return Effect.match(Schema.decodeUnknown(plainSchema(tool.failureSchema))(encodedResult), {
      onSuccess: (failure) => ({ isFailure: true, result: failure, encodedResult }),
      onFailure: () => refused(refusal)
    })
  }
  const decode = Schema.decodeUnknown(plainSchema(tool.successSchema))
  // No result at all was recorded as null; a void schema takes anything, so it has to be told.
  const absent = result.output === null && AST.isVoidKeyword(tool.successSchema.ast)
  return decode(absent ? undefined : result.output).pipe(
    Effect.catchAll((error) => result.output === null ? decode(undefined) : Effect.fail(error)),
    Effect.match({
      onSuccess: (success) => ({ isFailure: false, result: success, encodedResult: result.output }),
      onFailure: () =>
        refused({
          code: "tool_output_invalid",
          error: `The tool ran, but its output was changed and is not what it declares: ${textOf(result.content)}`,
          details: { executed: result.executed, output: result.output }
        })
    })
  )
}

/** The services of a toolkit's schemas are those of its tools' requirements, which are in the environment already. */
const plainSchema = (schema: Schema.Schema.All | AiTool.AnyParametersSchema) =>
  schema as Schema.Schema<unknown, unknown>
