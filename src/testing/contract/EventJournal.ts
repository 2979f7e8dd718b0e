/**
 * What every `EventJournal` does.
 *
 * @since 0.1.0
 */
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import type { Event } from "../../contract/Event.ts"
import { ThreadId, TurnId } from "../../contract/Turn.ts"
import { type Entry, EventJournal } from "../../journal/EventJournal.ts"
import { equal, expect, type Law, law } from "./Law.ts"

const thread = ThreadId.make("thread")
const other = ThreadId.make("other")

/** An event to test with. */
export const message = (text: string, threadId: ThreadId = thread): Event => ({
  _tag: "user_message",
  threadId,
  turnId: TurnId.make("turn"),
  at: 1_000_000_000_000.5,
  text
})

const append = (...texts: ReadonlyArray<string>) =>
  Effect.flatMap(
    EventJournal,
    (journal) => Effect.forEach(texts, (text) => journal.append(message(text)), { discard: true })
  )

const texts = (entries: Iterable<Entry>) =>
  Array.from(entries, ({ event }) => event._tag === "user_message" ? event.text : event._tag)

const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => String(from + index))

/** Collects `count` entries after a sequence number, in a fiber. */
const follow = (count: number, after = 0) =>
  Effect.flatMap(
    EventJournal,
    (journal) =>
      journal.stream(thread, { after }).pipe(
        Stream.take(count),
        Stream.runCollect,
        Effect.map(Chunk.toReadonlyArray),
        Effect.fork
      )
  )

export const laws: ReadonlyArray<Law<EventJournal>> = [
  law(
    "entries keep the order of the appends, strictly increasing, and hold the events as they were",
    Effect.gen(function*() {
      const journal = yield* EventJournal
      yield* append(...numbers(0, 20))
      const entries = yield* journal.entries(thread)
      yield* equal(entries.map((entry) => entry.event), numbers(0, 20).map((text) => message(text)), "events")
      const rising = entries.every(({ sequence }, index) => sequence > (entries[index - 1]?.sequence ?? 0))
      yield* expect(rising, "the sequence does not rise")
    })
  ),
  law(
    "a thread reads its own entries alone, after a sequence number and up to a limit",
    Effect.gen(function*() {
      const journal = yield* EventJournal
      yield* append("a", "b")
      yield* journal.append(message("x", other))
      yield* append("c", "d")
      const all = yield* journal.entries(thread)
      yield* equal(texts(all), ["a", "b", "c", "d"], "all")
      yield* equal(texts(yield* journal.entries(other)), ["x"], "other")
      const after = all[1]?.sequence ?? 0
      yield* equal(texts(yield* journal.entries(thread, { after })), ["c", "d"], "after")
      yield* equal(texts(yield* journal.entries(thread, { after, limit: 1 })), ["c"], "limit")
      yield* equal(texts(yield* journal.entries(thread, { after: 1_000_000 })), [], "far after")
    })
  ),
  law(
    "a stream replays and then follows, without a gap or a repeat",
    Effect.gen(function*() {
      yield* append(...numbers(0, 10))
      const fiber = yield* follow(30)
      for (let from = 10; from < 30; from += 5) {
        yield* append(...numbers(from, from + 5))
        yield* Effect.yieldNow()
      }
      yield* equal(texts(yield* Fiber.join(fiber)), numbers(0, 30), "stream")
    })
  ),
  law(
    "a stream goes on where another left off",
    Effect.gen(function*() {
      yield* append(...numbers(0, 6))
      const first = yield* Fiber.join(yield* follow(3))
      const rest = yield* follow(5, first.at(-1)?.sequence)
      yield* append("6", "7")
      yield* equal(texts(yield* Fiber.join(rest)), numbers(3, 8), "rest")
    })
  ),
  law(
    "a reader that does not read holds up nobody, and has missed nothing when it reads on",
    Effect.gen(function*() {
      const journal = yield* EventJournal
      const slow = yield* Stream.toPull(journal.stream(thread))
      yield* append("0")
      const first = yield* slow
      yield* append(...numbers(1, 3000))
      const seen = [...first]
      while (seen.length < 3000) seen.push(...(yield* slow))
      yield* equal(texts(seen), numbers(0, 3000), "slow reader")
    }).pipe(Effect.scoped, Effect.mapError(String))
  ),
  law(
    "readers come and go without troubling each other",
    Effect.gen(function*() {
      const leaving = yield* follow(100)
      const staying = yield* follow(4)
      yield* append("0", "1")
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(leaving)
      yield* append("2", "3")
      yield* equal(texts(yield* Fiber.join(staying)), numbers(0, 4), "staying reader")
    })
  )
]
