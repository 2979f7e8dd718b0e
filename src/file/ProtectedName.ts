/**
 * Names that file tools leave alone: lists of patterns, compared so that no spelling gets round them.
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import { compile as compileGlob, expand } from "../internal/glob.ts"

/**
 * Names that only the user changes: a repository's own files (a `.git` that is a file leads to them as well) and
 * Portcullis's configuration, but not the plans beside it.
 */
export const defaultProtected: ReadonlyArray<string> = [
  ".portcullis/**",
  "!.portcullis/plan/**",
  ".portcullis/plan/**/.portcullis/**",
  ".git/**"
]

/**
 * Names of files that hold secrets by custom. `.npmrc` is among them, although that of a project is often harmless,
 * because the same name holds tokens to publish with and the name alone cannot tell; `!.npmrc` behind these gives it back.
 */
export const defaultWithheld: ReadonlyArray<string> = [
  ".env{,~}",
  ".env.*",
  "!.env.{example,sample,template,dist}",
  "id_{rsa,dsa,ecdsa,ed25519}",
  "*.{pem,key,p12,pfx}",
  "{.,_}netrc",
  ".npmrc",
  ".git-credentials",
  "{.ssh,.gnupg}/**",
  ".aws/credentials",
  ".docker/config.json",
  ".kube/config"
]

/** As the most forgiving file system compares: without case, and by what characters are compatible with. */
const foldText = (text: string): string =>
  // Lower case first: `ẞ` has no upper case but by way of `ß`. Upper case last: lower case depends on neighbours (`ς`).
  text.normalize("NFKC").toLowerCase().toUpperCase().normalize("NFKC")

/**
 * A name as the most forgiving file system compares it: case, composition, ignorable characters, trailing dots and
 * spaces, and stream suffixes make no difference. It errs on the side of taking two names for one.
 */
export const foldName = (name: string): string =>
  foldText(name.replace(/\p{Default_Ignorable_Code_Point}/gu, "").replace(/:.*$/s, "").replace(/[. ]+$/, ""))

/** Holds what folding does more to than change the case. */
const odd = /[^ -~]|:|[. ](?:\/|$)/

interface Rule {
  readonly admits: boolean
  readonly matches: (path: string) => boolean
}

/** Texts of which a folded path, between slashes, holds at least one if the folded pattern matches it. */
const tracesOf = (pattern: string): ReadonlyArray<string> =>
  (expand(pattern) ?? []).map((alternative) => {
    const whole = `/${alternative.replace(/^\//, "")}/`
    // Of an empty name, and behind a class or an escape, nothing is certain. That there is a slash always is.
    const certain = /\/\.?\//.test(whole) ? "/" : whole.split(/[[\\]/, 1)[0] ?? "/"
    return certain.split(/[*?]+/).reduce((longest, part) => part.length > longest.length ? part : longest)
  })

/** `LONGNA~1.TXT`, as FAT and NTFS call a file beside its own name; they put `~1` behind two letters and a sum, too. */
const shortName = /^([^.~]{1,6})~\d+(?:\.([^.]{1,3}))?$/

const abbreviates = (name: string, words: ReadonlyArray<string>): boolean => {
  const [, stem, extension] = shortName.exec(name) ?? []
  if (stem === undefined) return false
  const summed = /^..[\dA-F]{4}$/.test(stem) ? stem.slice(0, 2) : stem
  return words.some((word) =>
    word.startsWith(summed) || stem.startsWith(word) || (extension?.length === 3 && word.startsWith(extension))
  )
}

/**
 * A test of paths with forward slashes against patterns (`src/internal/glob.ts`), or the first that is none. A pattern
 * holds at any depth, unless it begins with a slash; `name/**` and `name/` are the directory and all that is in it. The
 * last pattern that matches decides, and one that begins with `!` admits again.
 *
 * What is refused is compared folded, what is admitted as it is spelled: each errs on the side of refusing. An ordinary
 * path takes less than a microsecond.
 */
export const compile = (patterns: ReadonlyArray<string>): Either.Either<(path: string) => boolean, string> => {
  const rules: Array<Rule> = []
  const traces: Array<string> = []
  const words: Array<string> = []
  for (const pattern of patterns) {
    const admits = pattern.startsWith("!")
    const given = pattern.slice(admits ? 1 : 0)
    const text = (admits ? given : foldText(given)).replace(/\/$/, "/**")
    const whole = `${text.startsWith("/") ? "/" : "**/"}${text.replace(/^(?:\.?\/)+/, "")}`
    const forms = /.\/\*\*$/.test(whole) ? [whole, whole.slice(0, -3)] : [whole]
    for (const form of forms) {
      const matches = compileGlob(form)
      if (given === "" || matches === undefined) return Either.left(pattern)
      rules.unshift({ admits, matches })
    }
    if (admits) continue
    traces.push(...tracesOf(whole))
    words.push(...text.split(/[/*?{},[\]\\]+/).map((word) => word.replace(/[. ]/g, "")).filter((word) => word !== ""))
  }
  if (traces.length === 0) return Either.right(() => false)
  const traced = new RegExp(traces.map((trace) => trace.replace(/[^\p{L}\p{N}]/gu, "\\$&")).join("|"), "i")
  return Either.right((path) => {
    const alike = odd.test(path)
      ? path.split("/").map((name) => odd.test(name) ? foldName(name) : name).join("/")
      : path
    if (path.includes("~") && alike.split("/").some((name) => abbreviates(name.toUpperCase(), words))) return true
    if (!traced.test(`/${alike}/`)) return false
    const spelled = path.replace(/^\/+|\/+$/g, "")
    const folded = spelled.split("/").map(foldName).join("/")
    const last = rules.find(({ admits, matches }) => matches(admits ? spelled : folded))
    return last !== undefined && !last.admits
  })
}
