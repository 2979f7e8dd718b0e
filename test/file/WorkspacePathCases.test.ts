import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { SandboxMode } from "../../src/contract/Policy.ts"
import * as ToolProvider from "../../src/tool/ToolProvider.ts"
import { edit } from "../../src/tools/edit.ts"
import { ls } from "../../src/tools/ls.ts"
import { read } from "../../src/tools/read.ts"
import { write } from "../../src/tools/write.ts"
import { executeIn, recorder, Test, workspace } from "../support/plane.ts"

const files = ToolProvider.make({ id: "files", kind: "built-in", tools: [read, ls, write, edit] })
const secret = "token-0123456789"

/** A workspace whose tools answer with a code (`done` when there is none), and everything that they said. */
const desk = Effect.gen(function*() {
  const { outside, root } = yield* workspace
  const said: Array<string> = []
  const run = (
    toolName: string,
    path: string,
    options: { readonly sandboxMode?: SandboxMode; readonly root?: string } = {}
  ) => {
    const { root: from = root, sandboxMode = "workspace-write" } = options
    const more = toolName === "write"
      ? { content: "written" }
      : toolName === "edit"
      ? { oldText: "token", newText: "taken" }
      : {}
    return Effect.map(
      executeIn({ workspace: from, sandboxMode, approvalPolicy: "auto" }, { toolName, arguments: { path, ...more } }),
      (result) => {
        said.push(JSON.stringify([result.output, result.content]))
        return result.code ?? "done"
      }
    )
  }
  return { outside, root, run, said, at: (name: string) => join(root, name) }
})

const all = ["read", "ls", "write", "edit"] as const
const denied = Test.layer([files], { approvals: { approver: recorder("deny").approver } })
/** Outside, an existing file is asked about (and the answer is no); anything else is blocked. */
const refusals = ["sandbox_write_blocked", "approval_denied", "read_before_edit_required"]
const isOneOf = (code: string, codes: ReadonlyArray<string>, what: string) => assert.include(codes, code, what)

