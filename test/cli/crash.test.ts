import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { ToolResult } from "../../src/contract/ToolResult.ts"
import { place, program, type Started } from "../support/cli.ts"
import { count } from "../support/counts.ts"

const append = program("test/fixtures/append.ts")
const cli = program("layers/cli/main.ts")

const decode = Schema.decodeUnknownSync(Schema.parseJson(ToolResult))
const resultOf = (stdout: string): ToolResult => decode(stdout.trimEnd().split("\n").at(-1))

const ready = ({ process }: Started) =>
  Effect.promise(() => new Promise<void>((done) => process.stdout?.once("data", () => done())))

const linesIn = (workspace: string): string => {
  const file = join(workspace, "lines")
  return existsSync(file) ? readFileSync(file, "utf8") : ""
}

/** Milliseconds from the start to the call, and from there to the end, of a run that nobody disturbs. */
const measure = Effect.gen(function*() {
  const { base, env, workspace } = yield* place
  const from = performance.now()
  const started = yield* append.start([workspace, join(base, "s.db")], { env })
  yield* ready(started)
  const called = performance.now()
  yield* started.ended
  return { before: called - from, call: performance.now() - called }
}).pipe(Effect.scoped)

/** One process killed at a random moment, then the same call again, to its end. */
const crashOnce = (span: Effect.Effect.Success<typeof measure>, round: number) =>
  Effect.gen(function*() {
    const { base, env, workspace } = yield* place
    const args = [workspace, join(base, "s.db")]
    const again = Effect.map(append.run(args, { env }), ({ code, stderr, stdout }) => {
      assert.deepStrictEqual([code, stderr], [0, ""])
      return resultOf(stdout)
    })

    const killed = yield* append.start(args, { env })
    // One round of four anywhere in the run; in the others the call itself is the target.
    if (round % 4 === 0) yield* Effect.sleep(yield* Random.nextRange(0, span.before + span.call))
    else {
      yield* ready(killed)
      yield* Effect.sleep(yield* Random.nextRange(0, span.call))
    }
    killed.process.kill("SIGKILL")
    yield* killed.ended
    const left = linesIn(workspace)
    assert.include(["", "done\n"], left)

    const result = yield* again
    if (result.isError) {
      assert.strictEqual(result.code, "tool_outcome_unknown")
      assert.strictEqual(linesIn(workspace), left)
      const state = ["--state", join(base, "s.db")]
      const [entry] = JSON.parse((yield* cli.run(["ledger", "--json", ...state], { env })).stdout)
      assert.strictEqual(entry.state, "unknown")
      const outcome = left === "" ? "failed" : "completed"
      yield* cli.run(["ledger", "reconcile", entry.id, "--outcome", outcome, ...state], { env })
      const settled = yield* again
      assert.deepInclude(settled, { replayed: true, isError: outcome === "failed" })
      assert.strictEqual(linesIn(workspace), left)
      return "unknown"
    }
    assert.strictEqual(linesIn(workspace), "done\n")
    const replayed = yield* again
    assert.deepStrictEqual(replayed, { ...result, replayed: true })
    assert.strictEqual(linesIn(workspace), "done\n")
    return result.replayed ? "replayed" : left === "" ? "run" : "resumed"
  }).pipe(Effect.scoped)

describe("a call whose process is killed", { timeout: 1_800_000 }, () => {
  it.live("has its effect at most once, whenever it was killed, and settles", () =>
    Effect.gen(function*() {
      const seed = Math.floor(Math.random() * 2 ** 31)
      const span = yield* measure
      const rounds = Array.from({ length: count({ quick: 3, soak: 200 }) }, (_, round) => round)
      const ends = yield* Effect.forEach(rounds, (round) =>
        crashOnce(span, round).pipe(
          Effect.withRandom(Random.make(`${seed}/${round}`)),
          Effect.tapErrorCause(() => Effect.logError(`seed ${seed}, round ${round}`))
        ), { concurrency: 2 })
      if (rounds.length >= 200) assert.includeMembers(ends, ["run", "replayed", "unknown"])
    }))
})

describe("two processes with one call", { timeout: 1_800_000 }, () => {
  it.live("execute it once, however they meet", () =>
    Effect.forEach(
      Array.from({ length: count({ quick: 3, soak: 50 }) }),
      () =>
        Effect.gen(function*() {
          const { base, env, workspace } = yield* place
          const one = append.run([workspace, join(base, "s.db")], { env })
          const ended = yield* Effect.all([one, one], { concurrency: 2 })
          const results = ended.map(({ stdout }) => resultOf(stdout))
          assert.strictEqual(linesIn(workspace), "done\n")
          assert.strictEqual(results.filter(({ executed, replayed }) => executed && !replayed).length, 1)
          for (const { code, isError, replayed } of results) {
            if (isError) assert.strictEqual(code, "tool_invocation_in_progress")
            else assert.isBoolean(replayed)
          }
        }).pipe(Effect.scoped),
      { discard: true }
    ))
})
