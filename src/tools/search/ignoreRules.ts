/**
 * Which files a search leaves out, by the ignore files on the way to them, as ripgrep reads those.
 *
 * The nearest rule wins, the last one of a file. `.rgignore` goes before `.ignore`, that before `.gitignore`, that before
 * the repository's `info/exclude`, and that before the user's own excludes; rules of git end at a repository's top.
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { FileAccess } from "../../file/FileAccess.ts"
import { compile } from "../../internal/glob.ts"
import { byteText } from "./page.ts"

interface Rule {
  readonly ignores: boolean
  readonly onlyDirectories: boolean
  readonly fits: (below: string) => boolean
}

/** One directory's rules, and those of the directory it is in. */
export interface Rules {
  /** Of the directory, ending in a slash. */
  readonly prefix: string
  readonly files: ReadonlyArray<ReadonlyArray<Rule>>
  readonly isRepository: boolean
  readonly above: Rules | undefined
}

const names = [".rgignore", ".ignore", ".gitignore", ".git/info/exclude"]
/** The first two kinds hold wherever repositories begin. */
const ofGit = 2
const maxBytes = 1024 * 1024

const ruleOf = (text: string): Rule | undefined => {
  const line = text.endsWith("\\ ") ? text : text.trimEnd()
  if (line === "" || line.startsWith("#")) return undefined
  const ignores = !line.startsWith("!")
  const pattern = /^\\[!#]/.test(line) || !ignores ? line.slice(1) : line
  const onlyDirectories = pattern.endsWith("/")
  const glob = onlyDirectories ? pattern.slice(0, -1) : pattern
  // As a pattern of paths this would be taken for one from here; in an ignore file it fits nothing.
  if (glob === "" || glob.startsWith("./") || glob.startsWith("//")) return undefined
  // A class that is not closed makes a pattern fit nothing, and a closed one holds no slash.
  const flat = glob.replace(/(\\.)|\[[!^]?\]?[^\]]*\]/gs, (part, escaped) => escaped ?? part.replaceAll("/", ""))
  if (flat.replace(/\\.|\[[!^]?\]?[^\]]*\]/gs, "").includes("[")) return undefined
  // One character of a pattern is one byte of a name, to git as to ripgrep.
  const fits = compile(byteText(glob.includes("/") && !flat.includes("/") ? `/${flat}` : flat))
  return fits === undefined ? undefined : { ignores, onlyDirectories, fits }
}

/** The rules of one ignore file, the last one first. */
const parse = (text: string): ReadonlyArray<Rule> =>
  text.replace(/^\ufeff/, "").split(/\r?\n/).flatMap((line) => ruleOf(line) ?? []).reverse()

export const make = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const access = yield* FileAccess

  const bytes = (path: string) => Effect.scoped(Effect.flatMap(access.open(path), (file) => file.read(0, maxBytes)))

  /** Most are not there, and few are links: finding out where those lead takes long. */
  const content = (path: string): Effect.Effect<string> =>
    bytes(path).pipe(
      Effect.catchIf(
        (error) => error._tag !== "SystemError" || error.reason !== "NotFound",
        () => Effect.flatMap(fs.realPath(path), bytes)
      ),
      Effect.map((content) => new TextDecoder().decode(content)),
      Effect.orElseSucceed(() => "")
    )

  /** The file that git names, else its default one. */
  const userExcludes: Effect.Effect<ReadonlyArray<Rule>> = Effect.gen(function*() {
    const variable = (name: string) => Config.option(Config.string(name))
    const { home, xdg } = yield* Config.all({ home: variable("HOME"), xdg: variable("XDG_CONFIG_HOME") })
    const folder = Option.orElse(
      Option.filter(xdg, (path) => path !== ""),
      () => Option.map(home, (path) => `${path}/.config`)
    )
    const configs = [
      ...Option.toArray(home).map((path) => `${path}/.gitconfig`),
      ...Option.toArray(folder).map((path) => `${path}/git/config`)
    ]
    for (const config of configs) {
      const named = /^\s*excludesfile\s*=\s*"?\s*(\S+?)\s*"?\s*$/im.exec(yield* content(config))?.[1]
      if (named !== undefined) {
        return parse(yield* content(named.replace(/^~(?=\/)/, Option.getOrElse(home, () => "~"))))
      }
    }
    return Option.isNone(folder) ? [] : parse(yield* content(`${folder.value}/git/ignore`))
  }).pipe(Effect.orElseSucceed(() => []))

  /** `listed` are the directory's entries where they are known. */
  const rulesOf = Effect.fnUntraced(
    function*(directory: string, above: Rules | undefined, listed: ReadonlySet<string> | undefined) {
      const prefix = directory.endsWith("/") ? directory : `${directory}/`
      const files = yield* Effect.forEach(
        names,
        (name) =>
          listed === undefined || listed.has(name.split("/")[0] ?? name)
            ? Effect.map(content(prefix + name), parse)
            : Effect.succeed<ReadonlyArray<Rule>>([]),
        { concurrency: names.length }
      )
      const isRepository = listed === undefined
        ? yield* Effect.orElseSucceed(fs.exists(`${prefix}.git`), () => false)
        : listed.has(".git")
      const rules: Rules = { prefix, files, isRepository, above }
      return rules
    }
  )

  /** The rules above a directory or file, outermost first in the making. */
  const above = Effect.fnUntraced(function*(physical: string) {
    const parts = physical.split("/").slice(0, -1)
    const folders = parts.map((_, index) => parts.slice(0, index + 1).join("/") || "/")
    const loaded = yield* Effect.forEach(folders, (folder) => rulesOf(folder, undefined, undefined), {
      concurrency: folders.length
    })
    return loaded.reduce<Rules | undefined>((outer, rules) => ({ ...rules, above: outer }), undefined)
  })

  return { above, rulesOf, userExcludes }
})

/** Whether the rules leave out a path below them. `top` is what the user's excludes are relative to. */
export const ignores = (
  rules: Rules | undefined,
  user: ReadonlyArray<Rule>,
  top: string,
  physical: string,
  isDirectory: boolean
): boolean => {
  const decide = (list: ReadonlyArray<Rule>, below: string) =>
    list.find(({ fits, onlyDirectories }) => (isDirectory || !onlyDirectories) && fits(byteText(below)))
  const found: Array<Rule | undefined> = names.map(() => undefined)
  let withinRepository = true
  for (let at = rules; at !== undefined; at = at.above) {
    const { files, isRepository, prefix } = at
    files.forEach((list, kind) => {
      if (list.length > 0 && (kind < ofGit || withinRepository)) {
        found[kind] ??= decide(list, physical.slice(prefix.length))
      }
    })
    if (isRepository) withinRepository = false
  }
  const rule = found.find((candidate) => candidate !== undefined) ??
    decide(user, physical.startsWith(top) ? physical.slice(top.length) : physical)
  return rule?.ignores ?? false
}

/** Whether git would leave out a path that is named: itself, or a directory on the way to it. */
export const ignoresOnTheWay = (
  rules: Rules | undefined,
  user: ReadonlyArray<Rule>,
  physical: string,
  isDirectory: boolean
) => {
  for (let at = rules, path = physical, directory = isDirectory; at !== undefined; at = at.above) {
    if (ignores(at, user, "/", path, directory)) return true
    path = at.prefix.slice(0, -1)
    directory = true
  }
  return false
}
