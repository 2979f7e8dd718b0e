import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import { truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as ToolCall from "../../src/contract/ToolCall.ts"
import { ImageLimits } from "../../src/file/Image.ts"
import { ToolHost } from "../../src/host/ToolHost.ts"
import * as ToolProvider from "../../src/tool/ToolProvider.ts"
import { readImage } from "../../src/tools/read_image.ts"
import { codeOf, services } from "../fixtures/files.ts"
import { gif, jpeg, png, webp } from "../fixtures/images.ts"
import { Test, workspace } from "../support/plane.ts"
import { desk, detailsOf } from "./fileSupport.ts"

const images = {
  "image/png": png(2, 3),
  "image/gif": gif(2, 3),
  "image/jpeg": jpeg(2, 3),
  "image/webp": webp("VP8X", 2, 3)
}

describe("read_image", () => {
  it.scopedLive("hands over the bytes of an image, whatever its name", () =>
    Effect.gen(function*() {
      const { image, put } = yield* desk
      for (const [mediaType, bytes] of Object.entries(images)) {
        put("x.txt", bytes)
        const { content, output } = yield* image("x.txt")
        assert.deepStrictEqual(output, { path: "x.txt", mediaType, width: 2, height: 3, byteSize: bytes.length })
        assert.deepStrictEqual(content, [
          { type: "text", text: `x.txt: ${mediaType}, 2 × 3 pixels, ${bytes.length} bytes.` },
          { type: "image", mediaType, data: Buffer.from(bytes).toString("base64") }
        ])
      }
    }).pipe(Effect.provide(services)))

  it.scopedLive("refuses what is no image, and waits for no FIFO", () =>
    Effect.gen(function*() {
      const { at, image, put } = yield* desk
      put("fake.png", "not an image")
      put("cut.png", png(1, 1).subarray(0, 20))
      execFileSync("mkfifo", [at("fifo.png")])
      assert.strictEqual(yield* codeOf(image("fake.png")), "not_an_image")
      assert.strictEqual(yield* codeOf(image("cut.png")), "not_an_image")
      assert.strictEqual(yield* codeOf(image("fifo.png")), "not_a_regular_file")
      assert.strictEqual(yield* codeOf(image("none.png")), "file_not_found")
      assert.strictEqual(yield* codeOf(image(".")), "is_a_directory")
    }).pipe(Effect.provide(services)))

  it.scopedLive("refuses what is too large in bytes or in pixels, and says what to do", () =>
    Effect.gen(function*() {
      const { at, image, put } = yield* desk
      const maxBytes = 3 * 1.125 * 1024 * 1024
      put("f", png(1, 1))
      truncateSync(at("f"), maxBytes)
      const { content } = yield* image("f")
      assert.strictEqual(content[1]?.type === "image" ? content[1].data.length : 0, 4.5 * 1024 * 1024)
      truncateSync(at("f"), maxBytes + 1)
      assert.strictEqual(yield* codeOf(image("f")), "image_too_large")
      assert.deepStrictEqual(yield* detailsOf(image("f")), { byteSize: maxBytes + 1, maxBytes })
      put("wide", png(8001, 1))
      assert.strictEqual((yield* detailsOf(image("wide")))["width"], 8001)
      put("fits", png(8000, 8000))
      assert.strictEqual(yield* codeOf(image("fits")), "none")
      const strict = Effect.provideService(image("fits"), ImageLimits, { base64: 100, width: 100, height: 100 })
      assert.strictEqual(yield* codeOf(strict), "image_too_large")
    }).pipe(Effect.provide(services)))

  it.scopedLive("is there for a model that sees, and what it shows comes through the channel whole, once", () =>
    Effect.gen(function*() {
      const { root } = yield* workspace
      writeFileSync(join(root, "p.png"), Buffer.concat([png(9, 9), Buffer.alloc(3_000_000)]))
      yield* Effect.gen(function*() {
        const host = yield* ToolHost
        const call = ToolCall.make({ toolName: "read_image", arguments: { path: "p.png" } })
        const blind = yield* host.execute(call, { workspace: root })
        assert.strictEqual(blind.code, "tool_not_advertised")
        const spec = { workspace: root, threadId: "t", model: { inputModalities: ["text", "image"] } } as const
        const turn = yield* host.openTurn(spec)
        const result = yield* turn.execute(call)
        assert.isFalse(result.isError)
        assert.lengthOf(result.content, 2)
        const part = result.content[1]
        assert.strictEqual(part?.type === "image" ? part.data.length : 0, Math.ceil(3_000_033 / 3) * 4)
        assert.notInclude(JSON.stringify(result.output), "AAAA")
      }).pipe(Effect.provide(Test.layer([ToolProvider.make({ id: "i", kind: "built-in", tools: [readImage] })])))
    }).pipe(Effect.provide(services)))
})
