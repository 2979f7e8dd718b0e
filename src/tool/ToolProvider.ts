/**
 * A named group of tools from one source.
 *
 * @since 0.1.0
 */
import type { Reach } from "../contract/Policy.ts"
import { type ProviderKind, type ProviderPolicy, usable } from "../contract/Provider.ts"
import type { Any, ReachOf, Requirements } from "./Tool.ts"

export interface ToolProvider<out R = never, out ProviderReach extends Reach = Reach> {
  readonly id: string
  readonly kind: ProviderKind
  readonly policy: ProviderPolicy
  readonly reach: ProviderReach
  readonly tools: ReadonlyArray<ToolOf<R>>
}

type ToolOf<R> = import("./Tool.ts").Tool<string, R, Reach>

/** `main` as soon as one tool is, or may be. */
type Widest<ToolReach extends Reach> = "main" extends ToolReach ? "main" : "shared"

/** A provider; usable unless `policy` says otherwise. Its reach is the widest of its tools'. */
export const make = <const Tools extends ReadonlyArray<Any>>(options: {
  readonly id: string
  readonly kind: ProviderKind
  readonly tools: Tools
  readonly policy?: ProviderPolicy
}): ToolProvider<Requirements<Tools[number]>, Widest<ReachOf<Tools[number]>>> => ({
  id: options.id,
  kind: options.kind,
  policy: options.policy ?? usable,
  reach: (options.tools.some((tool) => tool.reach !== "shared") ? "main" : "shared") as Widest<ReachOf<Tools[number]>>,
  tools: options.tools as ReadonlyArray<ToolOf<Requirements<Tools[number]>>>
})
