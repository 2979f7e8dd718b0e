/** The packages that `src/` may import: pure, platform-neutral, without a driver behind them. */
export const pureLibraries = [
  "effect",
  "@effect/platform",
  "@effect/rpc",
  "@noble/hashes",
  "ajv",
  "diff",
  "re2js",
  "yaml"
]
