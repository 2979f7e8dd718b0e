/**
 * What one turn is allowed: ids, roots, modes, and the lists that narrow it.
 *
 * `TurnSpec` is what a caller asks for, `Turn` what the host granted: complete, frozen, and what every predicate, hook and
 * handler sees.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { ApprovalPolicy, ClientSurface, SandboxMode, ThreadMode } from "./Policy.ts"

const id = <const B extends string>(brand: B) =>
  Schema.String.pipe(Schema.pattern(/^[\x21-\x7e]{1,200}$/), Schema.brand(brand))

export const ThreadId = id("portcullis/ThreadId")
export type ThreadId = typeof ThreadId.Type
export const TurnId = id("portcullis/TurnId")
export type TurnId = typeof TurnId.Type
export const AgentId = id("portcullis/AgentId")
export type AgentId = typeof AgentId.Type

const exact = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/**
 * Names allowed and denied. No `allow` list is no limit, an empty one allows nothing; `deny` always wins (seed 3.3).
 */
export const NameFilter = Schema.Struct({
  allow: exact(Schema.Array(Schema.String)),
  deny: exact(Schema.Array(Schema.String))
})
export type NameFilter = typeof NameFilter.Type

/** A plan to write; its presence alone makes a turn a plan turn (seed 3.3). */
export const PlanContext = Schema.Struct({
  planId: Schema.String,
  operation: Schema.Literal("draft", "refine"),
  relativePath: Schema.String,
  /** The workspace the plan was reserved in; one that is not the turn's own is refused when the plan is written. */
  workspaceRoot: exact(Schema.String),
  title: exact(Schema.String),
  /** What the user asked for, in their words. */
  sourceRequest: exact(Schema.String)
})
export type PlanContext = typeof PlanContext.Type

export const ModelCapabilities = Schema.Struct({
  inputModalities: Schema.Array(Schema.Literal("text", "image"))
})
export type ModelCapabilities = typeof ModelCapabilities.Type

export const TurnSpec = Schema.Struct({
  threadId: exact(ThreadId),
  turnId: exact(TurnId),
  /** Primary root; relative paths of tools start here. */
  workspace: Schema.String,
  extraRoots: exact(Schema.Array(Schema.String)),
  threadMode: exact(ThreadMode),
  plan: exact(PlanContext),
  sandboxMode: exact(SandboxMode),
  approvalPolicy: exact(ApprovalPolicy),
  providers: exact(NameFilter),
  tools: exact(NameFilter),
  skills: exact(NameFilter),
  clientSurface: exact(ClientSurface),
  model: exact(ModelCapabilities),
  /** From the root agent to this one; empty for the root. */
  lineage: exact(Schema.Array(AgentId))
})
export type TurnSpec = typeof TurnSpec.Type
/** The spec as a caller writes it: plain strings for ids. */
export type TurnSpecInput = typeof TurnSpec.Encoded

export interface Turn {
  readonly threadId: ThreadId
  readonly turnId: TurnId
  /** Absolute. */
  readonly workspace: string
  /** Absolute; the primary root first. */
  readonly roots: ReadonlyArray<string>
  readonly threadMode: ThreadMode
  readonly plan: PlanContext | undefined
  readonly sandboxMode: SandboxMode
  readonly approvalPolicy: ApprovalPolicy
  readonly providers: Names
  readonly tools: Names
  readonly skills: Names
  readonly clientSurface: ClientSurface
  readonly model: ModelCapabilities
  readonly lineage: ReadonlyArray<AgentId>
}

/** The part of a turn that may change while it runs; judged as it is when a call runs. */
export const TurnMode = Schema.Struct({
  threadMode: exact(ThreadMode),
  sandboxMode: exact(SandboxMode),
  approvalPolicy: exact(ApprovalPolicy)
})
export type TurnMode = typeof TurnMode.Type

/** A `NameFilter` compiled to sets. */
export interface Names {
  readonly allow: ReadonlySet<string> | undefined
  readonly deny: ReadonlySet<string>
}

export const names = (filter: NameFilter | undefined): Names => ({
  allow: filter?.allow === undefined ? undefined : new Set(filter.allow),
  deny: new Set(filter?.deny)
})

/** Only what both allow, without what either denies. */
export const narrow = (asked: NameFilter | undefined, limit: NameFilter | undefined): Names =>
  within(names(asked), limit)

/** What one more filter leaves of names. */
export const within = (left: Names, limit: NameFilter | undefined): Names => {
  const right = names(limit)
  const allow = left.allow === undefined || right.allow === undefined
    ? left.allow ?? right.allow
    : new Set([...left.allow].filter((name) => right.allow?.has(name)))
  return { allow, deny: new Set([...left.deny, ...right.deny]) }
}

export const admits = (filter: Names, name: string): boolean =>
  !filter.deny.has(name) && (filter.allow === undefined || filter.allow.has(name))

export const isPlan = (turn: Pick<Turn, "threadMode" | "plan">): boolean =>
  turn.threadMode === "plan" || turn.plan !== undefined
