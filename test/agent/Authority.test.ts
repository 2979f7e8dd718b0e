import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import { type Bound, effectiveTools, type Rights, rightsOf } from "../../src/agent/Authority.ts"
import { reservedTools } from "../../src/catalog/CapabilityRegistry.ts"
import { approvalPolicies, sandboxModes, threadModes } from "../../src/contract/Policy.ts"
import { admits, type NameFilter, names, type Turn } from "../../src/contract/Turn.ts"
import vectors from "../fixtures/vectors/authority.json" with { type: "json" }
import { count } from "../support/counts.ts"
import { fakeTurn } from "../support/session.ts"

const turn = (changed: Partial<Turn> = {}): Turn => ({ ...fakeTurn("on-request"), ...changed })

const allowing = (allow: ReadonlyArray<string> | null): NameFilter => allow === null ? {} : { allow }

describe("the table of a child's tools", () => {
  for (const [index, row] of vectors.rows.entries()) {
    it(`row ${index + 1}: ${row.policy}, ${JSON.stringify([row.parentAllowed, row.profileAllowed, row.denied])}`, () => {
      const profile: Bound = {
        toolPolicy: row.policy === "readOnly" ? "readOnly" : "inherit",
        blockedTools: row.denied,
        ...(row.profileAllowed === null ? {} : { allowedTools: row.profileAllowed })
      }
      const rights = rightsOf(turn({ tools: names(allowing(row.parentAllowed)) }), [profile])
      assert.deepStrictEqual(effectiveTools(row.registry, rights), row.expect)
    })
  }
})

describe("a child's rights", () => {
  it("without a bound are its parent's, but never the reserved names", () => {
    const parent = turn({
      sandboxMode: "read-only",
      providers: names({ allow: ["b", "a"], deny: ["c"] }),
      skills: names({ deny: ["s"] })
    })
    assert.deepStrictEqual(rightsOf(parent, []), {
      threadMode: "agent",
      sandboxMode: "read-only",
      approvalPolicy: "on-request",
      providers: { allow: ["a", "b"], deny: ["c"] },
      tools: { deny: ["browser_use", "computer_use"] },
      skills: { deny: ["s"] }
    })
  })

  it("block a server by its provider, whatever tools it gets later, and skills by id", () => {
    const rights = rightsOf(turn(), [
      { blockedMcpServers: ["z", "a"], blockedSkills: ["x"] },
      { blockedMcpServers: ["a"], blockedTools: ["write"], toolPolicy: "readOnly" }
    ])
    assert.deepStrictEqual(rights.providers, { deny: ["mcp:a", "mcp:z"] })
    assert.deepStrictEqual(rights.skills, { deny: ["x"] })
    assert.deepStrictEqual(rights.tools, {
      allow: ["glob", "grep", "ls", "read", "repo_map", "web_fetch"],
      deny: ["browser_use", "computer_use", "write"]
    })
  })

  it("are those of a plan turn under a plan, which itself stays with the parent", () => {
    const plan = { planId: "p", operation: "draft", relativePath: "p.md" } as const
    for (const parent of [turn({ plan }), turn({ threadMode: "plan" })]) {
      const rights = rightsOf(parent, [])
      assert.strictEqual(rights.threadMode, "plan")
      assert.notProperty(rights, "plan")
    }
  })
})

const registry = ["read", "grep", "ls", "write", "bash", "web_fetch", "mcp_a_x", ...reservedTools]
const some = fc.subarray(registry)
const optional = <A>(arbitrary: fc.Arbitrary<A>) => fc.option(arbitrary, { nil: undefined })
const present = (bound: { readonly [Key in keyof Bound]: Bound[Key] | undefined }): Bound =>
  Object.fromEntries(Object.entries(bound).filter(([, value]) => value !== undefined))
const ids = fc.subarray(["a", "b", "c"])
const bound: fc.Arbitrary<Bound> = fc.record({
  toolPolicy: optional(fc.constantFrom("readOnly" as const, "inherit" as const)),
  allowedTools: optional(some),
  blockedTools: optional(some),
  blockedMcpServers: optional(ids),
  blockedSkills: optional(ids)
}).map(present)
const filter = fc.record({ allow: optional(some), deny: some }).map(({ allow, deny }) =>
  names(allow === undefined ? { deny } : { allow, deny })
)
const parents = fc.record({
  threadMode: fc.constantFrom(...threadModes),
  sandboxMode: fc.constantFrom(...sandboxModes),
  approvalPolicy: fc.constantFrom(...approvalPolicies),
  tools: filter,
  providers: filter,
  skills: filter
}).map(turn)

const candidates = [...registry, "a", "b", "c", "mcp:a", "mcp:b", "mcp:c"]
const admitted = (rights: Rights) =>
  (["tools", "providers", "skills"] as const).flatMap((list) =>
    candidates.filter((name) => admits(names(rights[list]), name)).map((name) => `${list} ${name}`)
  )
const held = (parent: Turn) =>
  (["tools", "providers", "skills"] as const).flatMap((list) =>
    candidates.filter((name) => admits(parent[list], name)).map((name) => `${list} ${name}`)
  )
const subset = (part: ReadonlyArray<string>, whole: ReadonlyArray<string>) =>
  assert.deepStrictEqual(part.filter((name) => !whole.includes(name)), [])

describe("whatever the parent and the bounds", () => {
  const numRuns = count({ quick: 2000, soak: 20_000 })

  it("a child gets nothing that its parent has not, no looser mode, and no control of the machine", () => {
    fc.assert(
      fc.property(parents, fc.array(bound, { maxLength: 4 }), (parent, bounds) => {
        const rights = rightsOf(parent, bounds)
        subset(admitted(rights), held(parent))
        const { approvalPolicy, sandboxMode, threadMode } = parent
        assert.deepInclude(rights, { approvalPolicy, sandboxMode, threadMode })
        for (const reserved of reservedTools) assert.notInclude(effectiveTools(registry, rights), reserved)
      }),
      { numRuns }
    )
  })

  it("one more bound never adds a name, at any depth, and their order does not matter", () => {
    fc.assert(
      fc.property(parents, fc.array(bound, { minLength: 1, maxLength: 4 }), (parent, bounds) => {
        const rights = rightsOf(parent, bounds)
        assert.deepStrictEqual(rightsOf(parent, bounds.toReversed()), rights)
        for (const [index] of bounds.entries()) {
          subset(admitted(rights), admitted(rightsOf(parent, bounds.toSpliced(index, 1))))
        }
        const { providers, skills, tools } = rights
        const child = { ...parent, providers: names(providers), skills: names(skills), tools: names(tools) }
        assert.deepStrictEqual(rightsOf(child, bounds), rights)
      }),
      { numRuns }
    )
  })

  it("its lists are sorted by code unit, each name once", () => {
    fc.assert(
      fc.property(parents, fc.array(bound, { maxLength: 4 }), (parent, bounds) => {
        const { providers, skills, tools } = rightsOf(parent, bounds)
        for (const list of [providers, skills, tools].flatMap((one) => [one?.allow ?? [], one?.deny ?? []])) {
          assert.deepStrictEqual(list, [...new Set(list)].sort((left, right) => left < right ? -1 : 1))
        }
      }),
      { numRuns: Math.ceil(numRuns / 10) }
    )
  })
})
