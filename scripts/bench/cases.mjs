/**
 * What is compared with what. A side is a thunk of a subject, run in a process of its own; `goal` is the largest ratio of
 * ours to the reference that is good enough, `null` when the row is only for orientation.
 */
import * as fanout from "./fanout.mjs"
import * as ours from "./ours.mjs"

const peer = (name) => import(`./peers/${name}.mjs`)
const calls = { batch: 2000, samples: 25, warmup: 20_000 }
const slowCalls = { batch: 50, samples: 15, warmup: 200 }
const commits = { batch: 500, samples: 11, warmup: 3000 }
const lists = { batch: 10, samples: 15, warmup: 20 }

const tasks = { batch: 10_000, samples: 15, warmup: 100_000 }

/** A limit in place of a peer. */
const limit = (value) => ({ take: () => ({ value: () => value }) })

const catalog = (tools) => [
  {
    bench: "catalog",
    name: `${tools} tools unchanged / stringify and SHA-256`,
    goal: 0.05,
    ours: { take: () => ours.catalogUnchanged(tools), ...lists },
    reference: { take: async () => (await peer("plain")).catalog(tools), ...lists }
  },
  {
    bench: "catalog",
    name: `${tools} tools first / stringify and SHA-256`,
    goal: 1,
    ours: { take: () => ours.catalogFirst(tools), ...lists },
    reference: { take: async () => (await peer("plain")).catalog(tools), ...lists }
  }
]

export const cases = [
  {
    bench: "channel",
    name: "one call, memory / @effect/ai Toolkit.handle",
    goal: 1,
    ours: { take: () => ours.channelCall(), ...calls },
    reference: { take: async () => (await peer("effectAi")).channelCall(), ...calls }
  },
  {
    bench: "channel",
    name: "one call, memory / gemini-cli-core Scheduler",
    goal: 0.05,
    installs: true,
    ours: { take: () => ours.channelCall(), ...calls },
    reference: { take: async () => (await peer("gemini")).channelCall(), ...slowCalls }
  },
  {
    bench: "channel",
    name: "one call after 100,000 / after 20,000",
    goal: 1.15,
    ours: { take: () => ours.channelCallLate(), ...calls },
    reference: { take: () => ours.channelCall(), ...calls }
  },
  {
    bench: "channel",
    name: "SQLite FULL, one after another / three raw commits",
    goal: 3,
    ours: { take: () => ours.channelLedgerSequential(), ...commits },
    reference: { take: async () => (await peer("sqlite")).sequential(), ...commits }
  },
  {
    bench: "channel",
    name: "SQLite FULL, 100 in flight / three raw commits",
    goal: 0.5,
    ours: { take: () => ours.channelLedgerConcurrent(), ...commits },
    reference: { take: async () => (await peer("sqlite")).sequential(), ...commits }
  },
  {
    bench: "channel",
    name: "whole process, import portcullis / effect/Effect",
    goal: 1.25,
    ours: { imports: ours.entry },
    reference: { imports: "effect/Effect" }
  },
  {
    bench: "channel",
    name: "whole process, import portcullis / effect/Schema",
    goal: null,
    ours: { imports: ours.entry },
    reference: { imports: "effect/Schema" }
  },
  {
    bench: "channel",
    name: "peak memory, import portcullis / effect/Effect (MB)",
    goal: null,
    ours: { imports: ours.entry, memory: true },
    reference: { imports: "effect/Effect", memory: true }
  },
  ...catalog(1000),
  ...catalog(10000),
  {
    bench: "catalog",
    name: "10,000 tools unchanged / 1,000 tools unchanged",
    goal: 15,
    ours: { take: () => ours.catalogUnchanged(10000), ...lists },
    reference: { take: () => ours.catalogUnchanged(1000), ...lists }
  },
  {
    bench: "fanout",
    name: "10,000 no-op tasks, budget 8 / p-limit around Effect.runPromise",
    goal: 2,
    installs: true,
    ours: { take: () => fanout.tasks(10_000), ...tasks },
    reference: { take: async () => (await peer("pLimit")).tasks(10_000), ...tasks }
  },
  {
    bench: "fanout",
    name: "10,000 tasks that yield once, budget 8 / p-limit around Effect.runPromise",
    goal: null,
    installs: true,
    ours: { take: () => fanout.tasks(10_000, fanout.yielding), ...tasks },
    reference: { take: async () => (await peer("pLimit")).tasks(10_000, fanout.yielding), ...tasks }
  },
  {
    bench: "fanout",
    name: "a task of 10,000 / a task of 1,000",
    goal: 1.25,
    ours: { take: () => fanout.tasks(10_000), ...tasks },
    reference: { take: () => fanout.tasks(1000), ...tasks }
  },
  {
    bench: "fanout",
    name: "cancelling 10,000 that wait / 10 ms",
    goal: 1,
    ours: { take: () => fanout.cancel(10_000) },
    reference: limit(10_000)
  },
  {
    bench: "fanout",
    name: "a spawned child / 300 us",
    goal: 1,
    ours: { take: () => fanout.spawn(), batch: 200, samples: 15, warmup: 2000 },
    reference: limit(300)
  },
  {
    bench: "fanout",
    name: "memory of a spawned child / 20 KB (KB)",
    goal: 1,
    ours: { take: () => fanout.spawnMemory() },
    reference: limit(20)
  }
]
