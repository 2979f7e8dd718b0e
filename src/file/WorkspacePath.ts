/**
 * Where a path given by a model really leads, and whether that is inside the turn's roots.
 *
 * @since 0.1.0
 */
import type { PlatformError } from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { SandboxBlocked } from "../contract/ToolFailure.ts"
import type { Turn } from "../contract/Turn.ts"
import type { WriteGrant } from "../tool/ToolInvocation.ts"
import { type FileError, fileError, type PathCode, quote } from "./FileError.ts"
import { compile, defaultProtected, defaultWithheld, foldName } from "./ProtectedName.ts"

export interface Resolved {
  /**
   * Absolute, as spelled: for display and as a working directory. The physical path where `..` behind a link makes the
   * spelling, without its `..`, lead elsewhere.
   */
  readonly lexical: string
  /** With every link followed, a dangling one to where a write would land. */
  readonly physical: string
  /**
   * The physical path from the primary root, with forward slashes; `.` for the root; the absolute path when outside it.
   */
  readonly relative: string
  readonly inside: boolean
  readonly exists: boolean
  /**
   * The deepest directory above `physical` that existed while the path was followed: the folder of an existing file, or
   * where the missing folders of a new one begin. `undefined` where it could not be looked at.
   */
  readonly ancestor: Ancestor | undefined
}

export interface Ancestor {
  readonly path: string
  readonly device: number
  readonly inode: number
}

export class WorkspacePath extends Context.Tag("portcullis/WorkspacePath")<WorkspacePath, {
  /**
   * Follows a path; says nothing of who may do what there. Fails with `path_invalid` for what cannot be a path (NUL,
   * empty, URL, `~`, a form of another platform, link loop), with `file_access_denied` where a directory on the way may
   * not be searched, and with `file_withheld`, whether there is such a file or not, when it names, leads through or leads
   * to what is withheld.
   */
  readonly resolve: (
    turn: Pick<Turn, "workspace" | "roots">,
    path: string
  ) => Effect.Effect<Resolved, FileError<PathCode>>
  /**
   * As `resolve`, for reading: outside the roots and the readable folders is `outside_workspace` unless the turn has
   * full access.
   */
  readonly forRead: (turn: Turn, path: string) => Effect.Effect<Resolved, FileError<PathCode>>
  /**
   * As `resolve`, for writing: outside the roots is `sandbox_write_blocked` unless the turn has full access or `grants`
   * holds that very file; protected names (`protect`) are refused in every mode but full access.
   */
  readonly forWrite: (
    turn: Turn,
    path: string,
    grants?: ReadonlyArray<WriteGrant>
  ) => Effect.Effect<Resolved, FileError<PathCode> | SandboxBlocked>
  /**
   * The identity of an existing regular file outside the roots with exactly one hard link, as step 11 inventories it;
   * anything else is `sandbox_write_blocked`.
   */
  readonly identify: (resolved: Resolved) => Effect.Effect<WriteGrant, SandboxBlocked>
  /**
   * Whether an absolute path names what no tool shows or changes, whatever the turn's modes (`withhold`). `resolve`,
   * `forRead` and `forWrite` refuse those with `file_withheld`; whoever lists or searches asks here and says how many were
   * left out. Pure: of a link it judges the name only.
   */
  readonly withholds: (path: string) => boolean
}>() {}

export interface Options {
  /**
   * Absolute folders outside the roots that a turn may read from, such as where its own output was spilled. Never
   * written. A link in one admits nothing of what it leads to, and a folder that is itself a link admits nothing at all.
   * Default none.
   */
  readonly readable?: (turn: Turn) => ReadonlyArray<string>
  /**
   * Patterns (`ProtectedName.compile`) of what file tools never write below a root, but with full access. Default
   * `ProtectedName.defaultProtected`. A pattern that is none is a defect when the Layer is built.
   */
  readonly protect?: ReadonlyArray<string>
  /**
   * Patterns, of whole paths, of what no tool shows or changes in any mode. Default `ProtectedName.defaultWithheld`. Names
   * are all there is to go by: a copy or a hard link of another name is another file.
   */
  readonly withhold?: ReadonlyArray<string>
}

/** As many links as Linux follows. */
const maxLinks = 40
const maxLength = 4096

