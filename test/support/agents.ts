/** Agents that answer as a test tells them to, and counts of what is alive: enough of an `AgentSystem` to stand on. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { type AgentReport, noUsage } from "../../src/agent/AgentReport.ts"
import {
  AgentSystem,
  AgentUnavailable,
  type DelegationRefused,
  type SpawnOptions
} from "../../src/agent/AgentSystem.ts"
import type { StateUnavailable } from "../../src/contract/ToolFailure.ts"
import { AgentId, ThreadId } from "../../src/contract/Turn.ts"

export interface Asked {
  /** Of the agent, from 1, in the order of spawning. */
  readonly agent: number
  /** Of the message to that agent, from 1. */
  readonly turn: number
  readonly label: string
  readonly profile: string | null
  readonly prompt: string
}

export interface FakeOptions {
  /** The agent's last words, or more of its report. */
  readonly answer: (asked: Asked) => Effect.Effect<string | Partial<AgentReport>, AgentUnavailable>
  readonly refuse?: (options: SpawnOptions) => DelegationRefused | StateUnavailable | undefined
  /** Runs before every spawn, stop and answer, so that a test can stand in between. */
  readonly pause?: Effect.Effect<void>
}

const unused = Effect.dieMessage("not a part of the fake")

export const fakeAgents = ({ answer, pause = Effect.void, refuse = () => undefined }: FakeOptions) => {
  const asked: Array<Asked> = []
  const spawned: Array<SpawnOptions> = []
  /** `live` were spawned and not stopped, `running` are in a turn, `waiting` waits of a parent are open. */
  const counts = { live: 0, running: 0, waiting: 0, mostLive: 0, mostRunning: 0, spawnedUnlent: 0 }

  const reportOf = (
    { agent, label, profile }: Asked,
    words: string | Partial<AgentReport>
  ): AgentReport => ({
    agentId: AgentId.make(`agent-${agent}`),
    label,
    profile,
    status: "completed",
    summary: "",
    usage: { ...noUsage, requests: 1, outputTokens: 10 },
    queuedMs: 0,
    durationMs: 0,
    ...(typeof words === "string" ? { summary: words } : words)
  })

  const system: AgentSystem["Type"] = {
    start: () => unused,
    resume: () => unused,
    reach: () => unused,
    find: () => unused,
    list: () => unused,
    events: Stream.empty,
    waiting: (_, effect) =>
      Effect.acquireUseRelease(
        Effect.sync(() => void counts.waiting++),
        () => effect,
        () => Effect.sync(() => void counts.waiting--)
      ),
    spawn: (_, options = {}) =>
      Effect.gen(function*() {
        yield* pause
        const refused = refuse(options)
        if (refused !== undefined) return yield* refused
        if (counts.waiting === 0) counts.spawnedUnlent++
        const agent = spawned.push(options)
        const id = AgentId.make(`agent-${agent}`)
        let stopped = false
        let turns = 0
        counts.live++
        counts.mostLive = Math.max(counts.mostLive, counts.live)
        return {
          id,
          threadId: ThreadId.make(`thread-${agent}`),
          lineage: [id],
          record: unused,
          tell: () => unused,
          interrupt: unused,
          narrow: () => unused,
          ask: (prompt) =>
            Effect.suspend(() => {
              if (stopped) return Effect.fail(new AgentUnavailable({ code: "agent_stopped", agentId: id }))
              const request: Asked = {
                agent,
                turn: ++turns,
                label: options.label ?? "",
                profile: options.profile ?? null,
                prompt: String(prompt)
              }
              asked.push(request)
              counts.running++
              counts.mostRunning = Math.max(counts.mostRunning, counts.running)
              return Effect.zipRight(pause, answer(request)).pipe(
                Effect.map((words) => reportOf(request, words)),
                Effect.ensuring(Effect.zipRight(pause, Effect.sync(() => void counts.running--)))
              )
            }),
          stop: Effect.zipRight(
            pause,
            Effect.sync(() => {
              if (!stopped) counts.live--
              stopped = true
            })
          )
        }
      })
  }
  return { system, asked, spawned, counts }
}

/** Runs an effect over these agents. */
export const over = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  { system }: { readonly system: AgentSystem["Type"] }
): Effect.Effect<A, E, Exclude<R, AgentSystem>> => Effect.provideService(effect, AgentSystem, system)
