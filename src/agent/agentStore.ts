/**
 * The records of child agents in the thread store, and which of them their process took with it.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { ApprovalPolicy, SandboxMode, ThreadMode } from "../contract/Policy.ts"
import type { StateUnavailable } from "../contract/ToolFailure.ts"
import { NameFilter, type ThreadId } from "../contract/Turn.ts"
import { Owner, ProcessIdentity } from "../process/ProcessIdentity.ts"
import { AgentRecord } from "./AgentReport.ts"
import type { Rights } from "./Authority.ts"
import { ThreadStore } from "./ThreadStore.ts"

const exact = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

const StoredRights = Schema.Struct({
  threadMode: exact(ThreadMode),
  sandboxMode: exact(SandboxMode),
  approvalPolicy: exact(ApprovalPolicy),
  providers: exact(NameFilter),
  tools: exact(NameFilter),
  skills: exact(NameFilter)
})

/** A record with what it takes to go on with its agent. */
export interface Stored {
  readonly record: AgentRecord
  /** What it was left with; a resumed agent gets no more. */
  readonly rights: Rights
  readonly system: string
  readonly evidence: boolean
  /** Epoch milliseconds; `null`: its time has no end. */
  readonly deadline: number | null
}

const Document = Schema.Struct({
  record: AgentRecord,
  rights: StoredRights,
  system: Schema.String,
  evidence: Schema.Boolean,
  deadline: Schema.NullOr(Schema.Number),
  owner: Owner
})

const decode = Schema.decodeUnknown(Document)
const encode = Schema.encode(Document)

const prefix = "agent/"
const pageSize = 500

export interface AgentStore {
  /** Keeps a record under its parent's thread; written with the next commit. Of an agent without a parent it keeps nothing. */
  readonly save: (stored: Stored) => Effect.Effect<void>
  /** Returns when all that was saved before is on disk, or cannot be. */
  readonly settle: (stored: Stored) => Effect.Effect<void>
  /** The record of a child of that thread; a damaged one counts as none. */
  readonly get: (parent: ThreadId, agentId: string) => Effect.Effect<Stored | undefined, StateUnavailable>
  /** The children of a thread, oldest first: the last `limit` of them. */
  readonly children: (parent: ThreadId, limit: number) => Effect.Effect<ReadonlyArray<AgentRecord>, StateUnavailable>
}

export const make: Effect.Effect<AgentStore, never, ThreadStore | ProcessIdentity> = Effect.gen(function*() {
  const store = yield* ThreadStore
  const identity = yield* ProcessIdentity

  const read = (value: unknown): Effect.Effect<Stored | undefined> =>
    Effect.matchEffect(decode(value), {
      onFailure: () => Effect.succeed(undefined),
      onSuccess: ({ owner, record, ...rest }) =>
        record.status !== "queued" && record.status !== "running"
          ? Effect.succeed({ ...rest, record })
          : Effect.map(
            identity.alive(owner),
            (alive): Stored => alive ? { ...rest, record } : { ...rest, record: { ...record, status: "unknown" } }
          )
    })

  return {
    save: (stored) => {
      const { parentThreadId } = stored.record
      return parentThreadId === null ? Effect.void : encode({ ...stored, owner: identity.self }).pipe(
        Effect.flatMap((value) => store.note(parentThreadId, prefix + stored.record.agentId, value)),
        // What was built by our own types encodes.
        Effect.orDie
      )
    },
    get: (parent, agentId) =>
      Effect.flatMap(
        store.get(parent, prefix + agentId),
        (document) => document === undefined ? Effect.succeed(undefined) : read(document.value)
      ),
    settle: ({ record: { agentId, parentThreadId } }) =>
      parentThreadId === null ? Effect.void : Effect.ignore(store.get(parentThreadId, prefix + agentId)),
    children: Effect.fnUntraced(function*(parent, limit) {
      let records: Array<AgentRecord> = []
      for (let after = "";;) {
        const page = yield* store.list(parent, prefix, { after, limit: pageSize })
        const stored = yield* Effect.forEach(page, ({ value }) => read(value))
        records = [...records, ...stored.flatMap((one) => one === undefined ? [] : [one.record])]
          .sort((left, right) => left.spawnedAt - right.spawnedAt || left.ordinal - right.ordinal).slice(-limit)
        const last = page.at(-1)
        if (last === undefined || page.length < pageSize) return records
        after = last.key
      }
    })
  }
})
