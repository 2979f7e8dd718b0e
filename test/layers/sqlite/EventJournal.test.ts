import { assert, describe, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Path from "node:path"
import * as Database from "../../../layers/sqlite/Database.ts"
import * as SqliteJournal from "../../../layers/sqlite/EventJournal.ts"
import type { Event } from "../../../src/contract/Event.ts"
import type { Json } from "../../../src/contract/Json.ts"
import { CallId } from "../../../src/contract/ToolCall.ts"
import { ThreadId, TurnId } from "../../../src/contract/Turn.ts"
import { type Entry, EventJournal } from "../../../src/journal/EventJournal.ts"
import { laws, message } from "../../../src/testing/contract/EventJournal.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { temporaryDatabase } from "./support.ts"

const thread = ThreadId.make("thread")

describe("EventJournal in the state file", () => {
  for (const { law, name } of laws) {
    it.effect(name, () => Effect.provide(law, Layer.provide(SqliteJournal.layer, temporaryDatabase)))
  }

  it.scopedLive("is there again after the file was closed, and never gives a number twice", () =>
    Effect.gen(function*() {
      const layer = Layer.provide(
        SqliteJournal.layer,
        Database.layer({ filename: Path.join(yield* temporaryFolder, "state.db"), retention: "36500 days" })
      )
      const appended = (text: string) =>
        Effect.gen(function*() {
          const journal = yield* EventJournal
          yield* journal.append(message(text))
          return yield* journal.entries(thread)
        }).pipe(Effect.provide(layer))
      yield* appended("one")
      const entries = yield* appended("two")
      assert.deepStrictEqual(entries.map(({ event }) => event), [message("one"), message("two")])
      assert.isAbove(entries[1]?.sequence ?? 0, entries[0]?.sequence ?? 0)
    }))

  it.scopedLive("follows what another process appends", () =>
    Effect.gen(function*() {
      const filename = Path.join(yield* temporaryFolder, "state.db")
      const open = Effect.flatMap(Database.make({ filename }), (database) =>
        Effect.provideService(SqliteJournal.make, Database.Database, database))
      const [one, two] = yield* Effect.all([open, open])
      const fiber = yield* Effect.fork(Stream.runCollect(Stream.take(one.stream(thread), 2)))
      yield* two.append(message("a"))
      yield* two.append(message("b"))
      const entries = yield* Fiber.join(fiber)
      assert.deepStrictEqual(
        Chunk.toReadonlyArray(entries).map(({ event }) =>
          event
        ),
        [message("a"), message("b")]
      )
    }))

  const read = Effect.gen(function*() {
    const journal = yield* EventJournal
    const entries = yield* journal.entries(thread)
    const streamed = yield* Stream.runCollect(Stream.take(journal.stream(thread), entries.length))
    assert.deepStrictEqual(Chunk.toReadonlyArray(streamed), entries)
    return entries
  })

  it.scopedLive("a warning stands where an entry is damaged, and the others are read under their numbers", () =>
    Effect.gen(function*() {
      const database = yield* Database.Database
      const journal = yield* EventJournal
      for (const text of ["one", "two", "three"]) yield* journal.append(message(text))
      for (const [sequence, text] of [[1, "{"], [2, "{\"_tag\":\"user_message\"}"]] as const) {
        yield* database.commit((run) => run("UPDATE event SET event = ? WHERE sequence = ?", [text, sequence]))
      }
      const warning = (sequence: number): Entry => ({
        sequence,
        event: {
          _tag: "warning",
          threadId: thread,
          turnId: TurnId.make("unknown"),
          at: 1_000_000_000_000.5,
          source: "journal",
          message: `entry ${sequence} is damaged`
        }
      })
      assert.deepStrictEqual(yield* read, [warning(1), warning(2), { sequence: 3, event: message("three") }])
    }).pipe(Effect.provide(Layer.provideMerge(SqliteJournal.layer, temporaryDatabase))))

  it.scopedLive("an event is written as it was when it was appended, and one that is no JSON leaves a warning", () =>
    Effect.gen(function*() {
      const journal = yield* EventJournal
      const progress: Record<string, Json> = { step: 1 }
      const event: Event = {
        _tag: "call_progress",
        threadId: thread,
        turnId: TurnId.make("turn"),
        at: 1,
        callId: CallId.make("call"),
        progress
      }
      yield* journal.append(event)
      progress["step"] = progress
      yield* journal.append(event)
      yield* journal.append(message("after"))
      assert.deepStrictEqual((yield* read).map((entry) => entry.event), [
        { ...event, progress: { step: 1 } },
        {
          _tag: "warning",
          threadId: thread,
          turnId: event.turnId,
          at: 1,
          source: "journal",
          message: "a call_progress event could not be written"
        },
        message("after")
      ])
    }).pipe(Effect.provide(Layer.provide(SqliteJournal.layer, temporaryDatabase))))
})
