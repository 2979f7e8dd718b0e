import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { ThreadId } from "../../src/contract/Turn.ts"
import * as EventJournal from "../../src/journal/EventJournal.ts"
import { laws, message } from "../../src/testing/contract/EventJournal.ts"

describe("EventJournal in memory", () => {
  for (const { law, name } of laws) it.effect(name, () => Effect.provide(law, EventJournal.layerMemory()))

  it.effect("keeps its newest entries only, under the numbers they had", () =>
    Effect.gen(function*() {
      const journal = yield* EventJournal.make({ capacity: 3 })
      for (let index = 1; index <= 10; index++) yield* journal.append(message(String(index)))
      const entries = yield* journal.entries(ThreadId.make("thread"))
      assert.deepStrictEqual(entries.map((entry) => entry.sequence), [8, 9, 10])
      assert.deepStrictEqual(entries.map(({ event }) => event._tag === "user_message" && event.text), ["8", "9", "10"])
    }))
})
