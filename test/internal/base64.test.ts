import { assert, describe, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { base64 } from "../../src/internal/base64.ts"

describe("base64", () => {
  it.prop("is what the platform makes of any bytes", [FastCheck.uint8Array({ maxLength: 100 })], ([bytes]) => {
    assert.strictEqual(base64(bytes), Buffer.from(bytes).toString("base64"))
  })
})
