import { assert, describe, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import * as Image from "../../src/file/Image.ts"
import { gif, jpeg, png, webp } from "../fixtures/images.ts"

const headers = (width: number, height: number) => [
  png(width, height),
  gif(width, height),
  jpeg(width, height),
  webp("VP8 ", width, height),
  webp("VP8L", width, height),
  webp("VP8X", width, height)
]

const bytes = FastCheck.uint8Array({ maxLength: 64 })

describe("Image", () => {
  it("tells type and dimensions of each form", () => {
    for (const header of headers(300, 7)) {
      assert.deepStrictEqual(Image.inspect(header)?.size, { width: 300, height: 7 })
    }
    assert.deepStrictEqual(headers(300, 7).map((header) => Image.inspect(header)?.mediaType), [
      "image/png",
      "image/gif",
      "image/jpeg",
      "image/webp",
      "image/webp",
      "image/webp"
    ])
    assert.deepStrictEqual(Image.inspect(png(0xffffffff, 0x80000000))?.size, { width: 0xffffffff, height: 0x80000000 })
  })

  it("knows no size of a header that is cut short or says zero", () => {
    for (const header of headers(300, 7)) {
      for (let length = 0; length < header.length; length++) {
        const size = Image.inspect(header.subarray(0, length))?.size
        assert.include([undefined, 300], size?.width)
        assert.include([undefined, 7], size?.height)
      }
    }
    assert.deepStrictEqual([png(0, 1), gif(1, 0), jpeg(0, 0)].map((image) => Image.inspect(image)?.size), [
      undefined,
      undefined,
      undefined
    ])
  })

  it.prop("survives any bytes, and any bytes in its headers", [bytes, FastCheck.nat(5), FastCheck.nat(40)], ([
    noise,
    which,
    at
  ]) => {
    Image.inspect(noise)
    const header = headers(1000, 1000)[which] ?? noise
    const broken = new Uint8Array(Math.max(header.length, at + noise.length))
    broken.set(header)
    broken.set(noise, at)
    const size = Image.inspect(broken)?.size
    assert.isTrue(size === undefined || (size.width > 0 && size.height > 0))
  })

  it("goes through a megabyte of fill bytes and of empty segments in no time", () => {
    const fill = new Uint8Array(1024 * 1024).fill(0xff)
    fill[1] = 0xd8
    assert.isUndefined(Image.inspect(fill)?.size)
    const segments = Uint8Array.from({ length: 1024 * 1024 }, (_, index) => [0xff, 0xe1, 0, 2][index % 4] ?? 0)
    segments[1] = 0xd8
    segments[2] = 0xff
    segments[3] = 0xd8
    assert.isUndefined(Image.inspect(segments)?.size)
  })

  it("names other formats", () => {
    assert.strictEqual(Image.seems(new TextEncoder().encode("%PDF-1.7")), "a PDF document")
    assert.isUndefined(Image.seems(new TextEncoder().encode("hello")))
    assert.isUndefined(Image.inspect(new TextEncoder().encode("hello")))
  })
})
