/**
 * How one catalog differs from another (decisions, Catalog: drift grades).
 *
 * @since 0.1.0
 */
import type { DriftGrade } from "../contract/Event.ts"
import type { Fingerprint } from "./Fingerprint.ts"

/** `none` when equal, `additive` when there are only new names and every old hash stands, else `breaking`. */
export const grade = (before: Fingerprint, after: Fingerprint): DriftGrade => {
  if (before.fingerprint === after.fingerprint) return "none"
  for (const [name, hash] of before.toolHashes) {
    if (after.toolHashes.get(name) !== hash) return "breaking"
  }
  return after.toolCount > before.toolCount ? "additive" : "none"
}
