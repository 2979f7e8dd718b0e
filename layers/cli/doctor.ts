/** `portcullis doctor`: what works here, and why the rest does not. Changes nothing. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import { ProcessSandbox } from "../../src/process/ProcessSandbox.ts"
import { Ripgrep } from "../../src/process/Ripgrep.ts"
import { Subprocess } from "../../src/process/Subprocess.ts"
import * as NodeRipgrep from "../node/Ripgrep.ts"
import * as NodeSubprocess from "../node/Subprocess.ts"
import * as Bubblewrap from "../sandbox/Bubblewrap.ts"
import * as Database from "../sqlite/Database.ts"
import type { FileOptions } from "./arguments.ts"
import { vendors } from "./models.ts"
import { displayJson, lines, table } from "./output.ts"
import { locate } from "./state.ts"
import { Terminal } from "./Terminal.ts"

interface Check {
  readonly name: string
  readonly works: boolean
  /** Nothing of the plane works without it. */
  readonly required: boolean
  readonly detail: string
}

const check = (name: string, works: boolean, detail: string, required = false): Check => ({
  name,
  works,
  required,
  detail
})

const node = Effect.sync(() => {
  const major = Number(process.versions.node.split(".")[0])
  return check("node", major >= 20, `${process.version}${major >= 20 ? "" : ", needs 20 or newer"}`, true)
})

/** The first line that a program says of itself. */
const version = (argv: ReadonlyArray<string>) =>
  Effect.map(
    Effect.flatMap(Subprocess, (subprocess) => subprocess.run({ argv, cwd: "/", timeout: "5 seconds" })),
    ({ ending, stdout }) =>
      ending._tag === "Exited" && ending.code === 0
        ? Either.right(new TextDecoder().decode(stdout.bytes).split("\n", 1)[0] ?? "")
        : Either.left(ending._tag === "SpawnFailed" ? "not found" : `ended with ${JSON.stringify(ending)}`)
  )

const program = (name: string, argv: ReadonlyArray<string>) =>
  Effect.map(version(argv), (found) => check(name, Either.isRight(found), Either.merge(found)))

const ripgrep = Effect.flatMap(Ripgrep, ({ executable }) =>
  Effect.matchEffect(executable, {
    onFailure: (error) => Effect.succeed(check("ripgrep", false, error.reason)),
    onSuccess: (path) => program("ripgrep", [path, "--version"])
  }))

const confinement = Effect.flatMap(ProcessSandbox, ({ report }) =>
  Effect.match(report, {
    onFailure: ({ reason }) =>
      check("confinement", false, `none, commands run under danger-full-access alone: ${reason}`),
    onSuccess: (found) => check("confinement", true, `${found}, by bubblewrap`)
  }))

const sqlite = Effect.gen(function*() {
  const folder = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped({ prefix: "portcullis-" })
  yield* Layer.build(Database.layer({ filename: `${folder}/state.db` }))
  return check("sqlite", true, "opens and writes a file", true)
}).pipe(
  Effect.scoped,
  Effect.catchAll((error) => Effect.succeed(check("sqlite", false, error.message, true)))
)

/** Opens the file when there is one; else looks whether the nearest folder that exists may be written. */
const state = (options: FileOptions) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const { state } = yield* locate(options)
    if (yield* fs.exists(state)) {
      yield* Effect.scoped(Layer.build(Database.layer({ filename: state })))
      return check("state", true, state, true)
    }
    let folder = path.dirname(state)
    while (!(yield* fs.exists(folder)) && folder !== path.dirname(folder)) folder = path.dirname(folder)
    yield* fs.access(folder, { writable: true })
    return check("state", true, `${state}, created at the first call`, true)
  }).pipe(Effect.catchAll((error) => Effect.succeed(check("state", false, error.message, true))))

const installed = (name: string): Effect.Effect<boolean> =>
  Effect.isSuccess(Effect.try(() => import.meta.resolve(`${name}/package.json`)))

const model = (name: keyof typeof vendors) =>
  Effect.gen(function*() {
    const vendor = vendors[name]
    const there = yield* installed(vendor.package)
    const key = (yield* Effect.orElseSucceed(Config.string(vendor.key), () => "")) !== ""
    return check(
      name,
      there && key,
      `${vendor.package}: ${there ? "installed" : "not installed"}, ${vendor.key}: ${key ? "set" : "not set"}`
    )
  })

/** Exit code 1 when something is missing that nothing works without. */
export const doctor = Effect.fnUntraced(function*(options: FileOptions & { readonly json?: boolean }) {
  const terminal = yield* Terminal
  const checks: ReadonlyArray<Check> = yield* Effect.all([
    node,
    sqlite,
    state(options),
    ripgrep,
    program("git", ["git", "--version"]),
    confinement,
    program("bubblewrap", ["bwrap", "--version"]),
    model("openai"),
    model("anthropic")
  ]).pipe(
    Effect.provide(Layer.mergeAll(
      NodeRipgrep.layer,
      Layer.provideMerge(Bubblewrap.layer(), NodeSubprocess.layer())
    ))
  )
  yield* terminal.out(
    options.json === true
      ? `${displayJson(checks)}\n`
      : lines(table(checks.map(({ detail, name, required, works }) => [
        works ? "ok" : required ? "BROKEN" : "missing",
        name,
        detail
      ])))
  )
  return checks.every(({ required, works }) => works || !required) ? 0 : 1
})
