import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import { linkSync, readdirSync, readFileSync, statSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as FileAccess from "../../src/file/FileAccess.ts"
import { laws } from "../../src/testing/contract/FileAccess.ts"
import { temporaryFolder } from "../support/temporaryFolder.ts"

const layer = Layer.provideMerge(FileAccess.layerPortable, Layer.merge(NodeFileSystem.layer, NodePath.layer))

describe("FileAccess over any file system", () => {
  for (const { law, name } of laws) it.scopedLive(name, () => Effect.provide(law, layer))

  it.scopedLive("gives its rights to no other file that took its name, nor to what a link there leads to", () =>
    Effect.gen(function*() {
      const folder = yield* temporaryFolder
      const access = yield* FileAccess.FileAccess
      const [name, other] = [join(folder, "f"), join(folder, "other")] as const
      writeFileSync(other, "theirs", { mode: 0o600 })
      for (const swap of [() => symlinkSync(other, name), () => linkSync(other, name)]) {
        const file = yield* access.create(name, 0o600)
        const { gid, uid } = yield* file.info
        unlinkSync(name)
        swap()
        const exit = yield* Effect.exit(file.overwrite(new Uint8Array(1), { mode: 0o777, uid, gid }))
        assert.isTrue(Exit.isFailure(exit))
        assert.strictEqual(statSync(other).mode & 0o777, 0o600)
        unlinkSync(name)
      }
    }).pipe(Effect.provide(layer)))
})

it("no other module of the plane opens files", () => {
  const opens = /\.(?:open|readFile|readFileString|writeFile|writeFileString|stream|sink|copy|copyFile|truncate)\(/
  const files = readdirSync("src", { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !name.startsWith("testing"))
  const offenders = files.filter((name) => {
    const source = readFileSync(join("src", name), "utf8")
    return source.includes("@effect/platform/FileSystem") &&
      new RegExp(`\\b(?:fs|fileSystem)${opens.source}`).test(source)
  })
  assert.deepStrictEqual(offenders, [join("file", "FileAccess.ts")])
})
