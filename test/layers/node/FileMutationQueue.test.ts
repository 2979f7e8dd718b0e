import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"
import * as FileMutationQueue from "../../../layers/node/FileMutationQueue.ts"
import * as LockFolder from "../../../layers/node/LockFolder.ts"
import * as NodeProcessIdentity from "../../../layers/node/ProcessIdentity.ts"
import { Digest } from "../../../src/contract/Digest.ts"
import type { FileError, LockCode } from "../../../src/file/FileError.ts"
import * as Queue from "../../../src/file/FileMutationQueue.ts"
import { type Owner, ProcessIdentity } from "../../../src/process/ProcessIdentity.ts"
import { laws } from "../../../src/testing/contract/FileMutationQueue.ts"
import { startCommand } from "../../support/childProcess.ts"
import { count } from "../../support/counts.ts"
import { eventually } from "../../support/plane.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

/** A folder of locks, queues over it, each as another process would have it, and the paths of their locks. */
const world = Effect.gen(function*() {
  const directory = Path.join(yield* temporaryFolder, "state", "locks")
  const identity = yield* NodeProcessIdentity.make()
  const space = LockFolder.make(directory, identity.self, yield* Digest)
  const queue = (options: FileMutationQueue.Options = {}) =>
    Effect.provideService(FileMutationQueue.make({ directory, ...options }), ProcessIdentity, identity)
  const name = (path: string) => LockFolder.nameOf(space, path)
  const plant = (path: string, text: string) => {
    Fs.mkdirSync(directory, { recursive: true, mode: 0o700 })
    Fs.writeFileSync(path, text)
  }
  const record = (owner: Partial<Owner>) => JSON.stringify({ ...identity.self, token: "somebody", ...owner })
  const entries = () => Fs.existsSync(directory) ? Fs.readdirSync(directory).sort() : []
  const kinds = () => entries().map((entry) => Path.extname(entry).slice(1)).sort()
  return {
    directory,
    identity,
    space,
    queue,
    name,
    lock: (path: string) => `${name(path)}.lock`,
    plant,
    record,
    entries,
    kinds
  }
})

const dead = { pid: 2 ** 22 + 1 }

/** Holds a file of that queue until told otherwise. */
const hold = Effect.fnUntraced(function*(queue: Queue.FileMutationQueue["Type"], path: string) {
  const entered = yield* Deferred.make<void>()
  const gate = yield* Deferred.make<void>()
  const fiber = yield* Effect.fork(
    queue.withFile(path, Effect.zipRight(Deferred.succeed(entered, undefined), Deferred.await(gate)))
  )
  yield* Deferred.await(entered)
  return Effect.zipRight(Deferred.succeed(gate, undefined), Fiber.join(fiber))
})

const refusal = <A, R>(effect: Effect.Effect<A, FileError<LockCode>, R>) =>
  Effect.map(Effect.flip(effect), ({ code, details }) => ({ code, details }))

describe("FileMutationQueue across processes", () => {
  for (const { law, name } of laws) {
    it.scoped(name, () =>
      Effect.gen(function*() {
        const { queue } = yield* world
        yield* Effect.provideService(law, Queue.FileMutationQueue, yield* queue())
      }))
  }

  it.scoped("leaves nothing in its folder when it is closed, and that folder is private", () =>
    Effect.gen(function*() {
      const { directory, entries, kinds, lock, queue } = yield* world
      yield* Effect.scoped(Effect.gen(function*() {
        const mine = yield* queue()
        assert.deepStrictEqual(entries(), [])
        yield* mine.withFile("/f", Effect.sync(() => assert.isTrue(Fs.existsSync(lock("/f")))))
        assert.isFalse(Fs.existsSync(lock("/f")))
        assert.include(kinds(), "owner")
      }))
      assert.deepStrictEqual(entries(), [])
      assert.strictEqual(Fs.statSync(directory).mode & 0o777, 0o700)
    }))

  it("has its locks in the user's state directory", () => {
    const before = process.env["XDG_STATE_HOME"]
    try {
      process.env["XDG_STATE_HOME"] = "/state"
      assert.strictEqual(FileMutationQueue.lockDirectory(), "/state/portcullis/locks")
      process.env["XDG_STATE_HOME"] = "not/absolute"
      assert.isTrue(FileMutationQueue.lockDirectory().endsWith("/.local/state/portcullis/locks"))
    } finally {
      if (before === undefined) delete process.env["XDG_STATE_HOME"]
      else process.env["XDG_STATE_HOME"] = before
    }
  })
})

