import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import { randomInt } from "node:crypto"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import * as NodeSubprocess from "../../../layers/node/Subprocess.ts"
import { type Command, type Outcome, Subprocess } from "../../../src/process/Subprocess.ts"
import { laws } from "../../../src/testing/contract/Subprocess.ts"

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

const run = (script: string, options: Partial<Command> = {}) =>
  Effect.flatMap(
    Subprocess,
    (subprocess) => subprocess.run({ argv: ["/bin/bash", "-c", script], cwd: "/tmp", ...options })
  )

/** A duration for `sleep` that no other process has, to find its holders by. */
const uniqueSleep = () => `300.${randomInt(1e9, 9e9)}`

/** Living processes with this word in their command line; zombies are dead. */
const livingWith = (word: string): ReadonlyArray<string> =>
  readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "latin1")
      const state = stat.slice(stat.lastIndexOf(")") + 2)[0]
      return state !== "Z" && state !== "X" && readFileSync(`/proc/${pid}/cmdline`, "latin1").includes(word)
    } catch {
      return false
    }
  })

const nothingLives = (word: string) => assert.deepStrictEqual(livingWith(word), [])

const timed = (effect: Effect.Effect<Outcome, never, Subprocess>) =>
  Effect.gen(function*() {
    const before = performance.now()
    const outcome = yield* effect
    return { outcome, ms: performance.now() - before }
  })

const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(`${tmpdir()}/portcullis-`)),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

/** Starts a script and waits until it has written something. */
const started = (script: string) =>
  Effect.gen(function*() {
    const ready = yield* Deferred.make<void>()
    const fiber = yield* Effect.fork(run(script, { onOutput: () => Deferred.unsafeDone(ready, Effect.void) }))
    yield* Deferred.await(ready)
    return fiber
  })

const layer = NodeSubprocess.layer()

