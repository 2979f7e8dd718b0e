import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { WorkspacePath } from "../../src/file/WorkspacePath.ts"
import { ls } from "../../src/tools/ls.ts"
import { read } from "../../src/tools/read.ts"
import { readImage } from "../../src/tools/read_image.ts"
import { call, codeOf, services, world } from "../fixtures/files.ts"
import { png } from "../fixtures/images.ts"

describe("what shows a file or a folder", () => {
  it.scopedLive("is led nowhere by a folder that is swapped for a link once the path was judged", () =>
    Effect.gen(function*() {
      const { outside, turn, workspace } = yield* world
      const paths = yield* WorkspacePath
      mkdirSync(join(workspace, "a/d"), { recursive: true })
      mkdirSync(join(outside, "d"))
      for (const folder of [join(workspace, "a"), outside]) {
        for (const file of ["f", "d/f"]) writeFileSync(join(folder, file), folder)
        for (const file of ["i", "d/i"]) writeFileSync(join(folder, file), png(8, 8))
        writeFileSync(join(folder, "d/secret"), "")
      }
      const swapping = {
        ...paths,
        forRead: (...args: Parameters<typeof paths.forRead>) =>
          Effect.tap(paths.forRead(...args), () =>
            Effect.sync(() => {
              renameSync(join(workspace, "a"), join(workspace, "b"))
              symlinkSync(outside, join(workspace, "a"))
            }))
      }
      const back = Effect.sync(() => {
        renameSync(join(workspace, "a"), join(workspace, "gone"))
        renameSync(join(workspace, "b"), join(workspace, "a"))
        renameSync(join(workspace, "gone"), join(workspace, `gone-${Math.random()}`))
      })
      for (
        const [tool, path] of [[read, "a/f"], [read, "a/d/f"], [readImage, "a/i"], [readImage, "a/d/i"], [ls, "a"], [
          ls,
          "a/d"
        ]] as const
      ) {
        const swapped = Effect.provideService(call(tool, turn, { path }), WorkspacePath, swapping)
        assert.strictEqual(yield* codeOf(swapped), "path_changed", path)
        yield* back
        assert.strictEqual(yield* codeOf(call(tool, turn, { path })), "none", path)
      }
    }).pipe(Effect.provide(services)))

  it.scopedLive("names no withheld file as one that may have been meant, nor what is beside a root", () =>
    Effect.gen(function*() {
      const { base, turn, workspace } = yield* world
      mkdirSync(join(workspace, ".ssh"))
      for (const name of [".env.local", ".npmrc", "server.key", ".ssh/config", "server.keys"]) {
        writeFileSync(join(workspace, name), "")
      }
      writeFileSync(join(base, "extra1"), "")
      const roots = [workspace, join(base, "extra")]
      for (const path of [".envlocal", "npmrc", "server.ke", "ssh", join(base, "extra")]) {
        for (const tool of [read, ls]) {
          const error = yield* Effect.flip(call(tool, { ...turn, roots }, { path }))
          assert.deepNestedInclude(error, {
            code: "file_not_found",
            "details.near": path === "server.ke" ? ["server.keys"] : []
          }, path)
        }
      }
    }).pipe(Effect.provide(services)))

  it.scopedLive("tells of no link that leads to what is withheld where it leads", () =>
    Effect.gen(function*() {
      const { turn, workspace } = yield* world
      mkdirSync(join(workspace, ".ssh"))
      for (const target of [".env", ".ssh", ".ssh/id_mine", "other/../.ssh/x", "hop"]) {
        symlinkSync(target, join(workspace, `to-${target.replaceAll("/", "-")}`))
      }
      symlinkSync(".env", join(workspace, "hop"))
      const { content } = yield* call(ls, turn, {})
      assert.notMatch(JSON.stringify(content), /-> |dangling/)
    }).pipe(Effect.provide(services)))
})
