import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Json } from "../../src/contract/Json.ts"
import type { ProviderKind } from "../../src/contract/Provider.ts"
import * as ToolCall from "../../src/contract/ToolCall.ts"
import { type CodedError, toolError } from "../../src/contract/ToolFailure.ts"
import { maxDelayMs, parseMillis, parseRetryAfter } from "../../src/host/RateLimit.ts"
import { ToolHost } from "../../src/host/ToolHost.ts"
import * as Tool from "../../src/tool/Tool.ts"
import * as ToolProvider from "../../src/tool/ToolProvider.ts"
import rateTable from "../fixtures/vectors/rate-limit.json" with { type: "json" }
import retryTable from "../fixtures/vectors/retry-after.json" with { type: "json" }
import { Test, workspace } from "../support/plane.ts"

interface RetryRow {
  readonly header?: string
  readonly retryAfterMsHeader?: string
  readonly ms: number | null
}

describe("vectors/retry-after.json", () => {
  const now = Date.parse(retryTable.now)
  for (const row of retryTable.rows as ReadonlyArray<RetryRow>) {
    it(`${JSON.stringify(row.header ?? row.retryAfterMsHeader)} is ${row.ms}`, () => {
      const parsed = row.header === undefined ? parseMillis(row.retryAfterMsHeader) : parseRetryAfter(row.header, now)
      assert.strictEqual(parsed ?? null, row.ms)
    })
  }

  it("never yields a negative or absurd delay, whatever it is given", () => {
    for (
      const value of [
        null,
        undefined,
        -1,
        Number.NaN,
        Number.POSITIVE_INFINITY,
        "1, 2",
        "9".repeat(500),
        {},
        [],
        true,
        "1s2m"
      ]
    ) {
      assert.isUndefined(parseRetryAfter(value, now))
    }
    assert.strictEqual(parseRetryAfter(1e12, now), maxDelayMs)
  })
})

interface RateRow {
  readonly case: string
  readonly tool: string
  readonly isError: boolean
  readonly output?: Json
  readonly failure?: { readonly [key: string]: Json }
  readonly rateLimited: boolean
  readonly retryAfterMs?: number
}

/** How a tool of that row would end: MCP errors are a code, the server's text and its fields. */
const ending = (row: RateRow): Effect.Effect<Json, CodedError<"failed">> => {
  if (!row.isError) return Effect.succeed(row.output ?? null)
  const details = row.failure ??
    (typeof row.output === "object" ? row.output : row.tool === "bash" ? { output: row.output } : undefined)
  const said = typeof row.output === "object" && row.output !== null && "error" in row.output
    ? row.output["error"]
    : row.output
  return Effect.fail(
    toolError("failed", typeof said === "string" && row.tool !== "bash" ? said : "it failed", details)
  )
}

const kindOf = (tool: string): ProviderKind =>
  tool.startsWith("mcp_") ? "mcp" : tool.startsWith("web_") ? "web" : "built-in"

describe("vectors/rate-limit.json through the host", () => {
  for (const row of rateTable.rows as ReadonlyArray<RateRow>) {
    it.scopedLive(row.case, () =>
      Effect.gen(function*() {
        const { root } = yield* workspace
        const tool = Tool.fromJsonSchema(row.tool, {
          description: "",
          policy: "auto",
          codes: ["failed"],
          parameters: { type: "object" },
          handler: () => ending(row)
        })
        const provider = ToolProvider.make({ id: "p", kind: kindOf(row.tool), tools: [tool] })
        const result = yield* Effect.flatMap(ToolHost, (host) =>
          host.execute(ToolCall.make({ toolName: row.tool }), { workspace: root })).pipe(
            Effect.provide(Test.layer([provider]))
          )
        assert.strictEqual(result.isError, row.isError)
        assert.strictEqual(result.code, row.rateLimited ? "rate_limited" : row.isError ? "failed" : null)
        if (row.rateLimited) {
          assert.nestedPropertyVal(result.output, "details.retryAfterMs", row.retryAfterMs ?? null)
        }
        if (!row.isError) {
          assert.deepStrictEqual(result.output, row.output)
        }
      }).pipe(Effect.provide(NodeFileSystem.layer)))
  }
})
