/**
 * What is compared with what. A side is a thunk of a subject, run in a process of its own; `goal` is the largest ratio of
 * ours to the reference that is good enough, `null` when the row is only for orientation.
 */
import * as edits from "./edit.mjs"
import * as fanout from "./fanout.mjs"
import * as ours from "./ours.mjs"
import * as queue from "./queue.mjs"
import * as read from "./read.mjs"
import * as search from "./search.mjs"

const peer = (name) => import(`./peers/${name}.mjs`)
const calls = { batch: 2000, samples: 25, warmup: 20_000 }
const slowCalls = { batch: 50, samples: 15, warmup: 200 }
const commits = { batch: 500, samples: 11, warmup: 3000 }
const lists = { batch: 10, samples: 15, warmup: 20 }

const searches = { batch: 1, samples: 15, warmup: 3 }

const pages = { batch: 10, samples: 15, warmup: 100 }
const tasks = { batch: 10_000, samples: 15, warmup: 100_000 }

const locks = { batch: 2000, samples: 15, warmup: 4000 }
const writes = { batch: 500, samples: 15, warmup: 1000 }
const waiters = { batch: 10_000, samples: 11, warmup: 10_000 }

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

const sizes = [
  [100_000, "100 KB", { batch: 20, samples: 15, warmup: 200 }],
  [1_000_000, "1 MB", { batch: 3, samples: 15, warmup: 20 }],
  [10_000_000, "10 MB", { batch: 1, samples: 9, warmup: 3 }]
]

/** Our side of a row about edits against a peer's. */
const edit = (name, [bytes, size, options], form, goal, take, reference) => ({
  bench: "edit",
  name: `${size}, ${name}`,
  goal,
  installs: true,
  ours: { take: () => take(edits.subject(bytes, form)), ...options },
  reference: { take: () => reference(edits.subject(bytes, form)), ...options }
})

const pi = (what) => async (subject) => (await peer("pi"))[what](subject)
const gemini = (indentation) => async ({ edit, text }) => {
  const oldText = indentation + edit.oldText
  return (await peer("geminiEdit")).matching({ text, edit: { ...edit, oldText } })
}

export const cases = [
  ...sizes.flatMap((size) => [
    edit("exact match / pi", size, "exact", 0.1, edits.matching, pi("matching")),
    edit("normalised match / pi", size, "normalized", 0.2, edits.matching, pi("matching")),
    edit("exact match / gemini-cli-core, exact", size, "exact", 1, edits.matching, gemini("")),
    edit("normalised match / gemini-cli-core, other indentation", size, "exact", 1, edits.normalised, gemini("  ")),
    edit("exact match and diff / pi", size, "exact", 0.15, edits.whole, pi("whole")),
    edit("normalised match and diff / pi", size, "normalized", 0.15, edits.whole, pi("whole"))
  ]),
  {
    bench: "edit",
    name: "10 MB, memory of an exact edit / 4 x the file (x)",
    goal: 1,
    ours: { take: () => edits.memory(10_000_000, "exact") },
    reference: limit(4)
  },
  {
    bench: "edit",
    name: "10 MB, memory of a normalised edit / 8 x the file (x)",
    goal: 1,
    ours: { take: () => edits.memory(10_000_000, "normalized") },
    reference: limit(8)
  },
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
  },
  {
    bench: "search",
    name: "grep of 50,000 files, few matches / rg --json",
    goal: 1.15,
    ours: { take: () => search.grepRare(), ...searches },
    reference: { take: () => search.raw("--json", "rare"), ...searches }
  },
  {
    bench: "search",
    name: "grep of 50,000 files, last page of 20 MB / rg --json",
    goal: 1.5,
    ours: { take: () => search.grepMany(), ...searches },
    reference: { take: () => search.raw("--json", "many"), ...searches }
  },
  {
    bench: "search",
    name: "first page of a common pattern / pi-coding-agent",
    goal: 1.2,
    installs: true,
    ours: { take: () => search.grepCommon(), ...searches },
    reference: { take: async () => (await peer("piSearch")).grepCommon(), ...searches }
  },
  {
    bench: "search",
    name: "glob of 50,000 files, all / rg --files",
    goal: 1.15,
    ours: { take: () => search.globAll(), ...searches },
    reference: { take: () => search.raw("--files"), ...searches }
  },
  {
    bench: "search",
    name: "glob of 50,000 files, one name in four / rg --files",
    goal: 1.15,
    ours: { take: () => search.globSome(), ...searches },
    reference: { take: () => search.raw("--files"), ...searches }
  },
  {
    bench: "search",
    name: "a line of 217 KB / 1,000 characters (characters)",
    goal: 1,
    ours: { take: () => search.longLine() },
    reference: limit(1000)
  },
  {
    bench: "queue",
    name: "no-op on one file, a burst, locks across processes / proper-lockfile",
    goal: 0.4,
    installs: true,
    ours: { take: () => queue.burst(1), ...locks },
    reference: { take: async () => (await peer("properLockfile")).sequence(1), ...locks }
  },
  {
    bench: "queue",
    name: "no-op on one file, one after another, locks across processes / proper-lockfile",
    goal: 0.4,
    installs: true,
    ours: { take: () => queue.sequence(1), ...locks },
    reference: { take: async () => (await peer("properLockfile")).sequence(1), ...locks }
  },
  {
    bench: "queue",
    name: "no-op on 100 files, a burst, locks across processes / proper-lockfile",
    goal: null,
    installs: true,
    ours: { take: () => queue.burst(100), ...locks },
    reference: { take: async () => (await peer("properLockfile")).sequence(100), ...locks }
  },
  {
    bench: "queue",
    name: "writes of one file, in process / a chain of promises",
    goal: 1.1,
    ours: { take: () => queue.writes(), ...writes },
    reference: { take: async () => (await peer("promiseChain")).writes(), ...writes }
  },
  {
    bench: "queue",
    name: "one of 10,000 that wait for one file / one of 10 for each of 1,000",
    goal: 1.15,
    ours: { take: () => queue.waiters(1), ...waiters },
    reference: { take: () => queue.waiters(1000), ...waiters }
  },
  {
    bench: "read",
    name: "2,000 lines of 1 GB through the channel / its first 256 KB as text, plain",
    goal: 5,
    ours: { take: () => read.first(), ...pages },
    reference: { take: () => read.plain(), ...pages }
  },
  {
    bench: "read",
    name: "peak memory above idle, pages of 1 GB / 32 MB (MB)",
    goal: 1,
    ours: { take: () => read.memory() },
    reference: limit(32)
  }
]
