/**
 * Packs the package and uses it as a stranger would: every entry of `exports` is imported by name from a folder of its
 * own, with nothing but the declared dependencies and peers beside it; every `bin` is there and starts with its
 * interpreter; what is not exported cannot be reached; what is not meant for users is not in the package.
 *
 * Needs a build.
 */
import { spawnSync } from "node:child_process"
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, posix, resolve } from "node:path"

const root = resolve(import.meta.dirname, "../..")
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
const problems = []

const run = (program, args, cwd) => {
  const { error, status, stderr, stdout } = spawnSync(program, args, { cwd, encoding: "utf8" })
  if (status !== 0) throw new Error(`${program} ${args.join(" ")}: ${error?.message ?? stderr}`)
  return stdout
}

const install = (workspace) => {
  const [{ filename, files }] = JSON.parse(
    run("npm", ["pack", "--ignore-scripts", "--json", "--pack-destination", workspace], root)
  )
  const home = join(workspace, "node_modules", manifest.name)
  mkdirSync(home, { recursive: true })
  run("tar", ["-xzf", join(workspace, filename), "--strip-components=1", "-C", home], workspace)
  for (const name of Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })) {
    const source = join(root, "node_modules", name)
    if (!existsSync(source)) continue
    const link = join(workspace, "node_modules", name)
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(realpathSync(source), link)
  }
  writeFileSync(join(workspace, "package.json"), JSON.stringify({ private: true, type: "module" }))
  return { home, files: files.map(({ path }) => path) }
}

/** Imports each specifier in a process of its own; the answer is "ok" or the error. */
const probe = (workspace, specifier) => {
  const code = `import(${JSON.stringify(specifier)}${specifier.endsWith(".json") ? ", { with: { type: 'json' } }" : ""})
    .then((module) => console.log(Object.keys(module).length > 0 ? "ok" : "empty"), (error) => console.log(error.code ?? error))`
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", code], {
    cwd: workspace,
    encoding: "utf8",
    env: { ...process.env, NODE_NO_WARNINGS: "1" }
  })
  return stdout.trim()
}

const types = (workspace, specifiers) => {
  const imports = specifiers.map((specifier, index) => `import * as M${index} from ${JSON.stringify(specifier)}`)
  const uses = specifiers.map((_, index) => `M${index}`)
  writeFileSync(join(workspace, "use.ts"), `${imports.join("\n")}\nexport const used = [${uses.join(", ")}]\n`)
  const options = ["--strict", "--module", "nodenext", "--target", "es2023", "--lib", "es2024", "--noEmit"]
  const { status, stdout } = spawnSync(
    process.execPath,
    [
      join(root, "node_modules/typescript/bin/tsc"),
      ...options,
      "--skipLibCheck",
      "--typeRoots",
      join(root, "node_modules/@types"),
      "use.ts"
    ],
    { cwd: workspace, encoding: "utf8" }
  )
  if (status !== 0) problems.push(...stdout.trim().split("\n"))
}

const workspace = realpathSync(mkdtempSync(join(tmpdir(), "portcullis-exports-")))
try {
  const { files, home } = install(workspace)

  const entries = Object.keys(manifest.exports).map((entry) => posix.join(manifest.name, entry))
  for (const entry of entries) {
    const answer = probe(workspace, entry)
    if (answer !== "ok") problems.push(`${entry}: ${answer}`)
  }
  types(workspace, entries.filter((entry) => !entry.endsWith(".json")))

  const hidden = ["internal/coerce", "internal/x", "src/index.js", "dist/src/internal/coerce.js", "layers/x"]
  for (const path of hidden) {
    const answer = probe(workspace, `${manifest.name}/${path}`)
    if (answer !== "ERR_PACKAGE_PATH_NOT_EXPORTED") problems.push(`${manifest.name}/${path} can be reached: ${answer}`)
  }

  for (const [name, path] of Object.entries(manifest.bin ?? {})) {
    const file = join(home, path)
    if (!existsSync(file)) problems.push(`bin ${name}: ${path} is not in the package`)
    else if (!readFileSync(file, "utf8").startsWith("#!/usr/bin/env node\n")) {
      problems.push(`bin ${name}: no interpreter line`)
    }
  }

  const shipped = /^(dist\/(src|layers)\/.*\.(js|d\.ts)|package\.json|README\.md|LICENSE)$/
  for (const path of files) if (!shipped.test(path)) problems.push(`${path} does not belong in the package`)

  for (const problem of problems) console.error(problem)
  console.log(`${entries.length} entries, ${files.length} files, ${problems.length} problems`)
  process.exitCode = problems.length === 0 ? 0 : 1
} finally {
  rmSync(workspace, { recursive: true, force: true })
}
