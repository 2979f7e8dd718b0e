/**
 * `ProcessSandbox` by bubblewrap 0.8 or newer, on Linux.
 *
 * A command gets namespaces of its own (user, pid, mount, ipc, uts, cgroup, and net unless the host allows the network),
 * no capabilities and no way to nest namespaces, a private `/tmp`, `/dev` and `/proc`, and a cleared environment. Programs
 * are there read-only, homes are not there at all, and of the workspace `.git` and `.portcullis` (but its `plan`) are read-only, also
 * where they do not exist yet. When the command ends, is stopped, or its host dies, the pid namespace dies with it.
 *
 * Limits. Sockets and pipes in a bound folder (the roots, `readable`, `/usr`, `/opt`) can be connected to, for a read-only
 * mount does not refuse that. With the network allowed, the host's own loopback and its abstract sockets are in reach.
 * `AF_VSOCK` and the session keyring have no namespace. What bubblewrap itself is started with, the allow-list of `Subprocess`, can be
 * read in `/proc/1/environ`. Names below the top of a root are not protected. In a workspace
 * whose `.git` leads elsewhere (a worktree), git needs that place in `readable`. Memory and the number of processes are
 * bounded by the time-out alone.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Path from "node:path"
import type { Confinement } from "../../src/contract/Policy.ts"
import { SandboxBlocked } from "../../src/contract/ToolFailure.ts"
import {
  type ConfineOptions,
  layerUnavailable,
  layerUnconfined,
  ProcessSandbox
} from "../../src/process/ProcessSandbox.ts"
import { type Outcome, Subprocess } from "../../src/process/Subprocess.ts"
import * as mounts from "./mounts.ts"
import * as Placeholders from "./Placeholders.ts"

export interface Options {
  /** Absolute. Default: `bwrap` where systems keep it; never looked up in `PATH`, where a workspace may have put its own. */
  readonly executable?: string
  /** Whether commands share the host's network, loopback included. Default false. */
  readonly network?: boolean
  /** Absolute files and folders that commands may read beside the system's, by their physical paths. Default none. */
  readonly readable?: ReadonlyArray<string>
  /**
   * Absolute files and folders that commands never see, such as the state of this host; a root that holds one is
   * refused. A root inside one is there all the same. Default none; what only root may read in `/etc` is always hidden.
   */
  readonly masked?: ReadonlyArray<string>
  /**
   * Names of host variables that commands get beside `PATH`, the locale, the time zone, the user's name and what is
   * said of the terminal. What a tool sets for its command comes on top. `HOME` and `TMPDIR` are the private `/tmp`.
   */
  readonly inheritEnv?: ReadonlyArray<string>
  /** Default: the environment of this process, as it is when the layer is built. */
  readonly hostEnv?: Readonly<Record<string, string | undefined>>
}

const executables = ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"]

