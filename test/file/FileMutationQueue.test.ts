import { describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FileMutationQueue from "../../src/file/FileMutationQueue.ts"
import { laws } from "../../src/testing/contract/FileMutationQueue.ts"

describe("FileMutationQueue in process", () => {
  for (const { law, name } of laws) {
    it.effect(name, () => Effect.provide(law, FileMutationQueue.layerInProcess))
  }
})
