import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { afterAll, beforeAll } from "vitest"

const root = resolve(import.meta.dirname, "../../..")
const workspace = mkdtempSync(join(tmpdir(), "portcullis-arrows-"))

/** The rules that each import of the tree breaks, as `from -> to`. */
const broken = (files: Readonly<Record<string, string>>): ReadonlyMap<string, ReadonlyArray<string>> => {
  for (const name of ["package.json", "tsconfig.json"]) copyFileSync(join(root, name), join(workspace, name))
  symlinkSync(join(root, "node_modules"), join(workspace, "node_modules"))
  for (const [path, source] of Object.entries(files)) {
    mkdirSync(dirname(join(workspace, path)), { recursive: true })
    writeFileSync(join(workspace, path), `${source}\nexport const here = true\n`)
  }
  const report: { summary: { violations: ReadonlyArray<{ from: string; rule: { name: string } }> } } = JSON.parse(
    execFileSync(
      process.execPath,
      [
        join(root, "node_modules/dependency-cruiser/bin/dependency-cruise.mjs"),
        "--config",
        join(root, ".dependency-cruiser.mjs"),
        "--output-type",
        "json",
        "src",
        "layers"
      ],
      { cwd: workspace, maxBuffer: 16 * 1024 * 1024 }
    ).toString("utf8")
  )
  const rules = new Map<string, Array<string>>()
  for (const { from, rule } of report.summary.violations) rules.set(from, [...rules.get(from) ?? [], rule.name].sort())
  return rules
}

interface Case {
  readonly name: string
  readonly path: string
  readonly source: string
  readonly rules: ReadonlyArray<string>
}

const cases: ReadonlyArray<Case> = [
  {
    name: "an import along the arrows is fine",
    path: "src/gate/Fine.ts",
    source: `import "../contract/Leaf.ts"\nimport "effect/Effect"\nimport "ajv"`,
    rules: []
  },
  {
    name: "a layer may use the platform, src and its peers",
    path: "layers/node/Fine.ts",
    source: `import "../../src/host/Leaf.ts"\nimport "node:fs"\nimport "@effect/platform-node/NodeContext"`,
    rules: []
  },
  { name: "a stack composes layers", path: "layers/stacks/Fine.ts", source: `import "../node/Leaf.ts"`, rules: [] },
  {
    name: "a low folder may not import a high one",
    path: "src/contract/Up.ts",
    source: `import "../gate/Leaf.ts"`,
    rules: ["arrow-contract-internal"]
  },
  {
    name: "a type-only import is an import",
    path: "src/tool/Up.ts",
    source: `import type { here as there } from "../host/Leaf.ts"\nexport type There = typeof there`,
    rules: ["arrow-tool"]
  },
  {
    name: "src may not import node",
    path: "src/contract/Node.ts",
    source: `import "node:fs"`,
    rules: ["src-no-platform"]
  },
  {
    name: "nor node without its prefix",
    path: "src/contract/Bare.ts",
    source: `import "fs"`,
    rules: ["src-no-platform"]
  },
  {
    name: "src may not import a layer",
    path: "src/contract/Down.ts",
    source: `import "../../layers/node/Leaf.ts"`,
    rules: ["src-no-layers"]
  },
  {
    name: "src may not import a driver, even when it is only needed later",
    path: "src/contract/Driver.ts",
    source: `export const later = () => import("@effect/sql/SqlClient")`,
    rules: ["src-pure-libraries"]
  },
  {
    name: "two layer folders may not import each other",
    path: "layers/sandbox/Across.ts",
    source: `import "../node/Leaf.ts"`,
    rules: ["layers-apart"]
  },
  {
    name: "a shipped module may not import a dev dependency",
    path: "layers/node/Dev.ts",
    source: `import "vitest"`,
    rules: ["declared"]
  },
  {
    name: "internals know the vocabulary alone",
    path: "src/internal/Up.ts",
    source: `import "../tool/Leaf.ts"`,
    rules: ["arrow-contract-internal", "internal-is-low"]
  },
  {
    name: "a folder without a place in the order is reported",
    path: "src/utils/Bag.ts",
    source: `import "../contract/Leaf.ts"`,
    rules: ["known-folder"]
  },
  {
    name: "the barrel is not for inside",
    path: "src/gate/Barrel.ts",
    source: `import "../index.ts"`,
    rules: ["index-is-for-users"]
  },
  {
    name: "a layer may not use the testing folder",
    path: "layers/node/Scripted.ts",
    source: `import "../../src/testing/Leaf.ts"`,
    rules: ["testing-is-for-tests"]
  },
  {
    name: "two modules may not import each other",
    path: "src/journal/First.ts",
    source: `import "./Second.ts"`,
    rules: ["no-cycle"]
  },
  {
    name: "types of one folder may refer to each other",
    path: "src/spill/First.ts",
    source: `import type { here as there } from "./Second.ts"\nexport type There = typeof there`,
    rules: []
  },
  {
    name: "an import that leads nowhere is reported",
    path: "src/contract/Lost.ts",
    source: `import "./Gone.ts"`,
    rules: ["resolvable"]
  },
  {
    name: "two folders of one row may not import each other",
    path: "src/plan",
    source: "",
    rules: ["no-folder-cycle"]
  }
]

const tree = {
  "layers/node/Leaf.ts": "",
  "src/contract/Leaf.ts": "",
  "src/gate/Leaf.ts": "",
  "src/host/Leaf.ts": "",
  "src/index.ts": "",
  "src/journal/Second.ts": `import "./First.ts"`,
  "src/plan/Leaf.ts": "",
  "src/plan/Use.ts": `import "../skill/Leaf.ts"`,
  "src/skill/Leaf.ts": "",
  "src/skill/Use.ts": `import "../plan/Leaf.ts"`,
  "src/spill/Second.ts": `import "./First.ts"`,
  "src/testing/Leaf.ts": "",
  "src/tool/Leaf.ts": "",
  ...Object.fromEntries(cases.filter(({ path }) => path.endsWith(".ts")).map(({ path, source }) => [path, source]))
}

describe("the dependency check", () => {
  let rules: ReadonlyMap<string, ReadonlyArray<string>> = new Map()
  beforeAll(() => {
    rules = broken(tree)
  })
  afterAll(() => rmSync(workspace, { recursive: true, force: true }))
  for (const { name, path, rules: expected } of cases) {
    it(name, () => assert.deepStrictEqual(rules.get(path) ?? [], expected))
  }
})
