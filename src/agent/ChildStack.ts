/**
 * The stack that every child agent runs on: a registry and a host of its own, over shared providers alone.
 *
 * @since 0.1.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as CapabilityRegistry from "../catalog/CapabilityRegistry.ts"
import { Digest } from "../contract/Digest.ts"
import { FileAccess } from "../file/FileAccess.ts"
import { FileHistory } from "../file/FileHistory.ts"
import { FileMutationQueue } from "../file/FileMutationQueue.ts"
import * as ReadTracker from "../file/ReadTracker.ts"
import { MaxFileBytes } from "../file/TextFile.ts"
import { WorkspacePath } from "../file/WorkspacePath.ts"
import { ApprovalGate } from "../gate/ApprovalGate.ts"
import { HookGate } from "../gate/HookGate.ts"
import { PermissionRules } from "../gate/PermissionRules.ts"
import { SandboxGate } from "../gate/SandboxGate.ts"
import { OperationLedger } from "../host/OperationLedger.ts"
import * as ToolHost from "../host/ToolHost.ts"
import { EventJournal } from "../journal/EventJournal.ts"
import { ProcessSandbox } from "../process/ProcessSandbox.ts"
import type { ToolProvider } from "../tool/ToolProvider.ts"
import { EditExactOnly } from "../tools/edit.ts"

export class ChildStack extends Context.Tag("portcullis/ChildStack")<ChildStack, {
  /** Refuses what only a main agent may hold, whenever it is registered. */
  readonly registry: CapabilityRegistry.CapabilityRegistry["Type"]
  readonly host: ToolHost.ToolHost["Type"]
  /** From now on a provider that this registry has too is no more usable for children than it is there. */
  readonly follow: (main: CapabilityRegistry.CapabilityRegistry["Type"]) => Effect.Effect<void>
  /** What children have read; a child's thread is to be cleared when it ends. */
  readonly reads: ReadTracker.ReadTracker["Type"]
}>() {}

/** A tag, as the key of a service. */
export interface Key {
  readonly key: string
  readonly Identifier: unknown
}

const services = [
  SandboxGate,
  ApprovalGate,
  HookGate,
  PermissionRules,
  OperationLedger,
  WorkspacePath,
  EventJournal,
  FileMutationQueue,
  FileAccess,
  FileHistory,
  ProcessSandbox,
  FileSystem.FileSystem,
  Path.Path
] as const

/** Settings of the host: where they are set they hold for children too. */
const settings: ReadonlyArray<Key> = [Digest, MaxFileBytes, EditExactOnly]

/** What every child shares with the main agent. */
export type Shared = typeof services[number]["Identifier"]

export interface Options<out Keys extends ReadonlyArray<Key> = readonly []> extends ToolHost.Options {
  /** Services that tools of children need beside those of every plane, such as `Subprocess`. Default: none. */
  readonly shares?: Keys
}

/** What providers of children may require. */
export type Services<Keys extends ReadonlyArray<Key>> = Shared | ReadTracker.ReadTracker | Keys[number]["Identifier"]

/** Live children whose reads are remembered: far more than run at once. */
const threads = 4096

/**
 * A registry and a host for children. What only a main agent may hold does not compile here, and is refused with
 * `main_only_tool` when it comes in another way; the host denies the reserved names besides. Tools get the shared services
 * that are named here and nothing else of the environment; file tools and host know the reads of children alone.
 */
export const make = <const Keys extends ReadonlyArray<Key> = readonly []>(
  providers: ReadonlyArray<ToolProvider<Services<Keys>, "shared">>,
  options: Options<Keys> = {}
): Effect.Effect<
  ChildStack["Type"],
  CapabilityRegistry.RegistrationError,
  Shared | Keys[number]["Identifier"] | Scope.Scope
