import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import * as Fs from "node:fs"
import { make } from "../../../layers/node/ProcessIdentity.ts"
import type { Owner } from "../../../src/process/ProcessIdentity.ts"
import { startCommand } from "../../support/childProcess.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

const ways = [["from /proc", {}], ["without /proc", { proc: "/nonexistent" }]] as const

describe("ProcessIdentity", () => {
  for (const [way, options] of ways) {
    it.scopedLive(`${way}: a running process lives, a dead one does not, and a reused pid is somebody else`, () =>
      Effect.gen(function*() {
        const mine = yield* make(options)
        const child = yield* startCommand(["sleep", "60"])
        // Seen by the other instance: the record of a process says nothing about who looks.
        const other = yield* make(options)
        assert.isTrue(yield* other.alive(mine.self))
        const record: Owner = { ...mine.self, pid: child.pid, token: "child", startTime: null }
        assert.isTrue(yield* mine.alive(record))
        assert.isFalse(yield* mine.alive({ ...mine.self, token: "before us", startTime: "0" }))
        yield* child.kill("SIGKILL")
        yield* child.ended
        assert.isFalse(yield* mine.alive(record))
      }))
  }

  it.live("a process of another boot is dead, whatever its pid is now", () =>
    Effect.gen(function*() {
      const { alive, self } = yield* make()
      assert.isFalse(yield* alive({ ...self, token: "other", bootId: "another boot" }))
      assert.isTrue(yield* alive({ ...self, token: "other", bootId: null }))
    }))

  it.scopedLive("a name with blanks and parentheses does not mislead it, and a zombie is dead", () =>
    Effect.gen(function*() {
      const root = yield* temporaryFolder
      const stat = (pid: number, state: string, start: string, threads = 1) => {
        Fs.mkdirSync(`${root}/${pid}`, { recursive: true })
        Fs.writeFileSync(
          `${root}/${pid}/stat`,
          `${pid} (a) S 1) ${state} ${"0 ".repeat(16)}${threads} 0 ${start} 0 0\n`
        )
      }
      stat(process.pid, "R", "77")
      stat(7, "S", "42")
      stat(8, "Z", "42")
      stat(10, "Z", "42", 2)
      const { alive, self } = yield* make({ proc: root })
      assert.strictEqual(self.startTime, "77")
      const owner = (pid: number, startTime: string): Owner => ({ pid, startTime, bootId: null, token: "x" })
      assert.isTrue(yield* alive(owner(7, "42")))
      assert.isFalse(yield* alive(owner(7, "41")))
      assert.isFalse(yield* alive(owner(8, "42")))
      // Its main thread has ended, another has not.
      assert.isTrue(yield* alive(owner(10, "42")))
      assert.isFalse(yield* alive(owner(2 ** 22 + 1, "42")))
      // `/proc` may hide a process that is there.
      const hidden = yield* startCommand(["sleep", "60"])
      assert.isTrue(yield* alive(owner(hidden.pid, "42")))
    }))

  it.live("a real zombie is dead", () =>
    Effect.gen(function*() {
      const { alive, self } = yield* make()
      const zombie = yield* Effect.async<number>((resume) => {
        // The inner process ends while its parent, which has become `sleep`, never reaps it.
        const shell = spawn("bash", ["-c", "sleep 0.05 & echo $!; exec sleep 5"], {
          stdio: ["ignore", "pipe", "ignore"]
        })
        shell.stdout.once("data", (text) => resume(Effect.succeed(Number(String(text)))))
      })
      const gone = Effect.map(alive({ ...self, pid: zombie, startTime: null, token: "z" }), (lives) => !lives)
      yield* Effect.repeat(Effect.zipRight(Effect.sleep("10 millis"), gone), { until: (is) => is, times: 200 })
      assert.isTrue(yield* gone)
      assert.isTrue(Fs.existsSync(`/proc/${zombie}`))
    }).pipe(Effect.when(() => Fs.existsSync("/proc/self/stat"))))
})
