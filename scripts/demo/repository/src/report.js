import { mean, median } from "./statistics.js"

/** `median 10 ms, mean 33 ms, worst 80 ms over 3 requests` */
export const report = (times) => {
  if (times.length === 0) return "no requests"
  const worst = Math.max(...times)
  return `median ${median(times)} ms, mean ${Math.round(mean(times))} ms, worst ${worst} ms over ${times.length} requests`
}
