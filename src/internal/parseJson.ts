/** `JSON.parse` without exceptions. */
import * as Either from "effect/Either"

/** The value of a JSON text, or `undefined` when it is not one. */
export const parseJson = (text: string): unknown => Either.getOrUndefined(Either.try((): unknown => JSON.parse(text)))
