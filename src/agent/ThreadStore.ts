/**
 * Small documents that belong to a thread and outlive the process: goals, to-do lists, the records of child agents.
 *
 * What was said and done is in the journal (see `Conversation`); this is what a thread knows beside it.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { type Json, snapshot } from "../contract/Json.ts"
import { type CodedError, StateUnavailable, toolError } from "../contract/ToolFailure.ts"
import type { ThreadId } from "../contract/Turn.ts"
import { byCodeUnit } from "../internal/byCodeUnit.ts"

export interface Document {
  /** 1 to 200 printable ASCII characters, unique in its thread: `goal`, `agent/agent_1`. */
  readonly key: string
  readonly value: Json
  /** 1 for the first value, one more with every write. */
  readonly revision: number
}

/** Somebody else wrote the document first, or it is not there, or it is there already. */
export class RevisionConflict extends Schema.TaggedError<RevisionConflict>("portcullis/RevisionConflict")(
  "RevisionConflict",
  {
    code: Schema.Literal("revision_conflict"),
    key: Schema.String,
    expected: Schema.Number,
    /** 0: there is none. */
    found: Schema.Number
  }
) {
  override get message() {
    return `${this.key} is at revision ${this.found}, not ${this.expected}.`
  }
}

export class ThreadStore extends Context.Tag("portcullis/ThreadStore")<ThreadStore, {
  /** A document that is damaged is `state_unavailable`. */
  readonly get: (threadId: ThreadId, key: string) => Effect.Effect<Document | undefined, StateUnavailable>
  /**
   * Writes when the document is at revision `expected` (0: only when there is none); on disk when it returns. A key or a value
   * that no store can keep (not printable ASCII or over 200 characters; no plain JSON, 64 levels deep or over 1 MiB of text)
   * is `state_unavailable`.
   */
  readonly put: (
    threadId: ThreadId,
    key: string,
    value: Json,
    expected: number
  ) => Effect.Effect<Document, RevisionConflict | StateUnavailable>
  /**
   * Writes whatever the revision is, without waiting: a durable store writes it with its next commit, in the order of the
   * calls, at the latest after 50 ms and when its scope closes. `get` and `list` see it at once. What no store can keep is
   * dropped.
   */
  readonly note: (threadId: ThreadId, key: string, value: Json) => Effect.Effect<void>
  /**
   * Documents whose key starts with `prefix`, by key in code-unit order, after the key `after`, at most `limit` (default
   * 1000). Those that are damaged are left out: they must not hide the others.
   */
  readonly list: (
    threadId: ThreadId,
    prefix: string,
    options?: { readonly after?: string; readonly limit?: number }
  ) => Effect.Effect<ReadonlyArray<Document>, StateUnavailable>
}>() {}

const keyPattern = /^[\x20-\x7e]{1,200}$/
/** Characters of JSON text. */
const maxText = 1024 * 1024

const refuse = (reason: string) => Either.left(new StateUnavailable({ reason, executed: false }))

/** What a store keeps of a value under a key: a frozen plain copy, and its JSON text. */
export const admit = (
  key: string,
  value: Json
): Either.Either<{ readonly value: Json; readonly text: string }, StateUnavailable> => {
  if (!keyPattern.test(key)) return refuse("the key of a document must be 1 to 200 printable ASCII characters")
  const plain = snapshot(value)
  if (!plain.ok) return refuse(`${key} cannot be kept: ${plain.problem} at ${plain.path || "/"}`)
  const text = JSON.stringify(plain.value)
  return text.length > maxText ? refuse(`${key} cannot be kept: it is over 1 MiB`) : Either.right({ ...plain, text })
}

/** Documents that `layerMemory` keeps, of all threads together. */
export const maxDocuments = 65_536

