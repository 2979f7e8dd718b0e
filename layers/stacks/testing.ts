/**
 * What tests of an app and of its own Layers use: the whole plane in memory, scripted models and approvals, recorded
 * processes, crash points, and the contract suite of every service as plain data.
 */
export * as Approvals from "../../src/testing/Approvals.ts"
export * as AgentSystemLaws from "../../src/testing/contract/AgentSystem.ts"
export * as ApprovalGateLaws from "../../src/testing/contract/ApprovalGate.ts"
export * as CapabilityRegistryLaws from "../../src/testing/contract/CapabilityRegistry.ts"
export * as DelegationSemaphoreLaws from "../../src/testing/contract/DelegationSemaphore.ts"
export * as EventJournalLaws from "../../src/testing/contract/EventJournal.ts"
export * as FileMutationQueueLaws from "../../src/testing/contract/FileMutationQueue.ts"
export * as ModelLaws from "../../src/testing/contract/Model.ts"
export * as OperationLedgerLaws from "../../src/testing/contract/OperationLedger.ts"
export * as ProcessSandboxLaws from "../../src/testing/contract/ProcessSandbox.ts"
export * as ReadTrackerLaws from "../../src/testing/contract/ReadTracker.ts"
export * as SpillStoreLaws from "../../src/testing/contract/SpillStore.ts"
export * as SubprocessLaws from "../../src/testing/contract/Subprocess.ts"
export * as ThreadStoreLaws from "../../src/testing/contract/ThreadStore.ts"
export * as ToolHostLaws from "../../src/testing/contract/ToolHost.ts"
export * as CrashPoints from "../../src/testing/CrashPoints.ts"
export * as ScriptedModel from "../../src/testing/ScriptedModel.ts"
export * as RecordedSubprocess from "../../src/testing/Subprocess.ts"
export * as Test from "./Test.ts"
