/**
 * Questions to the user, as records that a surface can list, claim and answer.
 *
 * A question lives as long as its asker waits. Who wants to answer claims it first, so that two surfaces never answer one
 * question; a claim lasts as long as the scope it was made in, so that a surface which goes away leaves nothing locked.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { UserInputUnavailable } from "../contract/ToolFailure.ts"
import type { ThreadId, TurnId } from "../contract/Turn.ts"
import { makeSignal } from "../internal/journalPages.ts"
import { type Answer, type Question, UserInput } from "../tool/UserInput.ts"

export interface QuestionRecord {
  /** Random. */
  readonly id: string
  readonly threadId: ThreadId
  readonly turnId: TurnId
  readonly questions: ReadonlyArray<Question>
  /** Milliseconds since 1970. */
  readonly askedAt: number
  readonly claimedBy: string | null
}

/** The right to answer one question. */
export interface Claim {
  /** Of the question. */
  readonly id: string
  readonly principal: string
  /** Random: a claim that was given up does not answer for the one after it. */
  readonly token: string
}

/** Somebody is about to answer already. */
export class AlreadyClaimed extends Schema.TaggedError<AlreadyClaimed>("portcullis/AlreadyClaimed")("AlreadyClaimed", {
  code: Schema.Literal("already_claimed"),
  id: Schema.String,
  by: Schema.String
}) {
  override get message() {
    return `${this.id} is claimed by ${this.by}.`
  }
}

/** Nobody waits for an answer: it was answered or dismissed, its asker is gone, or it never was (or was long ago). */
export class QuestionClosed extends Schema.TaggedError<QuestionClosed>("portcullis/QuestionClosed")("QuestionClosed", {
  code: Schema.Literal("question_settled", "question_withdrawn", "question_unknown"),
  id: Schema.String
}) {
  override get message() {
    return `Nobody waits for an answer to ${this.id} (${this.code}).`
  }
}

/** The claim was released, or its scope is closed. */
export class ClaimLost extends Schema.TaggedError<ClaimLost>("portcullis/ClaimLost")("ClaimLost", {
  code: Schema.Literal("claim_lost"),
  id: Schema.String
}) {
  override get message() {
    return `The claim on ${this.id} is not held any more.`
  }
}

/** The answers do not fit the questions. The question stays open, and claimed. */
export class AnswerInvalid extends Schema.TaggedError<AnswerInvalid>("portcullis/AnswerInvalid")("AnswerInvalid", {
  code: Schema.Literal("answer_invalid"),
  id: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `The answers do not fit ${this.id}: ${this.reason}.`
  }
}

/** Questions open at one time; beyond it nobody can be asked. */
export const maxOpen = 100

export class Questions extends Context.Tag("portcullis/Questions")<Questions, {
  /**
   * Asks, and waits for the answers, in the order of the questions; `undefined` when they were dismissed. Interruption
   * withdraws the question. Over `maxOpen`, and when the service closes, it is `user_input_unavailable`.
   */
  readonly ask: UserInput["Type"]["ask"]
  /** Open questions, oldest first. */
  readonly pending: Effect.Effect<ReadonlyArray<QuestionRecord>>
  /** Open questions now, and again after every change. Who is slow sees the newest state and misses those between. */
  readonly watch: Stream.Stream<ReadonlyArray<QuestionRecord>>
  /** Claims a question until it is answered, released, or the scope closes. Of two claimers one wins. */
  readonly claim: (
    id: string,
    principal: string
  ) => Effect.Effect<Claim, AlreadyClaimed | QuestionClosed, Scope.Scope>
  /** Gives a claim up; others can claim the question then. Of a claim that is not held it changes nothing. */
  readonly release: (claim: Claim) => Effect.Effect<void>
  /**
   * Answers every question: each by its id, with as many of its option labels as it wants, or with one text when it has no
   * options.
   */
  readonly answer: (
    claim: Claim,
    answers: ReadonlyArray<Answer>
  ) => Effect.Effect<void, AnswerInvalid | ClaimLost | QuestionClosed>
  /** Lets the asker go on without an answer. */
  readonly dismiss: (claim: Claim) => Effect.Effect<void, ClaimLost | QuestionClosed>
}>() {}

type Service = Questions["Type"]
type Closed = QuestionClosed["code"]

interface Open {
  readonly record: QuestionRecord
  readonly done: Deferred.Deferred<ReadonlyArray<Answer> | undefined, UserInputUnavailable>
  claim: Claim | undefined
}

/** How many closed questions are remembered, to tell a late answer why it is refused. */
const maxClosed = 1000
const maxPrincipal = 200
/** Characters of a typed answer. */
const maxText = 65_536

const problemOf = ({ id, max, min, options }: Question, values: ReadonlyArray<string>): string | undefined => {
  if (values.length < min || values.length > max) return `${id} wants ${min === max ? min : `${min} to ${max}`} values`
  if (new Set(values).size < values.length) return `${id} has a value twice`
  if (options.length > 0) {
    const labels = new Set(options.map(({ label }) => label))
    return values.every((value) => labels.has(value)) ? undefined : `${id} has a value that is none of its options`
  }
  const fits = values.every((value) => value.trim() !== "" && value.length <= maxText && value.isWellFormed())
  return fits ? undefined : `${id} wants a text of at most ${maxText} characters`
}

