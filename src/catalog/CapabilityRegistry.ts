/**
 * Which providers and tools exist: one flat name space, early failure, immutable snapshots (seed 3.2).
 *
 * Registration is atomic and scoped. A turn pins a snapshot, so whatever is registered later is seen by later turns alone.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { Digest } from "../contract/Digest.ts"
import type { JsonObject } from "../contract/Json.ts"
import type { Reach } from "../contract/Policy.ts"
import type { ProviderKind, ProviderPolicy } from "../contract/Provider.ts"
import type { ArgumentsRefused } from "../contract/ToolFailure.ts"
import { byCodeUnit } from "../internal/byCodeUnit.ts"
import type { SchemaInvalid } from "../internal/jsonSchema.ts"
import { onContext } from "../internal/onContext.ts"
import type { Any, Prepare, Prepared, Produced, ToolSpec } from "../tool/Tool.ts"
import { ToolInvocation } from "../tool/ToolInvocation.ts"
import type { ToolProvider } from "../tool/ToolProvider.ts"
import { toolHash } from "./Fingerprint.ts"

export class DuplicateToolProvider
  extends Schema.TaggedError<DuplicateToolProvider>("portcullis/DuplicateToolProvider")("DuplicateToolProvider", {
    code: Schema.Literal("duplicate_tool_provider"),
    providerId: Schema.String
  })
{
  override get message() {
    return `There is a provider ${JSON.stringify(this.providerId)} already.`
  }
}

export class DuplicateToolName
  extends Schema.TaggedError<DuplicateToolName>("portcullis/DuplicateToolName")("DuplicateToolName", {
    code: Schema.Literal("duplicate_tool_name"),
    toolName: Schema.String,
    /** The provider that has it already. */
    providerId: Schema.String
  })
{
  override get message() {
    return `The tool ${JSON.stringify(this.toolName)} exists already, in provider ${JSON.stringify(this.providerId)}.`
  }
}

/** A tool name that models and file formats cannot all carry, or a description or schema beyond any use. */
export class InvalidTool extends Schema.TaggedError<InvalidTool>("portcullis/InvalidTool")("InvalidTool", {
  code: Schema.Literal("invalid_tool"),
  toolName: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `${JSON.stringify(this.toolName)} cannot be registered: ${this.reason}`
  }
}

/** A registry for children refuses what only a main agent may hold. */
export class MainOnly extends Schema.TaggedError<MainOnly>("portcullis/MainOnly")("MainOnly", {
  code: Schema.Literal("main_only_tool"),
  /** `null` when the provider is refused whatever its tools are. */
  toolName: Schema.NullOr(Schema.String),
  providerId: Schema.String
}) {
  override get message() {
    const what = this.toolName === null ? "provider" : `tool ${JSON.stringify(this.toolName)} of provider`
    return `The ${what} ${JSON.stringify(this.providerId)} is for a main agent alone.`
  }
}

export type RegistrationError = DuplicateToolProvider | DuplicateToolName | InvalidTool | MainOnly

/** Tools and a provider that control the user's machine: never a child's, whatever they declare (seed 5.2). */
export const reservedTools: ReadonlySet<string> = new Set(["browser_use", "computer_use"])
export const reservedProvider = "computerUse"

export interface ProviderEntry {
  readonly id: string
  readonly kind: ProviderKind
  readonly policy: ProviderPolicy
  readonly reach: Reach
}

export interface RegisteredTool {
  readonly tool: Any
  readonly spec: ToolSpec
  /** See `Fingerprint.toolHash`; taken once, here. */
  readonly hash: string
  readonly providerId: string
  readonly prepare: (argumentsObject: JsonObject) => Either.Either<Ready, ArgumentsRefused>
}

/** A prepared call whose requirements are satisfied: by the services its provider was registered with, and nothing else. */
export interface Ready extends Omit<Prepared<never>, "run"> {
  /**
   * Runs the handler, which may throw where it is called. Where interruption is disabled, with the way to restore it:
   * `within` is put around the handler's own effect.
   */
  readonly serve: (invocation: ToolInvocation["Type"], within: Within) => Effect.Effect<Produced, unknown>
}

