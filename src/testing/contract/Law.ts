/**
 * A law of a service: a sentence, and an effect over the service that fails when the sentence is not true.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { canonical, snapshot } from "../../contract/Json.ts"

export class LawBroken extends Schema.TaggedError<LawBroken>("portcullis/LawBroken")("LawBroken", {
  code: Schema.Literal("law_broken"),
  what: Schema.String
}) {
  override get message() {
    return this.what
  }
}

/** Each law wants a fresh instance of the services it needs. */
export interface Law<R> {
  readonly name: string
  readonly law: Effect.Effect<void, LawBroken, R>
}

const broken = (what: string) => new LawBroken({ code: "law_broken", what })

/** An unexpected failure breaks the law too. */
export const law = <E, R>(name: string, body: Effect.Effect<void, E, R>): Law<R> => ({
  name,
  law: Effect.mapError(body, (error) => error instanceof LawBroken ? error : broken(`unexpected: ${String(error)}`))
})

export const expect = (condition: boolean, what: string): Effect.Effect<void, LawBroken> =>
  condition ? Effect.void : Effect.fail(broken(what))

const show = (value: unknown): string => {
  const plain = snapshot(value)
  return plain.ok ? canonical(plain.value) : String(value)
}

/** Equal as plain data, whatever the order of keys. */
export const equal = (actual: unknown, expected: unknown, what: string): Effect.Effect<void, LawBroken> =>
  expect(show(actual) === show(expected), `${what}: expected ${show(expected)}, got ${show(actual)}`)
