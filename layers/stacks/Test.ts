/**
 * The whole plane in memory, on the real file system: what tests of an app swap in.
 *
 * Nothing is durable, commands are not confined (`confinement` is only reported), and nobody answers questions unless an
 * approver is given.
 *
 * @since 0.1.0
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as Layer from "effect/Layer"
import type { Model } from "../../src/agent/Model.ts"
import type { InvalidProfile } from "../../src/agent/Profiles.ts"
import * as ThreadStore from "../../src/agent/ThreadStore.ts"
import * as CapabilityRegistry from "../../src/catalog/CapabilityRegistry.ts"
import type { Confinement } from "../../src/contract/Policy.ts"
import * as FileHistory from "../../src/file/FileHistory.ts"
import * as FileMutationQueue from "../../src/file/FileMutationQueue.ts"
import * as ReadTracker from "../../src/file/ReadTracker.ts"
import * as WorkspacePath from "../../src/file/WorkspacePath.ts"
import * as ApprovalGate from "../../src/gate/ApprovalGate.ts"
import * as HookGate from "../../src/gate/HookGate.ts"
import * as PermissionRules from "../../src/gate/PermissionRules.ts"
import * as SandboxGate from "../../src/gate/SandboxGate.ts"
import * as OperationLedger from "../../src/host/OperationLedger.ts"
import * as ToolHost from "../../src/host/ToolHost.ts"
import * as EventJournal from "../../src/journal/EventJournal.ts"
import * as ProcessIdentity from "../../src/process/ProcessIdentity.ts"
import * as ProcessSandbox from "../../src/process/ProcessSandbox.ts"
import * as SpillStore from "../../src/spill/SpillStore.ts"
import type { ToolProvider } from "../../src/tool/ToolProvider.ts"
import * as NodeFileAccess from "../node/FileAccess.ts"
import * as agents from "./agents.ts"
import type { Plane } from "./plane.ts"

export interface Options {
  /** Default `none`. */
  readonly confinement?: Confinement | Layer.Layer<ProcessSandbox.ProcessSandbox>
  readonly approvals?: ApprovalGate.Options
  readonly hooks?: ReadonlyArray<HookGate.Hook>
  readonly rules?: ReadonlyArray<PermissionRules.Rule> | Layer.Layer<PermissionRules.PermissionRules>
  readonly host?: ToolHost.Options
  readonly paths?: WorkspacePath.Options
  /** Default in memory. */
  readonly ledger?: Layer.Layer<OperationLedger.OperationLedger>
}

/** Everything a host is made of, without providers. */
export type Services = Plane

export const services = (options: Options = {}): Layer.Layer<Services> => {
  const { confinement = "none" } = options
  return Layer.mergeAll(
    SandboxGate.layer,
    ApprovalGate.layerMemory(options.approvals),
    ReadTracker.layerMemory,
    WorkspacePath.layerWith(options.paths ?? {}),
    ThreadStore.layerMemory,
    SpillStore.layerMemory(),
    ProcessIdentity.layerSolitary
  ).pipe(
    Layer.provideMerge(Layer.mergeAll(
      HookGate.layer(options.hooks ?? []),
      options.rules !== undefined && "pipe" in options.rules
        ? options.rules
        : PermissionRules.layer(options.rules ?? []),
      options.ledger ?? OperationLedger.layerMemory(),
      EventJournal.layerMemory(),
      FileMutationQueue.layerInProcess,
      FileHistory.layerMemory(),
      NodeFileAccess.layer(),
      typeof confinement === "string" ? ProcessSandbox.layerReporting(confinement) : confinement,
      NodeFileSystem.layer,
      NodePath.layer
    ))
  )
}

/** A host over these providers; their handlers may use any of the plane's services. */
export const layer = <const Providers extends ReadonlyArray<ToolProvider<Services>>>(
  providers: Providers,
  options: Options = {}
): Layer.Layer<
  Services | CapabilityRegistry.CapabilityRegistry | ToolHost.ToolHost,
  CapabilityRegistry.RegistrationError
> => host(providers, options).pipe(Layer.provideMerge(services(options)))

export interface AgentOptions extends Options {
  readonly agents?: agents.Options
  /** Providers that the main agent holds and children do not. */
  readonly main?: ReadonlyArray<ToolProvider<Services>>
}

/** As `layer`, with agents; these providers are the children's and the main agent's. */
export const layerAgents = (
  providers: ReadonlyArray<agents.SharedProvider<Services>>,
  options: AgentOptions = {}
): Layer.Layer<
  Services | CapabilityRegistry.CapabilityRegistry | ToolHost.ToolHost | agents.Agents,
  CapabilityRegistry.RegistrationError | InvalidProfile,
  Model
> =>
  agents.layer(providers, shares, { ...(options.host === undefined ? {} : { host: options.host }), ...options.agents })
    .pipe(
      Layer.provideMerge(host([...providers, ...options.main ?? []], options)),
      Layer.provideMerge(services(options))
    )

const host = (providers: ReadonlyArray<ToolProvider<Services>>, options: Options) =>
  ToolHost.layer(options.host).pipe(Layer.provideMerge(CapabilityRegistry.layer(providers)))

const shares = [ThreadStore.ThreadStore, SpillStore.SpillStore, ProcessIdentity.ProcessIdentity]
