/** The value in the middle; between the two in the middle when there is an even number of values. */
export const median = (values) => {
  if (values.length === 0) throw new RangeError("There is no median of nothing.")
  const sorted = values.sort()
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

export const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length
