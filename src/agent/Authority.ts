/**
 * The rights of a child: the intersection of what its parent has and what its profile and its request leave (seed 7.2,
 * decisions: child narrowing). Every input only takes away.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { reservedTools } from "../catalog/CapabilityRegistry.ts"
import { stricterApproval, stricterSandbox, stricterThreadMode } from "../contract/Policy.ts"
import {
  admits,
  isPlan,
  type NameFilter,
  type Names,
  names,
  type Turn,
  TurnMode,
  type TurnSpecInput,
  within
} from "../contract/Turn.ts"
import { byCodeUnit } from "../internal/byCodeUnit.ts"
import { Narrowing, ToolPolicy } from "./Profile.ts"

/** One upper bound: of a profile, of a request, of a live agent that was narrowed. Modes only ever tighten. */
export const Bound = Schema.Struct({
  ...Narrowing.fields,
  ...TurnMode.fields,
  toolPolicy: Schema.optionalWith(ToolPolicy, { exact: true })
})
export type Bound = typeof Bound.Type

/** What a turn may be opened with, or is narrowed by: the part of a spec that gives rights. */
export type Rights = Pick<
  TurnSpecInput,
  "threadMode" | "sandboxMode" | "approvalPolicy" | "providers" | "tools" | "skills"
>

/** What tool policy `readOnly` leaves (seed 7.2). */
export const readOnlyTools: ReadonlyArray<string> = ["glob", "grep", "ls", "read", "repo_map", "web_fetch"]

/**
 * What a child of a turn gets under these bounds, in whatever order: what the turn has, less what any bound takes away. Modes
 * are the turn's, as they are now. A child of a plan turn is in plan mode, without the plan to write. Names are sorted by code
 * unit, each once.
 */
export const rightsOf = (parent: Turn, bounds: ReadonlyArray<Bound>): Rights =>
  bounds.map(limitOf).reduce(meet, {
    threadMode: isPlan(parent) ? "plan" : "agent",
    sandboxMode: parent.sandboxMode,
    approvalPolicy: parent.approvalPolicy,
    providers: filterOf(parent.providers),
    tools: filterOf(within(parent.tools, { deny: [...reservedTools] })),
    skills: filterOf(parent.skills)
  })

/** What a bound leaves, whoever it is held against. */
export const limitOf = (bound: Bound): Rights => {
  const { allowedTools, approvalPolicy, blockedMcpServers, blockedSkills, blockedTools, sandboxMode, threadMode } =
    bound
  const { toolPolicy } = bound
  const allowed = [allowedTools, toolPolicy === "readOnly" ? readOnlyTools : undefined]
    .flatMap((allow) => allow === undefined ? [] : [{ allow }])
  return {
    ...(threadMode === undefined ? {} : { threadMode }),
    ...(sandboxMode === undefined ? {} : { sandboxMode }),
    ...(approvalPolicy === undefined ? {} : { approvalPolicy }),
    providers: { deny: (blockedMcpServers ?? []).map((id) => `mcp:${id}`) },
    tools: filterOf(allowed.reduce(within, names({ deny: blockedTools ?? [] }))),
    skills: { deny: blockedSkills ?? [] }
  }
}

/** What both leave: the stricter mode, the names that both admit. */
export const meet = (left: Rights, right: Rights): Rights => {
  const threadMode = either(stricterThreadMode, left.threadMode, right.threadMode)
  const sandboxMode = either(stricterSandbox, left.sandboxMode, right.sandboxMode)
  const approvalPolicy = either(stricterApproval, left.approvalPolicy, right.approvalPolicy)
  return {
    ...(threadMode === undefined ? {} : { threadMode }),
    ...(sandboxMode === undefined ? {} : { sandboxMode }),
    ...(approvalPolicy === undefined ? {} : { approvalPolicy }),
    providers: filterOf(within(names(left.providers), right.providers)),
    tools: filterOf(within(names(left.tools), right.tools)),
    skills: filterOf(within(names(left.skills), right.skills))
  }
}

const either = <A>(stricter: (left: A, right: A) => A, left: A | undefined, right: A | undefined): A | undefined =>
  left === undefined || right === undefined ? left ?? right : stricter(left, right)

/** The names of a registry that these rights admit, in the registry's order. */
export const effectiveTools = (registryNames: Iterable<string>, rights: Rights): ReadonlyArray<string> => {
  const tools = names(rights.tools)
  return [...registryNames].filter((name) => admits(tools, name))
}

const filterOf = ({ allow, deny }: Names): NameFilter => ({
  ...(allow === undefined ? {} : { allow: sorted(allow) }),
  deny: sorted(deny)
})

const sorted = (set: ReadonlySet<string>): ReadonlyArray<string> => [...set].sort(byCodeUnit)
