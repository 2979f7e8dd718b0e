/** `p-limit` around `Effect.runPromise`: the usual way to bound effects from outside. */
import * as Effect from "effect/Effect"
import pLimit from "p-limit"

export const tasks = (size, body = Effect.void) => {
  const limit = pLimit(8)
  return {
    run: async (n) => {
      for (let round = 0; round < Math.max(1, Math.round(n / size)); round++) {
        await Promise.all(Array.from({ length: size }, () => limit(() => Effect.runPromise(body))))
      }
    }
  }
}
