/**
 * The journal in the state file. Rows ride on the commits of other services; a reader also sees what other processes append.
 * Where an entry is damaged, or an event was no JSON, a warning stands in its place.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Event } from "../../src/contract/Event.ts"
import { type ThreadId, TurnId } from "../../src/contract/Turn.ts"
import { makeSignal, streamPages } from "../../src/internal/journalPages.ts"
import type { Entry } from "../../src/journal/EventJournal.ts"
import { EventJournal } from "../../src/journal/EventJournal.ts"
import { Database, type Row } from "./Database.ts"

/** How often a waiting reader looks for what another process wrote. */
const pollInterval = "100 millis"

const decodeEvent = Schema.decodeUnknown(Schema.parseJson(Event))

const warning = ({ at, threadId, turnId }: Pick<Event, "threadId" | "turnId" | "at">, message: string): Event => ({
  _tag: "warning",
  threadId,
  turnId,
  at,
  source: "journal",
  message
})

/** The turn of an entry that cannot be read. */
const unknownTurn = TurnId.make("unknown")

const entryOf = (threadId: ThreadId, row: Row): Effect.Effect<Entry> => {
  const sequence = Number(row["sequence"])
  return decodeEvent(row["event"]).pipe(
    Effect.orElseSucceed(() =>
      warning({ threadId, turnId: unknownTurn, at: Number(row["at"]) }, `entry ${sequence} is damaged`)
    ),
    Effect.map((event) => ({ sequence, event }))
  )
}

/** An event as it is now: its owner may change it before it is written. */
const textOf = (event: Event): Effect.Effect<string> =>
  Effect.orElse(
    Effect.try(() => JSON.stringify(event)),
    () => Effect.sync(() => JSON.stringify(warning(event, `a ${event._tag} event could not be written`)))
  )

export const make: Effect.Effect<typeof EventJournal.Service, never, Database> = Effect.gen(function*() {
  const database = yield* Database
  const signal = makeSignal()
  let commits = 0
  const committed = () => {
    commits++
    signal.raise()
  }

  const read = (threadId: ThreadId, after: number, limit: number) =>
    database.read(
      "SELECT sequence, at, event FROM event WHERE thread_id = ? AND sequence > ? ORDER BY sequence LIMIT ?",
      [threadId, after, Math.max(0, limit)]
    ).pipe(Effect.flatMap(Effect.forEach((row) => entryOf(threadId, row))))

  return {
    append: (event) =>
      Effect.map(textOf(event), (text) => {
        const row = [event.threadId, event.at, text]
        database.defer(
          (run) => Effect.asVoid(run("INSERT INTO event (thread_id, at, event) VALUES (?, ?, ?)", row)),
          committed
        )
      }),
    entries: (threadId, { after = 0, limit = 1000 } = {}) =>
      Effect.zipRight(database.flush, read(threadId, after, limit)),
    stream: (threadId, { after = 0 } = {}) =>
      Stream.suspend(() => {
        let looked = commits
        return streamPages({
          after,
          read: (from) =>
            Effect.suspend(() => {
              looked = commits
              return Effect.map(read(threadId, from, 1000), (entries) => ({
                entries,
                seen: entries.at(-1)?.sequence ?? from
              }))
            }),
          wait: () => Effect.ignore(Effect.timeoutOption(signal.wait(() => commits !== looked), pollInterval))
        })
      })
  }
})

export const layer: Layer.Layer<EventJournal, never, Database> = Layer.effect(EventJournal, make)
