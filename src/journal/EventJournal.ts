/**
 * The ordered record of all that happened: replay first, then live.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Stream from "effect/Stream"
import type { Event } from "../contract/Event.ts"
import type { StateUnavailable } from "../contract/ToolFailure.ts"
import type { ThreadId } from "../contract/Turn.ts"
import { makeSignal, type Page, streamPages } from "../internal/journalPages.ts"

export interface Entry {
  /** Strictly increasing over the whole journal. */
  readonly sequence: number
  readonly event: Event
}

export class EventJournal extends Context.Tag("portcullis/EventJournal")<EventJournal, {
  /**
   * Adds an event. Entries keep the order of the calls. Durable journals take it as it is at the call, and write it with the
   * next commit of the same database, at the latest after 50 ms and when the scope closes; it never blocks on a slow reader.
   * In place of an event that is no JSON they keep a `warning`.
   */
  readonly append: (event: Event) => Effect.Effect<void>
  /**
   * Entries of a thread after a sequence number (default 0), oldest first, at most `limit` (default 1000). Here and in
   * `stream` a damaged entry reads as a `warning` under its own number.
   */
  readonly entries: (
    threadId: ThreadId,
    options?: { readonly after?: number; readonly limit?: number }
  ) => Effect.Effect<ReadonlyArray<Entry>, StateUnavailable>
  /** Everything after a sequence number, then what follows, without a gap or a repeat. */
  readonly stream: (
    threadId: ThreadId,
    options?: { readonly after?: number }
  ) => Stream.Stream<Entry, StateUnavailable>
}>() {}

export interface Options {
  /** Entries kept; the oldest go first. Default 4096. */
  readonly capacity?: number
}

/** Keeps the newest entries in memory. A reader that falls further behind than that sees a jump in the sequence. */
export const make = (options: Options = {}): Effect.Effect<typeof EventJournal.Service> =>
  Effect.sync(() => {
    const capacity = Math.max(1, options.capacity ?? 4096)
    const ring: Array<Entry> = []
    let last = 0
    const signal = makeSignal()

    const page = (threadId: ThreadId, after: number, limit: number): Page<Entry> => {
      const found: Array<Entry> = []
      let sequence = Math.max(after, last - ring.length)
      while (sequence < last && found.length < limit) {
        const entry = ring[sequence++ % capacity]
        if (entry !== undefined && entry.event.threadId === threadId) found.push(entry)
      }
      return { entries: found, seen: sequence }
    }

    return {
      append: (event) =>
        Effect.sync(() => {
          ring[last % capacity] = { sequence: ++last, event }
          signal.raise()
        }),
      entries: (threadId, { after = 0, limit = 1000 } = {}) =>
        Effect.sync(() => page(threadId, Math.max(0, after), limit).entries),
      stream: (threadId, { after = 0 } = {}) =>
        streamPages({
          after: Math.max(0, after),
          read: (from) => Effect.sync(() => page(threadId, from, 1000)),
          wait: (seen) => signal.wait(() => last > seen)
        })
    }
  })

export const layerMemory = (options?: Options): Layer.Layer<EventJournal> => Layer.effect(EventJournal, make(options))
