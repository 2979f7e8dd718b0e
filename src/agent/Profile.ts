/**
 * What a child agent is for and what it may hold: built in, of the host, or of the workspace (seed 7.2).
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import { display } from "../internal/display.ts"
import { near } from "../internal/near.ts"
import { type Entry, type Finding, finding, readFrontMatter } from "./frontMatter.ts"

const exact = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/** `readOnly` bounds the tools to those that only read; `inherit` to what the parent has. */
export const ToolPolicy = Schema.Literal("readOnly", "inherit").annotations({
  message: () => ({ message: "must be readOnly or inherit", override: true })
})
export type ToolPolicy = typeof ToolPolicy.Type

/** The name of a profile, as `delegate_task` takes it. */
export const ProfileName = Schema.String.pipe(Schema.pattern(/^[a-z0-9][a-z0-9-]{0,63}$/, {
  message: () => "must be 1 to 64 of a-z, 0-9 and -, and not start with -"
}))

const text = (min: number, max: number) =>
  Schema.String.pipe(Schema.length({ min, max }, { message: () => `must have ${min} to ${max} characters` }))

const Names = Schema.Array(text(1, 64)).pipe(Schema.maxItems(32, { message: () => "must have at most 32 names" }))

/** What narrows a child beside its tool policy. Every list only takes away. */
export const Narrowing = Schema.Struct({
  /** Only these; absent is no limit, empty is none. */
  allowedTools: exact(Names),
  blockedTools: exact(Names),
  /** By server id: blocks the provider `mcp:<id>` with whatever tools it gets later. */
  blockedMcpServers: exact(Names),
  blockedSkills: exact(Names)
})
export type Narrowing = typeof Narrowing.Type

export const Profile = Schema.Struct({
  name: ProfileName,
  description: text(1, 500),
  toolPolicy: ToolPolicy,
  ...Narrowing.fields,
  /** Appended to the base prompt, never in its place. */
  systemPrompt: exact(text(0, 65_536))
})
export type Profile = typeof Profile.Type

/** Why a file of the workspace gives no profile, or not the one it seems to give. */
export const ProfileProblemCode = Schema.Literal(
  "workspace_untrusted",
  "too_many_files",
  "duplicate_name",
  "file_unreadable",
  "file_too_large",
  "not_a_regular_file",
  "link_outside",
  "not_utf8",
  "control_character",
  "front_matter_missing",
  "front_matter_unclosed",
  "yaml_invalid",
  "yaml_refused",
  "unknown_key",
  "duplicate_key",
  "key_missing",
  "value_invalid"
)
export type ProfileProblemCode = typeof ProfileProblemCode.Type

/** One thing that is wrong in the workspace's profiles, and where. */
export const ProfileProblem = Schema.Struct({
  code: ProfileProblemCode,
  /** From the workspace, with forward slashes; safe to show. */
  file: Schema.String,
  /** From 1; 1 also for what concerns the file as a whole. */
  line: Schema.Number,
  /** One sentence or more, safe to show. */
  problem: Schema.String
})
export type ProfileProblem = typeof ProfileProblem.Type

/** A value as a profile, or each thing that is wrong with it, by path. A key that no profile has is wrong, too. */
export const decode: (
  value: unknown
) => Either.Either<Profile, ReadonlyArray<ParseResult.ArrayFormatterIssue>> = (value) =>
  Either.mapLeft(strict(value), ParseResult.ArrayFormatter.formatErrorSync)

const strict = Schema.decodeUnknownEither(Profile, { errors: "all", onExcessProperty: "error" })

const lists: ReadonlyArray<string> = Object.keys(Narrowing.fields)
const keys: ReadonlyArray<string> = ["name", "description", "toolPolicy", ...lists]
const maxProblems = 20

/**
 * The profile in one Markdown file: YAML front matter with the keys `name` (default: the file's name without `.md`),
 * `description`, `toolPolicy` (default `readOnly`, facts 12.1), `allowedTools`, `blockedTools`, `blockedMcpServers` and
 * `blockedSkills`; the body is the system prompt.
 *
 * `file` is the path shown in problems. Fails with what is wrong, by line, at most 20 problems. Never throws, whatever the
 * bytes are: 64 KiB of UTF-8 at most, with or without a byte order mark, of YAML nothing but flat keys.
 */
export const parse = Effect.fnUntraced(function*(
  file: string,
  bytes: Uint8Array
): Effect.fn.Return<Profile, ReadonlyArray<ProfileProblem>> {
  const located = ({ code, line, problem }: Finding): ProfileProblem => ({
    code,
    file: display(file, { max: 300 }),
    line,
    problem
  })
  const { body, entries, findings } = yield* Effect.mapError(readFrontMatter(bytes), (fatal) => [located(fatal)])
  const found = [...findings]
  const seen = new Map<string, Entry>()
  const values: { [key: string]: string | ReadonlyArray<string> } = {
    name: file.slice(file.lastIndexOf("/") + 1).replace(/\.md$/, ""),
    toolPolicy: "readOnly"
  }
  for (const entry of entries) {
    const { key, line, value } = entry
    const add = (code: ProfileProblemCode, problem: string): void => void found.push(finding(code, line, problem))
    if (!keys.includes(key)) {
      const [meant] = near(key, keys)
      const hint = meant === undefined ? "" : ` Did you mean ${meant}?`
      add("unknown_key", `There is no key "${display(key, { max: 64 })}".${hint}`)
    } else if (seen.has(key)) add("duplicate_key", `${key} is given twice.`)
    else {
      seen.set(key, entry)
      if (value === undefined) continue
      if (lists.includes(key) === (typeof value === "string")) {
        add("value_invalid", `${key} must be ${lists.includes(key) ? "a list of names: [read, grep]" : "a text"}.`)
      } else values[key] = value
    }
  }
  const decoded = decode(body === "" ? values : { ...values, systemPrompt: body })
  for (const { _tag, message, path: [key, index] } of Either.isLeft(decoded) ? decoded.left : []) {
    const entry = seen.get(String(key))
    if (_tag !== "Missing") {
      const line = entry?.lines[Number(index)] ?? entry?.line ?? 1
      found.push(finding("value_invalid", line, `${String(key)} ${message}.`))
    } else if (entry === undefined) found.push(finding("key_missing", 1, `There is no ${String(key)}.`))
  }
  if (Either.isRight(decoded) && found.length === 0) return decoded.right
  return yield* Effect.fail(found.sort((left, right) => left.line - right.line).slice(0, maxProblems).map(located))
})
