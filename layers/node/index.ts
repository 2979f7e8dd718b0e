/** What Node gives: processes, ripgrep, a directory for large output, the digest of its own crypto, and who this process is. */
export * as Digest from "./Digest.ts"
export * as ProcessIdentity from "./ProcessIdentity.ts"
export * as Ripgrep from "./Ripgrep.ts"
export * as SpillDirectory from "./SpillDirectory.ts"
export * as Subprocess from "./Subprocess.ts"
