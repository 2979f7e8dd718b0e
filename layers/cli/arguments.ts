/** The command line as a value, or one line that says what is wrong with it. */
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import { parseArgs } from "node:util"
import { approvalPolicies, sandboxModes, toolKinds } from "../../src/contract/Policy.ts"
import { near } from "../../src/internal/near.ts"
import { type CliError, usage } from "./CliError.ts"

const exact = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })
const choice = <const Values extends readonly [string, ...Array<string>]>(values: Values) =>
  exact(
    Schema.Literal(...values).annotations({
      message: () => ({ message: `must be one of ${values.join(", ")}`, override: true })
    })
  )
const matching = (pattern: RegExp, message: string) =>
  exact(Schema.String.pipe(Schema.pattern(pattern, { message: () => message })))

const text = matching(/^[^\0]+$/, "must not be empty")
const id = matching(/^[\x21-\x7e]{1,200}$/, "must be 1 to 200 printable ASCII characters without blanks")
const flag = exact(Schema.Boolean)

const file = { workspace: text, state: text }
const turn = {
  ...file,
  sandbox: choice(sandboxModes),
  approval: choice(approvalPolicies),
  answer: choice(["allow", "deny"]),
  reply: exact(Schema.String),
  plan: flag,
  thread: id,
  turn: id,
  json: flag
}

const CallOptions = Schema.Struct({ ...turn, "call-id": id, "claim-kind": choice(toolKinds) })
const CatalogOptions = Schema.Struct({ ...turn, explain: flag })
const RunOptions = Schema.Struct({
  ...turn,
  model: matching(/^(scripted|openai|anthropic):./s, "must be scripted:FILE, openai:NAME or anthropic:NAME")
})
const LedgerOptions = Schema.Struct({ ...file, outcome: choice(["completed", "failed"]), json: flag })
const ChangesOptions = Schema.Struct({ ...file, thread: id, turn: id, json: flag })
const DoctorOptions = Schema.Struct({ ...file, json: flag })

/** What every command that opens a turn takes. */
export type TurnOptions = Omit<typeof CallOptions.Type, "call-id" | "claim-kind">
export type FileOptions = Pick<TurnOptions, "workspace" | "state">
export type CallOptions = typeof CallOptions.Type
export type RunOptions = typeof RunOptions.Type
export type ChangesOptions = typeof ChangesOptions.Type

export type Command =
  | { readonly _tag: "help" }
  | { readonly _tag: "version" }
  /** `-` as arguments stands for stdin. */
  | { readonly _tag: "call"; readonly tool: string; readonly args: string; readonly options: CallOptions }
  | { readonly _tag: "catalog"; readonly options: typeof CatalogOptions.Type }
  | { readonly _tag: "run"; readonly prompt: string | undefined; readonly options: RunOptions }
  | { readonly _tag: "ledger"; readonly options: typeof LedgerOptions.Type }
  | {
    readonly _tag: "reconcile"
    readonly operation: string
    readonly outcome: "completed" | "failed"
    readonly options: typeof LedgerOptions.Type
  }
  | { readonly _tag: "changes"; readonly options: ChangesOptions }
  | {
    readonly _tag: "diff" | "revert"
    readonly turn: string
    readonly options: ChangesOptions
  }
  | { readonly _tag: "doctor"; readonly options: typeof DoctorOptions.Type }

const flags: ReadonlySet<string> = new Set(["json", "plan", "explain", "help"])
const commandNames = ["call", "catalog", "run", "changes", "ledger", "doctor", "help"]