// Time stands still in these: whoever waited at all would wait for ever.
describe("R04: what no living process holds is taken at once", () => {
  const cases: ReadonlyArray<
    readonly [string, (here: Effect.Effect.Success<typeof world>, lock: string) => void]
  > = [
    ["the lock of a process that is gone", ({ plant, record }, lock) => plant(lock, record(dead))],
    ["of a pid that is another process by now", ({ plant, record }, lock) => plant(lock, record({ startTime: "1" }))],
    ["of another boot", ({ plant, record }, lock) => plant(lock, record({ bootId: "another" }))],
    ["with a truncated record", ({ plant, record }, lock) => plant(lock, record({}).slice(0, 40))],
    ["with a record of other fields", ({ plant }, lock) => plant(lock, `{"pid":${process.pid}}`)],
    ["of 0 bytes", ({ plant }, lock) => plant(lock, "")],
    ["of a megabyte", ({ plant }, lock) => plant(lock, " ".repeat(2 ** 20))],
    ["that is a directory", (_, lock) => Fs.mkdirSync(lock, { recursive: true, mode: 0o700 })],
    ["that is a directory with a record in it", ({ plant, record }, lock) => {
      Fs.mkdirSync(lock, { recursive: true, mode: 0o700 })
      plant(Path.join(lock, "owner"), record({}))
    }],
    ["that is a link to nowhere", ({ directory }, lock) => {
      Fs.mkdirSync(directory, { recursive: true, mode: 0o700 })
      Fs.symlinkSync("/nonexistent", lock)
    }],
    ["that is a link to the record of a living process", ({ directory, plant, record }, lock) => {
      plant(Path.join(directory, "x"), record({}))
      Fs.symlinkSync("x", lock)
    }],
    ["that is a pipe", ({ directory }, lock) => {
      Fs.mkdirSync(directory, { recursive: true, mode: 0o700 })
      execFileSync("mkfifo", [lock])
    }]
  ]
  for (const [name, make] of cases) {
    it.scoped(name, () =>
      Effect.gen(function*() {
        const here = yield* world
        const lock = here.lock("/f")
        make(here, lock)
        const mine = yield* here.queue()
        const seen = yield* mine.withFile("/f", Effect.sync(() => JSON.parse(Fs.readFileSync(lock, "utf8"))))
        assert.strictEqual(seen.pid, process.pid)
        assert.isFalse(Fs.existsSync(lock))
      }))
  }

  it.scoped("also when one died while it cleared the lock of another, who died while he cleared it", () =>
    Effect.gen(function*() {
      const { entries, lock, name, plant, queue, record, space } = yield* world
      const guard = LockFolder.nameOf(space, `${Path.basename(name("/f"))}\nfirst`)
      const second = LockFolder.nameOf(space, `${Path.basename(guard)}\nsecond`)
      plant(lock("/f"), record({ ...dead, token: "first" }))
      plant(`${guard}.lock`, record({ ...dead, token: "second" }))
      plant(`${second}.lock`, record({ ...dead, token: "third" }))
      yield* Effect.scoped(Effect.flatMap(queue(), (mine) => mine.withFile("/f", Effect.void)))
      assert.deepStrictEqual(entries(), [])
    }))

  it.scoped("but not while a living process is about to clear it, by whatever name that one knows the folder", () =>
    Effect.gen(function*() {
      const { directory, lock, name, plant, queue, record, space } = yield* world
      const child = yield* startCommand(["sleep", "60"])
      plant(lock("/f"), record({ ...dead, token: "first" }))
      plant(
        `${LockFolder.nameOf(space, `${Path.basename(name("/f"))}\nfirst`)}.lock`,
        record({ pid: child.pid, startTime: null, token: "second" })
      )
      Fs.symlinkSync("locks", `${directory}-too`)
      const mine = yield* queue({ directory: `${directory}-too`, limitMs: 1000 })
      const waiter = yield* Effect.fork(refusal(mine.withFile("/f", Effect.void)))
      yield* TestClock.adjust("1 seconds")
      const { details } = yield* Fiber.join(waiter)
      assert.deepInclude(details, { holder: { pid: child.pid } })
      assert.include(Fs.readFileSync(lock("/f"), "utf8"), "first")
    }))
})

