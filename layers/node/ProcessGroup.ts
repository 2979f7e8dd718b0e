/**
 * The processes that a child has started, and their end.
 *
 * A child leads a process group of its own. Where there is a `/proc`, what leaves the group (`setsid`) is still known
 * by a mark in its environment; a process that also clears its environment escapes.
 *
 * @internal
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { existsSync, readdirSync, readFileSync } from "node:fs"

/** Name of the variable that marks the processes of one run. */
export const markName = "PORTCULLIS_RUN"

export interface ProcessGroup {
  /** The leader's pid, greater than 1: signalling it can hit neither our own group nor everybody. */
  readonly id: number
  /** Value of the mark; unique. */
  readonly mark: string
}

interface Member {
  readonly pid: number
  readonly inGroup: boolean
}

const read = (path: string): string => Either.getOrElse(Either.try(() => readFileSync(path, "latin1")), () => "")

/** Whether a pid is alive and belongs to the group; a zombie is dead, for nobody here may ever reap it. */
const memberAt = (group: ProcessGroup, pid: number): Member | undefined => {
  const stat = read(`/proc/${pid}/stat`)
  const [state, , processGroup] = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  if (stat === "" || state === "Z" || state === "X") return undefined
  if (processGroup === String(group.id)) return { pid, inGroup: true }
  return pid !== process.pid && `\0${read(`/proc/${pid}/environ`)}`.includes(`\0${markName}=${group.mark}\0`)
    ? { pid, inGroup: false }
    : undefined
}

const hasProc = (): boolean => existsSync("/proc/self/stat")
const groupTarget = (group: ProcessGroup): number => process.platform === "win32" ? group.id : -group.id

/** `undefined` when it was delivered, else the error's code. Signal 0 only asks. */
const kill = (target: number, signal: NodeJS.Signals | 0): string | undefined =>
  Either.match(Either.try({ try: () => process.kill(target, signal), catch: (cause) => cause }), {
    onLeft: (cause) => cause instanceof Error && "code" in cause ? String(cause.code) : "unknown",
    onRight: () => undefined
  })

/** Cheap, and true when in doubt: zombies count. */
export const mayBeAlive = (group: ProcessGroup): boolean => kill(groupTarget(group), 0) === undefined

const members = (group: ProcessGroup): ReadonlyArray<Member> =>
  hasProc()
    ? readdirSync("/proc").flatMap((name) => /^\d+$/.test(name) ? memberAt(group, Number(name)) ?? [] : [])
    : mayBeAlive(group)
    ? [{ pid: group.id, inGroup: true }]
    : []

const stillThere = (group: ProcessGroup, found: ReadonlyArray<Member>): boolean =>
  hasProc() ? found.some(({ pid }) => memberAt(group, pid) !== undefined) : mayBeAlive(group)

/** Whether the signal reached anybody. */
const send = (group: ProcessGroup, found: ReadonlyArray<Member>, signal: NodeJS.Signals): boolean => {
  const grouped = found.some(({ inGroup }) => inGroup) ? [kill(groupTarget(group), signal)] : []
  const escaped = found.flatMap(({ inGroup, pid }) => inGroup || pid <= 1 ? [] : [kill(pid, signal)])
  return [...grouped, ...escaped].some((problem) => problem === undefined || problem === "ESRCH")
}

const waitUntilGone = Effect.fnUntraced(
  function*(group: ProcessGroup, found: ReadonlyArray<Member>, limit: Duration.Duration) {
    const deadline = (yield* Clock.currentTimeMillis) + Duration.toMillis(limit)
    let pause = 2
    while (stillThere(group, found) && (yield* Clock.currentTimeMillis) < deadline) {
      yield* Effect.sleep(pause)
      pause = Math.min(pause * 2, 25)
    }
  }
)

/**
 * TERM, then KILL after `grace`; done when nothing of the group lives. Succeeds with whether something did. To be run
 * uninterruptibly. A process that we may not signal is left, with a warning.
 */
export const terminate = Effect.fnUntraced(function*(group: ProcessGroup, grace: Duration.Duration) {
  let found = members(group)
  if (found.length === 0) return false
  send(group, found, "SIGTERM")
  yield* waitUntilGone(group, found, grace)
  for (found = members(group); found.length > 0; found = members(group)) {
    if (!send(group, found, "SIGKILL")) {
      yield* Effect.logWarning(
        `Processes that may not be signalled were left: ${found.map(({ pid }) => pid).join(", ")}`
      )
      break
    }
    yield* waitUntilGone(group, found, Duration.millis(100))
  }
  return true
})
