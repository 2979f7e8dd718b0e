import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import * as NodeSubprocess from "../../../layers/node/Subprocess.ts"
import * as Bubblewrap from "../../../layers/sandbox/Bubblewrap.ts"
import { ProcessSandbox } from "../../../src/process/ProcessSandbox.ts"
import { laws } from "../../../src/testing/contract/ProcessSandbox.ts"
import { executeIn } from "../../support/plane.ts"
import { confines } from "../../support/sandbox.ts"
import { bash, confined, folder, place, plane, tree } from "./support.ts"

const real = (options?: Bubblewrap.Options) => Layer.provide(Bubblewrap.layer(options), NodeSubprocess.layer())

const openFiles = () => readdirSync("/proc/self/fd").length

describe("Bubblewrap where it cannot confine", () => {
  const reasonOf = (layer: Layer.Layer<ProcessSandbox>) =>
    Effect.flatMap(ProcessSandbox, (sandbox) =>
      Effect.gen(function*() {
        const { code, reason } = yield* Effect.flip(sandbox.report)
        assert.strictEqual(code, "sandbox_unavailable")
        const asked = { mode: "workspace-write", roots: [], cwd: "/" } as const
        assert.strictEqual((yield* Effect.flip(Effect.scoped(sandbox.confine(["true"], asked)))).reason, reason)
        return reason
      })).pipe(Effect.provide(layer))

  /** A program that stands for bubblewrap. */
  const runner = (script: string) =>
    Effect.map(folder(), (base) => {
      writeFileSync(`${base}/bwrap`, `#!/bin/sh\n${script}\n`)
      chmodSync(`${base}/bwrap`, 0o755)
      return `${base}/bwrap`
    })

  it.scopedLive("fails closed: missing, too old, not allowed, or not confining at all", () =>
    Effect.gen(function*() {
      assert.include(yield* reasonOf(real({ executable: "/no/such/bwrap" })), "cannot be started")
      const old = yield* runner("echo 'bwrap: Unknown option --disable-userns' >&2; exit 1")
      assert.include(yield* reasonOf(real({ executable: old })), "Unknown option --disable-userns")
      const forbidden = yield* runner("echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")
      assert.include(yield* reasonOf(real({ executable: forbidden })), "setting up uid map")
      const pretender = yield* runner("while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"")
      assert.include(yield* reasonOf(real({ executable: pretender })), "cannot confine a command here")
    }))

  it.scopedLive("falls back to none where that is asked for, and says so", () =>
    Effect.gen(function*() {
      const layer = Bubblewrap.layerOrUnconfined({ executable: "/no/such/bwrap" })
      const sandbox = yield* Effect.provide(ProcessSandbox, Layer.provide(layer, NodeSubprocess.layer()))
      assert.strictEqual(yield* sandbox.report, "none")
    }))
})

describe.runIf(confines)("Bubblewrap", { timeout: 60_000 }, () => {
  for (const { law, name } of laws) it.effect(name, () => Effect.provide(law, real()))

  it.scopedLive("lets a command do its work", () =>
    confined((at, run) =>
      Effect.gen(function*() {
        rmSync(`${at.root}/.git`, { recursive: true })
        mkdirSync(`${at.root}/repo`)
        const scripts = { test: "node -e \"console.log('tested')\" | cat && touch built" }
        writeFileSync(`${at.root}/package.json`, JSON.stringify({ scripts }))
        for (
          const command of [
            "echo hello > file && [ \"$(cat file)\" = hello ]",
            "echo x > /dev/null && head -c 10 /dev/urandom | wc -c",
            "cd repo && git init -q . && touch a && git add a && git status --short",
            "npm test --silent && [ -e built ]",
            "[ \"$TMPDIR\" = /tmp ] && f=$(mktemp) && echo x > $f && [ -s $f ] && touch ~/.cache",
            "python3 -c 'import multiprocessing; multiprocessing.Lock()' || [ ! -e /usr/bin/python3 ]",
            "(echo a; echo b >&2) 2>&1 | sort | wc -l",
            "sh -c 'exit 3'; [ $? = 3 ]"
          ]
        ) {
          const result = yield* run(command)
          assert.strictEqual(result.exitCode, 0, `${command}: ${JSON.stringify(result)}`)
          assert.strictEqual(result.confinement, "full")
        }
        assert.strictEqual(readFileSync(`${at.root}/file`, "utf8"), "hello\n")
        assert.isTrue(existsSync(`${at.root}/repo/.git/index`))
      })
    ))

  it.scopedLive("shows a repository to git, read-only", () =>
    confined((at, run) =>
      Effect.gen(function*() {
        rmSync(`${at.root}/.git`, { recursive: true })
        const git = yield* executeIn({ workspace: at.root, sandboxMode: "danger-full-access" }, {
          toolName: "bash",
          arguments: { command: "git init -q . && touch a && git add a" }
        })
        assert.strictEqual(Object(git.output).exitCode, 0)
        assert.include((yield* run("git status --short")).output, "A  a\n")
        const commit = yield* run("git -c user.name=n -c user.email=e commit -qm m")
        assert.strictEqual(commit.code, "command_failed")
        assert.strictEqual(commit.details.sandbox, "suspected")
      })
    ))

  it.scopedLive("says how a command ended: a code, a signal, a time-out", () =>
    confined((_, run) =>
      Effect.gen(function*() {
        assert.deepInclude((yield* run("echo no >&2; exit 3")).details, { exitCode: 3, output: "no\n" })
        for (const [name, code] of [["SEGV", 139], ["KILL", 137], ["TERM", 143], ["ABRT", 134]] as const) {
          const killed = yield* run(`echo x; kill -${name} $$`)
          assert.strictEqual(killed.code, "command_killed")
          assert.deepInclude(killed.details, { signal: `SIG${name}`, exitCode: code, output: "x\n" })
          assert.include(killed.error, "or it chose that code itself")
        }
        assert.strictEqual((yield* run("exit 129")).code, "command_failed")
        assert.strictEqual((yield* run("exit 200")).code, "command_failed")
        const late = yield* run("echo begun; sleep 60", 300)
        assert.deepInclude(late.details, { timeoutMs: 300, output: "begun\n", confinement: "full" })
      })
    ))

  it.scopedLive("is not fooled by a command that speaks as bubblewrap does", () =>
    confined((_, run) =>
      Effect.gen(function*() {
        const fooling = yield* run("echo 'bwrap: Creating new namespace failed' >&2; exit 1")
        assert.strictEqual(fooling.code, "command_failed")
        assert.strictEqual(fooling.details.output, "bwrap: Creating new namespace failed\n")
      })
    ))

  it.scopedLive("says sandbox_unavailable when bubblewrap itself gives up, and the command has not run", () =>
    Effect.gen(function*() {
      const at = yield* place()
      const broken = `${at.base}/bwrap`
      // Works for the probe, and then no more.
      writeFileSync(
        broken,
        `#!/bin/sh\nif [ -e ${at.base}/used ]; then echo 'bwrap: No space left' >&2; exit 1; fi\ntouch ${at.base}/used\nexec /usr/bin/bwrap "$@"\n`
      )
      chmodSync(broken, 0o755)
      const result = yield* Effect.provide(bash(at.root, "touch ran"), plane(at.state, { executable: broken }))
      assert.strictEqual(result.code, "sandbox_unavailable")
      assert.include(result.error, "bwrap: No space left")
      assert.isFalse(existsSync(`${at.root}/ran`))
    }))

  it.scopedLive("carries 100 MB of output and opens no more descriptors than it closes", () =>
    confined((_, run) =>
      Effect.gen(function*() {
        yield* run("true")
        const before = openFiles()
        const { totalBytes, truncated } = yield* run("yes 0123456789012345678 | head -c 100000000")
        assert.deepStrictEqual([totalBytes, truncated], [100_000_000, true])
        const failing = yield* run("yes err | head -c 100000 >&2; exit 1")
        assert.strictEqual(failing.details.totalBytes, 100_000)
        assert.isAtMost(openFiles(), before)
      })
    ))

  it.scopedLive("takes roots with any name, behind a link, in a home, and one in another", () =>
    Effect.gen(function*() {
      for (const parent of [undefined, "/var/tmp", process.env["HOME"] ?? "/root"]) {
        const at = yield* place(parent)
        const odd = `${at.root}/a b:c\nd 'e' \\f -- ü`
        mkdirSync(`${odd}/.git`, { recursive: true })
        symlinkSync(odd, `${at.base}/link`)
        const run = (workspace: string, command: string, extraRoots: ReadonlyArray<string> = []) =>
          Effect.provide(bash(workspace, command, { extraRoots }), plane(at.state))
        assert.strictEqual((yield* run(odd, "touch one && ! touch .git/x")).exitCode, 0)
        assert.isTrue(existsSync(`${odd}/one`))
        const linked = `touch two '${at.base}/link/three' && ! touch .git/x '${at.base}/link/.git/x'`
        assert.strictEqual((yield* run(`${at.base}/link`, linked)).exitCode, 0)
        assert.isTrue(existsSync(`${odd}/two`) && existsSync(`${odd}/three`))
        const nested = "touch four && ! touch .git/x && cd a* && touch five && ! touch .git/x && ! touch ../.git/x"
        assert.strictEqual((yield* run(at.root, nested, [odd, `${at.root}/.git`])).exitCode, 0)
        assert.strictEqual((yield* run(odd, "ls ..")).output, `${odd.slice(at.root.length + 1)}\n`)
        assert.deepStrictEqual(tree(`${at.root}/.git`), ["hooks"])
        assert.deepStrictEqual(tree(`${odd}`), [".git", "five", "one", "three", "two"])
      }
    }))

  it.scopedLive("refuses a root that is everything, that is not there, or that holds the state", () =>
    confined((at, run) =>
      Effect.gen(function*() {
        const touch = (workspace: string) => bash(workspace, "touch ran")
        for (const root of ["/", at.base, `${at.base}/state`]) {
          const { code, error } = yield* touch(root)
          assert.strictEqual(code, "sandbox_unavailable", root)
          assert.include(error, "it holds", root)
          assert.isFalse(existsSync(`${root}/ran`))
        }
        assert.include((yield* touch("/proc/self")).error, "the kernel's")
        assert.strictEqual((yield* run("touch ran")).exitCode, 0)
        const sandbox = yield* ProcessSandbox
        const asked = { mode: "workspace-write", roots: [`${at.base}/no`], cwd: "/" } as const
        const refused = yield* Effect.flip(Effect.scoped(sandbox.confine(["true"], asked)))
        assert.include(refused.reason, "is not there")
      })
    ))

  it.scopedLive("binds what the host names, read-only, but not what it hides", () =>
    Effect.flatMap(folder("/var/tmp"), (more) =>
      Effect.gen(function*() {
        const at = yield* place()
        mkdirSync(`${more}/state/ws`, { recursive: true })
        writeFileSync(`${more}/shown`, "shown")
        writeFileSync(`${more}/hidden`, "hidden")
        const run = (workspace: string, command: string) =>
          Effect.provide(
            bash(workspace, command),
            plane(`${more}/state/state.db`, { readable: [more], masked: [`${more}/hidden`, `${more}/state`] })
          )
        assert.strictEqual((yield* run(at.root, `cat ${more}/shown`)).output, "shown")
        const attack = `cat ${more}/hidden; ls -A ${more}/state; touch ${more}/x ${more}/state/x; rm ${more}/shown`
        const { code, details } = yield* run(at.root, attack)
        assert.strictEqual(code, "command_failed")
        assert.notMatch(details.output, /^hidden|state\.db/m)
        assert.strictEqual((yield* run(`${more}/state/ws`, "touch made; ls -A ..")).output, "ws\n")
        assert.isTrue(existsSync(`${more}/state/ws/made`) && existsSync(`${more}/shown`))
        assert.isFalse(existsSync(`${more}/x`) || existsSync(`${more}/state/x`))
      })))

  it.scopedLive("passes on what the tool sets and what the host names, and the network when it allows that", () =>
    confined((_, run) =>
      Effect.gen(function*() {
        const { output } = yield* run("env | sort")
        for (const line of ["HOME=/tmp", "TMPDIR=/tmp", "PAGER=cat", "NAMED=yes", "LC_ALL=C", "TERM=dumb"]) {
          assert.include(output.split("\n"), line)
        }
        assert.notInclude(output, "OTHER")
        assert.notStrictEqual((yield* run("cat /proc/net/dev | wc -l")).output, "3\n")
      }), {
      network: true,
      inheritEnv: ["NAMED"],
      hostEnv: { PATH: process.env["PATH"], NAMED: "yes", OTHER: "no", LC_ALL: "C", LC_KEY: "" }
    }))

  it.scopedLive("confines to reading under read-only, and is no external sandbox", () =>
    Effect.gen(function*() {
      const at = yield* place()
      const sandbox = yield* Effect.provide(ProcessSandbox, real())
      const asked = { mode: "read-only", roots: [at.root], cwd: at.root } as const
      const argv = yield* Effect.scoped(sandbox.confine(["touch", "x"], asked))
      assert.notInclude(argv, "--bind")
      assert.include(argv.join(" "), `--ro-bind ${at.root} ${at.root}`)
      const external = { ...asked, mode: "external-sandbox" } as const
      assert.strictEqual(
        (yield* Effect.flip(Effect.scoped(sandbox.confine(["true"], external)))).code,
        "sandbox_unavailable"
      )
    }))
})
