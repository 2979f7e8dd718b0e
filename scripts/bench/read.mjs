/** Reading a page of a file that is far larger than memory should hold. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Scope from "effect/Scope"
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { open } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Digest from "../../dist/layers/node/Digest.js"
import * as Test from "../../dist/layers/stacks/Test.js"
import { ToolCall, ToolHost, ToolInvocation, ToolProvider } from "../../dist/src/index.js"
import { read } from "../../dist/src/tools/index.js"

const large = "large.txt"
const small = "small.txt"

/** A folder with one file of a gigabyte: some megabytes of lines of 24 bytes, then a hole that takes no disk. */
const folder = () => {
  const path = mkdtempSync(join(tmpdir(), "portcullis-bench-"))
  writeFileSync(join(path, large), "a line of the large file\n".repeat(400_000))
  truncateSync(join(path, large), 1024 ** 3)
  return path
}

const opened = async (path) => {
  const provider = ToolProvider.make({ id: "bench", kind: "built-in", tools: [read] })
  const runtime = ManagedRuntime.make(Test.layer([provider]).pipe(Layer.provideMerge(Digest.layer)))
  const scope = await runtime.runPromise(Scope.make())
  const session = await runtime.runPromise(
    Effect.flatMap(ToolHost.ToolHost, (host) => Scope.extend(host.openTurn({ workspace: path }), scope))
  )
  return {
    runtime,
    session,
    close: async () => {
      await runtime.dispose()
      rmSync(path, { recursive: true, force: true })
    }
  }
}

/** `n` calls of `read` for the first 2,000 lines, through every gate. */
export const first = async () => {
  const { close, session } = await opened(folder())
  const one = Effect.suspend(() => session.execute(ToolCall.make({ toolName: "read", arguments: { path: large } })))
    .pipe(
      Effect.tap(({ output }) =>
        output.nextOffset === 2001 ? Effect.void : Effect.die(new Error(JSON.stringify(output).slice(0, 300)))
      )
    )
  return { run: (n) => Effect.runPromise(Effect.repeatN(one, n - 1)), close }
}

/** `n` readings of the first 256 KB as text, by nothing but the platform. */
export const plain = async () => {
  const path = folder()
  return {
    run: async (n) => {
      for (let index = 0; index < n; index++) {
        const file = await open(join(path, large))
        const { buffer, bytesRead } = await file.read(Buffer.alloc(256 * 1024), 0, 256 * 1024, 0)
        if (buffer.toString("utf8", 0, bytesRead).split("\n").length < 2000) throw new Error("too few lines")
        await file.close()
      }
    },
    close: async () => rmSync(path, { recursive: true, force: true })
  }
}

/**
 * Megabytes by which the most memory held exceeds that of a process which has read pages of a small file. Without the
 * channel, whose ledger keeps each result in memory here.
 */
export const memory = async () => {
  const path = folder()
  writeFileSync(join(path, small), "a line of the small file\n".repeat(2001))
  const { close, runtime, session } = await opened(path)
  const turn = await runtime.runPromise(session.turn)
  const invocation = { turn, call: {}, grants: [], progress: () => Effect.void, observe: () => Effect.void }
  const run = (name, offset, times) =>
    Effect.flatMap(read.load, (prepare) => prepare({ path: name, offset })).pipe(
      Effect.flatMap((prepared) => prepared.run()),
      Effect.repeatN(times - 1),
      Effect.provideService(ToolInvocation.ToolInvocation, invocation),
      (effect) => runtime.runPromise(effect)
    )
  await run(small, 1, 500)
  globalThis.gc?.()
  const idle = process.memoryUsage.rss()
  return {
    value: async () => {
      await run(large, 1, 50)
      await run(large, 390_000, 1)
      return Math.max(0, process.resourceUsage().maxRSS * 1024 - idle) / 1024 ** 2
    },
    close
  }
}
