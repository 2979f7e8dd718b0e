/** Durable services over one SQLite file: each needs `Database`, and all of one host share it. */
export * as ApprovalGate from "./ApprovalGate.ts"
export * as Database from "./Database.ts"
export * as EventJournal from "./EventJournal.ts"
export * as OperationLedger from "./OperationLedger.ts"
export * as ReadTracker from "./ReadTracker.ts"
export * as ThreadStore from "./ThreadStore.ts"
