/** Confined commands on a whole plane, and what they leave. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import * as Bubblewrap from "../../../layers/sandbox/Bubblewrap.ts"
import * as Main from "../../../layers/stacks/Main.ts"
import type { TurnSpecInput } from "../../../src/contract/Turn.ts"
import { executeIn, recorder } from "../../support/plane.ts"

export interface Place {
  readonly base: string
  /** The workspace, with a `.git` and a `.portcullis/plan`. */
  readonly root: string
  /** Beside it. */
  readonly outside: string
  /** The state file. */
  readonly state: string
}

export const folder = (parent: string = tmpdir()) =>
  Effect.acquireRelease(
    Effect.sync(() => realpathSync(mkdtempSync(`${parent}/portcullis-`))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )

export const place = (parent?: string) =>
  Effect.map(folder(parent), (base): Place => {
    const at = { base, root: `${base}/ws`, outside: `${base}/outside`, state: `${base}/state/state.db` }
    mkdirSync(`${at.root}/.git/hooks`, { recursive: true })
    mkdirSync(`${at.root}/.portcullis/plan`, { recursive: true })
    mkdirSync(at.outside)
    return at
  })

export const plane = (state: string, options: Bubblewrap.Options = {}) =>
  Main.layer({
    state: { filename: state },
    approvals: { approver: recorder().approver },
    sandbox: (needs) => Bubblewrap.layer({ ...needs, ...options })
  })

/** One `bash` call under workspace-write. */
export const bash = (root: string, command: string, spec: Partial<TurnSpecInput> = {}, timeoutMs?: number) =>
  Effect.map(
    executeIn({ workspace: root, ...spec }, {
      toolName: "bash",
      arguments: { command, ...(timeoutMs === undefined ? {} : { timeoutMs }) }
    }),
    ({ output }) => Object(output)
  )

/** Runs a test over a place of its own. */
export const confined = <A, E, R>(
  test: (
    at: Place,
    run: (command: string, timeoutMs?: number) => ReturnType<typeof bash>
  ) => Effect.Effect<A, E, R>,
  options: Bubblewrap.Options & { readonly parent?: string } = {}
) => {
  const { parent, ...own } = options
  return Effect.flatMap(
    place(parent),
    (at) =>
      test(at, (command, timeoutMs) => bash(at.root, command, {}, timeoutMs)).pipe(
        Effect.provide(plane(at.state, own)),
        Effect.provide(NodeFileSystem.layer)
      )
  )
}

/** Living processes with this word in their command line; zombies are dead. */
export const livingWith = (word: string): ReadonlyArray<string> =>
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

export const nothingLives = (word: string) => assert.deepStrictEqual(livingWith(word), [])

/** The names below a folder, but for the state. */
export const tree = (path: string): ReadonlyArray<string> =>
  readdirSync(path, { recursive: true, encoding: "utf8" }).filter((name) => !name.startsWith("state/")).sort()
