import { assert, describe, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Ref from "effect/Ref"
import * as Fs from "node:fs"
import * as Path from "node:path"
import * as LockFolder from "../../../layers/node/LockFolder.ts"
import * as NodeProcessIdentity from "../../../layers/node/ProcessIdentity.ts"
import { Digest } from "../../../src/contract/Digest.ts"
import { bundle, type Child, start, startCommand } from "../../support/childProcess.ts"
import { count } from "../../support/counts.ts"
import { eventually } from "../../support/plane.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

/** Sets limits of a process; Linux has it. */
const hasPrlimit = ["/usr/bin/prlimit", "/bin/prlimit"].some((path) => Fs.existsSync(path))

const begin = "begin\nend\n"

/** A workspace with one file and several names for it. */
const shared = Effect.gen(function*() {
  const folder = Fs.realpathSync(yield* temporaryFolder)
  const dir = Path.join(folder, "ws", "dir")
  Fs.mkdirSync(dir, { recursive: true })
  Fs.writeFileSync(Path.join(dir, "f"), begin)
  Fs.symlinkSync("dir/f", Path.join(folder, "ws", "link"))
  Fs.symlinkSync("dir", Path.join(folder, "ws", "folder"))
  const names = ["dir/f", "./dir/../dir/f", "link", "folder/f", Path.join(dir, "f"), Path.join(folder, "ws/link")]
  const read = Effect.sync(() => Fs.readFileSync(Path.join(dir, "f"), "utf8"))
  return { folder, dir, names, read }
})

/** The lines between the first and the last; dies when the file is torn. */
const linesOf = (text: string): ReadonlyArray<string> => {
  assert.match(text, /^begin\n(w\d+ \d+\n)*end\n$/)
  return text.split("\n").slice(1, -2)
}

/** Looks at the file all the time; a line that was there once must stay. */
const watching = (read: Effect.Effect<string>) =>
  Effect.gen(function*() {
    const seen = yield* Ref.make(0)
    const look = Effect.gen(function*() {
      const { length } = linesOf(yield* read)
      assert.isAtLeast(length, yield* Ref.get(seen))
      yield* Ref.set(seen, length)
      yield* Effect.sleep(2)
    })
    return yield* Effect.forkScoped(Effect.forever(look))
  })

/** What a writer was told: the numbers of its lines that are in the file; how it ended is no matter. */
const acknowledged = (child: Child, onLine: (number: number) => void) =>
  Effect.gen(function*() {
    while (true) {
      const line = yield* child.line
      assert.match(line, /^\d+$/)
      onLine(Number(line))
    }
  }).pipe(Effect.catchAllDefect((defect) => defect instanceof Error ? Effect.die(defect) : Effect.void))

const writers = Effect.fnUntraced(
  function*(script: string, folder: string, many: number, edits: number, names: ReadonlyArray<string>) {
    const children = yield* Effect.forEach(
      Array.from({ length: many }),
      (_, index) => start(script, folder, `w${index}`, String(edits), ...names.slice(index % names.length), ...names),
      { concurrency: 4 }
    )
    yield* Effect.forEach(children, ({ line }) => Effect.map(line, (word) => assert.strictEqual(word, "ready")))
    yield* Effect.forEach(children, ({ send }) => send("go"))
    return children
  }
)

describe.skipIf(process.platform === "win32")("processes that change one file", () => {
  it.scopedLive("E21: lose no change and tear none, whatever they call the file, and no reader sees half of one", () =>
    Effect.gen(function*() {
      const many = count({ quick: 4, soak: 20 })
      const edits = count({ quick: 10, soak: 100 })
      const { dir, folder, names, read } = yield* shared
      const script = yield* bundle("changer.ts")
      const reader = yield* watching(read)
      const children = yield* writers(script, folder, many, edits, names)
      for (const child of children) assert.strictEqual(yield* child.ended, 0)
      yield* Effect.sleep(10)
      assert.isNull(reader.unsafePoll())
      const expected = children.flatMap((_, index) => Array.from({ length: edits }, (_, edit) => `w${index} ${edit}`))
      assert.deepStrictEqual([...linesOf(yield* read)].sort(), expected.sort())
      assert.deepStrictEqual(Fs.readdirSync(dir), ["f"])
      assert.deepStrictEqual(Fs.readdirSync(Path.join(folder, "locks")), [])
    }))

  it.scopedLive("lose nothing that was acknowledged when some are killed, and nobody waits long for the dead", () =>
    Effect.gen(function*() {
      const many = count({ quick: 4, soak: 12 })
      const { dir, folder, names, read } = yield* shared
      const script = yield* bundle("changer.ts")
      const reader = yield* watching(read)
      const children = yield* writers(script, folder, many, 100_000, names)
      const told = new Set<string>()
      const listeners = yield* Effect.forEach(children, (child, index) =>
        Effect.fork(acknowledged(child, (number) => {
          told.add(`w${index} ${number}`)
        })))
      let longest = 0
      // The last one lives.
      for (const child of children.slice(0, -1)) {
        const { size } = told
        yield* eventually(Effect.sync(() => told.size), (now) => now >= size + count({ quick: 5, soak: 30 }))
        yield* Effect.sleep(Math.random() * 20)
        yield* child.kill("SIGKILL")
        yield* child.ended
        const after = told.size
        const [held] = yield* Effect.timed(eventually(Effect.sync(() => told.size), (now) => now > after))
        longest = Math.max(longest, Duration.toMillis(held))
      }
      const { size } = told
      yield* eventually(Effect.sync(() => told.size), (now) => now >= size + 5)
      yield* Effect.forEach(children.slice(-1), ({ end, ended, kill }) => Effect.all([end, kill("SIGTERM"), ended]))
      yield* Effect.forEach(listeners, Fiber.await)
      assert.isNull(reader.unsafePoll())
      const lines = linesOf(yield* read)
      assert.strictEqual(new Set(lines).size, lines.length)
      for (const line of told) assert.include(lines, line)
      // The dead left temporary files; who writes next removes them.
      assert.deepStrictEqual(Fs.readdirSync(dir), ["f"])
      // It is far less than a second, but for a busy machine.
      assert.isBelow(longest, 3000)
    }))
})

describe.skipIf(process.platform === "win32")("processes that want one lock", () => {
  const world = Effect.gen(function*() {
    const folder = yield* temporaryFolder
    const directory = Path.join(folder, "locks")
    const { self } = yield* NodeProcessIdentity.make()
    const space = LockFolder.make(directory, self, yield* Digest)
    const script = yield* bundle("holder.ts")
    const under = (words: ReadonlyArray<string>) => (...args: ReadonlyArray<string>) =>
      Effect.tap(
        startCommand(["env", ...words, process.execPath, script, directory, Path.join(folder, "witness"), ...args]),
        ({ line }) => line
      )
    return {
      directory,
      holder: under([]),
      under,
      self,
      lock: (path: string) => `${LockFolder.nameOf(space, path)}.lock`
    }
  })

  it.scopedLive("R04: two that race for the lock of a dead one are never both inside", () =>
    Effect.gen(function*() {
      const { directory, holder, lock, self } = yield* world
      Fs.mkdirSync(directory, { mode: 0o700 })
      const racers = [yield* holder(), yield* holder()]
      for (let round = 0; round < count({ quick: 20, soak: 500 }); round++) {
        const path = `/round/${round}`
        const dead = JSON.stringify({ ...self, startTime: "1", token: `dead ${round}` })
        Fs.writeFileSync(lock(path), round % 3 === 2 ? dead.slice(0, round % 50) : dead)
        yield* Effect.forEach(racers, ({ send }) => send(path))
        for (const { line } of racers) assert.strictEqual(yield* line, "alone")
      }
      yield* Effect.forEach(racers, ({ end, ended }) => Effect.zipRight(end, ended))
      assert.deepStrictEqual(Fs.readdirSync(directory), [])
    }))

  it.scopedLive("R06: a stopped one is waited for up to the limit and keeps what it holds; a killed one loses it", () =>
    Effect.gen(function*() {
      const { holder, lock } = yield* world
      const stopped = yield* holder("60000", "stay")
      const waiter = yield* holder("300")
      yield* stopped.send("/f")
      assert.strictEqual(yield* stopped.line, "inside")
      yield* stopped.kill("SIGSTOP")
      yield* waiter.send("/f")
      assert.strictEqual(yield* waiter.line, "file_locked")
      assert.include(Fs.readFileSync(lock("/f"), "utf8"), `"pid":${stopped.pid},`)
      yield* stopped.kill("SIGKILL")
      yield* stopped.ended
      yield* waiter.send("/f")
      assert.strictEqual(yield* waiter.line, "alone")
    }))

  it.scopedLive.skipIf(!hasPrlimit)("one that can open no more files robs nobody", () =>
    Effect.gen(function*() {
      const { holder, lock, under } = yield* world
      const owner = yield* holder("60000", "stay")
      yield* owner.send("/f")
      assert.strictEqual(yield* owner.line, "inside")
      const starved = yield* under(["prlimit", "--nofile=1000"])("300", "starved")
      yield* starved.send("/f")
      assert.strictEqual(yield* starved.line, "lock_unavailable")
      assert.include(Fs.readFileSync(lock("/f"), "utf8"), `"pid":${owner.pid},`)
    }))

  it.scopedLive.skipIf(!hasPrlimit)(
    "one whose record does not fit on the disk takes no lock and leaves nothing",
    () =>
      Effect.gen(function*() {
        const { directory, under } = yield* world
        // Only the beginning of the record is written, and no error is returned.
        const full = yield* under(["prlimit", "--fsize=50"])()
        yield* full.send("/f")
        assert.strictEqual(yield* full.line, "lock_unavailable")
        assert.deepStrictEqual(Fs.readdirSync(directory), [])
      })
  )

  it.scopedLive("a waiter that is stopped or killed holds nobody up", () =>
    Effect.gen(function*() {
      const { directory, holder } = yield* world
      const first = yield* holder("60000", "stay")
      const [stopped, killed, other] = [yield* holder(), yield* holder(), yield* holder("5000")]
      yield* first.send("/f")
      assert.strictEqual(yield* first.line, "inside")
      const marked = Effect.sync(() => Fs.readdirSync(directory).some((name) => name.endsWith(".want")))
      for (const [child, signal] of [[stopped, "SIGSTOP"], [killed, "SIGKILL"]] as const) {
        yield* child.send("/f")
        yield* eventually(marked, (is) => is)
        yield* Effect.sleep(50)
        yield* child.kill(signal)
      }
      yield* first.kill("SIGTERM")
      assert.strictEqual(yield* first.ended, 143)
      const before = performance.now()
      yield* other.send("/f")
      assert.strictEqual(yield* other.line, "alone")
      assert.isBelow(performance.now() - before, 1000)
    }))
})