describe("R06: what a living process holds", () => {
  it.scoped("is never taken from it, stopped or slow: file_locked names it after the limit", () =>
    Effect.gen(function*() {
      const { identity, kinds, lock, plant, queue, record } = yield* world
      const child = yield* startCommand(["sleep", "60"])
      yield* child.kill("SIGSTOP")
      plant(lock("/f"), record({ pid: child.pid, startTime: null }))
      const mine = yield* queue({ limitMs: 1000 })
      let ran = false
      const waiter = yield* Effect.fork(refusal(mine.withFile("/f", Effect.sync(() => ran = true))))
      yield* TestClock.adjust("999 millis")
      assert.isNull(waiter.unsafePoll())
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* Fiber.join(waiter), {
        code: "file_locked",
        details: { holder: { pid: child.pid }, waitedMs: 1000 }
      })
      assert.isFalse(ran)
      assert.strictEqual(Fs.readFileSync(lock("/f"), "utf8"), record({ pid: child.pid, startTime: null }))
      assert.notInclude(kinds(), "want")
      yield* child.kill("SIGKILL")
      yield* child.ended
      assert.isFalse(yield* identity.alive({ ...identity.self, pid: child.pid, startTime: null, token: "c" }))
      yield* mine.withFile("/f", Effect.void)
    }))

  it.scoped("keeps those who asked together out for one limit, not one limit after the other", () =>
    Effect.gen(function*() {
      const { queue } = yield* world
      const [one, other] = [yield* queue(), yield* queue({ limitMs: 1000 })]
      const release = yield* hold(one, "/f")
      const waiters = yield* Effect.fork(
        Effect.all([1, 2, 3].map(() => refusal(other.withFile("/f", Effect.void))), { concurrency: 3 })
      )
      yield* TestClock.adjust("900 millis")
      const late = yield* Effect.fork(other.withFile("/f", Effect.void))
      yield* TestClock.adjust("100 millis")
      assert.deepStrictEqual((yield* Fiber.join(waiters)).map(({ code }) => code), Array(3).fill("file_locked"))
      yield* TestClock.adjust("800 millis")
      assert.isNull(late.unsafePoll())
      yield* release
      yield* TestClock.adjust("25 millis")
      yield* Fiber.join(late)
    }))

  it.scoped("is waited for in the line of this process without a limit", () =>
    Effect.gen(function*() {
      const { queue } = yield* world
      const [one, other] = [yield* queue({ limitMs: 1000 }), yield* queue()]
      const release = yield* hold(one, "/f")
      const first = yield* Effect.fork(one.withFile("/f", Effect.sleep("1 seconds")))
      const last = yield* Effect.fork(one.withFile("/f", Effect.succeed("ran")))
      yield* TestClock.adjust("1 hour")
      const rival = yield* Effect.fork(other.withFile("/f", Effect.sleep("900 millis")))
      yield* TestClock.adjust("25 millis")
      yield* release
      yield* TestClock.adjust("2 seconds")
      // The rival came in between, and the hours in the own line did not count against the wait for it.
      assert.isNotNull(rival.unsafePoll())
      assert.strictEqual(yield* Fiber.join(last), "ran")
      yield* Fiber.joinAll([first, rival])
    }))

  it.scoped("is not freed by another: a lock goes with the record of its owner only", () =>
    Effect.gen(function*() {
      const { lock, plant, queue, record } = yield* world
      const mine = yield* queue()
      yield* mine.withFile(
        "/f",
        Effect.sync(() => {
          Fs.unlinkSync(lock("/f"))
          plant(lock("/f"), record({}))
        })
      )
      assert.strictEqual(Fs.readFileSync(lock("/f"), "utf8"), record({}))
    }))
})