/** Why a text cannot be a path here, or `undefined`. `~` is not expanded; `./~name` says a file of that name. */
export const problemOf = (path: string, separator: string): string | undefined => {
  if (path === "") return "It is empty."
  if (path.length > maxLength) return `It is longer than ${maxLength} characters.`
  if (path.includes("\0")) return "It holds a NUL character."
  if (!path.isWellFormed()) return "It holds half a surrogate pair."
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(path) || /^file:/i.test(path)) return "Give a path, not a URL."
  if (path.startsWith("~")) return "~ is not expanded; give a path from the workspace."
  if (separator === "/" && /^[a-z]:[\\/]|^\\\\|\\\.\.(?:[\\/]|$)|(?:^|[\\/])\.\.\\/i.test(path)) {
    return "It is a path of another platform; separate names with /."
  }
  return undefined
}

/** By its end: whatever is there, or not yet there. */
const namesDirectory = (path: string, separator: string): boolean =>
  (separator === "/" ? /(?:^|\/)\.{0,2}$/ : /(?:^|[\\/])\.{0,2}$/).test(path)

/** What a name links to; `undefined`: it is no link, `null`: there is nothing of that name. */
type Seen = Map<string, string | undefined | null>

const listOf = (patterns: ReadonlyArray<string>): Effect.Effect<(path: string) => boolean> =>
  Either.match(compile(patterns), {
    onLeft: (pattern) => Effect.dieMessage(`${quote(pattern)} is not a pattern of names`),
    onRight: Effect.succeed
  })

