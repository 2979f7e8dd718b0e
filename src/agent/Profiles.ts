/**
 * Which profiles there are: built-in ones, the host's, the workspace's (seed 7.2, facts 12.1).
 *
 * A later one replaces an earlier one of the same name as a whole. That can make no child stronger than its parent:
 * whatever a profile says, rights are an intersection (see `Authority`).
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
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { FileAccess } from "../file/FileAccess.ts"
import { fromPlatform } from "../file/FileError.ts"
import * as TextFile from "../file/TextFile.ts"
import { byCodeUnit } from "../internal/byCodeUnit.ts"
import { display } from "../internal/display.ts"
import * as FifoSemaphore from "../internal/FifoSemaphore.ts"
import { builtinProfiles } from "./builtinProfiles.ts"
import { maxBytes, tooLarge } from "./frontMatter.ts"
import { decode, parse, Profile, type ProfileProblem, type ProfileProblemCode } from "./Profile.ts"

/** A profile of the host that is none, or that has the name of an earlier one of the host. */
export class InvalidProfile extends Schema.TaggedError<InvalidProfile>("portcullis/InvalidProfile")("InvalidProfile", {
  code: Schema.Literal("invalid_profile"),
  /** Which of the host's, from 0. */
  index: Schema.Number,
  reason: Schema.String
}) {
  override get message() {
    return `The host's profile ${this.index} is not usable: ${this.reason}`
  }
}

export interface Options {
  readonly host?: ReadonlyArray<Profile> | undefined
  readonly workspace?: {
    readonly folder: string
    /** Whether the user trusts what is in there. Nothing is read of a workspace that is not trusted. */
    readonly trusted: boolean
  } | undefined
}

export class Profiles extends Context.Tag("portcullis/Profiles")<Profiles, {
  /** By name in code-unit order; the same array until a refresh changes it. */
  readonly list: Effect.Effect<ReadonlyArray<Profile>>
  readonly get: (name: string) => Effect.Effect<Profile | undefined>
  /** What the last reading of the workspace found wrong. The files that are right count all the same. */
  readonly problems: Effect.Effect<ReadonlyArray<ProfileProblem>>
  /**
   * Reads the files of the workspace again; whether the list changed. Never fails: see `problems`. Concurrent calls read
   * one after the other. An interruption leaves everything as it was.
   */
  readonly refresh: Effect.Effect<boolean>
  /** Runs an effect, before the refresh returns, whenever one has changed the list; until the scope closes. */
  readonly subscribe: (changed: Effect.Effect<void>) => Effect.Effect<void, never, Scope.Scope>
}>() {}

/** Files of a workspace that are read, by name in code-unit order. */
const maxFiles = 32
const folderName = ".portcullis/agents"
const sameList = Schema.equivalence(Schema.Array(Profile))

/**
 * Reads `<folder>/.portcullis/agents/*.md` (see `Profile.parse`), but names that start with a dot: at most 32 regular files
 * of at most 64 KiB. `.portcullis` and `agents` may be no links, and a link among the files may not lead out, because what
 * is elsewhere is not protected from tools. Of two files with one name the first by file name counts.
 *
 * Fails with `InvalidProfile` for a wrong profile of the host; what is wrong in the workspace is a problem in the service.
 */
export const make = (
  options: Options = {}
): Effect.Effect<Profiles["Type"], InvalidProfile, FileAccess | FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function*() {
    const read = reader(yield* FileAccess, yield* FileSystem.FileSystem, yield* Path.Path, options.workspace)
    const host = yield* decodeHost(options.host ?? [])
    const line = yield* FifoSemaphore.make(1)
    let byName: ReadonlyMap<string, Profile> = new Map()
    let list: ReadonlyArray<Profile> = []
    let problems: ReadonlyArray<ProfileProblem> = []

    const subscribers = new Set<Effect.Effect<void>>()

    const reread = Effect.map(read, (workspace) => {
      const merged = new Map([...builtinProfiles, ...host, ...workspace.profiles].map((one) => [one.name, one]))
      const sorted = Array.from(merged.values()).sort((left, right) => byCodeUnit(left.name, right.name))
      problems = workspace.problems
      if (sameList(list, sorted)) return false
      byName = merged
      list = sorted
      return true
    })
    const refresh = line.withPermit(
      Effect.uninterruptibleMask((restore) =>
        Effect.tap(restore(reread), (changed) => changed ? Effect.all(subscribers, { discard: true }) : Effect.void)
      )
    )
    yield* refresh

    return {
      list: Effect.sync(() => list),
      get: (name) => Effect.sync(() => byName.get(name)),
      problems: Effect.sync(() => problems),
      refresh,
      subscribe: (changed) =>
        // An own object for each, so that the same effect may be there twice.
        Effect.acquireRelease(
          Effect.sync(() => {
            const subscriber = Effect.suspend(() => changed)
            subscribers.add(subscriber)
            return subscriber
          }),
          (subscriber) => Effect.sync(() => subscribers.delete(subscriber))
        )
    }
  })

