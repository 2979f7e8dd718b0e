import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import type { Json } from "../../src/contract/Json.ts"
import { fitJson } from "../../src/internal/fitJson.ts"

describe("fitJson", () => {
  it("leaves alone what fits", () => {
    const value = { a: ["x", null, 1, true] }
    assert.deepStrictEqual(fitJson(value, 100), { value, truncated: false })
  })

  it("cuts the longest strings and says how much is missing", () => {
    const { truncated, value } = fitJson({ long: "x".repeat(500), short: "short", deep: [["y".repeat(500)]] }, 500)
    assert.isTrue(truncated)
    assert.deepStrictEqual(value, {
      long: `${"x".repeat(125)}…[+375 characters]`,
      short: "short",
      deep: [[`${"y".repeat(125)}…[+375 characters]`]]
    })
  })

  it("turns what has too many parts into the start of its text", () => {
    const { value } = fitJson(Array.from({ length: 1000 }, () => null), 200)
    assert.match(String(value), /^\[null,null,.*…\[\+\d+ characters\]$/)
  })

  it.prop("never exceeds its limit", [fc.jsonValue(), fc.integer({ min: 200, max: 2000 })], ([value, limit]) => {
    const big = Array.from({ length: 20 }, () => value) as Json
    const { truncated, value: fitted } = fitJson(big, limit)
    assert.isAtMost(JSON.stringify(fitted).length, limit)
    assert.strictEqual(truncated, JSON.stringify(fitted) !== JSON.stringify(big))
  })
})
