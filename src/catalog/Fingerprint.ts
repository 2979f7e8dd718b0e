/**
 * A short name for what a model was told, stable over registration order and key order (seed 3.5).
 *
 * @since 0.1.0
 */
import { type Sha256, short } from "../contract/Digest.ts"
import { canonical } from "../contract/Json.ts"
import { byCodeUnit } from "../internal/byCodeUnit.ts"
import type { ToolSpec } from "../tool/Tool.ts"

export interface Fingerprint {
  /** 16 hex digits over the names and hashes. */
  readonly fingerprint: string
  readonly toolCount: number
  /** Sorted by code unit. */
  readonly toolNames: ReadonlyArray<string>
  /** 16 hex digits over name, description and parameters, by tool name. */
  readonly toolHashes: ReadonlyMap<string, string>
}

/** One tool's hash: SHA-256 over the canonical JSON of name, description and parameters, and of nothing else. */
export const toolHash = (sha256: Sha256, spec: ToolSpec): string =>
  short(sha256(canonical({ name: spec.name, description: spec.description, parameters: spec.parameters })))

/** The fingerprint of tools that are hashed and sorted already. */
export const ofHashes = (
  sha256: Sha256,
  sorted: ReadonlyArray<{ readonly name: string; readonly hash: string }>
): Fingerprint => {
  let text = ""
  const toolHashes = new Map<string, string>()
  const toolNames: Array<string> = []
  for (const { hash, name } of sorted) {
    text += `${JSON.stringify(name)}:${hash}\n`
    toolHashes.set(name, hash)
    toolNames.push(name)
  }
  return { fingerprint: short(sha256(text)), toolCount: sorted.length, toolNames, toolHashes }
}

/** The fingerprint of any tools, in any order. */
export const make = (sha256: Sha256, specs: ReadonlyArray<ToolSpec>): Fingerprint =>
  ofHashes(
    sha256,
    specs.map((spec) => ({ name: spec.name, hash: toolHash(sha256, spec) })).sort((left, right) =>
      byCodeUnit(left.name, right.name)
    )
  )