/** See `make`. */
export const layer = (
  options: Options = {}
): Layer.Layer<Profiles, InvalidProfile, FileAccess | FileSystem.FileSystem | Path.Path> =>
  Layer.effect(Profiles, make(options))

const decodeHost = Effect.fnUntraced(function*(host: ReadonlyArray<unknown>) {
  const names = new Set<string>()
  return yield* Effect.forEach(host, (value, index) => {
    const invalid = (reason: string) =>
      Effect.fail(new InvalidProfile({ code: "invalid_profile", index, reason: display(reason, { max: 500 }) }))
    const decoded = decode(value)
    if (Either.isLeft(decoded)) {
      return invalid(decoded.left.map(({ message, path }) => `${path.join(".")} ${message}`.trim()).join("; "))
    }
    const { name } = decoded.right
    if (names.has(name)) return invalid(`the host has a profile ${name} already`)
    names.add(name)
    return Effect.succeed(decoded.right)
  })
})

interface Reading {
  readonly profiles: ReadonlyArray<Profile>
  readonly problems: ReadonlyArray<ProfileProblem>
}

const nothing: Reading = { profiles: [], problems: [] }

const problemOf = (code: ProfileProblemCode, file: string, problem: string): ProfileProblem => ({
  code,
  file: display(file, { max: 300 }),
  line: 1,
  problem: display(problem, { max: 1000 })
})

const unreadable = (file: string) => (error: PlatformError): ProfileProblem =>
  problemOf("file_unreadable", file, fromPlatform(file)(error).message)

const reader = (
  access: FileAccess["Type"],
  fs: FileSystem.FileSystem,
  path: Path.Path,
  workspace: Options["workspace"]
): Effect.Effect<Reading> => {
  if (workspace === undefined) return Effect.succeed(nothing)

  const readFile = Effect.fnUntraced(function*(folder: string, name: string) {
    const file = `${folderName}/${name}`
    const real = yield* Effect.mapError(fs.realPath(path.join(folder, name)), unreadable(file))
    const outside = problemOf("link_outside", file, "The file is a link that leads out of its folder.")
    if (!real.startsWith(folder + path.sep)) return yield* Effect.fail([outside])
    const bytes = yield* Effect.mapError(TextFile.readBytes(access, real, file, maxBytes), ({ code, message }) => {
      if (code === "file_too_large") return problemOf(code, file, tooLarge.problem)
      const regular = code !== "is_a_directory" && code !== "not_a_regular_file"
      return problemOf(regular ? "file_unreadable" : "not_a_regular_file", file, message)
    })
    // The checked path was opened; it must not have become a link meanwhile.
    const still = yield* Effect.mapError(fs.realPath(real), unreadable(file))
    return still === real ? yield* parse(file, bytes) : yield* Effect.fail([outside])
  })

  const readFolder = Effect.fnUntraced(function*(folder: string, names: ReadonlyArray<string>) {
    const files = new Map<string, string>()
    const profiles: Array<Profile> = []
    const problems: Array<ProfileProblem> = []
    for (const name of names.slice(0, maxFiles)) {
      const result = yield* Effect.either(readFile(folder, name))
      if (Either.isLeft(result)) {
        problems.push(...[result.left].flat())
        continue
      }
      const profile = result.right
      const first = files.get(profile.name)
      if (first === undefined) {
        files.set(profile.name, name)
        profiles.push(profile)
      } else {
        problems.push(
          problemOf("duplicate_name", `${folderName}/${name}`, `The profile ${profile.name} is in ${first} already.`)
        )
      }
    }
    const rest = names.length - maxFiles
    if (rest > 0) {
      problems.push(
        problemOf("too_many_files", folderName, `Only the first ${maxFiles} files are read; ${rest} more are not.`)
      )
    }
    return { profiles, problems }
  })

  return Effect.gen(function*() {
    const root = yield* fs.realPath(workspace.folder)
    const folder = path.join(root, folderName)
    if ((yield* fs.realPath(folder)) !== folder) {
      return { profiles: [], problems: [problemOf("link_outside", folderName, "The folder is, or is in, a link.")] }
    }
    const names = (yield* fs.readDirectory(folder))
      .filter((name) => name.endsWith(".md") && !name.startsWith("."))
      .sort(byCodeUnit)
    if (workspace.trusted) return yield* readFolder(folder, names)
    const count = names.length === 1 ? "1 file is" : `${names.length} files are`
    const untrusted = problemOf("workspace_untrusted", folderName, `The workspace is not trusted; ${count} not read.`)
    return { profiles: [], problems: names.length === 0 ? [] : [untrusted] }
  }).pipe(
    Effect.catchAll((error) =>
      Effect.succeed(
        error._tag === "SystemError" && error.reason === "NotFound"
          ? nothing
          : { profiles: [], problems: [unreadable(folderName)(error)] }
      )
    )
  )
}
