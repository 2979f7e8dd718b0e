/**
 * Empty folders that stand for names which are not there, so that they can be mounted over.
 *
 * A placeholder goes with the last command that needs it, and only if it is still empty: what somebody else has put
 * there meanwhile stays.
 *
 * @internal
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Scope from "effect/Scope"
import { mkdirSync, rmdirSync } from "node:fs"

export interface Placeholders {
  /** Whether this path is one of ours now. */
  readonly has: (path: string) => boolean
  /** Holds the path until the scope closes, creating it first. Succeeds with the error's code where it cannot be created. */
  readonly hold: (path: string) => Effect.Effect<Either.Either<void, string>, never, Scope.Scope>
}

const codeOf = (cause: unknown): string => cause instanceof Error && "code" in cause ? String(cause.code) : "unknown"

/** As many entries as there are paths held by running commands. */
export const make = (): Placeholders => {
  const holders = new Map<string, number>()

  const acquire = (path: string): Either.Either<void, string> => {
    const count = holders.get(path)
    const made = count === undefined
      ? Either.try({ try: () => mkdirSync(path), catch: codeOf })
      : Either.right(undefined)
    if (Either.isRight(made)) holders.set(path, (count ?? 0) + 1)
    return made
  }

  const release = (path: string): void => {
    const left = (holders.get(path) ?? 1) - 1
    if (left > 0) return void holders.set(path, left)
    holders.delete(path)
    Either.try(() => rmdirSync(path))
  }

  return {
    has: (path) => holders.has(path),
    hold: (path) =>
      Effect.acquireRelease(
        Effect.sync(() => acquire(path)),
        (made) => Effect.sync(() => Either.isRight(made) ? release(path) : undefined)
      )
  }
}
