import * as FileSystem from "@effect/platform/FileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import { linkSync, mkdirSync, readdirSync, realpathSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { defaultProtected } from "../../src/file/ProtectedName.ts"
import { make, WorkspacePath } from "../../src/file/WorkspacePath.ts"
import { codeOf, platform, services, turnIn, world } from "../fixtures/files.ts"

describe("WorkspacePath", () => {
  it.scopedLive("follows links out of the workspace, existing, chained and dangling, and refuses all of them", () =>
    Effect.gen(function*() {
      const { outside, turn, workspace } = yield* world
      const paths = yield* WorkspacePath
      writeFileSync(join(outside, "a.txt"), "secret")
      symlinkSync(outside, join(workspace, "out"))
      symlinkSync("l2", join(workspace, "l1"))
      symlinkSync("../outside", join(workspace, "l2"))
      symlinkSync(join(outside, "nope"), join(workspace, "dangling"))
      symlinkSync("none/../../outside/b", join(workspace, "crooked"))
      for (const name of ["out", "out/a.txt", "out/new/b.txt", "l1/a.txt", "l1", "dangling", "dangling/x", "crooked"]) {
        assert.strictEqual(yield* codeOf(paths.forRead(turn, name)), "outside_workspace", name)
        assert.strictEqual(yield* codeOf(paths.forWrite(turn, name)), "sandbox_write_blocked", name)
      }
      assert.deepStrictEqual(readdirSync(outside), ["a.txt"])
    }).pipe(Effect.provide(services)))

  it.scopedLive("follows links that stay inside, and says where a dangling one would be written", () =>
    Effect.gen(function*() {
      const { turn, workspace } = yield* world
      const paths = yield* WorkspacePath
      mkdirSync(join(workspace, "sub"))
      writeFileSync(join(workspace, "sub", "real.txt"), "x")
      symlinkSync("sub", join(workspace, "dir"))
      symlinkSync("dir/later.txt", join(workspace, "later"))
      const real = yield* paths.forWrite(turn, "dir/real.txt")
      assert.deepInclude(real, {
        lexical: join(workspace, "dir/real.txt"),
        physical: join(workspace, "sub/real.txt"),
        relative: "sub/real.txt",
        inside: true,
        exists: true
      })
      const later = yield* paths.forWrite(turn, "later")
      assert.deepInclude(later, { physical: join(workspace, "sub/later.txt"), exists: false, inside: true })
      const folder = statSync(join(workspace, "sub"))
      const ancestor = { path: join(workspace, "sub"), device: folder.dev, inode: folder.ino }
      for (const path of ["dir/real.txt", "later", "dir/new/er/file"]) {
        assert.deepStrictEqual((yield* paths.forWrite(turn, path)).ancestor, ancestor, path)
      }
      assert.isUndefined((yield* paths.forWrite(turn, "sub/real.txt/x")).ancestor)
      assert.strictEqual((yield* paths.resolve(turn, ".")).relative, ".")
      assert.strictEqual((yield* paths.forRead(turn, "sub/")).relative, "sub")
    }).pipe(Effect.provide(services)))

  it.scopedLive("takes roots that are links themselves, and further roots", () =>
    Effect.gen(function*() {
      const { base, outside, workspace } = yield* world
      const paths = yield* WorkspacePath
      const alias = join(base, "alias")
      symlinkSync(workspace, alias)
      writeFileSync(join(workspace, "f"), "x")
      const turn = turnIn(alias, { roots: [alias, outside] })
      assert.deepInclude(yield* paths.forWrite(turn, "f"), {
        physical: join(workspace, "f"),
        relative: "f",
        inside: true
      })
      assert.deepInclude(yield* paths.forWrite(turn, join(workspace, "f")), { relative: "f", inside: true })
      const other = yield* paths.forWrite(turn, join(outside, "g"))
      assert.deepInclude(other, { inside: true, relative: join(outside, "g") })
    }).pipe(Effect.provide(services)))

  it.scopedLive("reads from readable folders outside the roots, by the turn, and never writes there", () =>
    Effect.gen(function*() {
      const { base, outside, workspace } = yield* world
      for (const thread of ["mine", "yours"]) {
        mkdirSync(join(outside, thread))
        writeFileSync(join(outside, thread, "f"), thread)
      }
      writeFileSync(join(base, "secret"), "secret")
      symlinkSync(join(base, "secret"), join(outside, "mine", "link"))
      symlinkSync(outside, join(base, "alias"))
      symlinkSync(base, join(outside, "swapped"))
      const readable = ({ threadId }: { readonly threadId: string }) => [
        join(base, "absent", threadId),
        `${join(base, "alias", threadId)}/`
      ]
      const paths = yield* make({ readable })
      const mine = turnIn(workspace, { thread: "mine" })
      for (const path of ["mine/f", "mine/none", "mine/new/f", "mine", "yours/../mine/f"]) {
        const found = yield* paths.forRead(mine, `${outside}/${path}`)
        assert.isFalse(found.inside, path)
        assert.strictEqual(found.relative, found.physical)
      }
      for (const path of ["yours/f", "mine/link", "mine/../yours/f", "mine/..", "mine-too/f", "swapped/secret"]) {
        assert.strictEqual(yield* codeOf(paths.forRead(mine, `${outside}/${path}`)), "outside_workspace", path)
      }
      const swapped = turnIn(workspace, { thread: "swapped" })
      assert.strictEqual(yield* codeOf(paths.forRead(swapped, `${outside}/swapped/secret`)), "outside_workspace")
      assert.strictEqual(yield* codeOf(paths.forWrite(mine, `${outside}/mine/f`)), "sandbox_write_blocked")
      assert.strictEqual(yield* codeOf((yield* make()).forRead(mine, `${outside}/mine/f`)), "outside_workspace")
    }).pipe(Effect.provide(services)))

  it.scopedLive("refuses lexical tricks with a code", () =>
    Effect.gen(function*() {
      const { turn, workspace } = yield* world
      const paths = yield* WorkspacePath
      const outsideOnes = ["../x", "a/../../x", "/etc/passwd", `${workspace}-evil/x`, "/"]
      for (const path of outsideOnes) {
        assert.strictEqual(yield* codeOf(paths.forRead(turn, path)), "outside_workspace", path)
        assert.strictEqual(
          yield* codeOf(paths.forWrite(turn, path)),
          path === "/" ? "path_invalid" : "sandbox_write_blocked",
          path
        )
      }
      const invalid = [
        "",
        "a\0.txt",
        "~/x",
        "~",
        "~root/x",
        "file:///etc/passwd",
        "FILE:/etc/passwd",
        "http://x/y",
        "a\\..\\..\\x",
        "..\\x",
        "C:\\x",
        "c:/x",
        "\\\\?\\C:\\x",
        "\\\\server\\share",
        "\ud800",
        "a/".repeat(3000)
      ]
      for (const path of invalid) {
        assert.strictEqual(yield* codeOf(paths.resolve(turn, path)), "path_invalid", path)
        assert.strictEqual(yield* codeOf(paths.forWrite(turn, path)), "path_invalid", path)
      }
      for (const directory of ["sub/", "new/.", "new/..", "new/../.", "new/sub/..", ".", "..", `${workspace}/new/.`]) {
        assert.strictEqual(yield* codeOf(paths.forWrite(turn, directory)), "path_invalid", directory)
      }
      for (const file of ["...", "new/...", "a.", ".a", "..a", "a.."]) {
        assert.strictEqual(yield* codeOf(paths.forWrite(turn, file)), "none", file)
      }
      for (const path of ["./~x", "a..b", "...", "with space", "dev\\x2duuid", "-rf", "a/../b"]) {
        assert.strictEqual(yield* codeOf(paths.forWrite(turn, path)), "none", path)
      }
    }).pipe(Effect.provide(services)))

  it.scopedLive("gives up on link loops and on more than 40 links", () =>
    Effect.gen(function*() {
      const { turn, workspace } = yield* world
      const paths = yield* WorkspacePath
      symlinkSync("loop", join(workspace, "loop"))
      symlinkSync("b", join(workspace, "a"))
      symlinkSync("a", join(workspace, "b"))
      assert.strictEqual(yield* codeOf(paths.resolve(turn, "loop")), "path_invalid")
      assert.strictEqual(yield* codeOf(paths.resolve(turn, "a/x")), "path_invalid")
      for (let index = 0; index < 41; index++) symlinkSync(`chain${index + 1}`, join(workspace, `chain${index}`))
      writeFileSync(join(workspace, "chain41"), "x")
      assert.strictEqual(yield* codeOf(paths.resolve(turn, "chain0")), "path_invalid")
      assert.strictEqual((yield* paths.resolve(turn, "chain1")).physical, join(workspace, "chain41"))
    }).pipe(Effect.provide(services)))

  it.scopedLive("refuses protected names under links and in further roots, and allows them with full access only", () =>
    Effect.gen(function*() {
      const { outside, turn, workspace } = yield* world
      const paths = yield* WorkspacePath
      mkdirSync(join(workspace, ".git"))
      mkdirSync(join(workspace, "gitdir"))
      mkdirSync(join(workspace, "sub"))
      symlinkSync(".git", join(workspace, "innocent"))
      symlinkSync("../gitdir", join(workspace, "sub", ".git"))
      const wide = turnIn(workspace, { roots: [workspace, outside] })
      for (
        const name of [
          "innocent/config",
          ".git/config",
          "sub/.git/config",
          ".GIT/new",
          join(outside, ".git/config"),
          ".portcullis/a"
        ]
      ) {
        assert.strictEqual(yield* codeOf(paths.forWrite(wide, name)), "sandbox_write_blocked", name)
        assert.strictEqual(yield* codeOf(paths.forRead(wide, name)), "none", name)
      }
      for (const sandboxMode of ["read-only", "external-sandbox"] as const) {
        assert.strictEqual(yield* codeOf(paths.forWrite({ ...turn, sandboxMode }, ".git/x")), "sandbox_write_blocked")
      }
      const full = turnIn(workspace, { sandboxMode: "danger-full-access" })
      assert.strictEqual(yield* codeOf(paths.forWrite(full, ".git/config")), "none")
      assert.strictEqual(yield* codeOf(paths.forWrite(full, join(outside, "x"))), "none")
      assert.strictEqual(yield* codeOf(paths.forRead(full, "/etc/passwd")), "none")
    }).pipe(Effect.provide(services)))

  it.scopedLive("grants an existing outside file by identity, and not what takes its place", () =>
    Effect.gen(function*() {
      const { fs, outside, turn, workspace } = yield* world
      const paths = yield* WorkspacePath
      const file = join(outside, "notes.txt")
      writeFileSync(file, "x")
      symlinkSync(file, join(workspace, "notes"))
      const grant = yield* paths.identify(yield* paths.resolve(turn, "notes"))
      assert.strictEqual(grant.path, file)
      assert.strictEqual(yield* codeOf(paths.forWrite(turn, "notes", [grant])), "none")
      assert.strictEqual(
        yield* codeOf(paths.forWrite(turn, join(outside, "other.txt"), [grant])),
        "sandbox_write_blocked"
      )
      yield* fs.rename(file, join(outside, "moved"))
      writeFileSync(file, "y")
      assert.strictEqual(yield* codeOf(paths.forWrite(turn, "notes", [grant])), "sandbox_write_blocked")
    }).pipe(Effect.provide(services)))

  it.scopedLive("identifies nothing but a regular outside file with one hard link", () =>
    Effect.gen(function*() {
      const { outside, turn, workspace } = yield* world
      const paths = yield* WorkspacePath
      writeFileSync(join(outside, "two"), "x")
      linkSync(join(outside, "two"), join(outside, "three"))
      writeFileSync(join(workspace, "inside"), "x")
      for (const path of [join(outside, "two"), join(outside, "absent"), outside, "/dev/null", "inside"]) {
        const resolved = yield* paths.resolve(turn, path)
        assert.strictEqual(yield* codeOf(paths.identify(resolved)), "sandbox_write_blocked", path)
      }
    }).pipe(Effect.provide(services)))

  it.scopedLive("takes .. behind a link for what is above where it leads, as the system does", () =>
    Effect.gen(function*() {
      const { outside, turn, workspace } = yield* world
      const paths = yield* WorkspacePath
      mkdirSync(join(workspace, "deep/er"), { recursive: true })
      writeFileSync(join(workspace, "f"), "top")
      writeFileSync(join(workspace, "deep/f"), "deep")
      symlinkSync("deep/er", join(workspace, "link"))
      symlinkSync(outside, join(workspace, "out"))
      const physical = join(workspace, "deep/f")
      assert.strictEqual(realpathSync.native(`${workspace}/link/../f`), physical)
      for (const path of ["link/../f", `${workspace}/link/../f`, "./link//..//f", "none/../link/../f"]) {
        assert.deepInclude(yield* paths.forWrite(turn, path), { physical, lexical: physical, relative: "deep/f" }, path)
      }
      assert.deepInclude(yield* paths.forRead(turn, "deep/../f"), { physical: join(workspace, "f"), relative: "f" })
      assert.strictEqual(yield* codeOf(paths.forWrite(turn, "out/../f")), "sandbox_write_blocked")
      assert.strictEqual(yield* codeOf(paths.forRead(turn, "out/../ws/f")), "none")
    }).pipe(Effect.provide(services)))

  it.scopedLive("judges every name that a path leads through, not only where it begins and ends", () =>
    Effect.gen(function*() {
      const { base, turn, workspace } = yield* world
      const paths = yield* WorkspacePath
      mkdirSync(join(workspace, "data"))
      for (const name of [".git", "safe.key"]) symlinkSync("data", join(workspace, name))
      symlinkSync(".git/x", join(workspace, "one"))
      symlinkSync("safe.key/x", join(workspace, "two"))
      for (const path of [".git/x", "one"]) {
        assert.strictEqual(yield* codeOf(paths.forWrite(turn, path)), "sandbox_write_blocked", path)
      }
      for (const path of ["safe.key/x", "two"]) {
        for (const asked of [paths.resolve(turn, path), paths.forRead(turn, path), paths.forWrite(turn, path)]) {
          assert.strictEqual(yield* codeOf(asked), "file_withheld", path)
        }
      }
      // The links on the way to a root are the host's choice.
      mkdirSync(join(base, ".git"))
      const alias = join(base, ".git/alias.key")
      symlinkSync(workspace, alias)
      assert.strictEqual(yield* codeOf(paths.forWrite(turnIn(alias), "data/x")), "none")
      assert.strictEqual(yield* codeOf(paths.forWrite(turn, `${alias}/data/x`)), "file_withheld")
    }).pipe(Effect.provide(services)))

  it.scopedLive("lets a host add to its lists or replace them", () =>
    Effect.gen(function*() {
      const { turn, workspace } = yield* world
      const paths = yield* make({
        protect: [...defaultProtected, "package-lock.json", "!.git/info/exclude"],
        withhold: ["/secret/**", "**/vault/*", "!vault/readme.md"]
      })
      const rows: ReadonlyArray<readonly [string, string]> = [
        ["sub/package-lock.json", "sandbox_write_blocked"],
        [".git/info/exclude", "none"],
        [".git/config", "sandbox_write_blocked"],
        [".env", "none"],
        ["secret/x", "none"],
        ["vault/x", "file_withheld"],
        ["vault/README.md", "file_withheld"],
        ["vault/readme.md", "none"]
      ]
      for (const [path, code] of rows) assert.strictEqual(yield* codeOf(paths.forWrite(turn, path)), code, path)
      assert.isTrue(paths.withholds("/secret/x"))
      assert.isFalse(paths.withholds(join(workspace, ".env")))
      assert.isTrue(Exit.isFailure(yield* Effect.exit(make({ withhold: ["{"] }))))
    }).pipe(Effect.provide(services)))

  /** The disk as a volume that takes any case, and composed and decomposed letters, for one name. */
  const forgiving = Layer.effect(
    FileSystem.FileSystem,
    Effect.map(FileSystem.FileSystem, (fs) => {
      const fold = (name: string) => name.normalize("NFC").toLowerCase()
      const found = (path: string): string =>
        path.split("/").reduce((folder, name) => {
          const names = attempt(() => readdirSync(folder === "" ? "/" : folder)) ?? []
          return `${folder}/${names.find((there) => fold(there) === fold(name)) ?? name}`
        }).replace(/^$/, "/")
      return FileSystem.FileSystem.of({
        ...fs,
        readLink: (path) => fs.readLink(found(path)),
        stat: (path) => fs.stat(found(path)),
        realPath: (path) => fs.realPath(found(path))
      })
    })
  ).pipe(Layer.provide(platform))

  it.scopedLive("P04: takes a root in another spelling for that root only where the volume does", () =>
    Effect.gen(function*() {
      const { base } = yield* world
      const workspace = join(base, "Caf\u00e9")
      mkdirSync(workspace)
      mkdirSync(join(base, "other"))
      writeFileSync(join(workspace, "a"), "x")
      const turn = turnIn(workspace)
      const spelled = ["CAFE\u0301", "cafe\u0301", "CAF\u00c9"].map((name) => join(base, name))
      const onDisk = yield* make()
      const folding = yield* Effect.provide(make(), forgiving)
      for (const root of spelled) {
        assert.strictEqual(yield* codeOf(onDisk.forRead(turn, `${root}/a`)), "outside_workspace", root)
        for (const [name, exists] of [["a", true], ["new/b", false]] as const) {
          const expected = { physical: join(workspace, name), relative: name, inside: true, exists }
          assert.deepInclude(yield* folding.forWrite(turn, `${root}/${name}`), expected, `${root}/${name}`)
        }
        assert.strictEqual(yield* codeOf(folding.forWrite(turn, `${root}/.GIT/x`)), "sandbox_write_blocked")
        assert.strictEqual(yield* codeOf(folding.forWrite(turn, `${root}x/a`)), "sandbox_write_blocked")
        assert.strictEqual(yield* codeOf(folding.forRead(turn, `${root}/../other/a`)), "outside_workspace")
      }
      // Two folders that differ in case only are two, whatever else the volume may be.
      mkdirSync(join(base, "caf\u00e9"))
      assert.strictEqual(yield* codeOf(onDisk.forWrite(turn, join(base, "caf\u00e9/a"))), "sandbox_write_blocked")
    }).pipe(Effect.provide(services)))
})

const attempt = <A>(run: () => A): A | undefined => {
  try {
    return run()
  } catch {
    return undefined
  }
}
