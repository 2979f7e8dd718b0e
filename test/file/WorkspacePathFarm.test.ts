import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as fc from "effect/FastCheck"
import * as Layer from "effect/Layer"
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, relative, sep } from "node:path"
import * as WorkspacePath from "../../src/file/WorkspacePath.ts"
import { ls } from "../../src/tools/ls.ts"
import { read } from "../../src/tools/read.ts"
import { write } from "../../src/tools/write.ts"
import { call, platform, services, turnIn } from "../fixtures/files.ts"
import { count } from "../support/counts.ts"

/** Folders beside each other in `BASE`. The first two are the roots of the turn, of `readable` it may read. */
const folders = ["ws", "more", "readable", "outside", "ws-evil"]

const letter = fc.constantFrom("a", "b", "c")
const twin = fc.constantFrom("A", "caf\u00e9", "cafe\u0301")
const listed = fc.constantFrom(".env", ".ENV", ".git", ".Git", "x.key", ".ssh")
const name = fc.oneof({ weight: 6, arbitrary: letter }, { weight: 1, arbitrary: twin }, {
  weight: 1,
  arbitrary: listed
})
const folder = fc.oneof({ weight: 3, arbitrary: fc.constant("ws") }, {
  weight: 2,
  arbitrary: fc.constantFrom(...folders)
})
const place = fc.tuple(folder, fc.array(name, { minLength: 1, maxLength: 2 })).map(([top, names]) =>
  [top, ...names].join("/")
)
const step = fc.oneof({ weight: 4, arbitrary: name }, { weight: 2, arbitrary: fc.constantFrom("..", ".", "") })
const steps = fc.array(step, { minLength: 1, maxLength: 4 }).map((parts) => parts.join("/"))
const absolute = fc.tuple(fc.constantFrom(...folders, "WS", "ws/../outside", "."), steps)
  .map(([top, rest]) => `BASE/${top}/${rest}`)
const target = fc.oneof(
  steps,
  absolute,
  place.map((path) => `BASE/${path}`),
  place.map((path) => `../${path}`),
  letter.map((path) => `BASE/outside/${path}`),
  fc.constantFrom("BASE/outside", "BASE/ws", "BASE/more", "../outside", "../../outside", ".", "..", "/", "BASE")
)
const entry = fc.record({
  kind: fc.oneof({ weight: 3, arbitrary: fc.constant("link") }, {
    weight: 2,
    arbitrary: fc.constantFrom("dir", "file")
  }),
  at: place,
  target
})

const odd = fc.constantFrom(
  "\0",
  "\u202e",
  "\ud800",
  "\\..\\",
  "~",
  "/",
  "//",
  "/.",
  "/..",
  "\u200b",
  "C:\\",
  "%2e",
  ""
)
const wild = fc.tuple(fc.oneof(steps, absolute, target), fc.option(odd), fc.nat(12))
  .map(([path, extra, at]) => extra === null ? path : path.slice(0, at) + extra + path.slice(at))
/** Into the farm: by way of one of its entries. */
const known = fc.tuple(fc.nat(24), fc.constantFrom("", "/", "/a", "/b", "/c/a", "/../a", "/.env", "/.git/a"))

const planned = fc.tuple(
  fc.array(entry, { minLength: 3, maxLength: 25 }),
  fc.array(fc.oneof({ weight: 1, arbitrary: wild }, { weight: 2, arbitrary: known }), { minLength: 4, maxLength: 12 })
).map(([plan, requests]) => ({
  plan,
  requests: requests.map((request) =>
    typeof request === "string" ? request : `BASE/${plan[request[0] % plan.length]?.at ?? "ws"}${request[1]}`
  )
}))

const attempt = (run: () => void): void => {
  try {
    run()
  } catch {
    return
  }
}

const isSecret = (path: string): boolean => {
  const names = path.toLowerCase().split("/")
  return [".env", "x.key"].includes(names.at(-1) ?? "") || names.includes(".ssh")
}

const isListed = (path: string): boolean => isSecret(path) || path.toLowerCase().split("/").includes(".git")

