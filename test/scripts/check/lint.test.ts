import { assert, describe, it } from "@effect/vitest"
import { ESLint } from "eslint"
import { resolve } from "node:path"

const root = resolve(import.meta.dirname, "../../..")
const eslint = new ESLint({ cwd: root })

/** The rules that a file breaks, each once. */
const broken = async (path: string, lines: ReadonlyArray<string>) => {
  const [result] = await eslint.lintText(`${lines.join("\n")}\n`, { filePath: resolve(root, path) })
  return [...new Set(result?.messages.map(({ ruleId }) => ruleId))].sort()
}

const syntax = "no-restricted-syntax"

const refusedInSrc: ReadonlyArray<readonly [string, ReadonlyArray<string>, string]> = [
  ["any", ["export const f = (x: any) => x"], syntax],
  ["a non-null assertion", ["export const f = (x: string | undefined) => x!"], syntax],
  ["a cast by way of unknown", ["export const f = (x: string) => x as unknown as number"], syntax],
  ["a cast to never", ["export const f = (x: string) => x as never"], syntax],
  ["try", ["export const f = () => {", "  try {", "    return 1", "  } finally {", "    f()", "  }", "}"], syntax],
  ["an async function", ["export const f = async () => 1"], syntax],
  ["await", ["export const x = await import(\"ajv\")"], syntax],
  ["a bare Promise", ["export const x = Promise.resolve(1)"], syntax],
  [
    "running an effect",
    ["import * as Effect from \"effect/Effect\"", "export const x = Effect.runSync(Effect.void)"],
    syntax
  ],
  [
    "a daemon",
    ["import * as Effect from \"effect/Effect\"", "export const x = Effect.forkDaemon(Effect.void)"],
    syntax
  ],
  ["the clock of the machine", ["export const x = () => Date.now()"], syntax],
  ["chance", ["export const x = () => Math.random()"], syntax],
  ["a timer", ["export const x = () => setTimeout(() => {}, 1)"], syntax],
  ["a variable of the module", ["export let x = 1"], syntax],
  ["a map of the module", ["export const x = new Map<string, string>()"], syntax],
  ["the barrel", ["import { Effect } from \"effect\"", "export const x = Effect.void"], "no-restricted-imports"],
  ["the whole barrel", ["import * as E from \"effect\"", "export const x = E.Effect"], "no-restricted-imports"],
  ["node", ["import * as Fs from \"node:fs\"", "export const x = Fs"], "no-restricted-imports"],
  ["a layer", ["export * from \"../../layers/node/X.ts\""], "no-restricted-imports"],
  ["a relative import of JavaScript", ["import * as Y from \"./Y.js\"", "export const x = Y"], syntax],
  ["work left for later", ["// TO" + "DO: the rest", "export const x = 1"], "no-warning-comments"],
  ["a switched off compiler", ["// @ts-expect-error", "export const x: string = 1"], "no-warning-comments"],
  ["the console", ["console.log(1)"], "no-console"],
  ["a semicolon", ["export const x = 1;"], "@effect/dprint"],
  ["single quotes", ["export const x = 'a'"], "@effect/dprint"],
  ["a trailing comma", ["export const x = [", "  1,", "]"], "@effect/dprint"],
  ["a line of more than 120 columns", [`export const x = [${"\"ab\", ".repeat(30)}"ab"]`], "@effect/dprint"]
]

const allowed: ReadonlyArray<readonly [string, string, ReadonlyArray<string>]> = [
  ["a constant set in src", "src/contract/X.ts", ["export const x = new Set([\"a\"])"]],
  ["a map inside a function in src", "src/contract/X.ts", ["export const x = () => new Map<string, string>()"]],
  ["node in a layer", "layers/node/X.ts", ["import * as Fs from \"node:fs\"", "export const x = Fs"]],
  [
    "running an effect at an entry point",
    "layers/cli/main.ts",
    ["import * as Effect from \"effect/Effect\"", "export const x = Effect.runSync(Effect.void)"]
  ],
  ["an expected type error in a test", "test/x.test.ts", ["// @ts-expect-error", "export const x: string = 1"]]
]

describe("lint", () => {
  for (const [what, lines, rule] of refusedInSrc) {
    it(`refuses ${what} in src`, async () => assert.include(await broken("src/contract/X.ts", lines), rule))
  }
  for (const [what, path, lines] of allowed) {
    it(`allows ${what}`, async () => assert.deepStrictEqual(await broken(path, lines), []))
  }
  it("does not let a comment switch a rule off", async () => {
    const lines = ["/* eslint-disable */", "export const f = (x: any) => x"]
    assert.include(await broken("src/contract/X.ts", lines), syntax)
  })
})