describe("a waiter of FileMutationQueue across processes", () => {
  it.scoped("leaves at once when it is interrupted while another process has the file, the others in order", () =>
    Effect.gen(function*() {
      const { kinds, queue } = yield* world
      const [one, other] = [yield* queue(), yield* queue()]
      const release = yield* hold(one, "/f")
      const order: Array<number> = []
      const fibers = []
      for (let index = 0; index < 6; index++) {
        fibers.push(yield* Effect.fork(other.withFile("/f", Effect.sync(() => order.push(index)))))
        yield* TestClock.adjust("100 millis")
      }
      assert.include(kinds(), "want")
      for (const index of [0, 3, 1]) yield* Effect.flatMap(Effect.fromNullable(fibers[index]), Fiber.interrupt)
      assert.strictEqual((yield* other.metrics).waiting, 3)
      yield* release
      yield* TestClock.adjust("1 seconds")
      yield* Effect.forEach(fibers, Fiber.await)
      assert.deepStrictEqual(order, [2, 4, 5])
      assert.deepStrictEqual([...new Set(kinds())], ["owner"])
    }))

  it.scoped("leaves no lock and no mark, whenever it is interrupted", () =>
    Effect.gen(function*() {
      const { kinds, queue } = yield* world
      const [one, other] = [yield* queue(), yield* queue()]
      for (let steps = 0; steps < count({ quick: 60, soak: 600 }); steps++) {
        const release = steps % 2 === 0 ? yield* hold(one, "/f") : Effect.void
        const fiber = yield* Effect.fork(other.withFile("/f", Effect.yieldNow()))
        yield* Effect.repeatN(Effect.yieldNow(), steps % 30)
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(kinds().filter((kind) => kind !== "owner"), steps % 2 === 0 ? ["lock"] : [])
        yield* release
      }
      yield* one.withFile("/f", Effect.void)
    }))

  it.scopedLive("is served in the order of asking and alone, whoever leaves at whatever moment, waiting or inside", () =>
    Effect.gen(function*() {
      const { kinds, queue } = yield* world
      const queues = [yield* queue(), yield* queue()]
      const random = (below: number) => Math.floor(Math.random() * below)
      let inside = 0
      const served = queues.map((): Array<number> => [])
      const fibers: Array<Fiber.RuntimeFiber<void, unknown>> = []
      for (let index = 0; index < count({ quick: 150, soak: 3000 }); index++) {
        const which = random(2)
        const work = Effect.acquireUseRelease(
          Effect.sync(() => {
            assert.strictEqual(++inside, 1)
            served[which]?.push(index)
          }),
          () => random(2) === 0 ? Effect.yieldNow() : Effect.sleep(random(3)),
          () => Effect.sync(() => inside--)
        )
        fibers.push(yield* Effect.fork(queues[which]?.withFile("/f", work) ?? Effect.void))
        yield* Effect.repeatN(Effect.yieldNow(), random(4))
        const one = fibers[fibers.length - 1 - random(Math.min(20, fibers.length))]
        if (random(3) === 0 && one !== undefined) yield* Fiber.interruptFork(one)
      }
      for (const exit of yield* Effect.forEach(fibers, Fiber.await)) {
        assert.isTrue(Exit.isSuccess(exit) || Exit.isInterrupted(exit))
      }
      for (const order of served) assert.deepStrictEqual(order, [...order].sort((left, right) => left - right))
      for (const { metrics } of queues) assert.deepInclude(yield* metrics, { waiting: 0, held: 0 })
      assert.deepStrictEqual([...new Set(kinds())], ["owner"])
    }))

  it.scopedLive("gets its turn against endless bursts of another process, and so do they", () =>
    Effect.gen(function*() {
      const { queue } = yield* world
      const turns: Array<string> = []
      const burst = Effect.fnUntraced(function*(who: string) {
        const mine = yield* queue()
        const one = Effect.zipRight(Effect.sleep(1), Effect.sync(() => turns.at(-1) === who || turns.push(who)))
        yield* Effect.all(Array.from({ length: 5 }, () => Effect.forever(mine.withFile("/f", one))), { concurrency: 5 })
      })
      const fibers = yield* Effect.forEach(["a", "b", "c"], (who) => Effect.fork(burst(who)))
      const often = (who: string) => turns.filter((turn) => turn === who).length >= count({ quick: 3, soak: 20 })
      yield* eventually(Effect.sync(() => ["a", "b", "c"].every(often)), (all) => all)
      yield* Fiber.interruptAll(fibers)
    }))

  it.scopedLive("gets its turn against another that asks again and again, one after the other", () =>
    Effect.gen(function*() {
      const { queue } = yield* world
      const [one, other] = [yield* queue(), yield* queue()]
      const busy = yield* Effect.fork(Effect.forever(one.withFile("/f", Effect.sleep(20))))
      for (let round = 0; round < 5; round++) {
        const [waited] = yield* Effect.timed(other.withFile("/f", Effect.void))
        assert.isBelow(Duration.toMillis(waited), 5000)
      }
      yield* Fiber.interrupt(busy)
    }))

  it.scopedLive("takes several files at once, in any order, without a deadlock between processes", () =>
    Effect.gen(function*() {
      const { kinds, queue } = yield* world
      let inside = 0
      const work = Effect.acquireUseRelease(
        Effect.sync(() => assert.strictEqual(++inside, 1)),
        () => Effect.sleep(1),
        () => Effect.sync(() => inside--)
      )
      const orders = [["/a", "/b", "/c"], ["/c", "/b"], ["/b", "/a", "/b"]]
      const queues = [yield* queue(), yield* queue(), yield* queue()]
      yield* Effect.forEach(
        queues.flatMap((mine) => orders.map((paths) => ({ mine, paths }))),
        ({ mine, paths }) => mine.withFiles(paths, work),
        { concurrency: "unbounded", discard: true }
      )
      assert.deepStrictEqual([...new Set(kinds())], ["owner"])
    }))
})

