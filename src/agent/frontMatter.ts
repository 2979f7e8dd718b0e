/**
 * Markdown that starts with flat YAML between two lines of `---`: keys with a text or a list of texts, nothing else.
 *
 * The file is a stranger's. What YAML has beyond that (anchors, aliases, tags, nesting on one line) is refused by its
 * tokens, before anything is built of it: the composer recurses, and a stack that overflows in there can end the process.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Yaml from "yaml"
import * as TextFile from "../file/TextFile.ts"
import { display } from "../internal/display.ts"
import { countBelow, foldCrlf, newlines } from "../internal/lines.ts"
import type { ProfileProblem } from "./Profile.ts"

export type Finding = Omit<ProfileProblem, "file">

export interface Entry {
  readonly key: string
  /** `undefined`: neither a text nor a list of texts, and among the findings. */
  readonly value: string | ReadonlyArray<string> | undefined
  /** Where the value starts. */
  readonly line: number
  /** Where each element of a list starts. */
  readonly lines: ReadonlyArray<number>
}

export interface FrontMatter {
  readonly entries: ReadonlyArray<Entry>
  readonly findings: ReadonlyArray<Finding>
  /** What follows the second `---`, trimmed. */
  readonly body: string
}

/** Bytes of a whole file. */
export const maxBytes = 65_536
/** Tokens between the fences: what full lists take up, and as much again. Each may cost the composer an error with its stack. */
const maxTokens = 2000

export const finding = (code: Finding["code"], line: number, problem: string): Finding => ({ code, line, problem })

export const tooLarge: Finding = finding("file_too_large", 1, `The file is larger than ${maxBytes} bytes.`)

/** Fails with what makes the file unreadable as a whole; values that do not fit are findings beside the entries. */
export const readFrontMatter = Effect.fnUntraced(function*(
  bytes: Uint8Array
): Effect.fn.Return<FrontMatter, Finding> {
  const text = yield* textOf(bytes)
  const rows = text.split("\n")
  if (!isFence(rows[0] ?? "")) {
    return yield* Effect.fail(finding("front_matter_missing", 1, "The first line is not ---."))
  }
  const end = rows.findIndex((row, index) => index > 0 && isFence(row))
  if (end === -1) {
    return yield* Effect.fail(finding("front_matter_unclosed", 1, "No line of --- closes the front matter."))
  }
  const header = rows.slice(1, end).map((row) => `${row}\n`).join("")
  const yaml = yield* Effect.promise(() => import("yaml"))
  const breaks = newlines(header)
  const lineAt = (offset: number): number => countBelow(breaks, offset) + 2

  const refused = firstRefused(yaml, header)
  if (refused !== undefined) {
    return yield* Effect.fail(
      finding(
        "yaml_refused",
        lineAt(refused.offset),
        `The front matter holds ${refused.what}: only flat keys are read.`
      )
    )
  }
  // In the failsafe schema every scalar is a text, so `no` and `007` stay what they are.
  const document = yaml.parseDocument(header, { schema: "failsafe", prettyErrors: false, uniqueKeys: false })
  const [error] = document.errors
  if (error !== undefined) {
    return yield* Effect.fail(finding("yaml_invalid", lineAt(error.pos[0]), display(error.message, { max: 200 })))
  }
  if (document.contents !== null && !yaml.isMap(document.contents)) {
    return yield* Effect.fail(finding("yaml_invalid", 2, "The front matter is not a map of keys."))
  }

  const findings: Array<Finding> = []
  const lineOf = (node: Yaml.ParsedNode | null, otherwise: number): number =>
    node === null ? otherwise : lineAt(node.range[0])
  const textIn = (node: Yaml.ParsedNode | null, line: number): string | undefined => {
    const value = yaml.isScalar(node) ? node.value : undefined
    if (typeof value !== "string") {
      findings.push(finding("value_invalid", line, "A value is a text or a list of texts."))
      return undefined
    }
    // Escapes in quotes spell what the bytes of the file may not hold.
    const control = value.search(unwanted)
    if (control === -1) return value
    findings.push(finding("control_character", line, `A value holds ${codePoint(value, control)}.`))
    return undefined
  }

  const entries = (document.contents?.items ?? []).flatMap((pair): ReadonlyArray<Entry> => {
    const keyLine = lineOf(pair.key, 2)
    const line = lineOf(pair.value, keyLine)
    const key = textIn(pair.key, keyLine)
    if (key === undefined) return []
    if (!yaml.isSeq(pair.value)) return [{ key, value: textIn(pair.value, line), line, lines: [] }]
    const nodes = pair.value.items
    const lines = nodes.map((node) => lineOf(node, line))
    const texts = nodes.flatMap((node, index) => textIn(node, lines[index] ?? line) ?? [])
    return [{ key, value: texts.length === nodes.length ? texts : undefined, line, lines }]
  })
  return { entries, findings, body: rows.slice(end + 1).join("\n").trim() }
})

