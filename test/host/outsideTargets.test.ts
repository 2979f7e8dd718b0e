/** Step 11 end to end: what is approved outside the workspace is one file by identity, and stays the only one written. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import {
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import * as ToolProvider from "../../src/tool/ToolProvider.ts"
import { edit } from "../../src/tools/edit.ts"
import { read } from "../../src/tools/read.ts"
import { write } from "../../src/tools/write.ts"
import { executeIn, recorder, Test, workspace } from "../support/plane.ts"

const tools = ToolProvider.make({ id: "files", kind: "built-in", tools: [read, write, edit] })
const ids = { threadId: "thread", turnId: "turn" }

/** A file outside that was read, and calls on it; `answered` happens once somebody has agreed. */
const desk = Effect.gen(function*() {
  const { outside, root } = yield* workspace
  const folder = join(outside, "folder")
  const file = join(folder, "notes")
  mkdirSync(folder)
  writeFileSync(file, "v1\n")
  const asks = recorder()
  const during = { approval: () => {}, hook: () => {} }
  const layer = Test.layer([tools], {
    approvals: {
      approver: {
        name: "recorder",
        review: (record) => Effect.tap(asks.approver.review(record), () => Effect.sync(() => during.approval()))
      }
    },
    hooks: [{
      phase: "Around",
      name: "late",
      run: (_, __, next) => Effect.zipRight(Effect.sync(() => during.hook()), next)
    }]
  })
  const spec = { workspace: root, ...ids }
  return { root, outside, folder, file, asks, during, layer, spec }
})

type Desk = Effect.Effect.Success<typeof desk>

const swaps: Record<string, (desk: Desk) => void> = {
  "another file": ({ file, folder }) => {
    renameSync(file, join(folder, "moved"))
    writeFileSync(file, "another\n")
  },
  "a link": ({ file, outside }) => {
    writeFileSync(join(outside, "secret"), "secret\n")
    unlinkSync(file)
    symlinkSync(join(outside, "secret"), file)
  },
  "a second hard link": ({ file, folder }) => linkSync(file, join(folder, "second")),
  "another parent, with the same file": ({ file, folder, outside }) => {
    renameSync(folder, join(outside, "elsewhere"))
    mkdirSync(folder)
    renameSync(join(outside, "elsewhere/notes"), file)
  },
  "a link for a parent": ({ folder, outside }) => {
    renameSync(folder, join(outside, "elsewhere"))
    symlinkSync(join(outside, "elsewhere"), folder)
  },
  nothing: ({ file }) => unlinkSync(file)
}

/** Every file below a folder by path, with what it holds. */
const snapshot = (folder: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true, encoding: "utf8" }).sort()
      .map((name) => join(folder, name)).filter((path) => statSync(path).isFile())
      .map((path) => [path, readFileSync(path, "utf8")])
  )

const acrossModes = { sandboxMode: "danger-full-access", approvalPolicy: "auto" } as const

describe("a write outside the workspace", () => {
  it.scopedLive("asks for that very file, whatever the policy, writes it in place and asks again for the next call", () =>
    Effect.gen(function*() {
      const { asks, file, folder, layer, spec } = yield* desk
      yield* Effect.gen(function*() {
        yield* executeIn({ ...spec, ...acrossModes }, { toolName: "read", arguments: { path: file } })
        const { ino } = statSync(file)
        for (const content of ["v2\n", "v3\n"]) {
          const auto = { ...spec, approvalPolicy: "auto" } as const
          const { code } = yield* executeIn(auto, { toolName: "write", arguments: { path: file, content } })
          assert.isNull(code)
          assert.deepStrictEqual([readFileSync(file, "utf8"), statSync(file).ino], [content, ino])
        }
        assert.deepStrictEqual(asks.asked.map(({ outsideTargets }) => outsideTargets), [[file], [file]])
        assert.deepStrictEqual(readdirSync(folder), ["notes"])
      }).pipe(Effect.provide(layer))
    }).pipe(Effect.provide(NodeFileSystem.layer)))

  it.scopedLive("needs no read where none is allowed, and shows nothing of what is there", () =>
    Effect.gen(function*() {
      const { asks, file, layer, spec } = yield* desk
      writeFileSync(file, "before\nv1\nafter\n")
      yield* Effect.gen(function*() {
        const changes = [
          ["edit", { oldText: "v1", newText: "v2" }, "before\nv2\nafter\n"],
          ["write", { content: "all new\n" }, "all new\n"]
        ] as const
        for (const [toolName, args, expected] of changes) {
          const { code, content, output } = yield* executeIn(spec, { toolName, arguments: { path: file, ...args } })
          assert.isNull(code, JSON.stringify(output))
          assert.strictEqual(readFileSync(file, "utf8"), expected)
          assert.notMatch(JSON.stringify([output, content]), /before|after/)
        }
        assert.strictEqual(asks.asked.length, 2)
        const denied = yield* executeIn(spec, { toolName: "read", arguments: { path: file } })
        assert.strictEqual(denied.code, "outside_workspace")
      }).pipe(Effect.provide(layer))
    }).pipe(Effect.provide(NodeFileSystem.layer)))

  for (const [what, swap] of Object.entries(swaps)) {
    for (const when of ["approval", "hook"] as const) {
      const after = when === "approval" ? "once it was approved" : "right before the tool runs"
      it.scopedLive(`changes nothing when there is ${what} in its place ${after}`, () =>
        Effect.gen(function*() {
          const place = yield* desk
          const { asks, during, file, layer, outside, spec } = place
          yield* Effect.gen(function*() {
            for (
              const [toolName, args] of [["write", { content: "ours\n" }], ["edit", {
                oldText: "v1",
                newText: "ours"
              }]] as const
            ) {
              rmSync(outside, { recursive: true, force: true })
              mkdirSync(place.folder, { recursive: true })
              writeFileSync(file, "v1\n")
              yield* executeIn({ ...spec, ...acrossModes }, { toolName: "read", arguments: { path: file } })
              let left = {}
              during[when] = () => {
                during[when] = () => {}
                swap(place)
                left = snapshot(outside)
              }
              const before = asks.asked.length
              const result = yield* executeIn(spec, { toolName, arguments: { path: file, ...args } })
              assert.strictEqual(asks.asked.length, before + 1)
              assert.isTrue(result.isError, JSON.stringify(result.output))
              assert.deepStrictEqual(snapshot(outside), left)
              assert.notInclude(JSON.stringify(left), "ours")
            }
          }).pipe(Effect.provide(layer))
        }).pipe(Effect.provide(NodeFileSystem.layer)))
    }
  }

  it.scopedLive("of what is no regular file with one link, or is not there, is refused without a question", () =>
    Effect.gen(function*() {
      const { asks, file, folder, layer, spec } = yield* desk
      yield* Effect.gen(function*() {
        linkSync(file, join(folder, "second"))
        yield* executeIn({ ...spec, ...acrossModes }, { toolName: "read", arguments: { path: file } })
        for (const path of [file, join(folder, "none"), folder]) {
          const { code } = yield* executeIn(spec, { toolName: "write", arguments: { path, content: "ours\n" } })
          assert.strictEqual(code, "sandbox_write_blocked")
        }
        assert.deepStrictEqual(asks.asked, [])
        assert.deepStrictEqual(readdirSync(folder).sort(), ["notes", "second"])
      }).pipe(Effect.provide(layer))
    }).pipe(Effect.provide(NodeFileSystem.layer)))
})
