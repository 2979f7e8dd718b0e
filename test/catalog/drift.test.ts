import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "effect/FastCheck"
import * as Drift from "../../src/catalog/Drift.ts"
import * as Fingerprint from "../../src/catalog/Fingerprint.ts"
import { Digest } from "../../src/contract/Digest.ts"
import type { JsonObject } from "../../src/contract/Json.ts"
import type { ToolSpec } from "../../src/tool/Tool.ts"
import table from "../fixtures/vectors/drift.json" with { type: "json" }

interface Row {
  readonly case: string
  readonly before: ReadonlyArray<ToolSpec>
  readonly after: ReadonlyArray<ToolSpec>
  readonly grade: string
}

const rows: ReadonlyArray<Row> = JSON.parse(JSON.stringify(table.rows))

describe("vectors/drift.json", () => {
  for (const row of rows) {
    it.effect(`${row.case}: ${row.grade}`, () =>
      Effect.gen(function*() {
        const sha256 = yield* Digest
        const before = Fingerprint.make(sha256, row.before)
        const after = Fingerprint.make(sha256, row.after)
        assert.strictEqual(Drift.grade(before, after), row.grade)
        assert.strictEqual(before.fingerprint === after.fingerprint, row.grade === "none")
        assert.match(before.fingerprint, /^[0-9a-f]{16}$/)
        assert.strictEqual(before.toolCount, row.before.length)
      }))
  }
})

const shuffleKeys = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(shuffleKeys)
    : typeof value === "object" && value !== null
    ? Object.fromEntries(Object.entries(value).reverse().map(([key, item]) => [key, shuffleKeys(item)]))
    : value

const spec = fc.record({
  name: fc.stringMatching(/^[a-zA-Z0-9_-]{1,12}$/),
  description: fc.string(),
  parameters: fc.dictionary(
    fc.stringMatching(/^[a-z]{1,5}$/),
    fc.oneof(fc.string(), fc.integer(), fc.array(fc.boolean()))
  )
})

describe("Fingerprint", () => {
  it.effect("does not depend on the order of tools or of keys, and changes with every text a model sees", () =>
    Effect.gen(function*() {
      const sha256 = yield* Digest
      fc.assert(
        fc.property(
          fc.uniqueArray(spec, { selector: (tool) => tool.name, minLength: 1, maxLength: 12 }).chain((tools) =>
            fc.tuple(fc.constant(tools), fc.shuffledSubarray(tools, { minLength: tools.length }))
          ),
          ([tools, shuffled]) => {
            const before = Fingerprint.make(sha256, tools)
            const turned = shuffled.map((tool) => ({ ...tool, parameters: shuffleKeys(tool.parameters) as JsonObject }))
            assert.deepStrictEqual(Fingerprint.make(sha256, turned), before)
            const edited = tools.map((tool, index) =>
              index === 0 ? { ...tool, description: `${tool.description}.` } : tool
            )
            assert.strictEqual(Drift.grade(before, Fingerprint.make(sha256, edited)), "breaking")
          }
        ),
        { numRuns: 100 }
      )
    }))
})