describe("file tools", () => {
  it.scopedLive("P01: no link leads them out of the workspace, and one that stays inside works", () =>
    Effect.gen(function*() {
      const { at, outside, root, run, said } = yield* desk
      writeFileSync(join(outside, "a.txt"), secret)
      symlinkSync(outside, at("out"))
      symlinkSync("l2", at("l1"))
      symlinkSync("../outside", at("l2"))
      symlinkSync(join(outside, "nope"), at("d"))
      mkdirSync(at("sub"))
      writeFileSync(at("sub/in.txt"), "inside")
      symlinkSync("sub", at("dir"))
      for (const path of ["out/a.txt", "out/new/b.txt", "l1/a.txt", "l1/new", "d", "d/e", "dir/../../outside/a.txt"]) {
        for (const tool of ["read", "ls"]) assert.strictEqual(yield* run(tool, path), "outside_workspace", path)
        for (const tool of ["write", "edit"]) isOneOf(yield* run(tool, path), refusals, `${tool} ${path}`)
      }
      assert.deepStrictEqual(readdirSync(outside), ["a.txt"])
      assert.strictEqual(readFileSync(join(outside, "a.txt"), "utf8"), secret)
      assert.notInclude(said.join(), secret)
      assert.strictEqual(yield* run("read", "dir/in.txt"), "done")
      assert.strictEqual(yield* run("ls", "dir"), "done")
      assert.strictEqual(yield* run("write", "dir/new.txt"), "done")
      assert.strictEqual(readFileSync(join(root, "sub/new.txt"), "utf8"), "written")
    }).pipe(Effect.provide(denied)))

  it.scopedLive("P03: lexical tricks are refused with a code, and touch nothing", () =>
    Effect.gen(function*() {
      const { at, outside, root, run } = yield* desk
      mkdirSync(`${root}-evil`)
      writeFileSync(join(outside, "a.txt"), secret)
      mkdirSync(at("sub"))
      const outsideOnes = ["../x", "a/../../x", join(outside, "a.txt"), `${root}-evil/x`, `${root}/../ws-evil/x`]
      const never = ["a\\..\\..\\x", "~/x", "file:///etc/passwd", "a\u0000.txt", "", "C:\\x", "\\\\?\\C:\\x", "\ud800"]
      for (const path of outsideOnes) {
        for (const tool of ["read", "ls"]) assert.strictEqual(yield* run(tool, path), "outside_workspace", path)
        for (const tool of ["write", "edit"]) {
          isOneOf(yield* run(tool, path), refusals, `${tool} ${path}`)
        }
      }
      for (const path of never) {
        for (const tool of all) {
          isOneOf(yield* run(tool, path), ["path_invalid", "arguments_invalid"], `${tool} ${JSON.stringify(path)}`)
        }
      }
      for (const path of [".", "sub", "sub/"]) {
        isOneOf(yield* run("write", path), ["path_invalid", "is_a_directory", "not_a_regular_file"], path)
      }
      assert.deepStrictEqual(readdirSync(root), ["sub"])
      assert.deepStrictEqual(readdirSync(`${root}-evil`), [])
      assert.deepStrictEqual(readdirSync(outside), ["a.txt"])
      assert.strictEqual(readFileSync(join(outside, "a.txt"), "utf8"), secret)
    }).pipe(Effect.provide(denied)))

  it.scopedLive("P04: a list is not got round by case, and a root in another case is another folder here", () =>
    Effect.gen(function*() {
      const { at, root, run } = yield* desk
      mkdirSync(at(".git"))
      writeFileSync(at(".env"), secret)
      for (const path of [".Git/config", ".GIT/hooks/pre-commit", ".git/config", ".g\u0130t/../.git/x"]) {
        assert.strictEqual(yield* run("write", path), "sandbox_write_blocked", path)
      }
      for (const path of [".ENV", ".NETRC", ".Ssh/Config", "ID_RSA", ".env"]) {
        for (const tool of all) assert.strictEqual(yield* run(tool, path), "file_withheld", `${tool} ${path}`)
      }
      for (const path of [".gitignore", ".environment.ts", "key.ts", "git/config"]) {
        assert.strictEqual(yield* run("write", path), "done", path)
        assert.strictEqual(yield* run("read", path), "done", path)
      }
      assert.strictEqual(yield* run("read", root.replace(/ws$/, "WS") + "/key.ts"), "outside_workspace")
      assert.deepStrictEqual(readdirSync(at(".git")), [])
      assert.deepStrictEqual(readdirSync(root).sort(), [
        ".env",
        ".environment.ts",
        ".git",
        ".gitignore",
        "git",
        "key.ts"
      ])
    }).pipe(Effect.provide(denied)))

  it.scopedLive("P11: a secret is not told by any route, nor whether there is one, in any mode", () =>
    Effect.gen(function*() {
      const { at, outside, root, run, said } = yield* desk
      for (const name of [".env", "server.key"]) writeFileSync(at(name), secret)
      writeFileSync(at("a.txt"), "plain")
      symlinkSync(".env", at("innocent.txt"))
      symlinkSync("innocent.txt", at("chain.txt"))
      symlinkSync("a.txt", at(".env.local"))
      symlinkSync(".env.local", at("by-way-of.txt"))
      mkdirSync(at(".ssh"))
      symlinkSync(".ssh", at("keys"))
      symlinkSync("loop.pem", at("loop.pem"))
      mkdirSync(join(outside, ".ssh"))
      writeFileSync(join(outside, ".ssh/id_rsa"), secret)
      const paths = [
        ...[".env", "x/../.env", join(root, ".env"), "server.key", "innocent.txt", "chain.txt", ".env.local"],
        ...["by-way-of.txt", "keys/none", ".ssh/none", ".env.none", "loop.pem", join(outside, ".ssh/id_rsa")]
      ]
      for (const sandboxMode of ["read-only", "workspace-write", "danger-full-access"] as const) {
        for (const path of paths) {
          for (const tool of sandboxMode === "read-only" ? ["read", "ls"] : all) {
            assert.strictEqual(
              yield* run(tool, path, { sandboxMode }),
              "file_withheld",
              `${tool} ${path} ${sandboxMode}`
            )
          }
        }
      }
      assert.strictEqual(readFileSync(at(".env"), "utf8"), secret)
      assert.isFalse(existsSync(at(".env.none")))
      // It is told alike, whether the file is there or not.
      const told = yield* Effect.forEach(
        [".env", ".env.none"],
        (path) => Effect.map(run("edit", path), () => said.at(-1))
      )
      assert.strictEqual(told[0]?.replaceAll(".env", "X"), told[1]?.replaceAll(".env.none", "X"))
      for (const path of [".env.example", "env.ts"]) {
        writeFileSync(at(path), "KEY=")
        assert.strictEqual(yield* run("read", path), "done", path)
      }
      assert.notInclude(said.join(), secret)
    }).pipe(Effect.provide(denied)))

  it.scopedLive("withhold by name alone: a hard link of another name is another file", () =>
    Effect.gen(function*() {
      const { at, run } = yield* desk
      writeFileSync(at(".env"), secret)
      linkSync(at(".env"), at("copy"))
      assert.strictEqual(yield* run("read", "copy"), "done")
    }).pipe(Effect.provide(denied)))
})
