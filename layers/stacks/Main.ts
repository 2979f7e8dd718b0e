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
import * as NodeFileAccess from "../node/FileAccess.ts"
import * as NodeFileHistory from "../node/FileHistory.ts"
import * as NodeFileMutationQueue from "../node/FileMutationQueue.ts"
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

/** A `ProcessSandbox` that may run processes to see whether it works. */
export type Sandbox = Layer.Layer<ProcessSandbox.ProcessSandbox, never, Subprocess.Subprocess>

export interface Options {
  /** The state file; one a workspace, never inside it. */
  readonly state: Database.Options
  readonly approvals?: ApprovalGate.Options
  readonly hooks?: ReadonlyArray<HookGate.Hook>
  readonly rules?: ReadonlyArray<PermissionRules.Rule>
  readonly host?: ToolHost.Options
  /**
   * What confines commands, or how to make it: `Bubblewrap.layer`. A function is told what commands must never see, the
   * folders of the state file and of the spilled output; a Layer must see to that itself. Default: nothing confines commands, so they run under
   * `danger-full-access` alone.
   */
  readonly sandbox?: Sandbox | ((needs: { readonly masked: ReadonlyArray<string> }) => Sandbox)
  /** Default: nobody is there to answer. */
  readonly userInput?: Layer.Layer<UserInput.UserInput>
  readonly subprocess?: NodeSubprocess.Options
  /** What file tools never write, and what no tool shows. */
  readonly paths?: Pick<WorkspacePath.Options, "protect" | "withhold">
  /** Where too-large output is kept; default the folder `spill` beside the state file. */
  readonly spill?: SpillDirectory.Options
  /** Where the changes of files are kept, to be listed and undone; default `historyOf` the state file. */
  readonly history?: NodeFileHistory.Options
  /** Locks that keep other processes from a file that is being changed; default in the user's state directory. */
  readonly locks?: NodeFileMutationQueue.Options
}

/** The folder beside a state file that holds the history of its files. */
export const historyOf = (state: Database.Options): string => `${Path.resolve(state.filename)}.history`

/** A state file that cannot be opened: damaged, newer, of another program, out of reach. */
export type StateRefused = Database.DatabaseRefused | StateUnavailable

/** Everything a main host is made of, without providers. */
export type Services =
  | Plane
  | Subprocess.Subprocess
  | Ripgrep.Ripgrep
  | UserInput.UserInput

export const services = (options: Options): Layer.Layer<Services, StateRefused> => {
  const identity = ProcessIdentity.layer()
  const durable = Layer.mergeAll(
    SqliteApprovalGate.layer(options.approvals),
    SqliteReadTracker.layer,
    SqliteThreadStore.layer
  ).pipe(
    Layer.provideMerge(Layer.mergeAll(SqliteOperationLedger.layer, SqliteEventJournal.layer)),
    Layer.provideMerge(identity),
    Layer.provide(Database.layer(options.state))
  )
  const folder = Path.dirname(Path.resolve(options.state.filename))
  const spill = options.spill ?? { root: Path.join(folder, "spill") }
  const history = options.history ?? { root: historyOf(options.state) }
  const { sandbox = ProcessSandbox.layerUnconfined } = options
  const paths = WorkspacePath.layerWith({ ...options.paths, readable: SpillDirectory.readable(spill.root) })
  return Layer.mergeAll(
    SandboxGate.layer,
    paths,
    SpillDirectory.layer(spill),
    NodeFileHistory.layer(history),
    durable
  ).pipe(
    Layer.provideMerge(Layer.mergeAll(
      HookGate.layer(options.hooks ?? []),
      PermissionRules.layer(options.rules ?? []),
      Layer.provide(NodeFileMutationQueue.layer(options.locks), identity),
      NodeFileAccess.layer(),
      Layer.provideMerge(
        typeof sandbox === "function" ? sandbox({ masked: [folder, spill.root, history.root] }) : sandbox,
        NodeSubprocess.layer(options.subprocess)
      ),
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
