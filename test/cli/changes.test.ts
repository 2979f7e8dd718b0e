import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as FileHistory from "../../layers/node/FileHistory.ts"
import * as FileMutationQueue from "../../layers/node/FileMutationQueue.ts"
import * as ProcessIdentity from "../../layers/node/ProcessIdentity.ts"
import { change } from "../../src/testing/contract/FileHistory.ts"
import { place, program, until } from "../support/cli.ts"

const cli = program("layers/cli/main.ts")

/** A workspace with a history, and how to ask for it. */
const placed = Effect.gen(function*() {
  const { base, env, workspace } = yield* place
  const history = yield* FileHistory.make({ root: join(base, "s.db.history") })
  const ask = (...words: ReadonlyArray<string>) =>
    cli.run(["changes", ...words, "--state", join(base, "s.db")], { cwd: workspace, env })
  const json = (...words: ReadonlyArray<string>) =>
    Effect.map(ask(...words, "--json"), ({ code, stdout }) => ({ code, value: JSON.parse(stdout) }))
  const changed = Effect.fnUntraced(function*(name: string, after: string, ids: Parameters<typeof change>[3]) {
    const path = join(workspace, name)
    const before = existsSync(path) ? readFileSync(path) : null
    yield* Effect.flatMap(change(path, before, after, ids), history.record)
    writeFileSync(path, after)
  })
  return { base, env, workspace, ask, json, changed }
})