export const make = (
  options: Options = {}
): Effect.Effect<WorkspacePath["Type"], never, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function*() {
    const { protect = defaultProtected, readable = () => [], withhold = defaultWithheld } = options
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const isProtected = yield* listOf(protect)
    const isWithheld = yield* listOf(withhold)

    const separators = path.sep === "/" ? /\/+/ : /[\\/]+/
    const segmentsOf = (text: string): Array<string> => text.split(separators).filter((name) => name !== "")

    const slashed = (text: string): string => path.sep === "/" ? text : text.replaceAll(path.sep, "/")

    const withholds = (target: string): boolean => isWithheld(slashed(target))

    const contains = (root: string, target: string): boolean =>
      target === root || target.startsWith(root.endsWith(path.sep) ? root : root + path.sep)

    const linkAt = (candidate: string): Effect.Effect<string | undefined | null, FileError<"file_access_denied">> =>
      Effect.catchAll(fs.readLink(candidate), (error) => {
        if (error._tag !== "SystemError") return Effect.succeed(undefined)
        if (error.reason === "PermissionDenied") {
          return Effect.fail(
            fileError("file_access_denied", `${quote(candidate)} cannot be followed: permission denied.`)
          )
        }
        return Effect.succeed(error.reason === "NotFound" || error.reason === "BadResource" ? null : undefined)
      })

    /** Adds to `through` the links it followed, and the name that it could not look at. */
    const follow = Effect.fnUntraced(function*(
      start: string,
      seen: Seen = new Map(),
      through: Array<string> = []
    ): Effect.fn.Return<string, FileError<PathCode>> {
      const root = path.parse(start).root
      const pending = segmentsOf(start.slice(root.length)).reverse()
      let current = root
      let missing = false
      let links = 0
      while (true) {
        const name = pending.pop()
        if (name === undefined) return current
        if (name === ".") continue
        if (name === "..") {
          current = path.dirname(current)
          missing = false
          continue
        }
        const candidate = path.join(current, name)
        if (!missing && !seen.has(candidate)) {
          const look = linkAt(candidate)
          seen.set(candidate, yield* Effect.tapError(look, () => Effect.sync(() => through.push(candidate))))
        }
        const target: string | undefined | null = missing ? null : seen.get(candidate)
        if (typeof target !== "string") {
          current = candidate
          missing = target === null
          continue
        }
        through.push(candidate)
        links++
        if (links > maxLinks) {
          return yield* fileError("path_invalid", `${quote(start)} goes through more than ${maxLinks} links.`)
        }
        const targetRoot = path.isAbsolute(target) ? path.parse(target).root : ""
        if (targetRoot !== "") current = targetRoot
        for (const segment of segmentsOf(target.slice(targetRoot.length)).reverse()) pending.push(segment)
      }
    })

    const identityOf = (folder: string): Effect.Effect<Ancestor | undefined, PlatformError> =>
      Effect.map(fs.stat(folder), (info) => {
        const inode = Option.getOrElse(info.ino, () => 0)
        return info.type === "Directory" && inode !== 0 ? { path: folder, device: info.dev, inode } : undefined
      })

    const ancestorOf = (folder: string): Effect.Effect<Ancestor | undefined> =>
      Effect.catchAll(identityOf(folder), (error) => {
        const above = path.dirname(folder)
        const missing = error._tag === "SystemError" && error.reason === "NotFound"
        return missing && above !== folder ? ancestorOf(above) : Effect.succeed(undefined)
      })

    const sameDirectory = (left: string, right: string): Effect.Effect<boolean> =>
      Effect.match(Effect.all([identityOf(left), identityOf(right)]), {
        onFailure: () => false,
        onSuccess: ([one, two]) =>
          one !== undefined && two !== undefined && one.device === two.device && one.inode === two.inode
      })

    /**
     * A path into a root through another spelling of it, spelled as the root is. Names only say where to look: whether
     * the volume takes the spellings for one is what the directories' identity says.
     */
    const respell = Effect.fnUntraced(function*(target: string, roots: ReadonlyArray<string>) {
      if (roots.some((root) => contains(root, target))) return target
      const top = path.parse(target).root
      const names = segmentsOf(target.slice(top.length))
      for (const root of roots) {
        const above = segmentsOf(root.slice(path.parse(root).root.length))
        if (!above.every((name, index) => foldName(name) === foldName(names[index] ?? ""))) continue
        const alike = path.join(top, ...names.slice(0, above.length))
        if (yield* sameDirectory(alike, root)) return path.join(root, ...names.slice(above.length))
      }
      return target
    })

    const locate = Effect.fnUntraced(function*(turn: Pick<Turn, "workspace" | "roots">, input: string) {
      const problem = problemOf(input, path.sep)
      if (problem !== undefined) {
        return yield* fileError("path_invalid", `${quote(input)} is not a usable path. ${problem}`)
      }
      const seen: Seen = new Map()
      const above: Array<string> = []
      const workspace = path.resolve(turn.workspace)
      const primary = yield* follow(workspace, seen, above)
      const given = turn.roots.map((root) => path.resolve(root))
      const roots = yield* Effect.forEach(given, (root) => follow(root, seen, above))

      // Windows takes `..` before it follows links, everybody else behind a link means above what it leads to.
      const plain = path.resolve(workspace, input)
      const start = path.sep !== "/" ? plain : path.isAbsolute(input) ? input : `${workspace}/${input}`
      const through: Array<string> = []
      const followed = yield* Effect.either(follow(start, seen, through))
      const passed = [
        plain,
        ...through.filter((link) => !above.includes(link)),
        ...Either.match(followed, { onLeft: () => [], onRight: (to) => [to] })
      ]
      if (passed.some(withholds)) {
        return yield* fileError("file_withheld", `${quote(input)} is withheld: no tool shows or changes it.`)
      }
      const physical = yield* respell(yield* followed, [primary, ...roots])
      const lexical =
        start.includes("..") && Option.getOrUndefined(yield* Effect.option(follow(plain, seen))) !== physical
          ? physical
          : plain
      const exists = yield* Effect.catchAll(Effect.as(fs.stat(physical), true), () => Effect.succeed(false))
      const resolved: Resolved = {
        lexical,
        physical,
        relative: slashed(contains(primary, physical) ? path.relative(primary, physical) || "." : physical),
        inside: roots.some((root) => contains(root, physical)),
        exists,
        ancestor: yield* ancestorOf(path.dirname(physical))
      }
      return { resolved, passed: [...passed, physical], roots: [...roots, ...given] }
    })

    const blocked = (resolved: Resolved, reason: string): SandboxBlocked =>
      new SandboxBlocked({ code: "sandbox_write_blocked", reason, path: resolved.relative })

    const outside = (resolved: Resolved, why: string): SandboxBlocked =>
      blocked(resolved, `${quote(resolved.lexical)} is outside the workspace${why}.`)

    const protectedBelow = (roots: ReadonlyArray<string>, target: string): boolean => {
      const holding = roots.filter((root) => contains(root, target))
      return holding.length === 0
        ? isProtected(slashed(target))
        : holding.some((root) => isProtected(slashed(target.slice(root.length))))
    }

    /** The folder is followed but for its last name: a link put in its place must not open what it leads to. */
    const holds = (folder: string, target: string): Effect.Effect<boolean> =>
      Effect.match(follow(path.dirname(folder)), {
        onFailure: () => false,
        onSuccess: (above) => contains(path.join(above, path.basename(folder)), target)
      })

    const identify: WorkspacePath["Type"]["identify"] = Effect.fnUntraced(function*(resolved) {
      if (resolved.inside) return yield* blocked(resolved, `${quote(resolved.lexical)} is inside the workspace.`)
      const parent = path.dirname(resolved.physical)
      const [info, folder, now] = yield* Effect.mapError(
        Effect.all([fs.stat(resolved.physical), fs.stat(parent), follow(resolved.lexical)]),
        () => outside(resolved, " and does not exist; nothing can be created there")
      )
      const inode = Option.getOrElse(info.ino, () => 0)
      const parentInode = Option.getOrElse(folder.ino, () => 0)
      if (now !== resolved.physical) return yield* outside(resolved, " and leads elsewhere by now")
      if (info.type !== "File") return yield* outside(resolved, " and not a regular file")
      if (inode === 0 || parentInode === 0) return yield* outside(resolved, " and has no identity to hold on to")
      if (Option.getOrElse(info.nlink, () => 0) !== 1) return yield* outside(resolved, " and has other hard links")
      return { path: resolved.physical, device: info.dev, inode, parentDevice: folder.dev, parentInode }
    })

    return {
      resolve: (turn, input) => Effect.map(locate(turn, input), ({ resolved }) => resolved),
      forRead: Effect.fnUntraced(function*(turn, input) {
        const { resolved } = yield* locate(turn, input)
        if (resolved.inside || turn.sandboxMode === "danger-full-access") return resolved
        if (
          yield* Effect.exists(readable(turn), (folder) => holds(path.resolve(folder), resolved.physical))
        ) return resolved
        return yield* fileError("outside_workspace", `${quote(input)} is outside the workspace.`)
      }),
      forWrite: Effect.fnUntraced(function*(turn, input, grants = []) {
        const { passed, resolved, roots } = yield* locate(turn, input)
        if (namesDirectory(input, path.sep)) {
          return yield* fileError("path_invalid", `${quote(input)} names a directory, not a file.`)
        }
        if (turn.sandboxMode === "danger-full-access") return resolved
        if (passed.some((name) => protectedBelow(roots, name))) {
          return yield* blocked(resolved, `${quote(input)} is protected: only the user changes what is in there.`)
        }
        if (resolved.inside) return resolved
        const grant = grants.find((candidate) => candidate.path === resolved.physical)
        if (grant === undefined) return yield* outside(resolved, "")
        const now = yield* identify(resolved)
        if (!sameFile(grant, now)) return yield* outside(resolved, " and is no longer the file that was approved")
        return resolved
      }),
      identify,
      withholds
    }
  })

const sameFile = (left: WriteGrant, right: WriteGrant): boolean =>
  left.path === right.path && left.device === right.device && left.inode === right.inode &&
  left.parentDevice === right.parentDevice && left.parentInode === right.parentInode

/** As `layer`, with folders outside the roots that may be read, or other names that are left alone. */
export const layerWith = (
  options: Options
): Layer.Layer<WorkspacePath, never, FileSystem.FileSystem | Path.Path> => Layer.effect(WorkspacePath, make(options))

export const layer: Layer.Layer<WorkspacePath, never, FileSystem.FileSystem | Path.Path> = layerWith({})

/**
 * Whether a change of this file has to be preceded by a read of it: not where the turn may not read it at all. There the
 * explicit approval of that very file stands in the place of the read.
 */
export const mayBeRead = (
  paths: WorkspacePath["Type"],
  turn: Turn,
  resolved: Resolved
): Effect.Effect<boolean> =>
  resolved.inside
    ? Effect.succeed(true)
    // Not by the name that was given: that may lead elsewhere by now.
    : Effect.match(paths.forRead(turn, resolved.physical), {
      onFailure: ({ code }) => code !== "outside_workspace",
      onSuccess: () => true
    })