/** Something to put around an effect that changes neither its value nor what it requires. */
export interface Within {
  <A, R>(effect: Effect.Effect<A, unknown, R>): Effect.Effect<A, unknown, R>
}

export interface Snapshot {
  readonly version: number
  readonly providers: ReadonlyMap<string, ProviderEntry>
  readonly tools: ReadonlyMap<string, RegisteredTool>
  /** By name, by code unit. */
  readonly sorted: ReadonlyArray<RegisteredTool>
}

export class CapabilityRegistry extends Context.Tag("portcullis/CapabilityRegistry")<CapabilityRegistry, {
  /**
   * Adds a provider until the scope closes. All or nothing: a clash leaves the registry as it was. What the handlers
   * require is taken from the environment once, here.
   */
  readonly register: <R>(provider: ToolProvider<R>) => Effect.Effect<void, RegistrationError, R | Scope.Scope>
  /**
   * Puts a provider in the place of the one of its id, at once: no snapshot is without it or with half of it. On a failure
   * the old one stays; when there is none this is `register`. Ends with its own scope, and the scope of the one before no
   * longer matters. A provider that is switched off stays switched off.
   */
  readonly replace: <R>(provider: ToolProvider<R>) => Effect.Effect<void, RegistrationError, R | Scope.Scope>
  /** Switches a provider on or off, or marks it broken; `false` when there is none of that id. */
  readonly setPolicy: (providerId: string, policy: ProviderPolicy) => Effect.Effect<boolean>
  /** What is registered now; the same object until something changes. */
  readonly snapshot: Effect.Effect<Snapshot>
}>() {}

export interface Options {
  /** Of `shared`, whatever only a main agent may hold is refused with `main_only_tool`. Default `main`: all is taken. */
  readonly reach?: Reach
}

/** An empty registry. */
export const make = Effect.fnUntraced(function*(
  options: Options = {}
): Effect.fn.Return<CapabilityRegistry["Type"]> {
  const sha256 = yield* Digest
  const providers = new Map<string, ProviderEntry>()
  const tools = new Map<string, RegisteredTool>()
  /** By provider id; the list itself tells one registration from the next of the same id. */
  const registrations = new Map<string, ReadonlyArray<RegisteredTool>>()
  let version = 0
  let current: Snapshot | undefined

  const changed = (): void => {
    version++
    current = undefined
  }

  const clash = (
    provider: ToolProvider<unknown>,
    replacing: boolean
  ): DuplicateToolProvider | DuplicateToolName | undefined => {
    if (!replacing && providers.has(provider.id)) {
      return new DuplicateToolProvider({ code: "duplicate_tool_provider", providerId: provider.id })
    }
    const own = new Set<string>()
    for (const { name } of provider.tools) {
      const known = tools.get(name)?.providerId
      const holder = own.has(name) ? provider.id : known === provider.id ? undefined : known
      if (holder !== undefined) {
        return new DuplicateToolName({ code: "duplicate_tool_name", toolName: name, providerId: holder })
      }
      own.add(name)
    }
    return undefined
  }

  const remove = (providerId: string): void => {
    for (const { spec } of registrations.get(providerId) ?? []) tools.delete(spec.name)
    registrations.delete(providerId)
    providers.delete(providerId)
  }

  const add = Effect.fnUntraced(function*<R>(provider: ToolProvider<R>, replacing: boolean) {
    if (options.reach === "shared") yield* forChildren(provider)
    const context = yield* Effect.context<R>()
    const loaded = yield* Effect.forEach(provider.tools, (tool) =>
      Effect.mapError(
        Effect.map(checked(tool), (prepare): RegisteredTool => {
          const spec: ToolSpec = { name: tool.name, description: tool.description, parameters: tool.parameters }
          return {
            tool,
            spec: Object.freeze(spec),
            hash: toolHash(sha256, spec),
            providerId: provider.id,
            prepare: withContext(prepare, context)
          }
        }),
        (reason) => new InvalidTool({ code: "invalid_tool", toolName: tool.name, reason })
      ))
    yield* Effect.acquireRelease(
      Effect.suspend(() => {
        const duplicate = clash(provider, replacing)
        if (duplicate !== undefined) return Effect.fail(duplicate)
        const before = providers.get(provider.id)?.policy
        remove(provider.id)
        providers.set(provider.id, {
          id: provider.id,
          kind: provider.kind,
          policy: before?.enabled === false ? before : provider.policy,
          reach: provider.tools.every((tool) => tool.reach === "shared") ? "shared" : "main"
        })
        registrations.set(provider.id, loaded)
        for (const tool of loaded) tools.set(tool.spec.name, tool)
        changed()
        return Effect.void
      }),
      () =>
        Effect.sync(() => {
          if (registrations.get(provider.id) !== loaded) return
          remove(provider.id)
          changed()
        })
    )
  })

  return CapabilityRegistry.of({
    register: (provider) => add(provider, false),
    replace: (provider) => add(provider, true),
    setPolicy: (providerId, policy) =>
      Effect.sync(() => {
        const entry = providers.get(providerId)
        if (entry === undefined) return false
        providers.set(providerId, { ...entry, policy })
        changed()
        return true
      }),
    snapshot: Effect.sync(() =>
      current ??= {
        version,
        providers: new Map(providers),
        tools: new Map(tools),
        sorted: Array.from(tools.values()).sort((left, right) => byCodeUnit(left.spec.name, right.spec.name))
      }
    )
  })
})

