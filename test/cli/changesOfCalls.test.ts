import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { place, program } from "../support/cli.ts"

const cli = program("layers/cli/main.ts")

describe("portcullis changes after calls", { timeout: 60_000 }, () => {
  it.scopedLive("E02: undoes an edit of a call that has ended, to the exact first bytes, and it must be read again", () =>
    Effect.gen(function*() {
      const { env, workspace } = yield* place
      const file = join(workspace, "a")
      const first = Buffer.from("\ufeffx\r\ny\r\n")
      writeFileSync(file, first)
      const ask = (...words: ReadonlyArray<string>) => cli.run(words, { cwd: workspace, env })
      const edit = (oldText: string, newText: string, turn: string) =>
        ask(
          "call",
          "edit",
          JSON.stringify({ path: "a", edits: [{ oldText, newText }] }),
          "--answer",
          "allow",
          "--turn",
          turn
        )
      assert.strictEqual((yield* ask("call", "read", "{\"path\":\"a\"}")).code, 0)
      assert.strictEqual((yield* edit("y", "y\nz\nw", "t1")).code, 0)
      assert.strictEqual(readFileSync(file, "utf8"), "\ufeffx\r\ny\r\nz\r\nw\r\n")
      assert.strictEqual((yield* ask("changes", "revert", "t1")).code, 0)
      assert.isTrue(readFileSync(file).equals(first))
      const stale = yield* edit("y", "Y", "t2")
      assert.strictEqual(stale.code, 1)
      assert.include(stale.stdout, "stale_read")
    }))

  it.scopedLive("undoes what an agent wrote in a run", () =>
    Effect.gen(function*() {
      const { base, env, workspace } = yield* place
      const script = join(base, "script.json")
      const write = (path: string, content: string) => ({ toolName: "write", arguments: { path, content } })
      writeFileSync(
        script,
        JSON.stringify({
          turns: [{ calls: [write("a", "1"), write("deep/b", "2"), write("a", "3")] }, { text: "Done." }]
        })
      )
      const ask = (...words: ReadonlyArray<string>) => cli.run(words, { cwd: workspace, env })
      const ended = yield* ask("run", "--model", `scripted:${script}`, "--answer", "allow", "--turn", "t1")
      assert.strictEqual(ended.code, 0)
      const [turn] = JSON.parse((yield* ask("changes", "--json")).stdout)
      assert.deepStrictEqual(
        turn.files.map(({ outcome, path }: { readonly outcome: string; readonly path: string }) => [outcome, path]),
        [["created", join(workspace, "a")], ["created", join(workspace, "deep/b")]]
      )
      assert.strictEqual((yield* ask("changes", "revert", "t1")).code, 0)
      assert.deepStrictEqual(["a", "deep/b", "deep"].map((name) => existsSync(join(workspace, name))), [
        false,
        false,
        true
      ])
    }))
})
