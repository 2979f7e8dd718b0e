import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type { Scope } from "effect/Scope"
import { execFileSync } from "node:child_process"
import * as NodeFileAccess from "../../layers/node/FileAccess.ts"
import type { Profile } from "../../src/agent/Profile.ts"
import * as Profiles from "../../src/agent/Profiles.ts"
import type { FileAccess } from "../../src/file/FileAccess.ts"
import { world } from "../fixtures/files.ts"

const builtIn = ["design-reviewer", "explore", "general", "over-engineering-reviewer"]

const file = (description: string, more = "") =>
  `---\ndescription: ${description}\n${more}---\nBody of ${description}.\n`

/** A workspace with an empty folder of profiles. */
const agents = Effect.gen(function*() {
  const { base, fs, outside, path, workspace } = yield* world
  const folder = path.join(workspace, ".portcullis", "agents")
  yield* fs.makeDirectory(folder, { recursive: true })
  return {
    fs,
    base,
    outside,
    workspace,
    folder,
    put: (name: string, content: string | Uint8Array) =>
      fs.writeFile(path.join(folder, name), typeof content === "string" ? new TextEncoder().encode(content) : content),
    make: (options: Profiles.Options = {}) =>
      Profiles.make({ ...options, workspace: { folder: workspace, trusted: true, ...options.workspace } })
  }
})

const names = (profiles: Profiles.Profiles["Type"]) => Effect.map(profiles.list, (list) => list.map(({ name }) => name))

/** Names beside the built-in ones. */
const added = (profiles: Profiles.Profiles["Type"]) =>
  Effect.map(names(profiles), (all) => all.filter((name) => !builtIn.includes(name)))

/** `code file:line` of each problem, the file without its folder. */
const problems = (profiles: Profiles.Profiles["Type"]) =>
  Effect.map(
    profiles.problems,
    (all) => all.map(({ code, file, line }) => `${code} ${file.replace(".portcullis/agents/", "")}:${line}`)
  )

const host = (name: string, description: string): Profile => ({ name, description, toolPolicy: "inherit" })

const live = <A, E>(
  title: string,
  test: () => Effect.Effect<A, E, FileAccess | NodeContext.NodeContext | Scope>
) => it.scopedLive(title, () => Effect.provide(test(), Layer.merge(NodeContext.layer, NodeFileAccess.layer())))

