/**
 * The agents of one process as a tree: who lives, under whom, with which rights, and how a subtree ends.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as PubSub from "effect/PubSub"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Digest } from "../contract/Digest.ts"
import type { StateUnavailable } from "../contract/ToolFailure.ts"
import { AgentId, ThreadId, type Turn } from "../contract/Turn.ts"
import { ToolHost } from "../host/ToolHost.ts"
import { near } from "../internal/near.ts"
import { EventJournal } from "../journal/EventJournal.ts"
import type { ProcessIdentity } from "../process/ProcessIdentity.ts"
import { SpillStore } from "../spill/SpillStore.ts"
import * as AgentNode from "./agentNode.ts"
import { type AgentRecord, noUsage } from "./AgentReport.ts"
import * as AgentStore from "./agentStore.ts"
import {
  type AgentEvent,
  AgentSystem,
  DelegationRefused,
  lineageOf,
  type Options,
  selfOf,
  type SpawnOptions
} from "./AgentSystem.ts"
import { meet, rightsOf } from "./Authority.ts"
import * as Budget from "./budget.ts"
import { ChildStack } from "./ChildStack.ts"
import * as Conversation from "./Conversation.ts"
import { DelegationSemaphore } from "./DelegationSemaphore.ts"
import { Model } from "./Model.ts"
import { Profiles } from "./Profiles.ts"
import type { ThreadStore } from "./ThreadStore.ts"
import { TurnHooks } from "./TurnHooks.ts"

export type Requirements =
  | ChildStack
  | DelegationSemaphore
  | Profiles
  | ThreadStore
  | SpillStore
  | ProcessIdentity
  | EventJournal
  | Model

/** Threads outside any agent whose account is remembered. */
const maxStrays = 1024