const isFence = (row: string): boolean => row.trimEnd() === "---"

/** Controls but tab and newline, and half a surrogate pair. */
const unwanted = /[^\P{Cc}\t\n]|\p{Cs}/u

const codePoint = (text: string, at: number): string =>
  `U+${(text.codePointAt(at) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`

const textOf = (bytes: Uint8Array): Either.Either<string, Finding> => {
  if (bytes.length > maxBytes) return Either.left(tooLarge)
  const decoded = TextFile.decode(bytes)
  if (Either.isLeft(decoded)) {
    const offset = decoded.left
    const line = bytes.subarray(0, offset).filter((byte) => byte === 0x0a).length + 1
    return Either.left(
      bytes[offset] === 0
        ? finding("control_character", line, `There is U+0000 at byte ${offset}.`)
        : finding("not_utf8", line, `The byte at offset ${offset} is not UTF-8.`)
    )
  }
  if (decoded.right.encoding.charset !== "utf-8") {
    return Either.left(finding("not_utf8", 1, "The byte at offset 0 is not UTF-8: the file is UTF-16."))
  }
  const text = foldCrlf(decoded.right.text)
  const control = text.search(unwanted)
  return control === -1
    ? Either.right(text)
    : Either.left(
      finding("control_character", newlines(text.slice(0, control)).length + 1, `There is ${codePoint(text, control)}.`)
    )
}

const refusedTokens: { readonly [type: string]: string } = {
  alias: "an alias",
  anchor: "an anchor",
  tag: "a tag",
  "directive-line": "a directive",
  "doc-start": "a second document",
  "doc-end": "the end of a document",
  "explicit-key-ind": "a key marked with ?",
  "flow-map-start": "a map in braces"
}

/**
 * The first token that flat keys do not need. With one `:` or `-` a line, and none in a list in brackets, the document
 * can only be as deep as its indentation.
 */
const firstRefused = (
  yaml: typeof Yaml,
  header: string
): { readonly offset: number; readonly what: string } | undefined => {
  let offset = 0
  let brackets = 0
  let indicators = 0
  let count = 0
  let inScalar = false
  for (const token of new yaml.Lexer().lex(header)) {
    const type: string | null = inScalar ? "text" : yaml.CST.tokenType(token)
    inScalar = type === "scalar"
    if (++count > maxTokens) return { offset, what: `more than ${maxTokens} tokens` }
    // The lexer's own marks have no length in the source.
    if (type === "scalar" || type === "doc-mode" || type === "flow-error-end") continue
    const what = refusedTokens[type ?? ""]
    if (what !== undefined) return { offset, what }
    if (type === "newline") indicators = 0
    if (type === "flow-seq-start") brackets++
    if (type === "flow-seq-end") brackets = Math.max(0, brackets - 1)
    if (type === "map-value-ind" || type === "seq-item-ind") indicators += brackets > 0 ? 2 : 1
    if (brackets > 1 || indicators > 1) return { offset, what: "values inside values" }
    offset += token.length
  }
  return undefined
}