describe("Profiles", () => {
  live(
    "has the four built-in ones, sorted by name, and only general holds what its parent has",
    () =>
      Effect.gen(function*() {
        const profiles = yield* Profiles.make()
        assert.deepStrictEqual(yield* names(profiles), builtIn)
        const inheriting = (yield* profiles.list).filter(({ toolPolicy }) => toolPolicy === "inherit")
        assert.deepStrictEqual(inheriting.map(({ name }) => name), ["general"])
        assert.deepStrictEqual(yield* problems(profiles), [])
        assert.isFalse(yield* profiles.refresh)
        assert.isUndefined(yield* profiles.get("nobody"))
        assert.isUndefined(yield* profiles.get("constructor"))
      })
  )

  live("has built-in ones that would pass as the host's", () =>
    Effect.gen(function*() {
      const list = yield* Effect.flatMap(Profiles.make(), (profiles) => profiles.list)
      assert.deepStrictEqual(yield* Effect.flatMap(Profiles.make({ host: list }), (profiles) => profiles.list), list)
    }))

  live(
    "replaces a built-in profile as a whole by the host's, and the host's by the workspace's",
    () =>
      Effect.gen(function*() {
        const { make, put } = yield* agents
        const own = [host("general", "of the host"), host("explore", "of the host"), host("own", "of the host")]
        yield* put("explore.md", file("of the workspace"))
        const profiles = yield* make({ host: own })
        assert.deepStrictEqual(yield* added(profiles), ["own"])
        assert.deepStrictEqual(yield* profiles.get("general"), host("general", "of the host"))
        assert.deepStrictEqual(yield* profiles.get("explore"), {
          name: "explore",
          description: "of the workspace",
          toolPolicy: "readOnly",
          systemPrompt: "Body of of the workspace."
        })
        assert.deepStrictEqual(
          (yield* profiles.list).find(({ name }) => name === "explore"),
          yield* profiles.get("explore")
        )
      })
  )

  live(
    "fails for a profile of the host that is none, that has a key too many, or that comes twice",
    () =>
      Effect.gen(function*() {
        const failure = (one: object) =>
          Effect.map(
            // What a host read from its own configuration may be anything.
            Effect.flip(Profiles.make({ host: [host("fine", "d"), one as Profile] })),
            ({ code, index, reason }) => ({ code, index, reason })
          )
        const code = "invalid_profile"
        assert.deepStrictEqual(yield* failure({ name: "A", description: "", toolPolicy: "all" }), {
          code,
          index: 1,
          reason: "name must be 1 to 64 of a-z, 0-9 and -, and not start with -; " +
            "description must have 1 to 500 characters; toolPolicy must be readOnly or inherit"
        })
        assert.deepStrictEqual(yield* failure({ ...host("b", "d"), blockedTool: ["bash"] }), {
          code,
          index: 1,
          reason: "blockedTool is unexpected, expected: \"name\" | \"description\" | \"toolPolicy\" | " +
            "\"allowedTools\" | \"blockedTools\" | \"blockedMcpServers\" | \"blockedSkills\" | \"systemPrompt\""
        })
        assert.deepStrictEqual(yield* failure(host("fine", "again")), {
          code,
          index: 1,
          reason: "the host has a profile fine already"
        })
      })
  )

  live(
    "loads what is right and diagnoses by file and line what is wrong, without hanging on a FIFO",
    () =>
      Effect.gen(function*() {
        const { folder, fs, make, outside, put } = yield* agents
        yield* put("good.md", file("good"))
        yield* put("zoo.md", file("zoo"))
        yield* put("bom.md", `\ufeff${file("bom").replaceAll("\n", "\r\n")}`)
        yield* put("typo.md", file("d", "allowedTool: [read]\n"))
        yield* put("bomb.md", file("d", "a: &a [x]\nb: [*a, *a]\n"))
        yield* put("latin.md", Uint8Array.from([0x2d, 0x2d, 0x2d, 0x0a, 0xe9]))
        yield* put("large.md", file("d") + "x".repeat(65_537))
        yield* put("exact.md", file("d") + "x".repeat(65_536 - file("d").length))
        yield* put("notes.txt", "not looked at")
        yield* put(".hidden.md", "not looked at")
        yield* put("twin.md", file("d", "name: good\n"))
        yield* put("inside.txt", file("inside"))
        yield* fs.makeDirectory(`${folder}/folder.md`)
        yield* fs.writeFileString(`${outside}/secret.md`, file("secret"))
        yield* fs.symlink(`${outside}/secret.md`, `${folder}/link.md`)
        yield* fs.symlink(`${folder}/inside.txt`, `${folder}/inside.md`)
        yield* fs.symlink(`${folder}/nowhere`, `${folder}/dangling.md`)
        yield* fs.symlink(`${folder}/loop.md`, `${folder}/loop.md`)
        execFileSync("mkfifo", [`${folder}/fifo.md`])
        const profiles = yield* make()
        assert.deepStrictEqual(yield* added(profiles), ["bom", "exact", "good", "inside", "zoo"])
        assert.deepStrictEqual(yield* problems(profiles), [
          "yaml_refused bomb.md:3",
          "file_unreadable dangling.md:1",
          "not_a_regular_file fifo.md:1",
          "not_a_regular_file folder.md:1",
          "file_too_large large.md:1",
          "not_utf8 latin.md:2",
          "link_outside link.md:1",
          "file_unreadable loop.md:1",
          "duplicate_name twin.md:1",
          "unknown_key typo.md:3"
        ])
        assert.strictEqual((yield* profiles.get("good"))?.description, "good")
      })
  )

  live("reads the first 32 files by code unit and says how many it left", () =>
    Effect.gen(function*() {
      const { make, put } = yield* agents
      const all = Array.from({ length: 40 }, (_, index) => `p${String(index).padStart(2, "0")}`)
      yield* Effect.forEach(all.toReversed(), (name) => put(`${name}.md`, file(name)))
      yield* put("B.md", file("first, because capitals come first", "name: capital\n"))
      const profiles = yield* make()
      assert.deepStrictEqual(yield* added(profiles), ["capital", ...all.slice(0, 31)])
      assert.deepStrictEqual((yield* profiles.problems).map(({ problem }) => problem), [
        "Only the first 32 files are read; 9 more are not."
      ])
    }))

  live(
    "reads nothing of a workspace that is not trusted, and says how many files there are",
    () =>
      Effect.gen(function*() {
        const { make, put, workspace } = yield* agents
        const untrusted = { workspace: { folder: workspace, trusted: false } }
        assert.deepStrictEqual(yield* problems(yield* make(untrusted)), [])
        yield* put("a.md", file("a"))
        yield* put("b.md", "broken")
        const profiles = yield* make(untrusted)
        assert.deepStrictEqual(yield* names(profiles), builtIn)
        assert.deepStrictEqual(yield* profiles.problems, [{
          code: "workspace_untrusted",
          file: ".portcullis/agents",
          line: 1,
          problem: "The workspace is not trusted; 2 files are not read."
        }])
      })
  )

  live(
    "has no problem with a workspace without profiles, and none to read when the folder is a link or a file",
    () =>
      Effect.gen(function*() {
        const { folder, fs, make, outside, workspace } = yield* agents
        yield* fs.remove(`${workspace}/.portcullis`, { recursive: true })
        assert.deepStrictEqual(yield* problems(yield* make()), [])
        yield* fs.writeFileString(`${outside}/a.md`, file("a"))
        yield* fs.makeDirectory(`${workspace}/.portcullis`)
        yield* fs.symlink(outside, folder)
        const linked = yield* make()
        assert.deepStrictEqual(yield* added(linked), [])
        assert.deepStrictEqual(yield* problems(linked), ["link_outside .portcullis/agents:1"])
        yield* fs.remove(folder)
        yield* fs.writeFileString(folder, "a file")
        assert.deepStrictEqual(yield* problems(yield* make()), ["file_unreadable .portcullis/agents:1"])
        yield* fs.remove(workspace, { recursive: true })
        assert.deepStrictEqual(yield* problems(yield* make()), [])
      })
  )

  live("does not follow a link to a folder of the workspace that tools may write in", () =>
    Effect.gen(function*() {
      const { folder, fs, make, workspace } = yield* agents
      yield* fs.makeDirectory(`${workspace}/docs`)
      yield* fs.writeFileString(`${workspace}/docs/a.md`, file("a"))
      yield* fs.symlink(`${workspace}/docs/a.md`, `${folder}/a.md`)
      assert.deepStrictEqual(yield* problems(yield* make()), ["link_outside a.md:1"])
      yield* fs.remove(folder, { recursive: true })
      yield* fs.symlink(`${workspace}/docs`, folder)
      assert.deepStrictEqual(yield* problems(yield* make()), ["link_outside .portcullis/agents:1"])
    }))

  live("reads a workspace that is itself reached by a link", () =>
    Effect.gen(function*() {
      const { base, fs, make, put, workspace } = yield* agents
      yield* put("a.md", file("a"))
      yield* fs.symlink(workspace, `${base}/alias`)
      assert.deepStrictEqual(yield* added(yield* make({ workspace: { folder: `${base}/alias`, trusted: true } })), [
        "a"
      ])
    }))

  live(
    "sees edits, additions and removals with a refresh and not before, and says whether the list changed",
    () =>
      Effect.gen(function*() {
        const { folder, fs, make, put } = yield* agents
        yield* put("a.md", file("one"))
        const profiles = yield* make()
        const before = yield* profiles.list
        assert.isFalse(yield* profiles.refresh)
        assert.strictEqual(yield* profiles.list, before)

        yield* put("a.md", file("two"))
        yield* put("b.md", file("b"))
        assert.strictEqual(yield* profiles.list, before)
        assert.isTrue(yield* profiles.refresh)
        assert.strictEqual((yield* profiles.get("a"))?.description, "two")
        assert.deepStrictEqual(yield* added(profiles), ["a", "b"])

        yield* put("b.md", "broken")
        assert.isTrue(yield* profiles.refresh)
        assert.deepStrictEqual(yield* added(profiles), ["a"])
        assert.deepStrictEqual(yield* problems(profiles), ["front_matter_missing b.md:1"])

        yield* put("b.md", "broken otherwise\0")
        assert.isFalse(yield* profiles.refresh)
        assert.deepStrictEqual(yield* problems(profiles), ["control_character b.md:1"])

        yield* fs.remove(folder, { recursive: true })
        assert.isTrue(yield* profiles.refresh)
        assert.deepStrictEqual(yield* names(profiles), builtIn)
        assert.deepStrictEqual(yield* problems(profiles), [])
      })
  )

  live("stays as it was when a refresh is interrupted, and can be refreshed again", () =>
    Effect.gen(function*() {
      const { make, put } = yield* agents
      const profiles = yield* make()
      yield* put("a.md", file("a"))
      const fiber = yield* Effect.fork(profiles.refresh)
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(yield* added(profiles), [])
      assert.isTrue(yield* profiles.refresh)
      assert.deepStrictEqual(yield* added(profiles), ["a"])
    }))

  live("is there as a layer, whose build fails with the host's mistake", () =>
    Effect.gen(function*() {
      const list = Effect.flatMap(Profiles.Profiles, (profiles) => profiles.list)
      assert.lengthOf(yield* Effect.provide(list, Profiles.layer()), 4)
      const failed = yield* Effect.either(Effect.provide(list, Profiles.layer({ host: [host("A", "d")] })))
      assert.isTrue(Either.isLeft(failed))
    }))
})