describe("the folder of locks", () => {
  const refused = (prepare: (directory: string) => void) =>
    Effect.gen(function*() {
      const { directory, queue } = yield* world
      Fs.mkdirSync(Path.dirname(directory))
      prepare(directory)
      const mine = yield* queue()
      let ran = false
      const { code } = yield* refusal(mine.withFile("/f", Effect.sync(() => ran = true)))
      assert.strictEqual(code, "lock_unavailable")
      assert.isFalse(ran)
      Fs.rmSync(directory, { recursive: true })
      yield* mine.withFile("/f", Effect.void)
    })

  it.scoped("is refused when others can write to it, until it is put right", () =>
    refused((directory) => {
      Fs.mkdirSync(directory)
      Fs.chmodSync(directory, 0o777)
    }))

  it.scoped("is refused when it is a file", () => refused((directory) => Fs.writeFileSync(directory, "")))

  it.scoped.skipIf(process.getuid?.() !== 0)("is refused when it is somebody else's", () =>
    refused((directory) => {
      Fs.mkdirSync(directory, { mode: 0o700 })
      Fs.chownSync(directory, 4711, 4711)
    }))

  it.scoped("may be wiped: the next one makes it anew", () =>
    Effect.gen(function*() {
      const { directory, entries, queue } = yield* world
      const mine = yield* queue()
      yield* mine.withFile("/f", Effect.void)
      Fs.rmSync(directory, { recursive: true })
      yield* mine.withFile("/f", Effect.sync(() => assert.isAbove(entries().length, 0)))
    }))

  it.scopedLive("is swept when a queue is first used: of what the dead left, and of nothing else", () =>
    Effect.gen(function*() {
      const { directory, entries, lock, name, plant, queue, record, space } = yield* world
      const token = (digit: string) => `${digit.repeat(8)}-0000-4000-8000-000000000000`
      const at = (file: string) => Path.join(directory, file)
      const own = (digit: string) => at(`${space.prefix}.${token(digit)}.owner`)
      plant(own("1"), record({ ...dead, token: token("1") }))
      plant(lock("/dead"), record({ ...dead, token: token("1") }))
      plant(`${name("/dead")}.want`, record({ ...dead, token: token("1") }))
      plant(lock("/garbled"), "")
      const kept = [own("3"), own("4"), lock("/live"), at("notes.txt"), at(`${"0".repeat(16)}.${token("6")}.owner`)]
      plant(at("notes.txt"), "")
      plant(at(`${"0".repeat(16)}.${token("6")}.owner`), "")
      plant(own("3"), record({ token: token("3") }))
      plant(own("4"), "{")
      plant(lock("/live"), record({ token: token("3") }))

      const mine = yield* queue()
      yield* mine.withFile("/f", Effect.void)
      yield* eventually(Effect.sync(entries), (names) => names.length <= kept.length + 1)
      for (const path of kept) assert.isTrue(Fs.existsSync(path), path)
    }))

  it.scoped("is swept of what nobody can judge when that was not used for a month, however long its owner has lived", () =>
    Effect.gen(function*() {
      const { directory, entries, plant, queue, space } = yield* world
      const at = (file: string) => Path.join(directory, `${"0".repeat(16)}.${file}`)
      // One that is never written to its end.
      plant(Path.join(directory, `${space.prefix}.a.owner`), "{")
      const day = 24 * 3_600_000
      plant(at("a.owner"), "{}")
      plant(at("b.owner"), "{}")
      for (const name of ["a", "b"]) Fs.utimesSync(at(`${name}.owner`), 1, 1)
      Fs.linkSync(at("a.owner"), at("c.lock"))
      const others = () => entries().filter((name) => name.startsWith("0".repeat(16))).length
      const use = Effect.scoped(
        Effect.flatMap(queue(), (mine) => mine.withFile("/f", Effect.repeatN(Effect.yieldNow(), 500)))
      )
      yield* TestClock.setTime(Date.now() + 29 * day)
      yield* use
      assert.strictEqual(others(), 3)
      yield* TestClock.setTime(Date.now() + 31 * day)
      yield* use
      assert.deepStrictEqual(entries(), [])
    }))

  it.scopedLive("does not hold up the end of a queue while it is swept", () =>
    Effect.gen(function*() {
      const { directory, entries, identity, lock, plant, record } = yield* world
      plant(lock("/other"), record(dead))
      const slow = { ...identity, alive: () => Effect.never }
      yield* FileMutationQueue.make({ directory }).pipe(
        Effect.flatMap((mine) => mine.withFile("/f", Effect.sleep(20))),
        Effect.scoped,
        Effect.provideService(ProcessIdentity, slow),
        Effect.timeout("5 seconds")
      )
      assert.deepStrictEqual(entries(), [Path.basename(lock("/other"))])
    }))

  it.scoped("loses a lock that is held while its queue is closed when its holder is done, and gives out none after", () =>
    Effect.gen(function*() {
      const { entries, lock, queue } = yield* world
      const scope = yield* Scope.make()
      const mine = yield* Scope.extend(queue(), scope)
      const other = yield* queue()
      const release = yield* hold(mine, "/f")
      const blocking = yield* hold(other, "/g")
      const waiter = yield* Effect.fork(refusal(mine.withFile("/g", Effect.void)))
      yield* TestClock.adjust("1 seconds")
      yield* Scope.close(scope, Exit.void)
      assert.isTrue(Fs.existsSync(lock("/f")))
      yield* TestClock.adjust("1 seconds")
      assert.strictEqual((yield* Fiber.join(waiter)).code, "lock_unavailable")
      assert.strictEqual((yield* refusal(mine.withFile("/h", Effect.void))).code, "lock_unavailable")
      yield* release
      yield* blocking
      assert.isFalse(Fs.existsSync(lock("/f")))
      assert.deepStrictEqual(entries().map((entry) => Path.extname(entry)), [".owner"])
    }))
})
