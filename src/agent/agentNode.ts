/**
 * One agent: its mailbox, its turns, its rights, and how it ends with all below it.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as PubSub from "effect/PubSub"
import * as Scope from "effect/Scope"
import type { ToolResult } from "../contract/ToolResult.ts"
import { type AgentId, TurnId, type TurnSpecInput } from "../contract/Turn.ts"
import type { ToolHost, TurnSession } from "../host/ToolHost.ts"
import { onContext } from "../internal/onContext.ts"
import type { EventJournal } from "../journal/EventJournal.ts"
import type { SpillStore } from "../spill/SpillStore.ts"
import * as Actor from "./actor.ts"
import { addUsage, type AgentRecord, type AgentReport } from "./AgentReport.ts"
import type { AgentStore, Stored } from "./agentStore.ts"
import { type Agent, type AgentEvent, AgentUnavailable, type Options, type Prompt } from "./AgentSystem.ts"
import * as AgentTurn from "./agentTurn.ts"
import { type Bound, limitOf, meet, type Rights } from "./Authority.ts"
import type * as Budget from "./budget.ts"
import type { ChildStack } from "./ChildStack.ts"
import * as Conversation from "./Conversation.ts"
import type { DelegationSemaphore, Slot } from "./DelegationSemaphore.ts"
import type { Message, Model } from "./Model.ts"
import type { Profiles } from "./Profiles.ts"

/** Somebody who may have children: an agent, or a thread whose turns are run outside any. */
export interface Parent {
  readonly id: AgentId
  readonly account: Budget.Account
  readonly deadline: number | undefined
  readonly children: Set<Node>
  /** For its next model request; `missed` did not fit. */
  notices: Array<string>
  missed: number
  rights: Rights
  stopping: boolean
}

export interface Node extends Parent {
  readonly parent: Parent | undefined
  readonly actor: Actor.Actor<Work, AgentReport>
  readonly host: ToolHost["Type"]
  readonly spec: Omit<TurnSpecInput, "turnId" | keyof Rights>
  readonly system: string | undefined
  readonly evidence: boolean
  record: AgentRecord
  /** `undefined`: what the journal has. */
  messages: ReadonlyArray<Message> | undefined
  session: TurnSession | undefined
  slot: Slot | undefined
}

/** A message, and what is known of its turn so far. */
export interface Work {
  readonly prompt: Prompt
  /** What its turn has at most, beside what the agent has. */
  readonly limit: Rights
  /** Nobody waits for its report: the parent is to be told. */
  readonly told: boolean
  readonly tally: AgentTurn.Tally
  readonly sentAt: number
  startedAt: number | undefined
}

/** What every agent of a system stands on. */
export interface Environment {
  readonly options: Options
  readonly stack: ChildStack["Type"]
  readonly semaphore: DelegationSemaphore["Type"]
  readonly profiles: Profiles["Type"]
  readonly spill: SpillStore["Type"]
  readonly journal: EventJournal["Type"]
  readonly store: AgentStore
  readonly events: PubSub.PubSub<AgentEvent>
  /** Of the system: what is forked ends with it. */
  readonly scope: Scope.Scope
  /** A fiber has all that its parent has; an agent runs on these services and nothing else. */
  readonly own: Context.Context<Model | EventJournal>
}

/** The agents of a system, by id, and what can be done to them. */
export interface Nodes {
  readonly live: ReadonlyMap<string, Node>
  /**
   * A new agent under its parent; cannot be interrupted. Its rights are no more than its parent's are by now. `undefined`: its
   * thread has a live agent, or its parent is being stopped.
   */
  readonly admit: (init: Init) => Effect.Effect<Node | undefined>
  /** The handle of an agent whose messages have at most these rights, as they are when one is sent. */
  readonly handle: (node: Node, limit: Effect.Effect<Rights>) => Agent
  /** Ends an agent with its subtree; cannot be interrupted, and may be called any number of times. */
  readonly stop: (node: Node) => Effect.Effect<void>
}

export type Init = Pick<
  Node,
  "parent" | "account" | "deadline" | "host" | "spec" | "system" | "evidence" | "record" | "rights" | "messages"
>

