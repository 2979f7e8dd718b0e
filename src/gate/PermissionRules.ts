/**
 * Standing rules over calls: deny, ask, allow.
 *
 * Deny rules match the call as the model made it and as hooks left it; ask and allow rules the latter alone (decisions,
 * Gates: hook rewrites). Deny beats ask beats allow.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Json } from "../contract/Json.ts"
import type { ToolKind } from "../contract/Policy.ts"

export interface RuleQuery {
  readonly toolName: string
  readonly kind: ToolKind
  readonly arguments: Json
}

/** A call in the forms it has had: a claimed kind beside the declared one, arguments before hooks beside those after. */
export interface RuleSubject {
  readonly original: ReadonlyArray<RuleQuery>
  readonly effective: ReadonlyArray<RuleQuery>
}

export interface Rule {
  readonly name: string
  readonly decision: "deny" | "ask" | "allow"
  /** Pure. */
  readonly matches: (query: RuleQuery) => boolean
  /** For the model when denying, for the approver when asking. */
  readonly reason: string
}

/** The rules in force. */
export interface RuleSet {
  /** The strictest rule that speaks: a deny or ask rule that matches any form it is held against, an allow rule all. */
  readonly judge: (subject: RuleSubject) => Rule | undefined
}

export class PermissionRules extends Context.Tag("portcullis/PermissionRules")<PermissionRules, {
  /** Asked for each call, and again after a wait: a rule that comes while somebody is asked still counts. */
  readonly current: Effect.Effect<RuleSet>
}>() {}

/** No rule speaks. */
export const none: RuleSet = { judge: () => undefined }

export const compile = (rules: ReadonlyArray<Rule>): RuleSet => {
  if (rules.length === 0) return none
  const of = (decision: Rule["decision"]) => rules.filter((rule) => rule.decision === decision)
  const deny = of("deny")
  const ask = of("ask")
  const allow = of("allow")
  return {
    judge: ({ effective, original }) =>
      deny.find(({ matches }) => original.some(matches) || effective.some(matches)) ??
        ask.find(({ matches }) => effective.some(matches)) ??
        allow.find(({ matches }) => effective.every(matches))
  }
}

export const layer = (rules: ReadonlyArray<Rule>): Layer.Layer<PermissionRules> =>
  Layer.succeed(PermissionRules, { current: Effect.succeed(compile(rules)) })

export const layerNone: Layer.Layer<PermissionRules> = layer([])
