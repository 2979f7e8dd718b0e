/**
 * One objective, a fresh agent each round, and a report as all that crosses from one round to the next.
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import { delimited, delimitedNote } from "../internal/delimited.ts"
import { fitJson } from "../internal/fitJson.ts"
import { lastJson } from "../internal/lastJson.ts"

/** What a round ends with. It is the agent's own word; nobody has checked it. */
export const Report = Schema.Struct({
  status: Schema.Literal("continue", "complete", "blocked"),
  summary: Schema.String,
  /** What shows that it is done; never empty when `complete`. */
  evidence: Schema.Array(Schema.String),
  /** What is left; never empty when `continue`, always when `complete`. */
  nextSteps: Schema.Array(Schema.String),
  /** What is in the way; a text when `blocked`, `null` when `continue`. */
  blocker: Schema.NullOr(Schema.String)
})
export type Report = typeof Report.Type

const exact = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })
const Lines = exact(Schema.NullOr(Schema.Union(Schema.String, Schema.Array(Schema.String).pipe(Schema.maxItems(100)))))

/** As agents write it: one text for a list of one, `null` and blanks for nothing. */
const Written = Schema.Struct({
  status: Report.fields.status,
  summary: Schema.String.pipe(Schema.pattern(/\S/)),
  evidence: Lines,
  nextSteps: Lines,
  blocker: exact(Schema.NullOr(Schema.String))
}).annotations({ identifier: "Report" })

const decodeWritten = ParseResult.decodeUnknownEither(Written)
const isReport = Schema.is(Report)

/** Characters of a report as JSON, in a prompt and in a result. */
const maxReport = 16_384

const linesOf = (written: string | ReadonlyArray<string> | null | undefined): ReadonlyArray<string> =>
  (typeof written === "string" ? [written] : written ?? []).map((line) => line.trim()).filter((line) => line !== "")

const broken = ({ blocker, evidence, nextSteps, status }: Report): string | undefined => {
  switch (status) {
    case "continue":
      if (nextSteps.length === 0) return "continue needs nextSteps: what is left to do."
      return blocker === null ? undefined : "continue has no blocker: with one the status is blocked."
    case "complete":
      if (evidence.length === 0) return "complete needs evidence: what shows that the objective is reached."
      return nextSteps.length === 0 ? undefined : "complete has no nextSteps: with some left the status is continue."
    case "blocked":
      return blocker === null ? "blocked needs a blocker: what is in the way." : undefined
  }
}

/**
 * The report that an agent's last words end with, in at most 16,384 characters, or what is wrong with it: the last ```json
 * block, or a bare object at the end.
 */
export const reportIn = (words: string): Either.Either<Report, string> => {
  const json = lastJson(words, "object")
  if (json === undefined) return Either.left("There is no JSON object at the end of it.")
  return Either.mapLeft(
    decodeWritten(json),
    (issue) => ParseResult.TreeFormatter.formatIssueSync(issue).slice(0, 1000).toWellFormed()
  ).pipe(Either.flatMap(({ blocker, evidence, nextSteps, status, summary }) => {
    const written: Report = {
      status,
      summary: summary.trim(),
      evidence: linesOf(evidence),
      nextSteps: linesOf(nextSteps),
      blocker: linesOf(blocker)[0] ?? null
    }
    const problem = broken(written)
    if (problem !== undefined) return Either.left(problem)
    const report = fitJson({ ...written }, maxReport).value
    return isReport(report) ? Either.right(report) : Either.left("It is too long.")
  }))
}

const form = `End with your report as the last thing you say, in this form:

\`\`\`json
{ "status": "continue" | "complete" | "blocked", "summary": "...", "evidence": ["..."], "nextSteps": ["..."], "blocker": "..." }
\`\`\`

continue: something is left to do; needs nextSteps and no blocker. complete: the objective is reached and you have checked \
it; needs evidence and no nextSteps. blocked: nobody can go on without help from outside; needs a blocker.`

/** What the agent of a round is told. */
export const promptOf = (options: {
  readonly objective: string
  readonly round: number
  readonly maxRounds: number
  readonly last: Report | undefined
}): string =>
  [
    `Your objective:\n\n${options.objective}`,
    `This is round ${options.round} of at most ${options.maxRounds}. Each round is a fresh agent: what it does in the world ` +
    "stays, what it knows goes, except for its report. Do as much as you can do well, and check what you were told.",
    ...options.last === undefined
      ? []
      : [
        `The report of the round before:\n${delimited("last-report", JSON.stringify(options.last), maxReport)}`,
        delimitedNote
      ],
    form
  ].join("\n\n")

/** What an agent is told whose report was none. */
export const correctionOf = (problem: string): string =>
  `That does not end with a report that can be used: ${problem}\n\nDo no more work; say the report alone. ${form}`
