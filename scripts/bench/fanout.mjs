/** Fan-out: the budget of slots under many tasks, and what a spawned child costs. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Scope from "effect/Scope"
import { tmpdir } from "node:os"
import * as Digest from "../../dist/layers/node/Digest.js"
import * as Test from "../../dist/layers/stacks/Test.js"
import { AgentSystem, DelegationSemaphore, Model, ToolHost } from "../../dist/src/index.js"

const slots = 8

/** `n` tasks handed in at once and awaited, in rounds of `size`; a task does nothing, or lets others run first. */
export const tasks = async (size, body = Effect.void) => {
  const runtime = ManagedRuntime.make(DelegationSemaphore.layer({ limit: slots }))
  const semaphore = await runtime.runPromise(DelegationSemaphore.DelegationSemaphore)
  const indices = Array.from({ length: size })
  const round = Effect.scoped(Effect.gen(function*() {
    const handed = yield* Effect.forEach(indices, () => semaphore.fork(() => body))
    yield* Effect.forEach(handed, (task) => task.await, { discard: true })
  }))
  return {
    run: (n) => runtime.runPromise(Effect.repeatN(round, Math.max(1, Math.round(n / size)) - 1)),
    close: () => runtime.dispose()
  }
}

/** One operation cancels `waiting` tasks that wait behind full slots; handing them in is part of it and measured apart. */
const cancelling = async (waiting) => {
  const runtime = ManagedRuntime.make(DelegationSemaphore.layer({ limit: slots }))
  const semaphore = await runtime.runPromise(DelegationSemaphore.DelegationSemaphore)
  let spent = 0
  const round = Effect.scoped(Effect.gen(function*() {
    const end = yield* Deferred.make()
    const held = yield* Effect.forEach(Array.from({ length: slots }), () => semaphore.fork(() => Deferred.await(end)))
    const line = yield* Effect.forEach(Array.from({ length: waiting }), () => semaphore.fork(() => Effect.void))
    const start = performance.now()
    yield* Effect.forEach(line, (task) => task.cancel, { discard: true })
    spent += performance.now() - start
    yield* Deferred.succeed(end, undefined)
    yield* Effect.forEach(held, (task) => task.await, { discard: true })
  }))
  return { runtime, round, spent: () => spent }
}

/** Microseconds to cancel 10,000 waiting tasks, as a subject that takes as long as the cancelling alone took. */
export const cancel = async (waiting) => {
  const { round, runtime, spent } = await cancelling(waiting)
  for (let warm = 0; warm < 20; warm++) await runtime.runPromise(round)
  return {
    value: async () => {
      const before = spent()
      await runtime.runPromise(round)
      return (spent() - before) * 1000
    },
    close: () => runtime.dispose()
  }
}

export const yielding = Effect.yieldNow()

const silent = Layer.succeed(Model.Model, { name: "silent", respond: () => Effect.runSync(Effect.die("never asked")) })

const parent = (host) => host.openTurn({ workspace: tmpdir(), threadId: "bench" })

/** `n` children spawned under one turn and stopped, without a model call. */
export const spawn = async () => {
  const layer = Test.layerAgents([], { agents: { live: 1_000_000 } }).pipe(
    Layer.provide(silent),
    Layer.provide(Digest.layer)
  )
  const runtime = ManagedRuntime.make(layer)
  const scope = await runtime.runPromise(Scope.make())
  const [system, turn] = await runtime.runPromise(Effect.gen(function*() {
    const session = yield* Scope.extend(parent(yield* ToolHost.ToolHost), scope)
    return [yield* AgentSystem.AgentSystem, yield* session.turn]
  }))
  const kept = []
  return {
    run: async (n) => {
      const children = await runtime.runPromise(Effect.forEach(Array.from({ length: n }), () => system.spawn(turn)))
      kept.push(...children)
    },
    kept,
    stopAll: () => runtime.runPromise(Effect.forEach(kept.splice(0), (child) => child.stop, { discard: true })),
    close: () => runtime.dispose()
  }
}

/** Kilobytes of heap that a live child holds. */
export const spawnMemory = async () => {
  const subject = await spawn()
  await subject.run(1000)
  return {
    value: async () => {
      globalThis.gc?.()
      const before = process.memoryUsage().heapUsed
      const had = subject.kept.length
      await subject.run(2000)
      globalThis.gc?.()
      const used = (process.memoryUsage().heapUsed - before) / 1024 / (subject.kept.length - had)
      await subject.stopAll()
      return used
    },
    close: subject.close
  }
}
