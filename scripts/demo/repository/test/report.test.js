import assert from "node:assert/strict"
import { test } from "node:test"
import { report } from "../src/report.js"

test("a report is one line", () => {
  assert.equal(report([9, 80, 10]), "median 10 ms, mean 33 ms, worst 80 ms over 3 requests")
})

test("a report of no requests says so", () => {
  assert.equal(report([]), "no requests")
})