/** Everything there is below a folder of `base`, links not followed: kind, identity, and content or target. */
const snapshot = (base: string, folder: string, keep: (path: string) => boolean): ReadonlyArray<string> =>
  readdirSync(join(base, folder)).sort().flatMap((name) => {
    const path = join(folder, name)
    const info = lstatSync(join(base, path))
    const what = info.isSymbolicLink()
      ? readlinkSync(join(base, path))
      : info.isFile()
      ? readFileSync(join(base, path), "utf8")
      : ""
    const more = info.isDirectory() ? snapshot(base, path, keep) : []
    return keep(path) ? [[path, info.mode, info.ino, what].join("\t"), ...more] : more
  })

const below = (folder: string, path: string): boolean => path === folder || path.startsWith(folder + sep)

const paths = WorkspacePath.layerWith({ readable: ({ workspace }) => [join(dirname(workspace), "readable")] })
  .pipe(Layer.provide(platform))

describe("WorkspacePath", () => {
  it.effect.prop(
    "lets no tool change or show anything outside through a farm of links, nor what is on its lists",
    [planned],
    ([{ plan, requests }]) =>
      Effect.gen(function*() {
        const base = realpathSync.native(mkdtempSync(join(tmpdir(), "portcullis-farm-")))
        yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(base, { recursive: true })))
        for (const folder of folders) {
          mkdirSync(join(base, folder))
          writeFileSync(join(base, folder, "a"), `${folder}:`)
        }
        for (const { at, kind, target } of plan) {
          const spot = join(base, at)
          attempt(() => {
            mkdirSync(dirname(spot), { recursive: true })
            // A farm is built within its own folders; its links lead anywhere.
            if (!below(join(base, at.split("/")[0] ?? ""), realpathSync.native(dirname(spot)))) return
            if (kind === "link") symlinkSync(target.replaceAll("BASE", base), spot)
            else if (kind === "dir") mkdirSync(spot)
            else writeFileSync(spot, isSecret(at) ? "secret:" : `${at.split("/")[0] ?? ""}:`, { flag: "wx" })
          })
        }
        const roots = [join(base, "ws"), join(base, "more")]
        const turn = turnIn(join(base, "ws"), { roots })
        const fixed = () => [
          ...readdirSync(base),
          ...["readable", "outside", "ws-evil"].flatMap((folder) => snapshot(base, folder, () => true)),
          ...["ws", "more"].flatMap((folder) =>
            snapshot(base, folder, (path) => isListed(path) && lstatSync(join(base, path)).isFile())
          )
        ]
        /** What a tool says it was at, which must not lead on. */
        const realOf = (output: unknown) => {
          const { path }: { readonly path: string } = Object(output)
          const told = path.startsWith("/") ? path : join(base, "ws", path)
          assert.strictEqual(realpathSync.native(told), told)
          return told
        }
        const before = fixed()
        for (const asked of requests) {
          const path = asked.replaceAll("BASE", base)
          const shown = yield* Effect.either(call(read, turn, { path }))
          const entries = yield* Effect.either(call(ls, turn, { path }))
          const said = JSON.stringify([shown, entries])
          for (const content of ["outside:", "ws-evil:", "secret:"]) assert.notInclude(said, content, path)
          if (Either.isRight(entries)) {
            const real = realOf(entries.right.output)
            assert.isTrue([...roots, join(base, "readable")].some((folder) => below(folder, real)), path)
          }
          const written = yield* Effect.either(call(write, turn, { path, content: "written" }))
          if (Either.isRight(written)) {
            const real = realOf(written.right.output)
            assert.isTrue(roots.some((root) => below(root, real)) && statSync(real).isFile(), path)
            assert.strictEqual(readFileSync(real, "utf8"), "written")
            assert.isFalse(isListed(relative(base, real)), path)
          }
          assert.deepStrictEqual(fixed(), before, path)
        }
      }).pipe(Effect.scoped, Effect.provide(paths), Effect.provide(services)),
    { fastCheck: { numRuns: count({ quick: 40, soak: 300 }) }, timeout: 120_000 }
  )
})
