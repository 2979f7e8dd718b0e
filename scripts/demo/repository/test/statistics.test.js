import assert from "node:assert/strict"
import { test } from "node:test"
import { mean, median } from "../src/statistics.js"

test("the median of an odd number of values is the one in the middle", () => {
  assert.equal(median([3, 1, 2]), 2)
  assert.equal(median([80, 9, 10]), 10)
})

test("the median of an even number of values lies between the two in the middle", () => {
  assert.equal(median([100, 20, 3, 1]), 11.5)
})

test("the median leaves its values as they were", () => {
  const values = [3, 1, 2]
  median(values)
  assert.deepEqual(values, [3, 1, 2])
})

test("there is no median of nothing", () => {
  assert.throws(() => median([]), RangeError)
})

test("the mean is the sum over the number", () => {
  assert.equal(mean([1, 2, 6]), 3)
})
