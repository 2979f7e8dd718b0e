import { assert, describe, it } from "@effect/vitest"
import * as tools from "../../src/tools/index.ts"

const row = ({ kind, name, policy }: { readonly kind: string; readonly name: string; readonly policy: string }) =>
  `${name} ${kind} ${policy}`

describe("the presets", () => {
  it("are the tools of the seed, with its kinds and policies", () => {
    assert.deepStrictEqual(tools.full.map(row), [
      "read tool_call auto",
      "read_image tool_call auto",
      "ls tool_call auto",
      "glob tool_call auto",
      "find tool_call auto",
      "grep tool_call auto",
      "write file_change on-request",
      "edit file_change on-request",
      "bash command_execution on-request"
    ])
    assert.deepStrictEqual(tools.coding.map(({ name }) => name), ["read", "bash", "edit", "write"])
    assert.deepStrictEqual(tools.readOnly.map(({ name }) => name), ["read", "read_image", "grep", "glob", "find", "ls"])
    assert.deepStrictEqual(tools.full.filter((tool) => !tool.modelAdvertised).map(({ name }) => name), ["find"])
  })

  it("hold nothing that writes in the one for reading", () => {
    for (const tool of tools.readOnly) {
      assert.isTrue(
        tool.readOnly && tool.parallelSafe && tool.kind === "tool_call" && tool.policy === "auto",
        tool.name
      )
    }
  })

  it("are taken from the short names", () => {
    const named = new Set<unknown>(Object.values(tools))
    for (const tool of tools.full) assert.isTrue(named.has(tool), tool.name)
  })
})
