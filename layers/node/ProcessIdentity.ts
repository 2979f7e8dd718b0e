/**
 * `ProcessIdentity` from `/proc`, or from `ps` where there is none.
 *
 * Limit: pids of another pid namespace (a container that shares the state folder) cannot be judged.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { execFile } from "node:child_process"
import * as Fs from "node:fs"
import { type Owner, ProcessIdentity } from "../../src/process/ProcessIdentity.ts"

/** How a pid looks: gone, there since a time, or there since nobody knows when. */
type Look = { readonly _tag: "Gone" } | { readonly _tag: "There"; readonly startTime: string | null }

const gone: Look = { _tag: "Gone" }

const codeOf = (cause: unknown): string => cause instanceof Error && "code" in cause ? String(cause.code) : "unknown"

const signalled = (pid: number): Effect.Effect<Look> =>
  Effect.try({ try: () => process.kill(pid, 0), catch: codeOf }).pipe(
    Effect.match({
      onSuccess: (): Look => ({ _tag: "There", startTime: null }),
      onFailure: (code): Look => code === "ESRCH" ? gone : { _tag: "There", startTime: null }
    })
  )

/** The name of a program may hold blanks and parentheses, so the fields are counted after the last one. */
const parseStat = (stat: string): Look | undefined => {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  const state = fields[0]
  const startTime = fields[19]
  if (state === undefined || startTime === undefined || !/^\d+$/.test(startTime)) return undefined
  // While another of its threads lives, a system call of a killed process may still be under way, a rename for one.
  const ended = state === "Z" || state === "X" || state === "x"
  return ended && !(Number(fields[17]) > 1) ? gone : { _tag: "There", startTime }
}

const fromProc = (root: string) => (pid: number): Effect.Effect<Look> =>
  Effect.try({ try: () => Fs.readFileSync(`${root}/${pid}/stat`, "latin1"), catch: codeOf }).pipe(
    Effect.map(parseStat),
    Effect.flatMap((look) => look === undefined ? signalled(pid) : Effect.succeed(look)),
    // Also one that is not there: processes can be hidden, as by `hidepid`.
    Effect.catchAll(() => signalled(pid))
  )

const fromPs = (pid: number): Effect.Effect<Look> =>
  Effect.async<string | undefined>((resume) => {
    const options = { env: { ...process.env, LC_ALL: "C", TZ: "UTC" }, timeout: 5000 }
    const child = execFile("ps", ["-o", "state=,lstart=", "-p", String(pid)], options, (error, stdout) => {
      resume(Effect.succeed(error === null ? stdout.trim() : undefined))
    })
    return Effect.sync(() => child.kill("SIGKILL"))
  }).pipe(
    Effect.flatMap((line) => {
      const match = line === undefined ? null : /^(\S+)\s+(\S.*)$/.exec(line)
      if (match === null) return signalled(pid)
      return Effect.succeed(
        match[1]?.startsWith("Z") ? gone : { _tag: "There", startTime: match[2] ?? null } satisfies Look
      )
    })
  )

export interface Options {
  /** Where the proc file system is; default `/proc`. */
  readonly proc?: string
}

export const make = (options: Options = {}): Effect.Effect<typeof ProcessIdentity.Service> =>
  Effect.gen(function*() {
    const proc = options.proc ?? "/proc"
    const bootId = yield* Effect.option(
      Effect.try(() => Fs.readFileSync(`${proc}/sys/kernel/random/boot_id`, "latin1").trim())
    )
    const hasProc = yield* Effect.sync(() => Fs.existsSync(`${proc}/${process.pid}/stat`))
    const look = hasProc ? fromProc(proc) : fromPs
    const me = yield* look(process.pid)
    const self: Owner = {
      pid: process.pid,
      startTime: me._tag === "There" ? me.startTime : null,
      bootId: Option.getOrNull(bootId),
      token: globalThis.crypto.randomUUID()
    }
    return {
      self,
      alive: (owner) => {
        if (owner.token === self.token) return Effect.succeed(true)
        if (owner.bootId !== null && self.bootId !== null && owner.bootId !== self.bootId) return Effect.succeed(false)
        return Effect.map(look(owner.pid), (now) =>
          now._tag === "There" &&
          (owner.startTime === null || now.startTime === null || owner.startTime === now.startTime))
      }
    }
  })

export const layer = (options?: Options): Layer.Layer<ProcessIdentity> => Layer.effect(ProcessIdentity, make(options))