export const help = `portcullis call TOOL ARGS_JSON   put one call through the channel ("-": arguments from stdin)
portcullis catalog [--explain]   list the tools of a turn, and why the others are hidden
portcullis run [PROMPT]          run an agent over the workspace ("-": prompt from stdin)
portcullis changes [list]        list what tools changed in files, turn by turn (--thread, --turn)
portcullis changes diff TURN     show what a turn changed
portcullis changes revert TURN   undo it, unless somebody else has changed one of its files since
portcullis ledger [list]         list the last 100 operations of this workspace, newest first
portcullis ledger reconcile ID --outcome completed|failed
                                 settle an operation whose outcome is unknown
portcullis doctor                say what works on this machine

A turn (call, catalog, run)
  --workspace DIR      default: the current directory
  --sandbox MODE       ${sandboxModes.join(", ")}; default workspace-write
  --approval POLICY    ${approvalPolicies.join(", ")}; default on-request
  --answer allow|deny  answer every question for approval; default: ask at the terminal, and nobody without one
  --reply TEXT         answer every question of a tool with this
  --plan               a plan turn: reading tools alone
  --thread ID          default cli; what a thread has read licenses its edits
  --turn ID            default random
call
  --call-id ID         default random; the same ids and arguments again replay the recorded result
  --claim-kind KIND    ${toolKinds.join(", ")}; can only tighten
run
  --model MODEL        scripted:FILE, openai:NAME, anthropic:NAME

Everywhere
  --state FILE         the state file; default in the user's state directory, one a workspace
  --json               JSON on stdout; for run, one object a line
  --help, --version

Exit codes: 0 done; 1 the call or turn failed; 2 the command could not be carried out; 130, 143 interrupted.
`

interface Read<A> {
  readonly options: A
  readonly positionals: ReadonlyArray<string>
  readonly help: boolean
}

/** Options of one command, each at most once and with a value that fits. */
const read = <A, I>(
  command: string,
  schema: Schema.Schema<A, I> & { readonly fields: { readonly [name: string]: unknown } },
  args: ReadonlyArray<string>
): Either.Either<Read<A>, CliError> => {
  const known = [...Object.keys(schema.fields), "help"]
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(known.map((name) => [
      name,
      { type: flags.has(name) ? "boolean" : "string", ...(name === "help" ? { short: "h" } : {}) }
    ])),
    strict: false,
    tokens: true,
    allowPositionals: true
  })
  const values = new Map<string, string | boolean>()
  const positionals: Array<string> = []
  for (const token of tokens) {
    if (token.kind === "positional") positionals.push(token.value)
    if (token.kind !== "option") continue
    const { inlineValue, name, rawName, value } = token
    const problem = !known.includes(name)
      ? `${command} has no option ${shown(rawName)}${meant(name, known, "--")}`
      : values.has(name)
      ? `${rawName} is given twice`
      : flags.has(name)
      ? value === undefined ? undefined : `${rawName} takes no value`
      : value === undefined
      ? `${rawName} needs a value`
      : inlineValue !== true && /^-./.test(value)
      ? `${rawName} needs a value; one that begins with a dash is written ${rawName}=VALUE`
      : undefined
    if (problem !== undefined) return Either.left(usage(problem))
    values.set(name, value ?? true)
  }
  const help = values.delete("help")
  return Either.mapBoth(Schema.decodeUnknownEither(schema)(Object.fromEntries(values)), {
    onLeft: (error) => {
      const [issue] = ParseResult.ArrayFormatter.formatErrorSync(error)
      return usage(`--${String(issue?.path[0])} ${issue?.message ?? "has a value that does not fit"}`)
    },
    onRight: (options) => ({ options, positionals, help })
  })
}

const shown = (value: string): string => JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value)

const meant = (wanted: string, known: ReadonlyArray<string>, prefix: string): string => {
  const [closest] = near(wanted, known)
  return closest === undefined ? "" : `; did you mean ${prefix}${closest}?`
}

/** Exactly these many words, or why not. */
const words = (
  command: string,
  names: ReadonlyArray<string>,
  given: ReadonlyArray<string>,
  required: number
): CliError | undefined => {
  const surplus = given[names.length]
  if (surplus !== undefined) return usage(`${command} does not take ${shown(surplus)}`)
  const missing = given.length < required ? names[given.length] : undefined
  return missing === undefined ? undefined : usage(`${command} needs ${missing}`)
}

