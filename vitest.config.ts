import { readdirSync, readFileSync } from "node:fs"
import { defineConfig } from "vitest/config"

const soaking = process.env["PORTCULLIS_SOAK"] === "1"

/** A soak run repeats the laws that have a full count; the others would only be run twice. */
const hasFullCount = (path: string) =>
  path.endsWith(".soak.test.ts") || readFileSync(path, "utf8").includes("support/counts.ts")

const soaked = () =>
  readdirSync("test", { recursive: true, encoding: "utf8" })
    .map((path) => `test/${path.replaceAll("\\", "/")}`)
    .filter((path) => path.endsWith(".test.ts") && hasFullCount(path))

export default defineConfig({
  test: {
    include: soaking ? soaked() : ["test/**/*.test.ts"],
    exclude: soaking ? [] : ["test/**/*.soak.test.ts"],
    testTimeout: soaking ? 600_000 : 30_000,
    // No module keeps state, so the files of a worker can share what they import.
    isolate: false,
    maxWorkers: 2,
    minWorkers: 1,
    reporters: ["default", ["json", { outputFile: `.cache/reports/${soaking ? "soak" : "test"}.json` }]]
  }
})