/** Keeps documents in memory; beyond `maxDocuments` the one written longest ago goes. */
export const make: Effect.Effect<ThreadStore["Type"]> = Effect.sync(() => {
  const documents = new Map<string, Document>()
  // Neither a thread id nor a key holds a newline.
  const idOf = (threadId: ThreadId, key: string) => `${threadId}\n${key}`
  const revisionOf = (threadId: ThreadId, key: string) => documents.get(idOf(threadId, key))?.revision ?? 0

  const write = (threadId: ThreadId, key: string, value: Json): Document => {
    const document = { key, value, revision: revisionOf(threadId, key) + 1 }
    documents.delete(idOf(threadId, key))
    documents.set(idOf(threadId, key), document)
    const oldest = documents.size > maxDocuments ? documents.keys().next().value : undefined
    if (oldest !== undefined) documents.delete(oldest)
    return document
  }

  return {
    get: (threadId, key) => Effect.sync(() => documents.get(idOf(threadId, key))),
    put: (threadId, key, value, expected) =>
      Effect.flatMap(admit(key, value), (admitted) => {
        const found = revisionOf(threadId, key)
        return found === expected
          ? Effect.succeed(write(threadId, key, admitted.value))
          : new RevisionConflict({ code: "revision_conflict", key, expected, found })
      }),
    note: (threadId, key, value) =>
      Effect.sync(() => {
        const admitted = admit(key, value)
        if (Either.isRight(admitted)) write(threadId, key, admitted.right.value)
      }),
    list: (threadId, prefix, { after = "", limit = 1000 } = {}) =>
      Effect.sync(() => {
        const found: Array<Document> = []
        for (const [id, document] of documents) {
          if (id.startsWith(idOf(threadId, prefix)) && document.key > after) found.push(document)
        }
        return found.sort((left, right) => byCodeUnit(left.key, right.key)).slice(0, Math.max(0, limit))
      })
  }
})

export const layerMemory: Layer.Layer<ThreadStore> = Layer.effect(ThreadStore, make)

/** What a tool that keeps a typed document may fail with beside its own. */
export const documentCodes = ["document_damaged", "document_unavailable", "document_conflict"] as const
export type DocumentError = CodedError<typeof documentCodes[number]>

/** How often a change is tried while others write the same document. */
const attempts = 5

/** The document of a key in every thread, decoded when it is read. */
export interface TypedDocument<A> {
  /** `undefined`: the thread has none. */
  readonly read: (threadId: ThreadId) => Effect.Effect<A | undefined, DocumentError, ThreadStore>
  /**
   * Writes what `change` makes of the value before. When somebody else wrote in between, all is done again on the new value,
   * five times in all; then it is `document_conflict`. It is on disk when it returns.
   */
  readonly modify: <E, R>(
    threadId: ThreadId,
    change: (before: A | undefined) => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | DocumentError, R | ThreadStore>
}

/** A typed document. A value that does not fit the schema is `document_damaged`, and stays as it is. */
export const document = <A extends Json>(key: string, schema: Schema.Schema<A>): TypedDocument<A> => {
  const decode = Schema.decodeUnknown(schema)
  const unavailable = ({ reason }: StateUnavailable) =>
    toolError("document_unavailable", `The ${key} of this thread is out of reach: ${reason}.`)

  const load = Effect.fnUntraced(function*(store: ThreadStore["Type"], threadId: ThreadId) {
    const found = yield* Effect.mapError(store.get(threadId, key), unavailable)
    if (found === undefined) return { revision: 0, value: undefined }
    const value = yield* Effect.mapError(
      decode(found.value),
      () => toolError("document_damaged", `The ${key} of this thread is damaged. Go on without it, and tell the user.`)
    )
    return { revision: found.revision, value }
  })

  return {
    read: (threadId) => Effect.flatMap(ThreadStore, (store) => Effect.map(load(store, threadId), ({ value }) => value)),
    modify: (threadId, change) =>
      Effect.gen(function*() {
        const store = yield* ThreadStore
        const before = yield* load(store, threadId)
        const next = yield* change(before.value)
        return yield* store.put(threadId, key, next, before.revision).pipe(
          Effect.as(Option.some(next)),
          Effect.catchTags({
            RevisionConflict: () => Effect.succeed(Option.none<A>()),
            StateUnavailable: (error) => Effect.fail(unavailable(error))
          })
        )
      }).pipe(
        Effect.repeat({ until: Option.isSome, times: attempts - 1 }),
        Effect.flatMap(Option.match({
          onNone: () =>
            Effect.fail(toolError("document_conflict", `Others keep changing the ${key} of this thread. Try again.`)),
          onSome: Effect.succeed
        }))
      )
  }
}
