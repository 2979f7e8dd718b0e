import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ReadTracker from "../../src/file/ReadTracker.ts"
import { MaxFileBytes } from "../../src/file/TextFile.ts"
import { laws } from "../../src/testing/contract/ReadTracker.ts"
import { codeOf, platform, turnIn, world } from "../fixtures/files.ts"

const layer = Layer.provideMerge(ReadTracker.layerMemory, platform)

describe("ReadTracker in memory", () => {
  for (const { law, name } of laws) {
    it.scopedLive(name, () => Effect.provide(law, layer))
  }

  it.scopedLive("says that a file has grown too large, and not that reading it would help", () =>
    Effect.gen(function*() {
      const { fs, path, workspace } = yield* world
      const tracker = yield* ReadTracker.ReadTracker
      const physical = path.join(workspace, "f")
      yield* fs.writeFileString(physical, "longer than ten bytes")
      const { threadId } = turnIn(workspace)
      yield* tracker.observe(threadId, { access: "read", path: physical, hash: "", partial: false })
      const resolved = { lexical: physical, physical, relative: "f", inside: true, exists: true, ancestor: undefined }
      const target = { path: "f", requiresRead: true, quotes: [] }
      assert.strictEqual(yield* codeOf(tracker.require(threadId, resolved, target)), "file_too_large")
    }).pipe(Effect.provide(layer), Effect.provideService(MaxFileBytes, 10)))
})
