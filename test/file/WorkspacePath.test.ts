import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "effect/FastCheck"
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { isProtected, make, WorkspacePath } from "../../src/file/WorkspacePath.ts"
import { codeOf, services, turnIn, world } from "../fixtures/files.ts"

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
      assert.strictEqual(yield* codeOf(paths.forWrite(turn, "sub/")), "path_invalid")
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

  it("protects names in every spelling that some file system takes for them", () => {
    const isOff = (path: string) => isProtected(path.split("/"))
    for (
      const path of [
        ".git",
        ".git/config",
        ".Git/config",
        ".GIT/hooks/pre-commit",
        "sub/.git/config",
        ".git./x",
        ".git /x",
        ".g\u200cit/config",
        "GIT~1/x",
        ".git::$INDEX_ALLOCATION/x",
        ".portcullis",
        ".portcullis/hooks.json",
        ".PORTCULLIS/rules",
        ".portcull\u0131s/x",
        ".portculli\u017f/x",
        ".portcullis/planner/x",
        ".portcullis/plan/.git/x"
      ]
    ) assert.isTrue(isOff(path), path)
    for (
      const path of [
        ".gitignore",
        ".github/x",
        "git/x",
        ".gitattributes",
        ".portcullis/plan/a.md",
        ".portcullis/plan",
        "x.git/y"
      ]
    ) {
      assert.isFalse(isOff(path), path)
    }
  })

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

  const name = fc.constantFrom("a", "b", "c", "d")
  const target = fc.oneof(
    name,
    fc.tuple(name, name).map((parts) => parts.join("/")),
    name.map((part) => `../${part}`),
    fc.tuple(name, name).map(([one, two]) => `${one}/../../outside/${two}`),
    name.map((part) => `/BASE/outside/${part}`),
    name.map((part) => `/BASE/ws/${part}`),
    fc.constantFrom("..", ".", "/BASE/outside", "../outside", "/BASE/ws-evil")
  )
  const farm = fc.array(
    fc.oneof(
      fc.record({ kind: fc.constant("link" as const), at: name, below: fc.option(name), target }),
      fc.record({ kind: fc.constant("dir" as const), at: name, below: fc.option(name), target }),
      fc.record({ kind: fc.constant("file" as const), at: name, below: fc.option(name), target })
    ),
    { maxLength: 8 }
  )
  const request = fc.oneof(
    fc.array(fc.constantFrom("a", "b", "c", "d", "..", "."), { minLength: 1, maxLength: 4 }).map((parts) =>
      parts.join("/")
    ),
    target
  )

  it.effect.prop(
    "lets no write through a farm of links land outside",
    [farm, request],
    ([plan, asked]) =>
      Effect.gen(function*() {
        const paths = yield* WorkspacePath
        const base = realpathSync(mkdtempSync(join(tmpdir(), "portcullis-farm-")))
        const workspace = join(base, "ws")
        for (const folder of ["ws", "outside", "ws-evil"]) mkdirSync(join(base, folder))
        for (const { at, below, kind, target } of plan) {
          const place = join(workspace, at, below ?? "")
          // Only what lies in the workspace itself: the farm is built by somebody who may not leave it either.
          if (
            existsSync(place) || isLink(place) || !existsSync(dirname(place)) ||
            !realpathSync(dirname(place)).startsWith(workspace)
          ) continue
          attempt(() => {
            if (kind === "link") symlinkSync(target.replace("/BASE", base), place)
            else if (kind === "dir") mkdirSync(place)
            else writeFileSync(place, "x")
          })
        }
        const path = asked.replace("/BASE", base)
        const before = listing(base)
        const resolved = yield* Effect.option(paths.forWrite(turnIn(workspace), path))
        if (resolved._tag === "Some") {
          const { exists, inside, physical } = resolved.value
          assert.isTrue(inside && (physical === workspace || physical.startsWith(`${workspace}/`)), physical)
          if (exists) assert.strictEqual(realpathSync(physical), physical)
          attempt(() => mkdirSync(dirname(physical), { recursive: true }))
          attempt(() => writeFileSync(physical, "written"))
          assert.deepStrictEqual(listing(base), before)
        }
        rmSync(base, { recursive: true })
      }).pipe(Effect.provide(services)),
    { fastCheck: { numRuns: 300 } }
  )
})

const attempt = (run: () => void): void => {
  try {
    run()
  } catch {
    return
  }
}

const isLink = (path: string): boolean => {
  try {
    return lstatSync(path).isSymbolicLink()
  } catch {
    return false
  }
}

/** Everything outside the workspace. */
const listing = (base: string): ReadonlyArray<string> =>
  ["outside", "ws-evil"].flatMap((folder) => readdirSync(join(base, folder), { recursive: true }).map(String)).concat(
    readdirSync(base)
  )
