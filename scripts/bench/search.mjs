/**
 * Searching a tree of 50,000 files: the tools as a call runs them, and ripgrep into a sink. The tree is made once, the same
 * on every machine, and kept in the temporary folder.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { rgPath } from "@vscode/ripgrep"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { spawn } from "node:child_process"
import { existsSync, mkdirSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import * as FileAccess from "../../dist/layers/node/FileAccess.js"
import * as Ripgrep from "../../dist/layers/node/Ripgrep.js"
import * as Subprocess from "../../dist/layers/node/Subprocess.js"
import * as WorkspacePath from "../../dist/src/file/WorkspacePath.js"
import { ToolInvocation } from "../../dist/src/tool/ToolInvocation.js"
import { glob } from "../../dist/src/tools/glob.js"
import { grep } from "../../dist/src/tools/grep.js"
import { encodeCursor, keyOf, queryId } from "../../dist/src/tools/search/page.js"

const files = 50_000
const words =
  ("const function return import export value index path error result string number match request handler " +
    "config option buffer stream length").split(" ")
const extensions = ["ts", "md", "json", "js"]

/** `everywhere` is on every other line, `many` on one of 40, `rare` on one of 600,000. */
export const tree = () => {
  const root = join(realpathSync(tmpdir()), `portcullis-bench-search-${files}`)
  if (existsSync(join(root, "complete"))) return root
  rmSync(root, { recursive: true, force: true })
  let state = 1
  const random = (below) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
    return (state >> 8) % below
  }
  for (let index = 0; index < files; index++) {
    const nested = random(3) === 0 ? "" : `s${random(10)}/`
    const file = join(root, `p${random(40)}/m${random(25)}/${nested}f${index}.${extensions[random(4)]}`)
    const lines = Array.from({ length: 10 + random(90) }, () => {
      const line = Array.from({ length: 8 }, () => words[random(words.length)])
      if (random(2) === 0) line.push("everywhere")
      if (random(40) === 0) line.push("many")
      if (random(600_000) === 0) line.push("rare")
      return `${line.join(" ")}\n`
    })
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, lines.join(""))
  }
  writeFileSync(join(root, "oneLine.min.js"), `${"a".repeat(100_000)}minified${"b".repeat(117_000)}\n`)
  writeFileSync(join(root, "complete"), "")
  return root
}

const services = Layer.mergeAll(Subprocess.layer(), Ripgrep.layer, FileAccess.layer(), WorkspacePath.layer).pipe(
  Layer.provideMerge(Layer.mergeAll(NodeFileSystem.layer, NodePath.layer))
)

const calling = async (tool, makeArgs) => {
  const root = tree()
  const args = await Effect.runPromise(makeArgs(root))
  const runtime = ManagedRuntime.make(services)
  const invocation = {
    turn: { workspace: root, roots: [root], sandboxMode: "workspace-write" },
    call: {},
    grants: [],
    progress: () => Effect.void,
    observe: () => Effect.void
  }
  const one = Effect.gen(function*() {
    const prepared = yield* (yield* tool.load)(args)
    return yield* Effect.provideService(Effect.suspend(prepared.run), ToolInvocation, invocation)
  })
  const { output } = await runtime.runPromise(one)
  if ((output.matches ?? output.paths).length === 0) throw new Error("nothing was found")
  return { run: (n) => runtime.runPromise(Effect.repeatN(one, n - 1)), close: () => runtime.dispose() }
}

/** A pattern that few lines match: the page is the whole result. */
export const grepRare = () => calling(grep, () => Effect.succeed({ pattern: "rare" }))

/** The last page of a pattern that 20 MB of output match: all of them have to be looked at. */
export const grepMany = () =>
  calling(grep, (root) =>
    Effect.map(queryId(["grep", "many", root, null, false, false, 0]), (id) => ({
      pattern: "many",
      cursor: encodeCursor(id, { key: keyOf("p9/m9/s9"), line: 1 })
    })))

/** The first page of a pattern that half of all lines match. */
export const grepCommon = () => calling(grep, () => Effect.succeed({ pattern: "everywhere" }))

export const globAll = () => calling(glob, () => Effect.succeed({ pattern: "**" }))
export const globSome = () => calling(glob, () => Effect.succeed({ pattern: "**/*.ts" }))

/** Ripgrep by itself, its output read and thrown away. */
export const raw = (...args) => {
  const root = tree()
  const one = () =>
    new Promise((resolve, reject) => {
      const child = spawn(rgPath, [...args, root], { stdio: ["ignore", "pipe", "inherit"] })
      child.stdout.on("data", () => {})
      child.on("error", reject)
      child.on("close", resolve)
    })
  return {
    run: async (n) => {
      for (let index = 0; index < n; index++) await one()
    }
  }
}

/** Bytes of the page that a line of 217 KB gives. */
export const longLine = async () => {
  const root = tree()
  const runtime = ManagedRuntime.make(services)
  const prepared = await runtime.runPromise(
    Effect.flatMap(grep.load, (prepare) => prepare({ pattern: "minified", path: join(root, "oneLine.min.js") }))
  )
  const invocation = { turn: { workspace: root, roots: [root], sandboxMode: "workspace-write" } }
  const { content } = await runtime.runPromise(
    Effect.provideService(Effect.suspend(prepared.run), ToolInvocation, invocation)
  )
  return { value: () => content[0].text.length, close: () => runtime.dispose() }
}
