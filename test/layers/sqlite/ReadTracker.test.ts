import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Path from "node:path"
import * as Database from "../../../layers/sqlite/Database.ts"
import * as SqliteTracker from "../../../layers/sqlite/ReadTracker.ts"
import { Digest } from "../../../src/contract/Digest.ts"
import { ReadTracker } from "../../../src/file/ReadTracker.ts"
import { laws } from "../../../src/testing/contract/ReadTracker.ts"
import { codeOf, platform, turnIn, world } from "../../fixtures/files.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { temporaryDatabase } from "./support.ts"

const over = <E>(database: Layer.Layer<Database.Database, E>) =>
  SqliteTracker.layer.pipe(Layer.provide(database), Layer.provideMerge(platform))

describe("ReadTracker in the state file", () => {
  for (const { law, name } of laws) it.scopedLive(name, () => Effect.provide(law, over(temporaryDatabase)))

  it.scopedLive("a read in one process licenses an edit in the next, until the file changes", () =>
    Effect.gen(function*() {
      const layer = over(Database.layer({ filename: Path.join(yield* temporaryFolder, "state.db") }))
      const { fs, path, workspace } = yield* world
      const sha256 = yield* Digest
      const physical = path.join(workspace, "f")
      const { threadId } = turnIn(workspace)
      const resolved = { lexical: physical, physical, relative: "f", inside: true, exists: true, ancestor: undefined }
      const inNext = <A, E>(body: (tracker: ReadTracker["Type"]) => Effect.Effect<A, E>) =>
        Effect.provide(Effect.flatMap(ReadTracker, body), Layer.fresh(layer))
      const license = (tracker: ReadTracker["Type"]) =>
        tracker.require(threadId, resolved, { path: "f", requiresRead: true, quotes: [] })
      yield* fs.writeFileString(physical, "one\n")
      assert.strictEqual(yield* codeOf(inNext(license)), "read_before_edit_required")
      yield* inNext((tracker) =>
        tracker.observe(threadId, { access: "read", path: physical, hash: sha256("one\n"), partial: false })
      )
      yield* inNext(license)
      yield* fs.writeFileString(physical, "two\n")
      assert.strictEqual(yield* codeOf(inNext(license)), "stale_read")
    }).pipe(Effect.provide(platform)))
})
