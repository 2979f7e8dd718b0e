/**
 * The stack of a main agent on Node: durable state in one file, real files and processes, the built-in tools.
 *
 * @since 0.1.0
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as Layer from "effect/Layer"
import * as Path from "node:path"
import type { Model } from "../../src/agent/Model.ts"
import type { InvalidProfile } from "../../src/agent/Profiles.ts"
import { ThreadStore } from "../../src/agent/ThreadStore.ts"
import * as CapabilityRegistry from "../../src/catalog/CapabilityRegistry.ts"
import type { StateUnavailable } from "../../src/contract/ToolFailure.ts"
import * as FileMutationQueue from "../../src/file/FileMutationQueue.ts"
import * as WorkspacePath from "../../src/file/WorkspacePath.ts"
import type * as ApprovalGate from "../../src/gate/ApprovalGate.ts"
import * as HookGate from "../../src/gate/HookGate.ts"
import * as PermissionRules from "../../src/gate/PermissionRules.ts"
import * as SandboxGate from "../../src/gate/SandboxGate.ts"
import * as ToolHost from "../../src/host/ToolHost.ts"
import { ProcessIdentity as ProcessIdentityTag } from "../../src/process/ProcessIdentity.ts"
import * as ProcessSandbox from "../../src/process/ProcessSandbox.ts"
import * as Ripgrep from "../../src/process/Ripgrep.ts"
import * as Subprocess from "../../src/process/Subprocess.ts"
import { SpillStore } from "../../src/spill/SpillStore.ts"
import type { ToolProvider } from "../../src/tool/ToolProvider.ts"
import * as UserInput from "../../src/tool/UserInput.ts"
import * as Digest from "../node/Digest.ts"
import * as ProcessIdentity from "../node/ProcessIdentity.ts"
import * as NodeRipgrep from "../node/Ripgrep.ts"
import * as SpillDirectory from "../node/SpillDirectory.ts"
import * as NodeSubprocess from "../node/Subprocess.ts"
import * as SqliteApprovalGate from "../sqlite/ApprovalGate.ts"
import * as Database from "../sqlite/Database.ts"
import * as SqliteEventJournal from "../sqlite/EventJournal.ts"
import * as SqliteOperationLedger from "../sqlite/OperationLedger.ts"
import * as SqliteReadTracker from "../sqlite/ReadTracker.ts"
import * as SqliteThreadStore from "../sqlite/ThreadStore.ts"
import * as agents from "./agents.ts"
import { builtin, forMain } from "./builtin.ts"
import type { Plane } from "./plane.ts"

export interface Options {
  /** The state file; one a workspace, never inside it. */
  readonly state: Database.Options
  readonly approvals?: ApprovalGate.Options
  readonly hooks?: ReadonlyArray<HookGate.Hook>
  readonly rules?: ReadonlyArray<PermissionRules.Rule>
  readonly host?: ToolHost.Options
  /** Default: nothing confines commands, so they run under `danger-full-access` alone. */
  readonly sandbox?: Layer.Layer<ProcessSandbox.ProcessSandbox>
  /** Default: nobody is there to answer. */
  readonly userInput?: Layer.Layer<UserInput.UserInput>
  readonly subprocess?: NodeSubprocess.Options
  /** Where too-large output is kept; default the folder `spill` beside the state file. */
  readonly spill?: SpillDirectory.Options
}

/** A state file that cannot be opened: damaged, newer, of another program, out of reach. */
export type StateRefused = Database.DatabaseRefused | StateUnavailable

/** Everything a main host is made of, without providers. */
export type Services =
  | Plane
  | Subprocess.Subprocess
  | Ripgrep.Ripgrep
  | UserInput.UserInput

export const services = (options: Options): Layer.Layer<Services, StateRefused> => {
  const durable = Layer.mergeAll(
    SqliteApprovalGate.layer(options.approvals),
    SqliteReadTracker.layer,
    SqliteThreadStore.layer
  ).pipe(
    Layer.provideMerge(Layer.mergeAll(SqliteOperationLedger.layer, SqliteEventJournal.layer)),
    Layer.provideMerge(ProcessIdentity.layer()),
    Layer.provide(Database.layer(options.state))
  )
  const spill = options.spill ?? { root: Path.join(Path.dirname(Path.resolve(options.state.filename)), "spill") }
  const paths = WorkspacePath.layerWith({ readable: SpillDirectory.readable(spill.root) })
  return Layer.mergeAll(SandboxGate.layer, paths, SpillDirectory.layer(spill), durable).pipe(
    Layer.provideMerge(Layer.mergeAll(
      HookGate.layer(options.hooks ?? []),
      PermissionRules.layer(options.rules ?? []),
      FileMutationQueue.layerInProcess,
      options.sandbox ?? ProcessSandbox.layerUnconfined,
      NodeSubprocess.layer(options.subprocess),
      NodeRipgrep.layer,
      options.userInput ?? UserInput.layerUnavailable,
      NodeFileSystem.layer,
      NodePath.layer
    )),
    Layer.provide(Digest.layer)
  )
}

/** A host with the built-in tools and these providers beside them. */
export const layer = (
  options: Options,
  providers: ReadonlyArray<ToolProvider<Services>> = []
): Layer.Layer<
  Services | CapabilityRegistry.CapabilityRegistry | ToolHost.ToolHost,
  StateRefused | CapabilityRegistry.RegistrationError
> => host(options, providers).pipe(Layer.provideMerge(services(options)), Layer.provide(Digest.layer))

export interface AgentOptions extends Options {
  readonly agents?: agents.Options
  /** Providers that children hold too, beside the built-in ones. */
  readonly shared?: ReadonlyArray<agents.SharedProvider<Exclude<Services, UserInput.UserInput>>>
}

/** As `layer`, with agents: the main one may delegate to children, which run on a stack of their own. */
export const layerAgents = (
  options: AgentOptions,
  providers: ReadonlyArray<ToolProvider<Services>> = []
): Layer.Layer<
  Services | CapabilityRegistry.CapabilityRegistry | ToolHost.ToolHost | agents.Agents,
  StateRefused | CapabilityRegistry.RegistrationError | InvalidProfile,
  Model
> => {
  const shared = options.shared ?? []
  return agents.layer([builtin, ...shared], shares, {
    ...(options.host === undefined ? {} : { host: options.host }),
    ...options.agents
  }).pipe(
    Layer.provideMerge(host(options, [...shared, ...providers])),
    Layer.provideMerge(services(options)),
    Layer.provide(Digest.layer)
  )
}

const host = (options: Options, providers: ReadonlyArray<ToolProvider<Services>>) =>
  ToolHost.layer(options.host).pipe(
    Layer.provideMerge(CapabilityRegistry.layer([builtin, ...forMain, ...providers]))
  )

/** What the built-in tools need beside a plane; `UserInput` is not for children. */
const shares = [Subprocess.Subprocess, Ripgrep.Ripgrep, ThreadStore, SpillStore, ProcessIdentityTag]