/** The answers in the order of the questions, or what is wrong with them. */
const settled = (
  questions: ReadonlyArray<Question>,
  answers: ReadonlyArray<Answer>
): ReadonlyArray<Answer> | string => {
  const given = new Map(answers.map(({ id, values }) => [id, values]))
  if (given.size < answers.length) return "a question is answered twice"
  const ids = new Set(questions.map(({ id }) => id))
  if (answers.some(({ id }) => !ids.has(id))) return "it answers a question that was not asked"
  const out: Array<Answer> = []
  for (const question of questions) {
    const values = [...given.get(question.id) ?? []]
    const problem = problemOf(question, values)
    if (problem !== undefined) return problem
    out.push({ id: question.id, values })
  }
  return out
}

const closing = "the host is closing"
const unavailable = (why: string) =>
  new UserInputUnavailable({ reason: `The user cannot be asked: ${why}. Continue without asking.` })

/** Keeps questions in memory. Who still waits when the scope closes is told that nobody will answer. */
export const make: Effect.Effect<Service, never, Scope.Scope> = Effect.gen(function*() {
  const open = new Map<string, Open>()
  const closed = new Map<string, Closed>()
  const signal = makeSignal()
  let version = 0
  let over = false

  const changed = () => {
    version++
    signal.raise()
  }

  const records = () =>
    Array.from(open.values(), ({ claim, record }) => ({ ...record, claimedBy: claim?.principal ?? null }))

  /** Closes a question that is open, once. */
  const close = ({ record }: Open, how: Closed) => {
    if (!open.delete(record.id)) return
    closed.set(record.id, how)
    const oldest = closed.size > maxClosed ? closed.keys().next().value : undefined
    if (oldest !== undefined) closed.delete(oldest)
    changed()
  }

  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      over = true
      for (const entry of [...open.values()]) {
        close(entry, "question_withdrawn")
        Deferred.unsafeDone(entry.done, Exit.fail(unavailable(closing)))
      }
    })
  )

  // Looking and changing are one synchronous step each: a fiber may be put aside between any two effects.
  const find = (id: string): Either.Either<Open, QuestionClosed> => {
    const entry = open.get(id)
    return entry === undefined
      ? Either.left(new QuestionClosed({ code: closed.get(id) ?? "question_unknown", id }))
      : Either.right(entry)
  }

  const held = (claim: Claim): Either.Either<Open, ClaimLost | QuestionClosed> =>
    Either.filterOrLeft(
      find(claim.id),
      (entry) => entry.claim?.token === claim.token,
      () => new ClaimLost({ code: "claim_lost", id: claim.id })
    )

  const settle = (entry: Open, answers: ReadonlyArray<Answer> | undefined): void => {
    close(entry, "question_settled")
    Deferred.unsafeDone(entry.done, Exit.succeed(answers))
  }

  const release: Service["release"] = (claim) =>
    Effect.sync(() => {
      const entry = open.get(claim.id)
      if (entry?.claim?.token !== claim.token) return
      entry.claim = undefined
      changed()
    })

  const ask: Service["ask"] = (questions, { threadId, turnId }) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(Clock.currentTimeMillis, (askedAt) => {
        if (over) return unavailable(closing)
        if (open.size >= maxOpen) return unavailable("too many questions are open")
        const id = `question_${globalThis.crypto.randomUUID().replaceAll("-", "")}`
        const record = { id, threadId, turnId, questions, askedAt, claimedBy: null }
        const entry: Open = { record, done: Deferred.unsafeMake(FiberId.none), claim: undefined }
        open.set(id, entry)
        changed()
        // Once it is settled, closing it again changes nothing.
        return Effect.ensuring(
          restore(Deferred.await(entry.done)),
          Effect.sync(() => close(entry, "question_withdrawn"))
        )
      })
    )

  return {
    ask,
    pending: Effect.sync(records),
    watch: Stream.unfoldEffect(
      -1,
      (seen) => Effect.map(signal.wait(() => version !== seen), () => Option.some([records(), version] as const))
    ),
    claim: (id, principal) =>
      Effect.acquireRelease(
        Effect.suspend(() =>
          Either.flatMap(find(id), (entry) => {
            if (entry.claim !== undefined) {
              return Either.left(new AlreadyClaimed({ code: "already_claimed", id, by: entry.claim.principal }))
            }
            const by = principal.slice(0, maxPrincipal).toWellFormed()
            const claim = { id, principal: by, token: globalThis.crypto.randomUUID() }
            entry.claim = claim
            changed()
            return Either.right(claim)
          })
        ),
        release
      ),
    release,
    answer: (claim, answers) =>
      Effect.suspend(() =>
        Either.flatMap(held(claim), (entry) => {
          const fitting = settled(entry.record.questions, answers)
          return typeof fitting === "string"
            ? Either.left(new AnswerInvalid({ code: "answer_invalid", id: claim.id, reason: fitting }))
            : Either.right(settle(entry, fitting))
        })
      ),
    dismiss: (claim) => Effect.suspend(() => Either.map(held(claim), (entry) => settle(entry, undefined)))
  }
})

/** Questions live as long as this process. */
export const layer: Layer.Layer<Questions> = Layer.scoped(Questions, make)

/** The tools that ask the user do it here. */
export const layerUserInput: Layer.Layer<UserInput, never, Questions> = Layer.effect(
  UserInput,
  Effect.map(Questions, ({ ask }) => ({ ask }))
)
