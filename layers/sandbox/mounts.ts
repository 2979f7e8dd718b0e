/**
 * What a confined command sees of the file system, as arguments of bubblewrap, later mounts over earlier ones.
 *
 * Only what programs need is there at all. `/home`, `/root`, `/var`, `/run`, `/srv`, `/mnt`, `/media`, `/sys` and `/boot` are not, so
 * neither are the sockets in them.
 *
 * @internal
 */
import * as Either from "effect/Either"
import * as Fs from "node:fs"
import { homedir } from "node:os"
import * as Path from "node:path"

export const inside = (folder: string, path: string): boolean =>
  path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`)

export const realPath = (path: string): string | undefined =>
  Either.getOrUndefined(Either.try(() => Fs.realpathSync(path)))

export const look = (path: string): Fs.Stats | undefined => Either.getOrUndefined(Either.try(() => Fs.lstatSync(path)))

const list = (folder: string): ReadonlyArray<string> =>
  Either.getOrElse(Either.try(() => Fs.readdirSync(folder)), () => [])

export const readOnly = (path: string): ReadonlyArray<string> => ["--ro-bind", path, path]

/** Not all of `/nix`: the socket of its daemon is there. */
const systemFolders = [
  ...["/usr", "/etc", "/opt", "/nix/store", "/gnu/store"],
  ...["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"]
]

/**
 * What of `/proc` a host's root may write by its file modes alone, without any capability: `/proc/sys/kernel/core_pattern` names a
 * program that the kernel runs outside. Bubblewrap covers some of it, and not `sys` when root runs it.
 */
const writableProc = ["sys", "sysrq-trigger", "irq", "bus", "fs", "scsi", "acpi", "driver", "mtrr", "pressure"]

/** What only root may read in a folder of configuration: a host that is root could read it in the sandbox too. */
const secretsIn = (folder: string): ReadonlyArray<string> =>
  list(folder).flatMap((name) => {
    const path = Path.join(folder, name)
    const stats = look(path)
    if (stats === undefined || stats.isSymbolicLink()) return []
    const needed = stats.isDirectory() ? 0o005 : 0o004
    return (stats.mode & needed) !== needed ? [path] : stats.isDirectory() ? secretsIn(path) : []
  })

/** The programs and modules of this Node: its prefix may be a home, so nothing else of it. */
const node = (): ReadonlyArray<string> => {
  const program = realPath(process.execPath) ?? process.execPath
  const bin = Path.dirname(program)
  return Path.basename(bin) === "bin"
    ? [bin, Path.join(Path.dirname(bin), "lib", "node_modules")].filter((path) => look(path) !== undefined)
    : [program]
}

/** An own home below a system folder; that of a service account may be the system's. */
const ownHome = (): ReadonlyArray<string> => {
  const home = realPath(homedir())
  return home !== undefined && look(home)?.uid === process.getuid?.() ? [home] : []
}

/** An empty folder, or `/dev/null` without its device, which can be neither read nor written. */
const hide = (path: string): ReadonlyArray<string> =>
  look(path)?.isDirectory() === true
    ? ["--perms", "0555", "--tmpfs", path]
    : ["--ro-bind", "/dev/null", path]

export interface Options {
  readonly readable: ReadonlyArray<string>
  readonly masked: ReadonlyArray<string>
  readonly network: boolean
}

export interface Base {
  readonly args: ReadonlyArray<string>
  /** Closes what the places of the roots are made in; comes after those. */
  readonly closing: ReadonlyArray<string>
  /** Everything that is bound, by its physical path. */
  readonly bound: ReadonlyArray<string>
}

/** What does not change from command to command; computed once a layer. */
export interface System {
  readonly folders: ReadonlyArray<string>
  /** Files and folders of `/etc`. */
  readonly secrets: ReadonlyArray<string>
  readonly args: ReadonlyArray<string>
}

export const system = (): System => {
  const present = systemFolders.filter((path) => look(path) !== undefined)
  const folders = present.filter((path) => look(path)?.isSymbolicLink() === false)
  const linked = (path: string): boolean => {
    const target = realPath(path)
    return look(path)?.isSymbolicLink() === true && folders.some((folder) => inside(folder, target ?? ""))
  }
  const binds = present.flatMap((path) => linked(path) ? ["--symlink", Fs.readlinkSync(path), path] : readOnly(path))
  const proc = writableProc.map((name) => `/proc/${name}`).filter((path) => look(path) !== undefined)
  return {
    folders,
    args: [
      ...binds,
      ...["--dev", "/dev", "--perms", "1777", "--tmpfs", "/dev/shm", "--proc", "/proc"],
      ...proc.flatMap(readOnly),
      ...["--perms", "1777", "--tmpfs", "/tmp"]
    ],
    secrets: secretsIn("/etc")
  }
}

/** All but the roots, as it is when a command starts. Of a masked path that is not there yet nothing is hidden. */
export const base = ({ args, folders, secrets }: System, options: Options): Base => {
  const resolver = options.network ? ["/etc/resolv.conf"] : []
  const extra = [...new Set([...node(), ...resolver, ...options.readable].flatMap((path) => realPath(path) ?? []))]
    .filter((path) => !folders.some((folder) => inside(folder, path)))
    .sort((left, right) => left.length - right.length)
  const bound = [...folders, ...extra]
  const under = (parents: ReadonlyArray<string>, path: string) => parents.some((folder) => inside(folder, path))
  const below = [...secrets, ...ownHome().filter((path) => under(folders, path))].filter((path) =>
    look(path) !== undefined
  )
  const above = options.masked.flatMap((path) => realPath(path) ?? []).filter((path) => under(bound, path))
  const closed = [...below, ...above].filter((path) => look(path)?.isDirectory() === true)
  return {
    args: [...args, ...below.flatMap(hide), ...extra.flatMap(readOnly), ...above.flatMap(hide)],
    closing: [...closed, "/dev", "/"].flatMap((path) => ["--remount-ro", path]),
    bound
  }
}
