import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"

const script = resolve(import.meta.dirname, "../../../scripts/check/ciSummary.mjs")

interface File {
  readonly status: "passed" | "failed"
  readonly assertionResults: ReadonlyArray<{ readonly status: "passed" | "failed" | "skipped" }>
}

const report = (...testResults: ReadonlyArray<File>) => {
  const all = testResults.flatMap((file) => file.assertionResults)
  return {
    numPassedTests: all.filter(({ status }) => status === "passed").length,
    numFailedTests: all.filter(({ status }) => status === "failed").length,
    success: testResults.every(({ status }) => status === "passed"),
    testResults
  }
}

const file = (passed: number, failed = 0): File => ({
  status: failed === 0 ? "passed" : "failed",
  assertionResults: [
    ...Array.from({ length: passed }, () => ({ status: "passed" as const })),
    ...Array.from({ length: failed }, () => ({ status: "failed" as const }))
  ]
})

const summary = (reports: ReadonlyArray<unknown>, ...options: ReadonlyArray<string>) => {
  const folder = mkdtempSync(join(tmpdir(), "portcullis-summary-"))
  reports.forEach((content, index) => writeFileSync(join(folder, `${index}.json`), JSON.stringify(content)))
  const { status, stdout } = spawnSync(process.execPath, [script, ...options, folder], { encoding: "utf8" })
  rmSync(folder, { recursive: true })
  return { status, stdout }
}

describe("the summary of a run", () => {
  it("adds the reports up in one line", () =>
    assert.deepStrictEqual(summary([report(file(3), file(2)), report(file(4))]), {
      status: 0,
      stdout: "9 passed, 0 failed\n"
    }))
  it("fails when a test failed", () =>
    assert.deepStrictEqual(summary([report(file(3, 1))], "--status", "1"), {
      status: 1,
      stdout: "3 passed, 1 failed\n"
    }))
  it("counts a file that did not load", () =>
    assert.deepStrictEqual(summary([report(file(3), { status: "failed", assertionResults: [] })]), {
      status: 1,
      stdout: "3 passed, 1 failed\n"
    }))
  it("counts a step that failed before any test", () =>
    assert.deepStrictEqual(summary([report(file(3))], "--status", "2"), { status: 1, stdout: "3 passed, 1 failed\n" }))
  it("fails when no test ran", () => assert.deepStrictEqual(summary([]), { status: 1, stdout: "0 passed, 0 failed\n" }))
})
