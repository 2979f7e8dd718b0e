/** What Node gives: files by descriptor, locks between processes, processes, ripgrep, directories for large output and for the history of files, the digest of its own crypto, and who this process is. */
export * as Digest from "./Digest.ts"
export * as FileAccess from "./FileAccess.ts"
export * as FileHistory from "./FileHistory.ts"
export * as FileMutationQueue from "./FileMutationQueue.ts"
export * as ProcessIdentity from "./ProcessIdentity.ts"
export * as Ripgrep from "./Ripgrep.ts"
export * as SpillDirectory from "./SpillDirectory.ts"
export * as Subprocess from "./Subprocess.ts"
