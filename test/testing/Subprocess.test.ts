import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { Subprocess } from "../../src/process/Subprocess.ts"
import { laws } from "../../src/testing/contract/Subprocess.ts"
import * as Recorded from "../../src/testing/Subprocess.ts"

describe("recorded processes", () => {
  for (const { answer, law, name } of laws) {
    it.live(name, () => Effect.provide(law, Recorded.layer([answer])))
  }

  it.effect("answers in order, by what was asked, and keeps every command", () =>
    Effect.gen(function*() {
      const subprocess = yield* Subprocess
      const first = yield* subprocess.run({ argv: ["a"], cwd: "/" })
      const second = yield* subprocess.run({ argv: ["b", "c"], cwd: "/x" })
      assert.deepStrictEqual(first.ending, { _tag: "Exited", code: 7 })
      assert.strictEqual(new TextDecoder().decode(second.stdout.bytes), "b c")
      const { commands } = yield* Recorded.RecordedCommands
      assert.deepStrictEqual(yield* commands, [{ argv: ["a"], cwd: "/" }, { argv: ["b", "c"], cwd: "/x" }])
    }).pipe(Effect.provide(Recorded.layer([
      { ending: { _tag: "Exited", code: 7 } },
      ({ argv }) => ({ stdout: argv.join(" ") })
    ]))))

  it.effect("dies when more is run than was recorded", () =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(Effect.flatMap(Subprocess, (_) => _.run({ argv: ["rm"], cwd: "/" })))
      assert.isTrue(Exit.isFailure(exit) && String(exit.cause).includes("rm"))
    }).pipe(Effect.provide(Recorded.layer([]))))
})