export const make = (
  options: Options = {}
): Effect.Effect<AgentSystem["Type"], never, Requirements | Scope.Scope> =>
  Effect.gen(function*() {
    const stack = yield* ChildStack
    const profiles = yield* Profiles
    const journal = yield* EventJournal
    const sha256 = yield* Digest
    const store = yield* AgentStore.make
    const scope = yield* Effect.scope
    const events = yield* PubSub.sliding<AgentEvent>(1024)
    const { admit, handle, live, stop } = AgentNode.make({
      options,
      stack,
      profiles,
      journal,
      store,
      scope,
      events,
      semaphore: yield* DelegationSemaphore,
      spill: yield* SpillStore,
      own: Context.make(Model, yield* Model).pipe(
        Context.add(EventJournal, journal),
        Context.add(TurnHooks, yield* TurnHooks),
        Context.add(Digest, sha256)
      )
    })
    const budget = options.budget ?? {}
    const depth = budget.depth ?? 1
    const maxLive = Math.max(1, options.live ?? 10_000)
    let spawned = 0
    const strays = new Map<string, AgentNode.Parent>()

    const fingerprint = (system: string | undefined): string => sha256(system ?? "").slice(0, 16)

    /** `undefined`: the turn is of an agent that is over. */
    const parentOf = (turn: Turn): AgentNode.Parent | undefined => {
      const id = selfOf(turn)
      const known = live.get(id) ?? strays.get(id)
      if (known !== undefined || turn.lineage.length > 0) return known
      const stray: AgentNode.Parent = {
        id,
        account: Budget.open(budget),
        deadline: undefined,
        children: new Set(),
        notices: [],
        missed: 0,
        rights: {},
        stopping: false
      }
      strays.set(id, stray)
      for (const [other, { children }] of strays) {
        if (strays.size <= maxStrays) break
        if (children.size === 0 && other !== id) strays.delete(other)
      }
      return stray
    }

    /** Ends what is idle and was only kept to be spoken to again, the oldest first; it can be resumed. */
    const makeRoom = Effect.suspend(() => {
      for (const node of live.values()) {
        const { detached, status } = node.record
        const over = status !== "idle" && status !== "queued" && status !== "running"
        if (detached && over && node.children.size === 0) return stop(node)
      }
      return Effect.void
    })

    /** A child under its parent, or why not. */
    const adopt = Effect.fnUntraced(function*(
      turn: Turn,
      child: Pick<AgentNode.Node, "system" | "evidence" | "rights" | "messages"> & {
        readonly deadline: number | undefined
        readonly record: Omit<AgentRecord, "lineage" | "parentThreadId" | "parentTurnId" | "updatedAt">
      }
    ) {
      if (live.size >= maxLive) yield* makeRoom
      if (live.size >= maxLive) {
        return yield* new DelegationRefused({
          code: "delegation_limit",
          reason: `${maxLive} agents are alive already.`
        })
      }
      const parent = parentOf(turn)
      if (parent === undefined || parent.stopping) return yield* stopped()
      const above = lineageOf(turn)
      const refusal = parent.account.admit(above.length - 1)
      if (refusal !== undefined) return yield* new DelegationRefused(refusal)
      const now = yield* Clock.currentTimeMillis
      const lineage = [...above, child.record.agentId]
      const admitted = yield* admit({
        ...child,
        parent,
        account: parent.account,
        deadline: child.deadline ?? Budget.deadline(budget, now, parent.deadline),
        host: stack.host,
        spec: {
          threadId: child.record.threadId,
          workspace: turn.workspace,
          extraRoots: turn.roots.slice(1),
          clientSurface: turn.clientSurface,
          model: turn.model,
          lineage
        },
        record: {
          ...child.record,
          lineage,
          parentThreadId: turn.threadId,
          parentTurnId: turn.turnId,
          updatedAt: now
        }
      })
      return admitted ?? (yield* parent.stopping ? stopped() : busy(child.record.agentId))
    })

    /** The handle that the agent whose turn this is has of one below it. */
    const handed = (node: AgentNode.Node, turn: Turn) =>
      handle(node, Effect.map(current(turn), (now) => rightsOf(now, [])))

    /** The turn as it is by now, when it is a live agent's. */
    const current = (turn: Turn): Effect.Effect<Turn> => live.get(selfOf(turn))?.session?.turn ?? Effect.succeed(turn)

    const profileOf = (name: string) =>
      Effect.flatMap(profiles.get(name), (profile) =>
        profile !== undefined ? Effect.succeed(profile) : Effect.flatMap(profiles.list, (all) => {
          const names = all.map((one) =>
            one.name
          )
          const close = near(name, names)
          const reason = `There is no profile ${JSON.stringify(name.slice(0, 64))}. ` +
            (close.length > 0 ? `Did you mean ${close.join(", ")}?` : `There are ${names.join(", ")}.`)
          return Effect.fail(new DelegationRefused({ code: "profile_unknown", reason }))
        }))

    const spawn = Effect.fnUntraced(function*(asked: Turn, wanted: SpawnOptions = {}) {
      const turn = yield* current(asked)
      const node = live.get(selfOf(asked))
      const profile = wanted.fork === true ? undefined : yield* profileOf(wanted.profile ?? "general")
      const system = wanted.fork === true
        ? node?.system
        : [options.system ?? basePrompt, profile?.systemPrompt, wanted.systemPrompt]
          .filter((part) => part !== undefined && part !== "").join("\n\n")
      const messages = wanted.fork !== true
        ? []
        : Conversation.repair(
          yield* Conversation.load(turn.threadId, { without: turn.turnId }).pipe(
            Effect.provideService(EventJournal, journal)
          )
        )
      const now = yield* Clock.currentTimeMillis
      const agentId = newId(now)
      const child = yield* adopt(turn, {
        system,
        messages,
        deadline: undefined,
        evidence: wanted.evidence ?? false,
        rights: rightsOf(turn, [profile, wanted.bound].flatMap((bound) => bound === undefined ? [] : [bound])),
        record: {
          agentId,
          threadId: ThreadId.make(agentId),
          label: (wanted.label ?? profile?.name ?? "fork").slice(0, 200).toWellFormed(),
          profile: profile?.name ?? null,
          promptFingerprint: fingerprint(system),
          detached: wanted.detached ?? false,
          status: "idle",
          turns: 0,
          usage: noUsage,
          spawnedAt: now,
          ordinal: ++spawned
        }
      })
      if (messages.length > 0) {
        // What it starts from is not in its own journal yet, and it may be resumed from there.
        const { threadId } = child.record
        yield* journal.append({ _tag: "context_compacted", threadId, turnId: turn.turnId, at: now, messages })
      }
      return handed(child, asked)
    })

    const stopped = () =>
      new DelegationRefused({
        code: "delegation_limit",
        reason: "The agent whose turn this is has been stopped."
      })

    const busy = (agentId: string) =>
      new DelegationRefused({ code: "agent_busy", reason: `${agentId} is still at work; send it a message instead.` })

    const resume = Effect.fnUntraced(function*(
      asked: Turn,
      agentId: string,
      { detached = false }: Pick<SpawnOptions, "detached"> = {}
    ) {
      const turn = yield* current(asked)
      const awake = live.get(agentId)
      if (awake !== undefined && awake.record.parentThreadId === turn.threadId) {
        const { status } = awake.record
        if (status === "queued" || status === "running") return yield* busy(agentId)
        if (detached) awake.record = { ...awake.record, detached }
        return handed(awake, asked)
      }
      const stored = yield* store.get(turn.threadId, agentId)
      if (stored === undefined) {
        const reason = `This thread has no agent ${JSON.stringify(agentId.slice(0, 200))} to go on with.`
        return yield* new DelegationRefused({ code: "agent_unknown", reason })
      }
      const { lineage: _, parentThreadId: _thread, parentTurnId: _turn, updatedAt: _at, ...record } = stored.record
      if (record.status === "queued" || record.status === "running") return yield* busy(agentId)
      const child = yield* adopt(turn, {
        system: stored.system,
        evidence: stored.evidence,
        deadline: stored.deadline ?? undefined,
        messages: undefined,
        rights: meet(rightsOf(turn, []), stored.rights),
        record: { ...record, detached }
      })
      return handed(child, asked)
    })

    const below = (
      thread: ThreadId,
      limit: number
    ): Effect.Effect<ReadonlyArray<AgentRecord>, StateUnavailable> =>
      Effect.gen(function*() {
        const found: Array<AgentRecord> = []
        for (const child of yield* store.children(thread, limit)) {
          if (found.length >= limit) break
          found.push(live.get(child.agentId)?.record ?? child)
          // Who may not spawn has no children to look for.
          if (child.lineage.length <= depth) found.push(...yield* below(child.threadId, limit - found.length))
        }
        return found
      })

    yield* Scope.addFinalizer(
      scope,
      Effect.suspend(() =>
        Effect.forEach(
          [...live.values()].filter(({ parent }) => parent === undefined || !live.has(parent.id)),
          stop,
          unbounded
        )
      )
    )

    return AgentSystem.of({
      start: Effect.fnUntraced(function*(started) {
        const host = yield* ToolHost
        const { approvalPolicy, providers, sandboxMode, skills, threadMode, tools, ...spec } = started.spec
        const now = yield* Clock.currentTimeMillis
        const agentId = newId(now)
        const threadId = ThreadId.make(spec.threadId ?? agentId)
        const rights = { approvalPolicy, providers, sandboxMode, skills, threadMode, tools }
        const root = yield* Effect.acquireRelease(
          admit({
            parent: undefined,
            account: Budget.open(budget),
            deadline: undefined,
            host,
            spec: { ...spec, threadId, lineage: [agentId] },
            system: started.system,
            evidence: false,
            rights: Object.fromEntries(Object.entries(rights).filter(([, value]) => value !== undefined)),
            messages: undefined,
            record: {
              agentId,
              lineage: [agentId],
              threadId,
              parentThreadId: null,
              parentTurnId: null,
              label: started.label ?? "root",
              profile: null,
              promptFingerprint: fingerprint(started.system),
              detached: false,
              status: "idle",
              turns: 0,
              usage: noUsage,
              spawnedAt: now,
              ordinal: ++spawned,
              updatedAt: now
            }
          }),
          (node) => node === undefined ? Effect.void : stop(node)
        )
        if (root === undefined) return yield* busy(threadId)
        return handle(root, Effect.succeed({}))
      }),
      spawn,
      resume,
      waiting: (turn, effect) =>
        Effect.suspend(() => {
          const slot = live.get(selfOf(turn))?.slot
          return slot === undefined ? effect : slot.lend(effect)
        }),
      reach: (turn, agentId) =>
        Effect.sync(() => {
          const node = live.get(agentId)
          const self = selfOf(turn)
          const isBelow = node !== undefined && node.id !== self && node.record.lineage.includes(self)
          return isBelow ? handed(node, turn) : undefined
        }),
      find: (agentId) =>
        Effect.sync(() => {
          const node = live.get(agentId)
          return node === undefined ? undefined : handle(node, Effect.succeed({}))
        }),
      list: (threadId) => below(threadId, 1000),
      events: Stream.fromPubSub(events)
    })
  })

export const layer = (options?: Options): Layer.Layer<AgentSystem, never, Requirements> =>
  Layer.scoped(AgentSystem, make(options))

/** Ids of one thread sort by the time they were made. */
const newId = (now: number): AgentId =>
  AgentId.make(`agent_${Math.max(0, Math.floor(now)).toString(36).padStart(9, "0")}_${globalThis.crypto.randomUUID()}`)

const unbounded = { concurrency: "unbounded", discard: true } as const

const basePrompt =
  "You are an agent that another agent has given one task. Do that task and nothing else, with the tools you have. " +
  "Nobody can answer questions: decide, and say what you assumed. End with your findings in a few lines; they are all that is read."
