import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { bundle, start } from "../../support/childProcess.ts"
import { count } from "../../support/counts.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

const ticksIn = (folder: string): string => Fs.readFileSync(Path.join(folder, "ticks"), "utf8")

const round = (script: string) =>
  Effect.gen(function*() {
    const folder = yield* temporaryFolder
    Fs.mkdirSync(Path.join(folder, "ws"))
    const host = yield* start(script, "hold", folder)
    assert.strictEqual(yield* host.line, "\"holding\"")
    yield* host.kill("SIGKILL")
    assert.strictEqual(yield* host.ended, "SIGKILL")
    assert.strictEqual(ticksIn(folder), "....")

    const next = yield* start(script, "after", folder)
    const told = Effect.map(next.line, (line) => JSON.parse(line))
    assert.deepStrictEqual(yield* told, [
      ["quick 1", "completed", "quick 1 is done"],
      ["quick 2", "completed", "quick 2 is done"],
      ["hangs 1", "unknown", null],
      ["hangs 2", "unknown", null],
      ["waits 1", "unknown", null],
      ["waits 2", "unknown", null]
    ])
    const replayed: ReadonlyArray<[string | null, boolean, string]> = yield* told
    assert.deepStrictEqual(replayed.map(([code]) => code), [
      null,
      null,
      ...Array.from({ length: 4 }, () => "tool_outcome_unknown")
    ])
    for (const [at, [code, again, output]] of replayed.entries()) {
      if (code !== null) continue
      assert.isTrue(again)
      assert.include(output, `quick ${at + 1} is done`)
    }
    assert.deepStrictEqual(yield* told, [
      ["hangs 1", "completed", "hangs 1 went on after 5 messages", { tick: 1, hang: 1 }],
      ["hangs 2", "completed", "hangs 2 went on after 5 messages", { tick: 1, hang: 1 }],
      ["waits 1", "completed", "Go on. went on after 0 messages", {}],
      ["waits 2", "completed", "Go on. went on after 0 messages", {}]
    ])
    const settled: Readonly<Record<string, number>> = yield* told
    assert.includeMembers(Object.keys(settled), ["quick_1", "quick_2", "hangs_1", "hangs_2", "waits_1", "waits_2"])
    for (const [callId, times] of Object.entries(settled)) assert.strictEqual(times, 1, callId)
    assert.strictEqual(yield* next.ended, 0)
    assert.strictEqual(ticksIn(folder), "....")
  }).pipe(Effect.scoped)

describe("a fan-out whose process is killed", { timeout: 600_000 }, () => {
  it.scopedLive("is told truly to the next: what was done stays done, what was lost is unknown and goes on by choice", () =>
    Effect.flatMap(bundle("fanout.ts"), (script) => Effect.repeatN(round(script), count({ quick: 2, soak: 10 }) - 1)))
})
