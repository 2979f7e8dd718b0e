import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/TestClock"
import { existsSync, readFileSync } from "node:fs"
import * as NodeSubprocess from "../../layers/node/Subprocess.ts"
import type { Json } from "../../src/contract/Json.ts"
import type { Confinement } from "../../src/contract/Policy.ts"
import * as ProcessSandbox from "../../src/process/ProcessSandbox.ts"
import * as Recorded from "../../src/testing/Subprocess.ts"
import * as Bash from "../../src/tools/bash.ts"
import { call, failureOf, turnIn, workspace } from "./processSupport.ts"

const bash = Bash.make()
const real = Layer.merge(NodeSubprocess.layer(), ProcessSandbox.layerUnconfined)

const inWorkspace = <A, E>(
  test: (
    root: string,
    sh: (command: string) => ReturnType<typeof run>
  ) => Effect.Effect<A, E, Layer.Layer.Success<typeof real>>
) => Effect.flatMap(workspace, (root) => Effect.provide(test(root, (command) => run(root, command)), real))

const run = (root: string, command: string) => call(bash, { command }, turnIn(root))

describe("bash", () => {
  it("is a command, asked about, sandboxed and no reader", () => {
    assert.deepInclude(bash, {
      kind: "command_execution",
      policy: "on-request",
      runs: "sandboxed",
      readOnly: false,
      parallelSafe: false
    })
  })

  it.scopedLive("runs in the workspace and returns both outputs as they arrived", () =>
    inWorkspace((root, sh) =>
      Effect.gen(function*() {
        const { output, shown } = yield* sh(
          "pwd; sleep 0.05; echo err >&2; sleep 0.05; echo \"$BASH_VERSION\" | head -c1 >/dev/null; echo end"
        )
        assert.deepInclude(output, {
          exitCode: 0,
          output: `${root}\nerr\nend\n`,
          truncated: false,
          totalBytes: root.length + 9,
          leftover: "none",
          confinement: "none"
        })
        assert.strictEqual(shown, output.output)
      })
    ))

  it.scopedLive("passes the command as it is, whatever it begins with or holds", () =>
    inWorkspace((root, sh) =>
      Effect.gen(function*() {
        const { output } = yield* sh("printf '%s|' \"$#\" '$x' \"a'b\" '`' ; touch 'a b'")
        assert.strictEqual(output.output, "0|$x|a'b|`|")
        assert.isTrue(existsSync(`${root}/a b`))
        const dashed = yield* failureOf(sh("-c 'touch injected'"))
        assert.strictEqual(dashed.code, "command_failed")
        assert.isFalse(existsSync(`${root}/injected`))
      })
    ))

  it.scopedLive("makes every exit code but 0 a failure that carries the output", () =>
    inWorkspace((_, sh) =>
      Effect.gen(function*() {
        const { code, details, error } = yield* failureOf(sh("echo no; exit 3"))
        assert.strictEqual(code, "command_failed")
        assert.include(String(error), "3")
        assert.deepInclude(details, {
          exitCode: 3,
          output: "no\n",
          leftover: "none",
          confinement: "none",
          truncated: false
        })
      })
    ))

  it.scopedLive("never takes a signal for an exit code", () =>
    inWorkspace((_, sh) =>
      Effect.gen(function*() {
        const { code, details } = yield* failureOf(sh("echo x; kill -SEGV $$"))
        assert.strictEqual(code, "command_killed")
        assert.deepInclude(details, { signal: "SIGSEGV", output: "x\n" })
        assert.strictEqual((yield* failureOf(sh("sh -c 'kill -9 $$'; exit $?"))).details.exitCode, 137)
      })
    ))

  it.scopedLive("stops at the model's time-out and returns what was printed", () =>
    inWorkspace((root) =>
      Effect.gen(function*() {
        const { code, details } = yield* failureOf(
          call(bash, { command: "echo begun; sleep 60", timeoutMs: 200 }, turnIn(root))
        )
        assert.strictEqual(code, "command_timed_out")
        assert.deepInclude(details, { timeoutMs: 200, output: "begun\n" })
      })
    ))

  it.effect("never lets a model lengthen the host's ceiling", () =>
    Effect.gen(function*() {
      yield* call(Bash.make({ ceiling: "1 minute" }), { command: "x", timeoutMs: 3_600_000 }, turnIn("/w"))
      yield* call(Bash.make({ ceiling: "1 minute" }), { command: "x", timeoutMs: 500 }, turnIn("/w"))
      yield* call(bash, { command: "x" }, turnIn("/w"))
      const commands = yield* (yield* Recorded.RecordedCommands).commands
      assert.deepStrictEqual(commands.map(({ timeout }) => timeout), [60_000, 500, 900_000])
      assert.deepStrictEqual(commands.map(({ argv }) => argv.at(-1)), ["x", "x", "x"])
    }).pipe(Effect.provide(Layer.merge(Recorded.layer([{}, {}, {}]), ProcessSandbox.layerUnconfined))))

  it.scopedLive("says what it left running and kills it", () =>
    inWorkspace((_, sh) =>
      Effect.gen(function*() {
        const { output, shown } = yield* sh("sleep 300 & echo done")
        assert.deepInclude(output, { exitCode: 0, output: "done\n", leftover: "killed" })
        assert.include(shown, "background was killed")
      })
    ))

  it.scopedLive("gives an editor, a pager and a reader of stdin nothing to wait for", () =>
    inWorkspace((_, sh) =>
      Effect.gen(function*() {
        const before = performance.now()
        yield* sh("cat; read x; true")
        yield* sh("git init -q . && git config user.email a@b && git config user.name n && touch f && git add f")
        const commit = yield* failureOf(sh("git commit"))
        assert.strictEqual(commit.code, "command_failed")
        yield* sh("git commit -qm m && git log")
        assert.isBelow(performance.now() - before, 5000)
      })
    ))

  it.scopedLive("shows control sequences escaped and keeps only the end of a flood", () =>
    inWorkspace((_, sh) =>
      Effect.gen(function*() {
        const escaped = yield* sh("printf '\\000\\033[31mred\\r50%%\\r100%%\\n'")
        assert.strictEqual(escaped.output.output, "\\x00\\x1b[31mred\\r50%\\r100%\n")
        const { output } = yield* sh("yes | head -c 20000000; echo last")
        assert.strictEqual(output.truncated, true)
        assert.strictEqual(output.totalBytes, 20_000_005)
        assert.match(output.output, /^\[… \d+ lines above not shown, 20000005 bytes in all\]\n(y\n)+last\n$/)
        assert.isAtMost(output.output.length, 51_300)
      })
    ))

  it.scopedLive("fails closed when nothing can confine it, and starts nothing", () =>
    Effect.flatMap(workspace, (root) =>
      Effect.gen(function*() {
        const { code } = yield* failureOf(call(bash, { command: "touch ran" }, turnIn(root, "workspace-write")))
        assert.strictEqual(code, "sandbox_unavailable")
        assert.isFalse(existsSync(`${root}/ran`))
      })).pipe(Effect.provide(real)))

  it.effect("runs what the sandbox makes of the command, and reports how it is confined", () =>
    Effect.gen(function*() {
      const seen: Array<ProcessSandbox.ConfineOptions> = []
      const sandbox = Layer.succeed(ProcessSandbox.ProcessSandbox, {
        report: Effect.succeed<Confinement>("full"),
        confine: (argv, options) => Effect.sync(() => (seen.push(options), ["confine", ...argv]))
      })
      const test = Effect.gen(function*() {
        const { output } = yield* call(bash, { command: "ls" }, turnIn("/w", "workspace-write"))
        assert.strictEqual(output.confinement, "full")
        assert.strictEqual((yield* call(bash, { command: "ls" }, turnIn("/w"))).output.confinement, "none")
        const [first] = yield* (yield* Recorded.RecordedCommands).commands
        assert.strictEqual(first?.argv[0], "confine")
        assert.strictEqual(first?.cwd, "/w")
        const env = { TERM: "dumb", PAGER: "cat", GIT_PAGER: "cat", GIT_TERMINAL_PROMPT: "0" }
        assert.deepStrictEqual(seen[0], { mode: "workspace-write", roots: ["/w"], cwd: "/w", env })
      })
      yield* Effect.provide(test, Layer.merge(Recorded.layer([{}, {}]), sandbox))
    }))

  it.scopedLive("says that a command which could not be started has not run", () =>
    Effect.gen(function*() {
      const { code, details } = yield* failureOf(run("/no/such/workspace", "true"))
      assert.strictEqual(code, "command_not_started")
      assert.isString(details.reason)
      const long = yield* failureOf(run("/", `: ${"x".repeat(200_000)}`))
      assert.strictEqual(long.code, "command_not_started")
      assert.strictEqual((yield* failureOf(run("/", "echo \0"))).code, "command_not_started")
      assert.strictEqual((yield* failureOf(run("/", "  \n"))).code, "arguments_invalid")
    }).pipe(Effect.provide(real)))

  it.effect("publishes the newest output at most every 100 ms", () =>
    Effect.gen(function*() {
      const progress: Array<Json> = []
      const fiber = yield* Effect.fork(call(bash, { command: "x" }, turnIn("/w"), (value) => progress.push(value)))
      yield* TestClock.adjust("99 millis")
      assert.deepStrictEqual(progress, [])
      yield* TestClock.adjust("901 millis")
      assert.deepStrictEqual(progress, [{ output: "hello\n", totalBytes: 6 }])
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)
      assert.strictEqual(progress.length, 1)
    }).pipe(
      Effect.provide(
        Layer.merge(Recorded.layer([{ stdout: "hello\n", runs: "30 seconds" }]), ProcessSandbox.layerUnconfined)
      )
    ))

  it.scopedLive("interrupted, leaves nothing running", () =>
    inWorkspace((root) =>
      Effect.gen(function*() {
        const ready = yield* Deferred.make<void>()
        const fiber = yield* Effect.fork(call(
          bash,
          { command: "echo $$ > pid; sleep 300 & echo $! >> pid; echo ready; wait" },
          turnIn(root),
          () => Deferred.unsafeDone(ready, Effect.void)
        ))
        yield* Deferred.await(ready)
        yield* Fiber.interrupt(fiber)
        for (const pid of readFileSync(`${root}/pid`, "utf8").trim().split("\n")) {
          const state = existsSync(`/proc/${pid}/stat`)
            ? readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /, "")[0]
            : "gone"
          assert.include(["gone", "Z", "X"], state)
        }
      })
    ))
})
