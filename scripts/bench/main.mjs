/**
 * `npm run bench -- [NAMES] [--json] [--rounds N]`: medians and ratios from one interleaved run.
 *
 * A round measures both sides of every case, each in a fresh process, in an order that turns with the round; a number is
 * the median over the rounds of the medians in them. Ours and reference are microseconds an operation (MB where the case
 * says so); absolute numbers are for orientation, the ratio is what counts.
 */
import { execFileSync, fork } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { parseArgs } from "node:util"
import { cases } from "./cases.mjs"
import { median } from "./measure.mjs"

const here = import.meta.dirname
const known = [...new Set(cases.map(({ bench }) => bench))]

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { json: { type: "boolean", default: false }, rounds: { type: "string", default: "3" } }
})
const rounds = Number(values.rounds)
const unknown = positionals.filter((name) => !known.includes(name))
if (unknown.length > 0 || !Number.isInteger(rounds) || rounds < 1) {
  console.error(`usage: npm run bench -- [${known.join(" | ")}]… [--json] [--rounds N]`)
  process.exit(2)
}
const wanted = positionals.length === 0 ? known : positionals
const say = (line) => console.error(line)

const chosen = cases.map((item, index) => ({ ...item, index })).filter(({ bench }) => wanted.includes(bench))

const manifest = (folder) => JSON.parse(readFileSync(`${folder}/package.json`, "utf8"))
const installed = () =>
  Object.entries(manifest(here).dependencies).every(([name, version]) => {
    const folder = `${here}/node_modules/${name}`
    return existsSync(folder) && manifest(folder).version === version
  })

if (chosen.some(({ installs }) => installs) && !installed()) {
  say("installing the peers into scripts/bench/node_modules")
  try {
    execFileSync("npm", [
      "install",
      "--no-package-lock",
      "--no-audit",
      "--no-fund",
      "--ignore-scripts",
      "--loglevel=error"
    ], {
      cwd: here,
      stdio: ["ignore", "ignore", "pipe"]
    })
  } catch (error) {
    say(`the peers cannot be installed, going on without them: ${String(error.stderr).trim().split("\n")[0]}`)
  }
}

/** A whole process that imports one module: microseconds, or its peak memory in MB. */
const program = ({ imports, memory }) => {
  const code = `await import(${
    JSON.stringify(imports)
  });process.stdout.write(String(process.resourceUsage().maxRSS / 1024))`
  const start = process.hrtime.bigint()
  const peak = execFileSync(process.execPath, ["--input-type=module", "-e", code], { cwd: here, encoding: "utf8" })
  return memory === true ? Number(peak) : Number(process.hrtime.bigint() - start) / 1000
}

const importing = (options) => ({ value: median(Array.from({ length: 7 }, () => program(options))) })

const working = (index, side) =>
  new Promise((resolve) => {
    const child = fork(`${here}/worker.mjs`, [String(index), side], {
      execArgv: ["--expose-gc"],
      stdio: ["ignore", "ignore", "ignore", "ipc"]
    })
    let answer = { value: null, why: "the process ended without an answer" }
    child.on("message", (message) => answer = message)
    child.on("exit", () => resolve(answer))
  })

const taken = new Map()
const tasks = chosen.flatMap((item) => ["ours", "reference"].map((side) => ({ item, side })))
for (let round = 0; round < rounds; round++) {
  const turn = Math.floor(round * tasks.length / rounds)
  for (const { item, side } of [...tasks.slice(turn), ...tasks.slice(0, turn)]) {
    const key = `${item.index} ${side}`
    const answers = taken.get(key) ?? []
    if (answers.at(-1)?.value === null) continue
    const options = item[side]
    const answer = options.imports === undefined ? await working(item.index, side) : importing(options)
    if (answer.why !== undefined) say(`${item.bench}, ${item.name}, ${side}: ${answer.why}`)
    taken.set(key, [...answers, answer])
  }
}

const number = (index, side) => {
  const values = (taken.get(`${index} ${side}`) ?? []).map(({ value }) => value)
  return values.includes(null) ? null : Number(median(values).toPrecision(4))
}

const rows = chosen.map(({ bench, goal, index, name }) => {
  const ours = number(index, "ours")
  const reference = number(index, "reference")
  const ratio = ours === null || reference === null ? null : Number((ours / reference).toPrecision(3))
  return {
    bench,
    case: name,
    ours,
    reference,
    ratio,
    goal,
    met: ratio === null || goal === null ? null : ratio <= goal
  }
})

// One line, so that it is the last one whatever npm prints before it.
if (values.json) console.log(JSON.stringify(rows))
else console.table(rows)