describe("Subprocess on node:child_process", () => {
  for (const { law, name } of laws) {
    it.live(name, () => Effect.provide(law, layer))
  }

  describe("ends with the process itself", () => {
    const leavers = {
      "a background child that holds both pipes": (word: string) => `sleep ${word} & echo done`,
      "a background child that holds stderr": (word: string) => `sleep ${word} </dev/null >/dev/null & echo done`,
      "a background child that holds nothing": (word: string) => `sleep ${word} </dev/null >/dev/null 2>&1 & echo done`,
      "a background child that goes on writing": (word: string) =>
        `(while :; do echo x; sleep 0.0${word.slice(4)}; done) & echo done`,
      "a background child in a session of its own": (word: string) => `setsid sleep ${word} & sleep 0.1; echo done`,
      "a background child that ignores TERM": (word: string) =>
        `(trap '' TERM; sleep ${word} & wait) & sleep 0.1; echo done`
    }
    for (const [name, script] of Object.entries(leavers)) {
      it.live(`kills ${name}`, () =>
        Effect.gen(function*() {
          const word = uniqueSleep()
          const { ms, outcome } = yield* timed(run(script(word)))
          assert.deepStrictEqual(outcome.ending, { _tag: "Exited", code: 0 })
          assert.include(text(outcome.stdout.bytes), "done\n")
          assert.strictEqual(outcome.leftover, "killed")
          assert.isBelow(ms, 5000)
          nothingLives(word.slice(4))
        }).pipe(Effect.provide(layer)))
    }

    it.live("reports nothing left of a pipeline that has ended", () =>
      Effect.gen(function*() {
        const { ms, outcome } = yield* timed(run("seq 100000 | tail -n 1"))
        assert.strictEqual(text(outcome.stdout.bytes), "100000\n")
        assert.strictEqual(outcome.leftover, "none")
        assert.isBelow(ms, 5000)
      }).pipe(Effect.provide(layer)))
  })

  describe("interrupted", () => {
    it.live("completes only when every grandchild is dead", () =>
      Effect.gen(function*() {
        const word = uniqueSleep()
        const fiber = yield* started(`sh -c 'sleep ${word} & echo $!; wait'`)
        assert.isAbove(livingWith(word).length, 0)
        yield* Fiber.interrupt(fiber)
        nothingLives(word)
      }).pipe(Effect.provide(layer)))

    it.live("kills a process that ignores TERM after the grace", () =>
      Effect.gen(function*() {
        const word = uniqueSleep()
        const fiber = yield* started(`trap '' TERM; echo ready; while :; do sleep ${word}; done`)
        const before = performance.now()
        yield* Fiber.interrupt(fiber)
        nothingLives(word)
        const ms = performance.now() - before
        assert.isAbove(ms, 190)
        assert.isBelow(ms, 5000)
      }).pipe(Effect.provide(NodeSubprocess.layer({ killGrace: 200 }))))

    it.scopedLive("lets a process clean up that heeds TERM", () =>
      Effect.gen(function*() {
        const folder = yield* temporaryFolder
        const fiber = yield* started(
          `trap 'echo cleaned > ${folder}/trace; exit' TERM; echo ready; while :; do sleep 0.05; done`
        )
        yield* Fiber.interrupt(fiber)
        assert.strictEqual(readFileSync(`${folder}/trace`, "utf8"), "cleaned\n")
      }).pipe(Effect.provide(layer)))

    it.live("kills what moved to a session of its own", () =>
      Effect.gen(function*() {
        const word = uniqueSleep()
        const fiber = yield* started(`setsid sh -c 'sleep ${word} & wait' & sleep 0.1; echo ready; wait`)
        assert.isAbove(livingWith(word).length, 0)
        yield* Fiber.interrupt(fiber)
        nothingLives(word)
      }).pipe(Effect.provide(layer)))

    it.live("while it kills what was left, still kills it", () =>
      Effect.gen(function*() {
        const word = uniqueSleep()
        const fiber = yield* started(`(trap '' TERM; echo ready; while :; do sleep ${word}; done) & sleep 0.1`)
        yield* Effect.sleep(250)
        assert.isAbove(livingWith(word).length, 0)
        yield* Fiber.interrupt(fiber)
        nothingLives(word)
      }).pipe(Effect.provide(NodeSubprocess.layer({ killGrace: 300 }))))

    it.live("leaves nothing at twenty random moments, and no open file", () =>
      Effect.gen(function*() {
        yield* run("true")
        const files = readdirSync("/proc/self/fd").length
        for (let round = 0; round < 20; round++) {
          const word = uniqueSleep()
          const fiber = yield* Effect.fork(run(`sleep ${word} & (sleep ${word} & wait) & cat | cat; sleep ${word}`))
          yield* Effect.sleep(yield* Random.nextIntBetween(0, 40))
          yield* Fiber.interrupt(fiber)
          nothingLives(word)
        }
        assert.strictEqual(readdirSync("/proc/self/fd").length, files)
      }).pipe(Effect.withRandom(Random.make("interrupts")), Effect.provide(layer)))
  })

  it.live("kills the whole group at a time-out, TERM ignored or not", () =>
    Effect.gen(function*() {
      const word = uniqueSleep()
      const { ms, outcome } = yield* timed(
        run(`trap '' TERM; echo begun; sleep ${word} & while :; do sleep ${word}; done`, { timeout: 150 })
      )
      assert.deepStrictEqual(outcome.ending, { _tag: "TimedOut", afterMs: 150 })
      assert.strictEqual(text(outcome.stdout.bytes), "begun\n")
      assert.isBelow(ms, 5000)
      nothingLives(word)
    }).pipe(Effect.provide(NodeSubprocess.layer({ killGrace: 100 }))))

  it.live("gives a child a group and a session of its own, so that signals to it miss the host", () =>
    Effect.gen(function*() {
      const ids = yield* run("echo $$; cut -d' ' -f5,6 /proc/$$/stat")
      const [pid = "", groupAndSession] = text(ids.stdout.bytes).trim().split("\n")
      assert.strictEqual(groupAndSession, `${pid} ${pid}`)
      const outcome = yield* run("kill -TERM 0; sleep 60")
      assert.deepStrictEqual(outcome.ending, { _tag: "Signalled", signal: "SIGTERM" })
    }).pipe(Effect.provide(layer)))

  describe("stdin", () => {
    for (const script of ["cat", "read x; echo \"got $x\"", "cat | sort | wc -l"]) {
      it.live(`is at its end at once for ${script}`, () =>
        Effect.gen(function*() {
          const { ms, outcome } = yield* timed(run(script))
          assert.deepStrictEqual(outcome.ending, { _tag: "Exited", code: 0 })
          assert.isBelow(ms, 5000)
        }).pipe(Effect.provide(layer)))
    }

    it.live("is what is given, to the last byte", () =>
      Effect.gen(function*() {
        const outcome = yield* run("wc -c", { stdin: "x".repeat(300_000) })
        assert.strictEqual(text(outcome.stdout.bytes).trim(), "300000")
      }).pipe(Effect.provide(layer)))

    it.live("need not be read", () =>
      Effect.gen(function*() {
        const outcome = yield* run("exec 0<&-; echo ok", { stdin: "x".repeat(5_000_000) })
        assert.deepStrictEqual(outcome.ending, { _tag: "Exited", code: 0 })
        assert.strictEqual(text(outcome.stdout.bytes), "ok\n")
      }).pipe(Effect.provide(layer)))
  })

  describe("output", () => {
    it.live("of 50 MB is counted in full and held in bounded memory", () =>
      Effect.gen(function*() {
        const before = process.memoryUsage()
        let peak = 0
        const outcome = yield* run("head -c 50000000 /dev/zero | tr '\\0' 'y'; printf end", {
          capture: { bytes: 1000, keep: "tail" },
          onOutput: () => {
            const { arrayBuffers, heapUsed } = process.memoryUsage()
            peak = Math.max(peak, arrayBuffers + heapUsed)
          }
        })
        assert.strictEqual(outcome.stdout.totalBytes, 50_000_003)
        assert.strictEqual(outcome.stdout.bytes.length, 1000)
        assert.isTrue(text(outcome.stdout.bytes).endsWith("yend"))
        assert.isBelow(peak - before.arrayBuffers - before.heapUsed, 64 * 1024 * 1024)
      }).pipe(Effect.provide(layer)))

    it.live("written just before the end is never lost, whatever still holds the pipe", () =>
      Effect.gen(function*() {
        const outcome = yield* run("sleep 60 & head -c 150000 /dev/zero; printf end", {
          capture: { bytes: 3, keep: "tail" }
        })
        assert.strictEqual(outcome.stdout.totalBytes, 150_003)
        assert.strictEqual(text(outcome.stdout.bytes), "end")
      }).pipe(Effect.provide(layer)))

    it.live("that makes a listener throw is a defect, and the process is dead by then", () =>
      Effect.gen(function*() {
        const word = uniqueSleep()
        const exit = yield* Effect.exit(run(`echo x; sleep ${word}`, {
          onOutput: () => {
            throw new Error("listener")
          }
        }))
        assert.isTrue(Exit.isFailure(exit) && exit.cause._tag === "Die")
        nothingLives(word)
      }).pipe(Effect.provide(layer)))
  })

  describe("what cannot be started", () => {
    const broken: Record<string, Partial<Command>> = {
      "no argv": { argv: [] },
      "an empty program": { argv: [""] },
      "a missing program": { argv: ["/no/such"] },
      "a directory": { argv: ["/tmp"] },
      "a missing directory to run in": { cwd: "/no/such" },
      "a file to run in": { cwd: "/etc/passwd" },
      "a NUL in an argument": { argv: ["/bin/echo", "a\0b"] },
      "an argument that is too long": { argv: ["/bin/echo", "x".repeat(1 << 20)] }
    }
    for (const [name, command] of Object.entries(broken)) {
      it.live(`is an outcome: ${name}`, () =>
        Effect.gen(function*() {
          const files = readdirSync("/proc/self/fd").length
          const outcome = yield* run("true", command)
          const reason = outcome.ending._tag === "SpawnFailed" ? outcome.ending.reason : undefined
          assert.match(reason ?? "", /ENOENT|EACCES|ENOTDIR|E2BIG|ERR_INVALID_ARG_VALUE|must be|null bytes|empty/)
          yield* Effect.sleep(5)
          assert.strictEqual(readdirSync("/proc/self/fd").length, files)
        }).pipe(Effect.provide(layer)))
    }
  })

  describe("the environment", () => {
    const hostEnv = {
      PATH: process.env["PATH"],
      HOME: "/home/u",
      LC_ALL: "C",
      LC_API_KEY: "1",
      AWS_SECRET_ACCESS_KEY: "2",
      SSH_AUTH_SOCK: "3",
      NODE_OPTIONS: "--inspect",
      LD_PRELOAD: "/x",
      BASH_ENV: "/x",
      MY_TOOL: "4",
      MY_TOKEN: "5",
      RIPGREP_CONFIG_PATH: "/x"
    }

    it.live("of a child is the allow-list and what the command adds", () =>
      Effect.gen(function*() {
        const outcome = yield* run("", { argv: ["/usr/bin/env"], env: { ADDED: "yes" } })
        const names = text(outcome.stdout.bytes).trim().split("\n").map((line) => line.split("=")[0]).sort()
        assert.deepStrictEqual(names, ["ADDED", "HOME", "LC_ALL", "PATH", "PORTCULLIS_RUN"])
      }).pipe(Effect.provide(NodeSubprocess.layer({ hostEnv }))))

    it("is widened by name, and by prefix but for what looks like a credential", () => {
      assert.deepStrictEqual(Object.keys(NodeSubprocess.inheritedEnv(hostEnv, ["MY_*"])).sort(), [
        "HOME",
        "LC_ALL",
        "MY_TOOL",
        "PATH"
      ])
      assert.deepStrictEqual(
        Object.keys(NodeSubprocess.inheritedEnv(hostEnv, ["MY_*", "SSH_AUTH_SOCK", "MY_TOKEN"])).sort(),
        ["HOME", "LC_ALL", "MY_TOKEN", "MY_TOOL", "PATH", "SSH_AUTH_SOCK"]
      )
    })
  })

  it.live("runs many at once without mixing them up", () =>
    Effect.gen(function*() {
      const outcomes = yield* Effect.forEach(
        Array.from({ length: 30 }, (_, index) => index),
        (index) => run(`printf ${index}; exit ${index}`),
        { concurrency: 10 }
      )
      outcomes.forEach((outcome, index) => {
        assert.deepStrictEqual(outcome.ending, { _tag: "Exited", code: index })
        assert.strictEqual(text(outcome.stdout.bytes), String(index))
      })
    }).pipe(Effect.provide(layer)))
})
