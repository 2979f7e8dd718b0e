/**
 * What a turn can see: the registry's tools after the filters, sorted, with their fingerprint, and why the rest is hidden.
 *
 * The filters in order (seed 3.3; decisions, Catalog): provider, names, plan, sandbox, `shouldAdvertise`, `modelAdvertised`.
 * The first that says no hides the tool. A catalog is no permission: the channel judges every call again.
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import type { Sha256 } from "../contract/Digest.ts"
import type { CatalogFilter } from "../contract/ToolFailure.ts"
import { admits, isPlan, type Turn } from "../contract/Turn.ts"
import type { SandboxTable } from "../gate/SandboxGate.ts"
import type { Any, ToolSpec } from "../tool/Tool.ts"
import type { ProviderEntry, RegisteredTool, Snapshot } from "./CapabilityRegistry.ts"
import { type Fingerprint, ofHashes } from "./Fingerprint.ts"

export interface Hidden {
  readonly toolName: string
  readonly providerId: string
  /** The first filter that hid it. */
  readonly filter: CatalogFilter
  readonly reason: string
}

/**
 * What a tool's calls may run together with: `read_only` is for built-in tools declared parallel-safe, `delegation` for
 * `delegate_task` of a delegation provider; all others are `serial` (decisions, Channel, "read-only lane").
 */
export type Lane = "serial" | "read_only" | "delegation"

export interface Catalog {
  /** Sorted by name, by code unit. */
  readonly tools: ReadonlyArray<ToolSpec>
  readonly fingerprint: Fingerprint
  readonly lane: (toolName: string) => Lane
  /** Whether a tool does nothing but ask the user. */
  readonly interactive: (toolName: string) => boolean
  /** Computed when asked for; sorted like `tools`. */
  readonly explain: () => ReadonlyArray<Hidden>
}

/** The seed's plan tools (3.3). Tools declared read-only are admitted beside them. */
export const defaultPlanTools: ReadonlySet<string> = new Set([
  "read",
  "grep",
  "find",
  "ls",
  "create_plan",
  "user_input",
  "request_user_input"
])

/** Whether a provider can be used in a turn: `undefined`, or why not. */
export const providerRefusal = (entry: ProviderEntry | undefined, turn: Turn | undefined): string | undefined => {
  if (entry === undefined) return "its provider is gone"
  if (!entry.policy.enabled) return `provider ${entry.id} is switched off${because(entry.policy.reason)}`
  if (!entry.policy.available) return `provider ${entry.id} is unavailable${because(entry.policy.reason)}`
  if (turn !== undefined && !admits(turn.providers, entry.id)) return `provider ${entry.id} is not allowed in this turn`
  return undefined
}

export const nameRefusal = (toolName: string, turn: Turn): string | undefined =>
  admits(turn.tools, toolName) ? undefined : "its name is not allowed in this turn"

/** Whether a plan turn admits a tool. */
export const planAdmits = (tool: Any, planTools: ReadonlySet<string>): boolean =>
  tool.readOnly || planTools.has(tool.name)

export const advertiseRefusal = (tool: Any, turn: Turn | undefined): string | undefined => {
  const { shouldAdvertise } = tool
  if (shouldAdvertise === undefined) return undefined
  if (turn === undefined) return "it shows itself in turns only"
  return Either.match(Either.try(() => shouldAdvertise(turn)), {
    onLeft: () => "its own predicate failed",
    onRight: (shown) => shown ? undefined : "it does not show itself in this turn"
  })
}

export interface BuildOptions {
  readonly snapshot: Snapshot
  /** Without one, only what needs no turn is listed. */
  readonly turn: Turn | undefined
  readonly planTools: ReadonlySet<string>
  readonly sandbox: SandboxTable
}

type Refusal = { readonly filter: CatalogFilter; readonly reason: string }

const refusalOf = (
  registered: RegisteredTool,
  options: BuildOptions,
  plan: boolean,
  providers: Map<string, string | undefined>
): Refusal | undefined => {
  const { tool } = registered
  const { turn } = options
  const provider = providers.get(registered.providerId)
  if (provider !== undefined) return { filter: "provider", reason: provider }
  if (turn !== undefined) {
    const name = nameRefusal(tool.name, turn)
    if (name !== undefined) return { filter: "names", reason: name }
    if (plan && !planAdmits(tool, options.planTools)) {
      return { filter: "plan", reason: "it is not among the tools of a plan turn" }
    }
    const verdict = options.sandbox(tool.kind, tool.runs, tool.interactive)
    if (verdict._tag === "Block") return { filter: "sandbox", reason: verdict.reason }
  }
  const advertise = advertiseRefusal(tool, turn)
  if (advertise !== undefined) return { filter: "advertise", reason: advertise }
  return tool.modelAdvertised ? undefined : { filter: "hidden", reason: "it is executable but never listed" }
}

interface Listing {
  readonly visible: ReadonlyArray<RegisteredTool>
  readonly tools: ReadonlyArray<ToolSpec>
  readonly fingerprint: Fingerprint
}

/** A builder that keeps its last few listings: the same tools again cost one comparison and no hashing. */
export const makeBuilder = (sha256: Sha256): (options: BuildOptions) => Catalog => {
  const kept: Array<Listing> = []

  const listing = (visible: ReadonlyArray<RegisteredTool>): Listing => {
    const known = kept.find((candidate) => sameTools(candidate.visible, visible))
    if (known !== undefined) return known
    const made: Listing = {
      visible,
      tools: Object.freeze(visible.map((registered) => registered.spec)),
      fingerprint: ofHashes(sha256, visible.map(({ hash, spec }) => ({ name: spec.name, hash })))
    }
    kept.unshift(made)
    if (kept.length > 8) kept.pop()
    return made
  }

  return (options) => {
    const { snapshot, turn } = options
    const plan = turn !== undefined && isPlan(turn)
    const providers = new Map<string, string | undefined>()
    for (const entry of snapshot.providers.values()) providers.set(entry.id, providerRefusal(entry, turn))
    const visible = snapshot.sorted.filter((tool) => refusalOf(tool, options, plan, providers) === undefined)
    const { fingerprint, tools } = listing(visible)
    return {
      tools,
      fingerprint,
      lane: (toolName) => {
        const registered = snapshot.tools.get(toolName)
        if (registered === undefined) return "serial"
        const { providerId, tool } = registered
        const kind = snapshot.providers.get(providerId)?.kind
        if (kind === "delegation" && tool.name === "delegate_task") return "delegation"
        return kind === "built-in" && tool.parallelSafe && tool.kind === "tool_call" ? "read_only" : "serial"
      },
      interactive: (toolName) => snapshot.tools.get(toolName)?.tool.interactive === true,
      explain: () =>
        snapshot.sorted.flatMap((registered) => {
          const refusal = refusalOf(registered, options, plan, providers)
          return refusal === undefined
            ? []
            : [{ toolName: registered.spec.name, providerId: registered.providerId, ...refusal }]
        })
    }
  }
}

const sameTools = (left: ReadonlyArray<RegisteredTool>, right: ReadonlyArray<RegisteredTool>): boolean => {
  if (left.length !== right.length) return false
  for (let index = 0; index < left.length; index++) if (left[index] !== right[index]) return false
  return true
}

const because = (reason: string | undefined): string => reason === undefined ? "" : `: ${reason}`
