/** What confines commands on this machine. */
export * as Bubblewrap from "./Bubblewrap.ts"
