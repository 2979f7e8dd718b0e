/**
 * Sums the JSON reports of vitest in a folder into one line: `N passed, N failed`.
 *
 *     node scripts/check/ciSummary.mjs [--status CODE] FOLDER
 *
 * A test file that did not load, an error outside of any test and a step that ended with a status other than 0 count as a
 * failure each when no failed test explains them. Exits with 1 unless something passed and nothing failed.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"

const { positionals: [folder = "."], values: { status } } = parseArgs({
  allowPositionals: true,
  options: { status: { type: "string", default: "0" } }
})

const list = () => {
  try {
    return readdirSync(folder).filter((name) => name.endsWith(".json"))
  } catch {
    return []
  }
}

let passed = 0
let failed = 0
for (const name of list()) {
  const report = JSON.parse(readFileSync(join(folder, name), "utf8"))
  const broken = report.testResults.filter(({ assertionResults, status }) =>
    status === "failed" && !assertionResults.some((result) => result.status === "failed")
  )
  const here = report.numFailedTests + broken.length
  passed += report.numPassedTests
  failed += here === 0 && !report.success ? 1 : here
}
if (failed === 0 && status !== "0") failed = 1

console.log(`${passed} passed, ${failed} failed`)
process.exitCode = passed > 0 && failed === 0 ? 0 : 1
