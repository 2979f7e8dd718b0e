/**
 * Where a path given by a model really leads, and whether that is inside the turn's roots.
 *
 * @since 0.1.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { SandboxBlocked } from "../contract/ToolFailure.ts"
import type { Turn } from "../contract/Turn.ts"
import type { WriteGrant } from "../tool/ToolInvocation.ts"
import { type FileError, fileError, type PathCode, quote } from "./FileError.ts"

export interface Resolved {
  /** Absolute, as spelled: for display and as a working directory. */
  readonly lexical: string
  /** With every link followed, a dangling one to where a write would land. */
  readonly physical: string
  /**
   * The physical path from the primary root, with forward slashes; `.` for the root; the absolute path when outside it.
   */
  readonly relative: string
  readonly inside: boolean
  readonly exists: boolean
}

export class WorkspacePath extends Context.Tag("portcullis/WorkspacePath")<WorkspacePath, {
  /**
   * Follows a path; decides nothing. Fails with `path_invalid` for what cannot be a path (NUL, empty, URL, `~`, a form
   * of another platform, link loop) and with `file_access_denied` where a directory on the way may not be searched.
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
   * holds that very file; protected names (`.git/**`, `.portcullis/**` but `plan/`) are refused in every mode but full
   * access.
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
}>() {}

export interface Options {
  /**
   * Absolute folders outside the roots that a turn may read from, such as where its own output was spilled. Never
   * written. A link in one admits nothing of what it leads to, and a folder that is itself a link admits nothing at all.
   * Default none.
   */
  readonly readable?: (turn: Turn) => ReadonlyArray<string>
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

/**
 * A name as the most forgiving file system compares it: case, composition, ignorable characters, trailing dots and
 * spaces, and stream suffixes make no difference. It errs on the side of taking two names for one.
 */
export const foldName = (name: string): string =>
  name
    .replace(/[\u200c-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g, "")
    .replace(/:.*$/s, "")
    .replace(/[. ]+$/, "")
    .normalize("NFC")
    .toUpperCase()
    .toLowerCase()
    .normalize("NFC")

/** Whether a path below a root names what only the user may change: `.git`, and `.portcullis` but its `plan` folder. */
export const isProtected = (segments: ReadonlyArray<string>): boolean => {
  const folded = segments.map(foldName)
  return folded.some((name, index) =>
    name === ".git" || name === "git~1" || (name === ".portcullis" && folded[index + 1] !== "plan")
  )
}

export const make = (
  options: Options = {}
): Effect.Effect<WorkspacePath["Type"], never, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function*() {
    const { readable = () => [] } = options
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path

    const separators = path.sep === "/" ? /\/+/ : /[\\/]+/
    const segmentsOf = (text: string): Array<string> => text.split(separators).filter((name) => name !== "")

    const contains = (root: string, target: string): boolean =>
      target === root || target.startsWith(root.endsWith(path.sep) ? root : root + path.sep)

    /** What a name links to; `undefined` when it is no link, `null` when there is nothing of that name. */
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

    const follow = Effect.fnUntraced(function*(
      start: string,
      seen: Map<string, string | undefined | null>
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
        if (!missing && !seen.has(candidate)) seen.set(candidate, yield* linkAt(candidate))
        const target: string | undefined | null = missing ? null : seen.get(candidate)
        if (typeof target !== "string") {
          current = candidate
          missing = target === null
          continue
        }
        links++
        if (links > maxLinks) {
          return yield* fileError("path_invalid", `${quote(start)} goes through more than ${maxLinks} links.`)
        }
        const targetRoot = path.isAbsolute(target) ? path.parse(target).root : ""
        if (targetRoot !== "") current = targetRoot
        for (const segment of segmentsOf(target.slice(targetRoot.length)).reverse()) pending.push(segment)
      }
    })

    const locate = Effect.fnUntraced(function*(turn: Pick<Turn, "workspace" | "roots">, input: string) {
      const problem = problemOf(input, path.sep)
      if (problem !== undefined) {
        return yield* fileError("path_invalid", `${quote(input)} is not a usable path. ${problem}`)
      }
      const lexical = path.resolve(turn.workspace, input)
      const seen = new Map<string, string | undefined | null>()
      const physical = yield* follow(lexical, seen)
      const primary = yield* follow(path.resolve(turn.workspace), seen)
      const roots = yield* Effect.forEach(turn.roots, (root) => follow(path.resolve(root), seen))
      const exists = yield* Effect.catchAll(Effect.as(fs.stat(physical), true), () => Effect.succeed(false))
      const shown = contains(primary, physical) ? path.relative(primary, physical) || "." : physical
      const resolved: Resolved = {
        lexical,
        physical,
        relative: path.sep === "/" ? shown : shown.replaceAll(path.sep, "/"),
        inside: roots.some((root) => contains(root, physical)),
        exists
      }
      return { resolved, roots }
    })

    const blocked = (resolved: Resolved, reason: string): SandboxBlocked =>
      new SandboxBlocked({ code: "sandbox_write_blocked", reason, path: resolved.relative })

    const outside = (resolved: Resolved, why: string): SandboxBlocked =>
      blocked(resolved, `${quote(resolved.lexical)} is outside the workspace${why}.`)

    const protectedBelow = (roots: ReadonlyArray<string>, target: string): boolean => {
      const holding = roots.filter((root) => contains(root, target))
      return holding.length === 0
        ? isProtected(segmentsOf(target))
        : holding.some((root) => isProtected(segmentsOf(target.slice(root.length))))
    }

    /** The folder is followed but for its last name: a link put in its place must not open what it leads to. */
    const holds = (folder: string, target: string): Effect.Effect<boolean> =>
      Effect.match(follow(path.dirname(folder), new Map()), {
        onFailure: () => false,
        onSuccess: (above) => contains(path.join(above, path.basename(folder)), target)
      })

    const identify: WorkspacePath["Type"]["identify"] = Effect.fnUntraced(function*(resolved) {
      if (resolved.inside) return yield* blocked(resolved, `${quote(resolved.lexical)} is inside the workspace.`)
      const parent = path.dirname(resolved.physical)
      const [info, folder, now] = yield* Effect.mapError(
        Effect.all([fs.stat(resolved.physical), fs.stat(parent), follow(resolved.lexical, new Map())]),
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
        const { resolved, roots } = yield* locate(turn, input)
        if (input.endsWith("/") || input.endsWith(path.sep)) {
          return yield* fileError("path_invalid", `${quote(input)} names a directory, not a file.`)
        }
        if (turn.sandboxMode === "danger-full-access") return resolved
        if (
          protectedBelow(roots, resolved.physical) ||
          protectedBelow(turn.roots.map((root) => path.resolve(root)), resolved.lexical)
        ) {
          return yield* blocked(resolved, `${quote(input)} is protected: only the user changes what is in there.`)
        }
        if (resolved.inside) return resolved
        const grant = grants.find((candidate) => candidate.path === resolved.physical)
        if (grant === undefined) return yield* outside(resolved, "")
        const now = yield* identify(resolved)
        if (!sameFile(grant, now)) return yield* outside(resolved, " and is no longer the file that was approved")
        return resolved
      }),
      identify
    }
  })

const sameFile = (left: WriteGrant, right: WriteGrant): boolean =>
  left.path === right.path && left.device === right.device && left.inode === right.inode &&
  left.parentDevice === right.parentDevice && left.parentInode === right.parentInode

/** As `layer`, with folders outside the roots that may be read. */
export const layerWith = (
  options: Options
): Layer.Layer<WorkspacePath, never, FileSystem.FileSystem | Path.Path> => Layer.effect(WorkspacePath, make(options))

export const layer: Layer.Layer<WorkspacePath, never, FileSystem.FileSystem | Path.Path> = layerWith({})
