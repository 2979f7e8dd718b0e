/**
 * The stack of a main agent on Node: durable state in one file, real files and processes, the built-in tools.
 *
 * @since 0.1.0
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as Layer from "effect/Layer"
import * as CapabilityRegistry from "../../src/catalog/CapabilityRegistry.ts"
import type { StateUnavailable } from "../../src/contract/ToolFailure.ts"
import * as FileMutationQueue from "../../src/file/FileMutationQueue.ts"
import * as WorkspacePath from "../../src/file/WorkspacePath.ts"
import type * as ApprovalGate from "../../src/gate/ApprovalGate.ts"
import * as HookGate from "../../src/gate/HookGate.ts"
import * as PermissionRules from "../../src/gate/PermissionRules.ts"
import * as SandboxGate from "../../src/gate/SandboxGate.ts"
import * as ToolHost from "../../src/host/ToolHost.ts"
import * as ProcessSandbox from "../../src/process/ProcessSandbox.ts"
import type * as Ripgrep from "../../src/process/Ripgrep.ts"
import type * as Subprocess from "../../src/process/Subprocess.ts"
import type { ToolProvider } from "../../src/tool/ToolProvider.ts"
import * as UserInput from "../../src/tool/UserInput.ts"
import * as Digest from "../node/Digest.ts"
import * as ProcessIdentity from "../node/ProcessIdentity.ts"
import * as NodeRipgrep from "../node/Ripgrep.ts"
import * as NodeSubprocess from "../node/Subprocess.ts"
import * as SqliteApprovalGate from "../sqlite/ApprovalGate.ts"
import * as Database from "../sqlite/Database.ts"
import * as SqliteEventJournal from "../sqlite/EventJournal.ts"
import * as SqliteOperationLedger from "../sqlite/OperationLedger.ts"
import * as SqliteReadTracker from "../sqlite/ReadTracker.ts"
import { builtin } from "./builtin.ts"
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
    SqliteReadTracker.layer
  ).pipe(
    Layer.provideMerge(Layer.mergeAll(SqliteOperationLedger.layer, SqliteEventJournal.layer)),
    Layer.provide(Layer.mergeAll(Database.layer(options.state), ProcessIdentity.layer()))
  )
  return Layer.mergeAll(SandboxGate.layer, WorkspacePath.layer, durable).pipe(
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
> =>
  ToolHost.layer(options.host).pipe(
    Layer.provideMerge(CapabilityRegistry.layer<ReadonlyArray<ToolProvider<Services>>>([builtin, ...providers])),
    Layer.provideMerge(services(options)),
    Layer.provide(Digest.layer)
  )