const inherited = ["LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "TERM", "COLORTERM", "NO_COLOR"]

const isolation = [
  ...["--unshare-all", "--unshare-user", "--disable-userns", "--cap-drop", "ALL"],
  ...["--die-with-parent", "--new-session", "--clearenv"]
]

/** Holds only where the confinement does: for the root user without capabilities as for others. */
const probe =
  "[ $$ -lt 10 ] && [ ! -w / ] && [ ! -w /etc ] && [ ! -w /proc/sys/kernel/core_pattern ] && [ -w /tmp ] && : > /dev/null"

const unavailable = (reason: string): SandboxBlocked => new SandboxBlocked({ code: "sandbox_unavailable", reason })

const quote = (path: string): string => JSON.stringify(path)

const environment = (options: Options): Record<string, string> => {
  const host = options.hostEnv ?? process.env
  const names = new Set([...inherited, ...options.inheritEnv ?? []])
  const taken = Object.entries(host).flatMap(([name, value]) =>
    value !== undefined && (names.has(name) || name.startsWith("LC_")) ? [[name, value]] : []
  )
  // The programs of this Node are there, whatever links `PATH` reaches them by.
  const path = `${host["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"}:${Path.dirname(process.execPath)}`
  return { ...Object.fromEntries(taken), PATH: path, HOME: "/tmp", TMPDIR: "/tmp" }
}

const whyNot = ({ ending, stderr }: Outcome): string | undefined => {
  if (ending._tag === "Exited" && ending.code === 0) return undefined
  if (ending._tag === "SpawnFailed") return `Bubblewrap cannot be started: ${ending.reason}`
  const said = new TextDecoder().decode(stderr.bytes.subarray(0, 1000)).trim()
  return `Bubblewrap cannot confine a command here: ${said === "" ? JSON.stringify(ending) : said}`
}

/** The roots by their physical paths, shorter first; refused when one of them would undo the confinement. */
const placeRoots = (
  { cwd, mode, roots }: ConfineOptions,
  masked: ReadonlyArray<string>,
  bound: ReadonlyArray<string>
) =>
  Effect.gen(function*() {
    const physical = new Set<string>()
    const links = new Map<string, string>()
    for (const root of [...roots].sort((left, right) => left.length - right.length)) {
      const real = mounts.realPath(root)
      if (!Path.isAbsolute(root) || real === undefined) {
        return yield* unavailable(`The root ${quote(root)} is not there, so nothing can be confined to it.`)
      }
      const held = masked.find((path) => mounts.inside(real, mounts.realPath(path) ?? path))
      if (real === "/" || held !== undefined) {
        return yield* unavailable(
          `Commands cannot be confined to the root ${quote(root)}: it holds ${
            held === undefined ? "everything" : quote(held)
          }.`
        )
      }
      if (["/proc", "/sys", "/dev"].some((kernel) => mounts.inside(kernel, real))) {
        return yield* unavailable(`Commands cannot be confined to the root ${quote(root)}: it is the kernel's.`)
      }
      const visible = [...bound, ...physical, ...links.keys()].some((folder) => mounts.inside(folder, root))
      if (real !== root && !visible) links.set(root, real)
      physical.add(real)
    }
    const sorted = [...physical].sort((left, right) => left.length - right.length)
    return {
      physical: sorted,
      args: [
        ...sorted.flatMap((root) => [mode === "workspace-write" ? "--bind" : "--ro-bind", root, root]),
        ...[...links].flatMap(([link, real]) => ["--symlink", real, link])
      ],
      cwd: mounts.realPath(cwd) ?? cwd
    }
  })

/**
 * Mounts a protected name read-only over itself. One that is not there is made for as long as the command runs, so that
 * it cannot be made by the command; a link cannot be mounted over, and would be followed.
 */
const protect = (
  path: string,
  placeholders: Placeholders.Placeholders
): Effect.Effect<ReadonlyArray<string>, SandboxBlocked, Scope.Scope> =>
  Effect.gen(function*() {
    const found = mounts.look(path)
    if (found?.isSymbolicLink() === true) {
      return yield* unavailable(
        `${quote(path)} is a link, which a command could replace, so no command can be confined here.`
      )
    }
    if (found === undefined || placeholders.has(path)) {
      const held = yield* placeholders.hold(path)
      if (Either.isLeft(held)) {
        // Where we may not create it, the command, which has no more rights, may not either.
        if (["EACCES", "EPERM", "EROFS"].includes(held.left)) return []
        return yield* unavailable(`${quote(path)} cannot be protected: ${held.left}`)
      }
    }
    const plan = Path.join(path, "plan")
    return Path.basename(path) === ".portcullis" && mounts.look(plan)?.isDirectory() === true
      ? [...mounts.readOnly(path), "--bind", plan, plan]
      : mounts.readOnly(path)
  })

/**
 * Looks for bubblewrap and has it confine a command that looks around (at most 5 seconds). Fails with `sandbox_unavailable`
 * when there is none, when it is older than 0.8, or when the command was not confined.
 */
export const make = (options: Options = {}): Effect.Effect<ProcessSandbox["Type"], SandboxBlocked, Subprocess> =>
  Effect.gen(function*() {
    const subprocess = yield* Subprocess
    const { masked = [], network = false, readable = [] } = options
    const executable = options.executable ?? executables.find((path) => mounts.look(path) !== undefined)
    if (executable === undefined) return yield* unavailable("Bubblewrap (bwrap) is not installed here.")
    const system = yield* Effect.sync(mounts.system)
    const placeholders = Placeholders.make()
    const env = environment(options)
    const runner = [executable, ...isolation, ...(network ? ["--share-net"] : [])]

    const confined = Effect.fnUntraced(function*(argv: ReadonlyArray<string>, asked: ConfineOptions) {
      const base = mounts.base(system, { readable, masked, network })
      const roots = yield* placeRoots(asked, masked, base.bound)
      const names = asked.mode === "workspace-write"
        ? roots.physical.flatMap((root) => [Path.join(root, ".git"), Path.join(root, ".portcullis")])
        : []
      const protections = yield* Effect.forEach(names, (path) => protect(path, placeholders))
      return [
        ...runner,
        ...Object.entries({ ...env, ...asked.env }).flatMap(([name, value]) => ["--setenv", name, value]),
        ...base.args,
        ...roots.args,
        ...protections.flat(),
        ...base.closing,
        ...["--chdir", roots.cwd, "--"],
        ...argv
      ]
    })

    const looked = yield* Effect.scoped(confined(["/bin/sh", "-c", probe], { mode: "read-only", roots: [], cwd: "/" }))
    const problem = whyNot(yield* subprocess.run({ argv: looked, cwd: "/", timeout: "5 seconds" }))
    if (problem !== undefined) return yield* unavailable(problem)

    return {
      report: Effect.succeed<Confinement>("full"),
      confine: (argv, asked) => {
        switch (asked.mode) {
          case "danger-full-access":
            return Effect.succeed(argv)
          case "external-sandbox":
            return Effect.fail(unavailable("External confinement is the host's own; bubblewrap is not that."))
          case "read-only":
          case "workspace-write":
            return confined(argv, asked)
        }
      }
    }
  })

/** Fails closed: where bubblewrap cannot confine, every command that needs confinement is `sandbox_unavailable`. */
export const layer = (options?: Options): Layer.Layer<ProcessSandbox, never, Subprocess> =>
  Layer.effect(ProcessSandbox, make(options)).pipe(Layer.catchAll(({ reason }) => layerUnavailable(reason)))

/** Where bubblewrap cannot confine, commands run under `danger-full-access` alone, and the report is `none`. */
export const layerOrUnconfined = (options?: Options): Layer.Layer<ProcessSandbox, never, Subprocess> =>
  Layer.effect(ProcessSandbox, make(options)).pipe(Layer.catchAll(() => layerUnconfined))
