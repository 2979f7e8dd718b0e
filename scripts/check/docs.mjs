/**
 * Checks what the documents claim.
 *
 * - Every block marked `ts`, in README.md and in docstrings, compiles against the sources, under the names users import.
 * - Every npm script that README.md names exists, and every npm command of `.ci/run` is in README.md.
 * - The code table of README.md lists the closed table of failure codes, no more and no less.
 */
import { spawnSync } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join, posix, resolve } from "node:path"

const root = resolve(import.meta.dirname, "../..")
const read = (path) => readFileSync(join(root, path), "utf8")
const problems = []

const sources = (folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"))
    .map((path) => `${folder}/${path.replaceAll("\\", "/")}`)
const folders = readdirSync(root).filter((name) => name === "src" || name === "layers")

/** Fenced blocks of one language, each with the number of lines above it. */
const blocks = (text, language) => {
  const found = []
  let open
  for (const [index, raw] of text.split("\n").entries()) {
    const line = raw.replace(/^\s*\*( |$)/, "")
    if (open === undefined) {
      if (line === `\`\`\`${language}`) open = { above: index + 1, lines: [] }
    } else if (line.startsWith("```")) {
      found.push(open)
      open = undefined
    } else open.lines.push(line)
  }
  return found
}

const manifest = JSON.parse(read("package.json"))
const readme = read("README.md")

const checkExamples = () => {
  const folder = join(root, ".cache/docs")
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const paths = Object.fromEntries(
    Object.entries(manifest.exports)
      .filter(([, target]) => target.endsWith(".js"))
      .map(([entry, target]) => [
        posix.join(manifest.name, entry),
        [target.replace(/^\.\/dist\/(.*)\.js$/, "../../$1.ts")]
      ])
  )
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({
      extends: "../../tsconfig.json",
      compilerOptions: { incremental: false, noUnusedLocals: false, noUnusedParameters: false, paths },
      include: ["*.ts"],
      exclude: []
    })
  )
  let count = 0
  for (const path of ["README.md", ...folders.flatMap(sources)]) {
    for (const { above, lines } of blocks(read(path), "ts")) {
      // Blank lines keep the line numbers of the document in the compiler's messages.
      writeFileSync(
        join(folder, `${path.replaceAll("/", "_")}_${above}.ts`),
        "\n".repeat(above) + lines.join("\n") + "\nexport {}\n"
      )
      count++
    }
  }
  if (count === 0) return count
  const tsc = join(root, "node_modules/typescript/bin/tsc")
  const { status, stdout } = spawnSync(process.execPath, [tsc, "-p", folder, "--pretty", "false"], {
    cwd: root,
    encoding: "utf8"
  })
  if (status !== 0) problems.push(...stdout.trim().split("\n"))
  return count
}

const checkCommands = () => {
  const commands = (text) => text.match(/\bnpm (?:ci|start|test|run [\w:]+)/g) ?? []
  const promised = new Set(blocks(readme, "sh").flatMap(({ lines }) => commands(lines.join("\n"))))
  for (const command of promised) {
    const script = command.replace(/^npm (run )?/, "")
    if (script !== "ci" && !(script in manifest.scripts)) problems.push(`README.md: there is no script for ${command}`)
  }
  for (const command of commands(read(".ci/run").replace(/^\s*#.*$/gm, ""))) {
    if (!promised.has(command)) problems.push(`README.md: does not name ${command}, which .ci/run runs`)
  }
}

const checkCodes = () => {
  const table = read("src/contract/ToolFailure.ts").match(/failureCodes = \[([^\]]*)\]/)?.[1] ?? ""
  const declared = new Set(table.match(/\w+/g))
  const section = readme.split(/^## /m).find((text) => text.startsWith("Failure codes")) ?? ""
  const listed = new Set(
    [...section.matchAll(/^\| (.*?) \|/gm)].flatMap(([, cell]) => cell.match(/(?<=`)\w+(?=`)/g) ?? [])
  )
  for (const code of declared) if (!listed.has(code)) problems.push(`README.md: the code table lacks ${code}`)
  for (const code of listed) if (!declared.has(code)) problems.push(`README.md: there is no code ${code}`)
}

const examples = checkExamples()
checkCommands()
checkCodes()
for (const problem of problems) console.error(problem)
console.log(`${examples} examples, ${problems.length} problems`)
process.exitCode = problems.length === 0 ? 0 : 1