const command = <A, I>(
  name: string,
  schema: Schema.Schema<A, I> & { readonly fields: { readonly [name: string]: unknown } },
  args: ReadonlyArray<string>,
  positionals: { readonly names: ReadonlyArray<string>; readonly required: number },
  make: (options: A, words: ReadonlyArray<string>) => Either.Either<Command, CliError>
): Either.Either<Command, CliError> =>
  Either.flatMap(read(name, schema, args), ({ help, options, positionals: given }) => {
    if (help) return Either.right<Command>({ _tag: "help" })
    const problem = words(name, positionals.names, given, positionals.required)
    return problem === undefined ? make(options, given) : Either.left(problem)
  })

const ledger = (
  options: typeof LedgerOptions.Type,
  [verb = "list", operation]: ReadonlyArray<string>
): Either.Either<Command, CliError> => {
  const { outcome } = options
  if (verb === "list") {
    if (operation !== undefined) return Either.left(usage(`ledger list does not take ${shown(operation)}`))
    return outcome === undefined
      ? Either.right({ _tag: "ledger", options })
      : Either.left(usage("--outcome goes with ledger reconcile"))
  }
  if (verb !== "reconcile") return Either.left(usage(`ledger knows list and reconcile, not ${shown(verb)}`))
  if (operation === undefined) return Either.left(usage("ledger reconcile needs ID"))
  if (outcome === undefined) return Either.left(usage("ledger reconcile needs --outcome completed or --outcome failed"))
  return Either.right({ _tag: "reconcile", operation, outcome, options })
}

const changes = (
  options: ChangesOptions,
  [verb = "list", turn]: ReadonlyArray<string>
): Either.Either<Command, CliError> => {
  if (verb === "list") {
    return turn === undefined
      ? Either.right({ _tag: "changes", options })
      : Either.left(usage(`changes list does not take ${shown(turn)}; name the turn with --turn`))
  }
  if (verb !== "diff" && verb !== "revert") {
    return Either.left(usage(`changes knows list, diff and revert, not ${shown(verb)}`))
  }
  if (options.turn !== undefined) return Either.left(usage("--turn goes with changes list"))
  return turn === undefined
    ? Either.left(usage(`changes ${verb} needs TURN`))
    : Either.right({ _tag: verb, turn, options })
}

/** Words after the program's name. */
export const parse = ([name, ...args]: ReadonlyArray<string>): Either.Either<Command, CliError> => {
  switch (name) {
    case "help":
    case "--help":
    case "-h":
      return Either.right({ _tag: "help" })
    case "--version":
      return Either.right({ _tag: "version" })
    case "call":
      return command(
        name,
        CallOptions,
        args,
        { names: ["TOOL", "ARGS_JSON"], required: 2 },
        (options, [tool = "", given = ""]) => Either.right({ _tag: "call", tool, args: given, options })
      )
    case "catalog":
      return command(
        name,
        CatalogOptions,
        args,
        { names: [], required: 0 },
        (options) => Either.right({ _tag: "catalog", options })
      )
    case "run":
      return command(
        name,
        RunOptions,
        args,
        { names: ["PROMPT"], required: 0 },
        (options, [prompt]) => Either.right({ _tag: "run", prompt, options })
      )
    case "ledger":
      return command(name, LedgerOptions, args, { names: ["list or reconcile", "ID"], required: 0 }, ledger)
    case "changes":
      return command(name, ChangesOptions, args, { names: ["list, diff or revert", "TURN"], required: 0 }, changes)
    case "doctor":
      return command(
        name,
        DoctorOptions,
        args,
        { names: [], required: 0 },
        (options) => Either.right({ _tag: "doctor", options })
      )
    case undefined:
      return Either.left(usage("which command? portcullis help lists them"))
    default:
      return Either.left(usage(`there is no command ${shown(name)}${meant(name, commandNames, "")}`))
  }
}