> =>
  Effect.gen(function*() {
    const { authority, shares, ...rest } = options
    const reads = yield* ReadTracker.makeMemory({ threads })
    const named = only(
      yield* Effect.context<Shared | Keys[number]["Identifier"]>(),
      [...services, ...settings, ...shares ?? []]
    )
    const own = Context.add(named, ReadTracker.ReadTracker, reads)
    const scope = yield* Effect.scope
    const inner = yield* CapabilityRegistry.make({ reach: "shared" })
    yield* alone(
      Effect.forEach(providers, inner.register, { discard: true }),
      Context.add(own, Scope.Scope, scope)
    )
    // What comes later brings services of its own, but never another tracker or another gate.
    const onOwn = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
      Effect.mapInputContext(effect, (caller: Context.Context<R>) => Context.merge(caller, own))
    const following = follower(inner.snapshot)
    const registry = CapabilityRegistry.CapabilityRegistry.of({
      ...inner,
      snapshot: following.snapshot,
      register: (provider) => onOwn(inner.register(provider)),
      replace: (provider) => onOwn(inner.replace(provider))
    })
    const host = yield* alone(
      ToolHost.make({ ...rest, authority: withoutReserved(authority) }),
      Context.add(own, CapabilityRegistry.CapabilityRegistry, registry)
    )
    return { registry, host, reads, follow: following.follow }
  })

/** A registry's snapshot under the policies of another one; the same object until one of the two changes. */
const follower = (own: Effect.Effect<CapabilityRegistry.Snapshot>) => {
  let main: Effect.Effect<CapabilityRegistry.Snapshot> | undefined
  let last:
    | { readonly of: ReadonlyArray<CapabilityRegistry.Snapshot>; readonly made: CapabilityRegistry.Snapshot }
    | undefined
  return {
    follow: (registry: CapabilityRegistry.CapabilityRegistry["Type"]) =>
      Effect.sync(() => void (main = registry.snapshot)),
    snapshot: Effect.suspend(() =>
      main === undefined ? own : Effect.map(Effect.all([own, main]), ([mine, theirs]) => {
        if (last?.of[0] !== mine || last.of[1] !== theirs) last = { of: [mine, theirs], made: under(mine, theirs) }
        return last.made
      })
    )
  }
}

const under = (own: CapabilityRegistry.Snapshot, main: CapabilityRegistry.Snapshot): CapabilityRegistry.Snapshot => ({
  ...own,
  version: own.version + main.version,
  providers: new Map(
    [...own.providers].map(([id, entry]) => {
      const there = main.providers.get(id)?.policy
      const off = there !== undefined && !(there.enabled && there.available)
      return [id, off && entry.policy.enabled && entry.policy.available ? { ...entry, policy: there } : entry]
    })
  )
})

/** See `make`; built once, for all children. */
export const layer = <const Keys extends ReadonlyArray<Key> = readonly []>(
  providers: ReadonlyArray<ToolProvider<Services<Keys>, "shared">>,
  options: Options<Keys> = {}
): Layer.Layer<ChildStack, CapabilityRegistry.RegistrationError, Shared | Keys[number]["Identifier"]> =>
  Layer.scoped(ChildStack, make(providers, options))

/** Runs an effect on these services, and on nothing of its caller's. */
const alone = <A, E, R>(effect: Effect.Effect<A, E, R>, services: Context.Context<R>): Effect.Effect<A, E> =>
  Effect.mapInputContext(effect, (_caller: Context.Context<never>) => services)

const only = <R>(context: Context.Context<R>, tags: ReadonlyArray<Key>): Context.Context<R> => {
  const keys = new Set(tags.map(({ key }) => key))
  return Context.unsafeMake(new Map([...context.unsafeMap].filter(([key]) => keys.has(key))))
}

const withoutReserved = (authority: ToolHost.Authority = {}): ToolHost.Authority => ({
  ...authority,
  tools: { ...authority.tools, deny: [...authority.tools?.deny ?? [], ...CapabilityRegistry.reservedTools] }
})
