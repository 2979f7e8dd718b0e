/** The copy that the agent works on: made, tested and compared by the host, whatever the agent says. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import type { SandboxMode } from "../../src/contract/Policy.ts"
import type { SandboxBlocked } from "../../src/contract/ToolFailure.ts"
import { ProcessSandbox } from "../../src/process/ProcessSandbox.ts"
import { Subprocess } from "../../src/process/Subprocess.ts"

export interface Tested {
  readonly passes: boolean
  /** `7 pass, 0 fail` */
  readonly counts: string
}

/** Runs the repository's tests in a process of the host's own, confined as commands under `mode` are: an agent wrote what it runs. */
export const test = (
  folder: string,
  mode: SandboxMode
): Effect.Effect<Tested, SandboxBlocked, ProcessSandbox | Subprocess> =>
  Effect.gen(function*() {
    const argv = yield* (yield* ProcessSandbox).confine(
      [process.execPath, "--test", "--test-reporter=tap"],
      { mode, roots: [folder], cwd: folder }
    )
    return yield* (yield* Subprocess).run({ argv, cwd: folder, timeout: "30 seconds" })
  }).pipe(
    Effect.scoped,
    Effect.map(({ ending, stdout }) => {
      const text = new TextDecoder().decode(stdout.bytes)
      const number = (name: string) => Number(new RegExp(`^# ${name} (\\d+)$`, "m").exec(text)?.[1] ?? 0)
      return {
        passes: ending._tag === "Exited" && ending.code === 0 && number("pass") > 0,
        counts: `${number("pass")} pass, ${number("fail")} fail`
      }
    })
  )

const contents = Effect.fnUntraced(function*(folder: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const files = new Map<string, string>()
  for (const name of yield* fs.readDirectory(folder, { recursive: true })) {
    const file = path.join(folder, name)
    if ((yield* fs.stat(file)).type === "File") files.set(name, yield* fs.readFileString(file))
  }
  return files
})

/** Names of the files that are not the same in both folders, sorted. */
export const changed = Effect.fnUntraced(function*(before: string, after: string) {
  const [left, right] = yield* Effect.all([contents(before), contents(after)])
  return [...new Set([...left.keys(), ...right.keys()])].filter((name) => left.get(name) !== right.get(name)).sort()
})
