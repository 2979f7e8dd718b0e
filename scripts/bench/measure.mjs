/** The one way to take a number: warm up, then samples of a batch with a collection in between; the median counts. */
export const median = (values) => {
  const sorted = [...values].sort((left, right) => left - right)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/**
 * Microseconds for one operation. `subject.run(n)` does `n` of them; `batch` is how many one sample holds.
 *
 * The collection between samples is a minor one: a full one throws optimised code away, and the next sample would measure
 * its recompilation.
 */
export const microseconds = async (subject, { batch, samples, warmup }) => {
  globalThis.gc?.()
  await subject.run(warmup)
  const taken = []
  for (let sample = 0; sample < samples; sample++) {
    globalThis.gc?.({ type: "minor" })
    const start = process.hrtime.bigint()
    await subject.run(batch)
    taken.push(Number(process.hrtime.bigint() - start) / 1000 / batch)
  }
  return median(taken)
}

/** The median of what a subject measures by itself: something that is no time of its own, or only a part of what it does. */
export const several = async (subject) => {
  const taken = []
  for (let sample = 0; sample < 11; sample++) taken.push(await subject.value())
  return median(taken)
}