export const make = (environment: Environment): Nodes => {
  const { events, journal, options, own, profiles, scope, semaphore, spill, stack, store } = environment
  const capacity = Math.max(1, options.mailbox ?? 16)
  const nodes = new Map<string, Node>()
  const threads = new Set<string>()

  const changed = Effect.fnUntraced(function*(node: Node, change: Partial<AgentRecord>) {
    const at = yield* Clock.currentTimeMillis
    const record: AgentRecord = { ...node.record, ...change, updatedAt: at }
    node.record = record
    yield* store.save(storedOf(node))
    yield* PubSub.publish(events, { type: "status", at, record })
    const { agentId, label, lineage, parentThreadId, parentTurnId, status, threadId } = record
    yield* journal.append({
      _tag: "agent_changed",
      threadId: parentThreadId ?? threadId,
      turnId: parentTurnId ?? noTurn,
      at,
      agentId,
      parentId: lineage.at(-2) ?? null,
      lineage,
      label,
      status
    })
  })

  const opened = (
    node: Node,
    limit: Rights
  ): Effect.Effect<TurnSession, { readonly message: string; readonly code: string }, Scope.Scope> =>
    Effect.suspend(() => {
      const { rights } = node
      // The list of profiles is part of a tool's schema, so an edited one shows from the next turn.
      const fresh = node.parent === undefined ? profiles.refresh : Effect.void
      return Effect.tap(
        Effect.zipRight(fresh, node.host.openTurn({ ...node.spec, ...meet(rights, limit) })),
        (session) =>
          Effect.zipRight(
            Effect.acquireRelease(
              Effect.sync(() => void (node.session = session)),
              () => Effect.sync(() => void (node.session = undefined))
            ),
            // It may have been narrowed while the turn was opened.
            Effect.suspend(() => node.rights === rights ? Effect.void : session.narrow(node.rights))
          )
      )
    })

  const turn = (node: Node, work: Work): Effect.Effect<AgentTurn.Ending, never, Model | EventJournal> =>
    Effect.scoped(Effect.gen(function*() {
      const session = yield* opened(node, work.limit)
      const messages = node.messages ?? (yield* Conversation.resume(node.record.threadId))
      node.messages = undefined
      const { ending, messages: after } = yield* AgentTurn.run({
        session,
        messages,
        prompt: work.prompt,
        source: node.parent === undefined ? "user" : "agent",
        system: node.system,
        limits: options.limits,
        compaction: options.compaction,
        tally: work.tally,
        notices: Effect.sync(() => takeNotices(node)),
        mayRequest: Effect.sync(node.account.spent),
        onUsage: node.account.use,
        onCall: (result) => called(node, result)
      })
      node.messages = after
      return ending
    })).pipe(
      Effect.catchAll((error) => Effect.succeed(AgentTurn.failed(error.code, error.message))),
      (self) => inTime(node, self)
    )

  const inTime = <R>(node: Node, self: Effect.Effect<AgentTurn.Ending, never, R>) => {
    const { deadline } = node
    if (deadline === undefined) return self
    const late = () => AgentTurn.failed("delegation_limit", "The time that this agent had is over.")
    return Effect.flatMap(
      Clock.currentTimeMillis,
      (now) =>
        deadline <= now ? Effect.sync(late) : Effect.timeoutTo(self, {
          duration: deadline - now,
          onSuccess: (ending) => ending,
          onTimeout: late
        })
    )
  }

  const called = (node: Node, { code, toolName }: ToolResult): Effect.Effect<void> =>
    Effect.flatMap(
      Clock.currentTimeMillis,
      (at) => Effect.asVoid(PubSub.publish(events, { type: "call", at, agentId: node.id, toolName, code }))
    )

  const conclude = Effect.fnUntraced(function*(node: Node, work: Work, ending: AgentTurn.Ending) {
    const now = yield* Clock.currentTimeMillis
    const startedAt = work.startedAt ?? now
    const report = yield* AgentTurn.report({
      record: node.record,
      ending,
      tally: work.tally,
      evidence: node.evidence,
      spill,
      queuedMs: startedAt - work.sentAt,
      durationMs: now - startedAt
    })
    yield* changed(node, {
      status: ending.status,
      turns: node.record.turns + 1,
      usage: addUsage(node.record.usage, report.usage),
      report
    })
    // What a parent acts on must not be forgotten by a crash right after.
    yield* store.settle(storedOf(node))
    if (work.told && node.parent !== undefined) tellParent(node.parent, report)
    return report
  })

  const perform = Effect.fnUntraced(function*(node: Node, work: Work) {
    work.startedAt = yield* Clock.currentTimeMillis
    yield* changed(node, { status: "running" })
    const ending = yield* onContext(Effect.interruptible(turn(node, work)), own)
    return yield* conclude(node, work, ending)
  })

  /** A child's turn waits for a slot, a root's does not. */
  const forked = (node: Node) => (self: Effect.Effect<void>): Effect.Effect<{ readonly cancel: Effect.Effect<void> }> =>
    node.parent === undefined
      ? Effect.map(Effect.forkIn(self, scope), (fiber) => ({ cancel: Effect.asVoid(Fiber.interrupt(fiber)) }))
      : Effect.zipRight(
        changed(node, { status: "queued" }),
        Scope.extend(
          semaphore.fork((slot) => {
            node.slot = slot
            return Effect.ensuring(
              self,
              Effect.sync(() => void (node.slot = undefined))
            )
          }),
          scope
        )
      )

  const stop = (node: Node): Effect.Effect<void> =>
    Effect.suspend(() => {
      node.stopping = true
      return Effect.all([node.actor.stop, Effect.forEach(node.children, stop, unbounded)], unbounded).pipe(
        Effect.zipRight(node.parent === undefined ? Effect.void : stack.reads.clear(node.record.threadId)),
        Effect.zipRight(Effect.sync(() => {
          if (nodes.delete(node.id)) threads.delete(node.record.threadId)
          node.parent?.children.delete(node)
        })),
        Effect.uninterruptible
      )
    })

  const narrow = (node: Node, bound: Bound): Effect.Effect<void> =>
    Effect.suspend(() => {
      node.rights = meet(node.rights, limitOf(bound))
      return Effect.zipRight(
        node.session === undefined ? Effect.void : node.session.narrow(node.rights),
        Effect.forEach(node.children, (child) => narrow(child, bound), { discard: true })
      ).pipe(Effect.zipRight(changed(node, {})), Effect.uninterruptible)
    })

  const handle = (node: Node, limit: Effect.Effect<Rights>): Agent => {
    const { actor, id } = node
    const work = (prompt: Prompt, told: boolean, bound: Bound | undefined): Effect.Effect<Work> =>
      Effect.map(Effect.all([limit, Clock.currentTimeMillis]), ([most, sentAt]) => ({
        prompt,
        told,
        limit: bound === undefined ? most : meet(most, limitOf(bound)),
        sentAt,
        tally: AgentTurn.newTally(),
        startedAt: undefined
      }))
    const refuse = (why: "full" | "stopped") =>
      new AgentUnavailable({ code: why === "full" ? "mailbox_full" : "agent_stopped", agentId: id })
    return {
      id,
      threadId: node.record.threadId,
      lineage: node.record.lineage,
      record: Effect.sync(() => node.record),
      ask: (prompt, bound) => Effect.mapError(Effect.flatMap(work(prompt, false, bound), actor.ask), refuse),
      tell: (prompt, bound) => Effect.mapError(Effect.flatMap(work(prompt, true, bound), actor.tell), refuse),
      // Whoever calls these from inside the turn that they end is interrupted with it, and must not wait for itself.
      interrupt: Effect.disconnect(actor.interrupt),
      stop: Effect.disconnect(stop(node)),
      narrow: (bound) => narrow(node, bound)
    }
  }

  const admit = Effect.fnUntraced(function*(init: Init) {
    const actor: Actor.Actor<Work, AgentReport> = yield* Actor.make<Work, AgentReport>({
      capacity,
      run: (work) => perform(node, work),
      cut: (work) => conclude(node, work, AgentTurn.interrupted),
      fork: (self) => forked(node)(self)
    })
    const node: Node = {
      ...init,
      id: init.record.agentId,
      // The parent may have been narrowed since they were worked out.
      rights: init.parent === undefined ? init.rights : meet(init.rights, init.parent.rights),
      actor,
      children: new Set(),
      notices: [],
      missed: 0,
      session: undefined,
      slot: undefined,
      stopping: false
    }
    if (threads.has(init.record.threadId) || init.parent?.stopping === true) return undefined
    threads.add(init.record.threadId)
    nodes.set(node.id, node)
    init.parent?.children.add(node)
    yield* changed(node, {})
    return node
  }, Effect.uninterruptible)

  return { live: nodes, admit, handle, stop }
}

const unbounded = { concurrency: "unbounded", discard: true } as const

/** Of what belongs to no turn: the life of a root agent. */
const noTurn = TurnId.make("none")

const storedOf = ({ deadline, evidence, record, rights, system = "" }: Node): Stored => ({
  record,
  rights,
  system,
  evidence,
  deadline: deadline ?? null
})

const maxNotices = 100

const tellParent = (parent: Parent, report: AgentReport): void => {
  if (parent.notices.length < maxNotices) parent.notices.push(noticeOf(report))
  else parent.missed++
}

const takeNotices = (parent: Parent): ReadonlyArray<string> => {
  const { missed } = parent
  parent.missed = 0
  return [
    ...parent.notices.splice(0),
    ...missed === 0 ? [] : [`${missed} more of your agents have ended a turn; list_agents shows them.`]
  ]
}

/** For a model: what a child said is quoted, so that it cannot pass for the host's words. */
const noticeOf = ({ agentId, label, status, summary }: AgentReport): string =>
  `The agent ${JSON.stringify(label)} (${agentId}) has ended a turn: ${status}. ` +
  `It said: ${JSON.stringify(summary.slice(0, 2000).toWellFormed())}`
