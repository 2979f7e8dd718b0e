/** Everything a host is made of, whatever its Layers, without providers. */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import type { ThreadStore } from "../../src/agent/ThreadStore.ts"
import type { FileAccess } from "../../src/file/FileAccess.ts"
import type { FileHistory } from "../../src/file/FileHistory.ts"
import type { FileMutationQueue } from "../../src/file/FileMutationQueue.ts"
import type { ReadTracker } from "../../src/file/ReadTracker.ts"
import type { WorkspacePath } from "../../src/file/WorkspacePath.ts"
import type { ApprovalGate } from "../../src/gate/ApprovalGate.ts"
import type { HookGate } from "../../src/gate/HookGate.ts"
import type { PermissionRules } from "../../src/gate/PermissionRules.ts"
import type { SandboxGate } from "../../src/gate/SandboxGate.ts"
import type { OperationLedger } from "../../src/host/OperationLedger.ts"
import type { EventJournal } from "../../src/journal/EventJournal.ts"
import type { ProcessIdentity } from "../../src/process/ProcessIdentity.ts"
import type { ProcessSandbox } from "../../src/process/ProcessSandbox.ts"
import type { SpillStore } from "../../src/spill/SpillStore.ts"

export type Plane =
  | SandboxGate
  | ApprovalGate
  | HookGate
  | PermissionRules
  | OperationLedger
  | EventJournal
  | ReadTracker
  | WorkspacePath
  | FileMutationQueue
  | FileAccess
  | FileHistory
  | ProcessSandbox
  | ProcessIdentity
  | ThreadStore
  | SpillStore
  | FileSystem.FileSystem
  | Path.Path