/**
 * A registry with these providers. Fails at build time on a clash, and requires whatever their handlers do: a missing
 * service is a compile error here.
 */
export const layer = <const Providers extends ReadonlyArray<ToolProvider<unknown>>>(
  providers: Providers
): Layer.Layer<CapabilityRegistry, RegistrationError, RequirementsOf<Providers[number]>> =>
  Layer.scoped(
    CapabilityRegistry,
    Effect.tap(make(), (registry) =>
      Effect.forEach(
        // Each element is the union of the tuple's members; widening the requirements to their union loses nothing.
        providers as ReadonlyArray<ToolProvider<RequirementsOf<Providers[number]>>>,
        (provider) => registry.register(provider),
        { discard: true }
      ))
  )

type RequirementsOf<P> = P extends ToolProvider<infer R> ? R : never

const forChildren = (provider: ToolProvider<unknown>): Effect.Effect<void, MainOnly> => {
  const refuse = (toolName: string | null) =>
    Effect.fail(new MainOnly({ code: "main_only_tool", toolName, providerId: provider.id }))
  const tool = provider.tools.find(({ interactive, name, reach }) =>
    reach !== "shared" || interactive || reservedTools.has(name)
  )
  if (tool !== undefined) return refuse(tool.name)
  return provider.reach === "shared" && provider.id !== reservedProvider ? Effect.void : refuse(null)
}

const namePattern = /^[a-zA-Z0-9_-]{1,64}$/

const checked = <R>(tool: import("../tool/Tool.ts").Tool<string, R, Reach>): Effect.Effect<Prepare<R>, string> =>
  namePattern.test(tool.name)
    ? Effect.mapError(tool.load, (error: SchemaInvalid) => error.message)
    : Effect.fail("a tool name is 1 to 64 letters, digits, _ and -")

const withContext = <R>(prepare: Prepare<R>, context: Context.Context<R>): RegisteredTool["prepare"] => (args) =>
  Either.map(prepare(args), ({ arguments: effective, explicitApproval, run, targets }): Ready => ({
    arguments: effective,
    explicitApproval,
    targets,
    serve: (invocation, within) => onContext(within(run()), Context.add(context, ToolInvocation, invocation))
  }))
