import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Json, JsonObject } from "../../src/contract/Json.ts"
import * as ToolCall from "../../src/contract/ToolCall.ts"
import { ToolHost } from "../../src/host/ToolHost.ts"
import * as Tool from "../../src/tool/Tool.ts"
import { ToolInvocation } from "../../src/tool/ToolInvocation.ts"
import * as ToolProvider from "../../src/tool/ToolProvider.ts"
import { Test, workspace } from "../support/plane.ts"

const execute = (tool: Tool.Tool<string, never, "shared">, args: unknown, kind: "built-in" | "mcp" = "built-in") =>
  Effect.scoped(Effect.gen(function*() {
    const { root } = yield* workspace
    return yield* Effect.flatMap(
      ToolHost,
      (host) => host.execute(ToolCall.make({ toolName: tool.name, arguments: args }), { workspace: root })
    ).pipe(
      Effect.provide(Test.layer([ToolProvider.make({ id: "p", kind, tools: [tool] })]))
    )
  })).pipe(Effect.provide(NodeFileSystem.layer))

const echo = Tool.make("echo", {
  description: "Says what it got.",
  policy: "auto",
  parameters: Schema.Struct({
    count: Schema.Number,
    loud: Schema.optionalWith(Schema.Boolean, { exact: true }),
    names: Schema.optionalWith(Schema.Array(Schema.String), { exact: true }),
    note: Schema.optionalWith(Schema.String, { exact: true })
  }),
  success: Schema.Unknown,
  handler: (args) => Effect.succeed(args)
})

describe("typed arguments", () => {
  const slips: ReadonlyArray<readonly [string, unknown, JsonObject]> = [
    ["a number written as text", { count: "3" }, { count: 3 }],
    ["a boolean written as text", { count: 1, loud: "true" }, { count: 1, loud: true }],
    ["a list written as its JSON text", { count: 1, names: "[\"a\"]" }, { count: 1, names: ["a"] }],
    ["null for an absent optional", { count: 1, note: null }, { count: 1 }],
    ["the whole object as JSON text", "{\"count\":2}", { count: 2 }],
    ["the whole object in a raw envelope", { __raw: "{\"count\":2}", toolName: "echo" }, { count: 2 }]
  ]
  for (const [slip, given, meant] of slips) {
    it.live(`mend ${slip}, and the result says what ran`, () =>
      Effect.gen(function*() {
        const result = yield* execute(echo, given)
        assert.deepStrictEqual(result.output, meant)
        assert.deepStrictEqual(result.effectiveArguments, meant)
      }))
  }

  const wrong: ReadonlyArray<unknown> = [
    { count: "three" },
    { count: "0x10" },
    { count: "1e3" },
    { count: null },
    { count: 1, names: "[1]" },
    { count: 1, other: 1 },
    {},
    null,
    7
  ]
  for (const given of wrong) {
    it.live(`refuse ${JSON.stringify(given)}`, () =>
      Effect.map(execute(echo, given), (result) => assert.strictEqual(result.code, "arguments_invalid")))
  }

  it.live("are hashed and run as the normaliser leaves them", () =>
    Effect.gen(function*() {
      const tool = Tool.make("n", {
        description: "",
        policy: "auto",
        parameters: Schema.Struct({ path: Schema.String }),
        success: Schema.String,
        normalize: ({ path }) => ({ path: path.toLowerCase() }),
        handler: ({ path }) => Effect.map(ToolInvocation, ({ call }) => `${path} ${JSON.stringify(call.arguments)}`)
      })
      const result = yield* execute(tool, { path: "A" })
      assert.strictEqual(result.output, "a {\"path\":\"a\"}")
      assert.deepStrictEqual(result.effectiveArguments, { path: "a" })
    }))

  it("tell a model name, description and parameters, closed to other properties", () => {
    assert.deepInclude(echo.parameters, { type: "object", additionalProperties: false, required: ["count"] })
    assert.notProperty(echo.parameters, "$schema")
  })
})

describe("a raw JSON Schema", () => {
  const raw = (parameters: JsonObject) =>
    Tool.fromJsonSchema("raw", {
      description: "",
      policy: "auto",
      parameters,
      handler: (args): Effect.Effect<Json> => Effect.succeed(args)
    })
  const schema: JsonObject = {
    type: "object",
    properties: { a: { $ref: "#/$defs/A" }, n: { type: "integer", minimum: 1 } },
    required: ["a"],
    additionalProperties: false,
    $defs: { A: { type: "object", properties: { next: { $ref: "#/$defs/A" } } } }
  }

  it.live("is validated by Ajv, references inside it included", () =>
    Effect.gen(function*() {
      const good = yield* execute(raw(schema), { a: { next: { next: {} } }, n: "4" })
      assert.deepStrictEqual(good.output, { a: { next: { next: {} } }, n: 4 })
      for (const bad of [{}, { a: 1 }, { a: {}, n: 0 }, { a: {}, x: 1 }, { a: { next: 1 } }]) {
        assert.strictEqual((yield* execute(raw(schema), bad)).code, "arguments_invalid", JSON.stringify(bad))
      }
    }))

  it.live("fetches nothing: a remote reference is refused at registration", () =>
    Effect.gen(function*() {
      const refused = yield* Effect.flip(raw({ $ref: "http://localhost:1/y" }).load)
      assert.strictEqual(refused.code, "schema_invalid")
    }))

  it.live("may be named like a property of every object", () =>
    Effect.gen(function*() {
      const tool = Tool.fromJsonSchema("constructor", {
        description: "",
        policy: "auto",
        parameters: { type: "object" },
        handler: () => Effect.succeed("built")
      })
      assert.strictEqual((yield* execute(tool, {})).output, "built")
    }))
})
