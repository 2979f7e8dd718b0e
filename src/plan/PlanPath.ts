/**
 * Which paths are plan files, and what a new plan file is called (seed 5.3).
 *
 * A plan file is a Markdown file directly in a plan directory. What comes out of here is the canonical directory and a
 * name that every file system takes for one name, so nothing of how a path was spelled can lead elsewhere.
 *
 * @since 0.1.0
 */

/** Where plans are, from the primary root. */
export const directory = ".portcullis/plan"

export interface PlanPath {
  /** From the primary root: the canonical directory and the name as given. */
  readonly relativePath: string
  /** The name without `.md`. */
  readonly stem: string
  /** It is in a legacy directory, where plans are refined and not drafted. */
  readonly legacy: boolean
}

/**
 * What a name must not hold: controls and formats, what separates names or looks as if it did, and what some file system
 * keeps for itself (a colon names a stream of a file on NTFS).
 */
const illegal = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}<>:"/\\|?*\u2044\u2215\u29f5\u29f8]/gu

/** Names that are devices on Windows, whatever their extension. */
const device = /^(?:con|prn|aux|nul|(?:com|lpt)[\d\u00b9\u00b2\u00b3])\s*(?:\.|$)/i

/** As file systems allow for one name. */
const maxNameBytes = 255

const bytesOf = (text: string): number => new TextEncoder().encode(text).length

const isName = (name: string): boolean =>
  /[^.\s].*\.md$/i.test(name) && name.search(illegal) === -1 && !/[\\/]/.test(name.normalize("NFKC")) &&
  !device.test(name) && bytesOf(name) <= maxNameBytes

/** Names of a relative path; `undefined` when it is none, or goes up. `./` and doubled slashes are dropped. */
const segmentsOf = (path: string): ReadonlyArray<string> | undefined => {
  const segments = path.replaceAll("\\", "/").split("/")
  return segments[0] === "" || segments.includes("..")
    ? undefined
    : segments.filter((name, at) => at === segments.length - 1 || (name !== "" && name !== "."))
}

/** A directory as paths are held against it. */
const canonical = (folder: string): string => (segmentsOf(`${folder}/.`) ?? []).slice(0, -1).join("/").toLowerCase()

/**
 * A path from the primary root as a plan path; `undefined` when it is not one. Either slash separates, and the directory
 * is compared without regard to case. Pure: where links lead is seen when the file is written.
 */
export const parse = (path: string, legacyDirectories: ReadonlyArray<string> = []): PlanPath | undefined => {
  const segments = segmentsOf(path) ?? []
  const name = segments.at(-1) ?? ""
  if (!isName(name)) return undefined
  const folder = segments.slice(0, -1).join("/").toLowerCase()
  const legacy = folder !== directory
  if (legacy && (folder === "" || !legacyDirectories.some((known) => canonical(known) === folder))) return undefined
  return { relativePath: `${folder}/${name}`, stem: name.slice(0, -3), legacy }
}

const fold = (text: string): string => text.normalize("NFC").toLowerCase()

/** Whether two plan paths are the same file on the most forgiving file system. */
export const same = (left: PlanPath, right: PlanPath): boolean => fold(left.relativePath) === fold(right.relativePath)

/** Shorter than a name may be, so that a number and `.md` still fit behind. */
const maxSlugBytes = 200
const maxSlugCharacters = 96

const edges = /^[-.]+|[-.]+$/g

/** A title as a file name: lower case, words joined by `-`, letters of every script kept; `plan` when nothing is left. */
export const slug = (title: string): string => {
  const words = title.slice(0, 1000).normalize("NFKC").toLowerCase().replace(illegal, " ").replace(/[\s_]+/g, "-")
  let kept = ""
  let bytes = 0
  for (const character of Array.from(words.replace(edges, "")).slice(0, maxSlugCharacters)) {
    bytes += bytesOf(character)
    if (bytes > maxSlugBytes) break
    kept += character
  }
  const name = kept.replace(edges, "")
  return name === "" ? "plan" : device.test(name) ? `plan-${name}` : name
}

/** Where a new plan may go, in order of preference: the slug of its title, `-2` to `-50` behind it, at last the time. */
export const candidates = (title: string, now: number): readonly [PlanPath, ...Array<PlanPath>] => {
  const base = slug(title)
  const named = (stem: string): PlanPath => ({ relativePath: `${directory}/${stem}.md`, stem, legacy: false })
  return [named(base), ...Array.from({ length: 49 }, (_, at) => named(`${base}-${at + 2}`)), named(`${base}-${now}`)]
}