describe("portcullis changes", { timeout: 60_000 }, () => {
  it.scopedLive("lists, shows and undoes a turn, and undoes that", () =>
    Effect.gen(function*() {
      const { ask, changed, json, workspace } = yield* placed
      const [a, b] = [join(workspace, "a"), join(workspace, "b")]
      writeFileSync(a, "x\r\ny\r\n")
      yield* changed("a", "x\r\nY\r\n", { turn: "t1", tool: "edit" })
      yield* changed("b", "new\n", { turn: "t1", tool: "write" })

      const listed = yield* ask("list")
      assert.deepStrictEqual([listed.code, listed.stderr], [0, ""])
      assert.match(
        listed.stdout,
        /^LAST CHANGE .*\n\S+Z +thread +t1 +modified +6 → 6 +edit +a\n\S+Z +thread +t1 +created +0 → 4 +write +b\n$/
      )
      const shown = yield* ask("diff", "t1")
      assert.strictEqual(shown.code, 0)
      assert.match(shown.stdout, /^modified: a\n.*-y.*\+Y.*created: b\n.*\+new/s)

      const undone = yield* ask("revert", "t1")
      assert.deepStrictEqual([undone.code, undone.stderr], [0, ""])
      assert.match(undone.stdout, /^restored: a\nrestored: b\nportcullis changes revert \S+ takes this back\n$/)
      assert.strictEqual(readFileSync(a, "utf8"), "x\r\ny\r\n")
      assert.deepStrictEqual(readdirSync(workspace), ["a"])

      const again = yield* json("revert", "t1")
      assert.deepInclude(again.value, { by: null, restored: [], unchanged: [a, b], refused: [] })
      const turns = (yield* json("list", "--thread", "thread")).value
      assert.strictEqual(turns.length, 2)
      const back = yield* json("revert", turns[1].turnId)
      assert.strictEqual(back.code, 0)
      assert.deepStrictEqual(back.value.restored.map(({ path }: { readonly path: string }) => path), [a, b])
      assert.deepStrictEqual([readFileSync(a, "utf8"), readFileSync(b, "utf8")], ["x\r\nY\r\n", "new\n"])
    }))

  it.scopedLive("touches nothing, and ends with 1, when a file was changed since", () =>
    Effect.gen(function*() {
      const { ask, changed, json, workspace } = yield* placed
      yield* changed("a", "1", { turn: "t1" })
      yield* changed("b", "1", { turn: "t1" })
      writeFileSync(join(workspace, "b"), "by hand")
      const { code, stderr, stdout } = yield* ask("revert", "t1")
      assert.deepStrictEqual([code, stderr], [1, ""])
      assert.match(stdout, /^refused: b: was changed since by .*\nnot touched: a\n$/)
      const { value } = yield* json("revert", "t1")
      assert.deepStrictEqual([value.restored, value.untouched], [[], [join(workspace, "a")]])
      assert.deepStrictEqual(["a", "b"].map((name) => readFileSync(join(workspace, name), "utf8")), ["1", "by hand"])
    }))

  it.scopedLive("waits for a file that another process holds, judges what that one left, and can be interrupted", () =>
    Effect.gen(function*() {
      const { base, changed, env, workspace } = yield* placed
      const path = join(workspace, "a")
      yield* changed("a", "1", { turn: "t1" })
      const directory = join(base, "state", "portcullis", "locks")
      const queue = yield* Effect.provide(FileMutationQueue.make({ directory }), ProcessIdentity.layer())
      const revert = cli.start(["changes", "revert", "t1", "--state", join(base, "s.db")], { cwd: workspace, env })
      const waits = until(() => readdirSync(directory).some((name) => name.endsWith(".want")))
      const [interrupted, refused] = yield* queue.withFile(
        path,
        Effect.gen(function*() {
          const first = yield* revert
          yield* waits
          first.process.kill("SIGINT")
          const interrupted = yield* first.ended
          assert.strictEqual(readFileSync(path, "utf8"), "1")
          const second = yield* revert
          yield* waits
          yield* changed("a", "2", { turn: "t2" })
          return [interrupted, second.ended] as const
        })
      )
      assert.deepStrictEqual([interrupted.code, interrupted.stdout], [130, ""])
      const { code, stdout } = yield* refused
      assert.strictEqual(code, 1)
      assert.match(stdout, /^refused: a: was changed since by edit in turn t2 of thread thread\n$/)
      assert.strictEqual(readFileSync(path, "utf8"), "2")
    }))

  it.scopedLive("wants to know the thread when several have a turn of that name", () =>
    Effect.gen(function*() {
      const { ask, changed, workspace } = yield* placed
      yield* changed("a", "1", { thread: "one", turn: "t" })
      yield* changed("b", "1", { thread: "two", turn: "t" })
      for (const verb of ["diff", "revert"]) {
        const { code, stderr, stdout } = yield* ask(verb, "t")
        assert.deepStrictEqual([code, stdout], [2, ""])
        assert.strictEqual(
          stderr,
          "portcullis: there is a turn t in several threads: one, two; say which with --thread\n"
        )
        const unknown = yield* ask(verb, "t", "--thread", "three")
        assert.deepStrictEqual([unknown.code, unknown.stderr], [1, "portcullis: There are no changes of a turn t.\n"])
      }
      assert.strictEqual((yield* ask("revert", "t", "--thread", "two")).code, 0)
      assert.deepStrictEqual(readdirSync(workspace), ["a"])
    }))

  it.scopedLive("shows names and lines so that they cannot act on a terminal", () =>
    Effect.gen(function*() {
      const { ask, changed, json } = yield* placed
      const name = "\u001b[2J\u202egnp\n.txt"
      yield* changed(name, "\u001b]0;title\u0007\n", { turn: "t1", tool: "write\u001b[2J" })
      for (const words of [["list"], ["diff", "t1"], ["list", "--json"], ["diff", "t1", "--json"], ["revert", "t1"]]) {
        const { code, stderr, stdout } = yield* ask(...words)
        assert.deepStrictEqual([code, stderr], [0, ""])
        assert.notMatch(stdout, /[\u001b\u0007\u202e]/)
      }
      assert.strictEqual((yield* json("list")).value[0].files[0].path.split("/").at(-1), name)
    }))

  it.scopedLive("creates nothing by a look, and says so when there is nothing", () =>
    Effect.gen(function*() {
      const { base, env, workspace } = yield* place
      const ask = (...words: ReadonlyArray<string>) => cli.run(["changes", ...words], { cwd: workspace, env })
      assert.deepStrictEqual((yield* ask()).stdout, "No changes.\n")
      assert.deepStrictEqual((yield* ask("list", "--json")).stdout, "[]\n")
      assert.strictEqual(
        (yield* ask("diff", "\u001b[2J")).stderr,
        "portcullis: There are no changes of a turn \\u{1b}[2J.\n"
      )
      assert.strictEqual((yield* ask("revert", "t")).code, 1)
      assert.deepStrictEqual([...readdirSync(join(base, "state")), ...readdirSync(workspace)], [])
      const refused = yield* ask("list", "--state", "s.db")
      assert.deepStrictEqual([refused.code, refused.stdout], [2, ""])
    }))
})
