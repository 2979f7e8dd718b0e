/**
 * Checks that `src/index.ts` names every public module, as a namespace; `--write` writes it so.
 *
 * Public is every capitalised file of `src/` outside `internal` and `testing`.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { basename, resolve } from "node:path"

const source = resolve(import.meta.dirname, "../../src")
const index = resolve(source, "index.ts")

const order = (path) => path.toLowerCase()
const modules = readdirSync(source, { recursive: true, encoding: "utf8" })
  .map((path) => path.replaceAll("\\", "/"))
  .filter((path) => /^(?!internal\/|testing\/).*\/[A-Z]\w*\.ts$/.test(path))
  .sort((left, right) => order(left) < order(right) ? -1 : 1)
  .map((path) => ({ name: basename(path, ".ts"), path }))

const names = modules.map(({ name }) => name)
const twice = names.filter((name, position) => names.indexOf(name) < position)
for (const name of twice) console.error(`two modules are named ${name}`)

const wanted = modules.map(({ name, path }) => `export * as ${name} from "./${path}"\n`).join("")
const fresh = wanted === readFileSync(index, "utf8")
if (process.argv.includes("--write")) writeFileSync(index, wanted)
else if (!fresh) console.error("src/index.ts does not name the public modules: node scripts/check/index.mjs --write")
process.exitCode = twice.length === 0 && (fresh || process.argv.includes("--write")) ? 0 : 1
