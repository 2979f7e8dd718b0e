import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { randomInt, randomUUID } from "node:crypto"
import { existsSync, linkSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { homedir } from "node:os"
import { bundle, start } from "../../support/childProcess.ts"
import { eventually } from "../../support/plane.ts"
import { confines } from "../../support/sandbox.ts"
import { confined, folder, livingWith, nothingLives, place, tree } from "./support.ts"

const uniqueSleep = () => `300.${randomInt(1e9, 9e9)}`

/** A server of the host, and how often somebody has reached it. */
const listening = (at: string | number) =>
  Effect.acquireRelease(
    Effect.async<{ readonly reached: () => number; readonly port: number; readonly close: () => void }>((resume) => {
      let reached = 0
      const server = createServer((socket) => {
        reached++
        socket.end("hello")
      })
      const opened = () => {
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        resume(Effect.succeed({ reached: () => reached, port, close: () => server.close() }))
      }
      if (typeof at === "number") server.listen(at, "127.0.0.1", opened)
      else server.listen(at, opened)
    }),
    ({ close }) => Effect.sync(close)
  )

const connect = (target: string) =>
  `node -e 'const c = require("net").connect(${target}); c.on("error", (e) => { console.log(e.code); process.exit(7) });` +
  ` c.on("data", (d) => { console.log(String(d)); process.exit(0) })'`

const vanishing = (path: string) => Effect.addFinalizer(() => Effect.sync(() => rmSync(path, { force: true })))

describe.runIf(confines)("an attack from inside bubblewrap", { timeout: 60_000 }, () => {
  it.scopedLive("that remounts, or asks for namespaces of its own, changes nothing", () =>
    confined((_, run) =>
      Effect.gen(function*() {
        const mark = `/etc/portcullis-${randomUUID()}`
        yield* vanishing(mark)
        const remount = yield* run(`mount -o remount,bind,rw /; mount -o remount,bind,rw /etc; touch ${mark}`)
        assert.strictEqual(remount.code, "command_failed")
        assert.match(remount.details.output, /permission denied/i)
        const nested = yield* run(
          `unshare -U true || unshare -Urm sh -c 'mount -o remount,bind,rw /etc; touch ${mark}'`
        )
        assert.strictEqual(nested.code, "command_failed")
        assert.include(nested.details.output, "unshare failed")
        assert.match((yield* run("grep ^CapEff /proc/self/status")).output, /^CapEff:\s+0+\n$/)
        assert.isFalse(existsSync(mark))
      })
    ))

  it.scopedLive("that writes outside fails, says that it may have been the sandbox, and changes nothing", () =>
    confined((at, run) =>
      Effect.gen(function*() {
        symlinkSync(at.outside, `${at.root}/link`)
        writeFileSync(`${at.outside}/kept`, "as it was")
        const name = `portcullis-${randomUUID()}`
        const before = tree(at.base)
        for (const path of [`/etc/${name}`, `${homedir()}/${name}`, `/usr/${name}`, `/${name}`, `/dev/${name}`]) {
          yield* vanishing(path)
          const { code, details, error } = yield* run(`echo x > ${path}`)
          assert.strictEqual(code, "command_failed", path)
          assert.deepInclude(details, { confinement: "full", exitCode: 1 })
          if (!/No such file/.test(details.output)) {
            assert.strictEqual(details.sandbox, "suspected", path)
            assert.include(error, "may be the sandbox")
          }
          assert.isFalse(existsSync(path), path)
        }
        for (const target of ["link/new", "link/kept", "../outside/new", `${at.outside}/kept`, at.state]) {
          assert.strictEqual((yield* run(`echo x > '${target}'`)).code, "command_failed", target)
        }
        assert.strictEqual(readFileSync(`${at.outside}/kept`, "utf8"), "as it was")
        assert.deepStrictEqual(tree(at.base), before)
        assert.notProperty((yield* run("exit 3")).details, "sandbox")
      })
    ))

  it.scopedLive("on the kernel's own files fails, whoever runs the host", () =>
    confined((_, run) =>
      Effect.gen(function*() {
        // The value is written back as it is, so that nothing changes where the sandbox has a hole.
        const rewrite = (path: string) => `v=$(cat ${path}) && echo "$v" > ${path}`
        for (const name of ["core_pattern", "modprobe", "hostname"]) {
          assert.strictEqual((yield* run(rewrite(`/proc/sys/kernel/${name}`))).code, "command_failed", name)
        }
        const { output } = yield* run(
          "find /proc -path '/proc/[0-9]*' -prune -o -type f -writable -print 2>/dev/null; true"
        )
        assert.strictEqual(output, "")
        assert.strictEqual((yield* run("ls /sys /var /boot /run /home 2>/dev/null; true")).output, "")
      })
    ))

  it.scopedLive("on protected names fails, in each form of it", () =>
    confined((at, run) =>
      Effect.gen(function*() {
        writeFileSync(`${at.root}/.git/config`, "[core]\n")
        writeFileSync(`${at.root}/.portcullis/rules.json`, "{}")
        const before = tree(at.base)
        for (
          const attack of [
            "echo x > .git/hooks/pre-commit",
            "mv .git elsewhere",
            "rm -rf .git",
            "echo x >> .git/config",
            "ln .git/config config && echo x >> config",
            "git config --file .git/config core.fsmonitor /bin/false",
            "ln -sfn /tmp .git/hooks",
            "mv .portcullis elsewhere",
            "echo x > .portcullis/rules.json",
            "mv .portcullis/plan .portcullis/other",
            "cd / && chmod 777 $OLDPWD/.git"
          ]
        ) assert.strictEqual((yield* run(attack)).code, "command_failed", attack)
        assert.deepStrictEqual(tree(at.base), before)
        assert.strictEqual(readFileSync(`${at.root}/.git/config`, "utf8"), "[core]\n")
        assert.notStrictEqual(statSync(`${at.root}/.git`).mode & 0o777, 0o777)
        assert.strictEqual((yield* run("echo plan > .portcullis/plan/a.md")).exitCode, 0)
        assert.strictEqual(readFileSync(`${at.root}/.portcullis/plan/a.md`, "utf8"), "plan\n")
      })
    ))

  it.scopedLive("that makes a protected name which is not there fails, and nothing of it stays", () =>
    confined((at, run) =>
      Effect.gen(function*() {
        rmSync(`${at.root}/.git`, { recursive: true })
        rmSync(`${at.root}/.portcullis`, { recursive: true })
        const attacks = [
          "git init -q .",
          "mkdir -p .git/hooks",
          "rmdir .git && mkdir -p .git/hooks",
          "mv .git a; mkdir .git/hooks",
          "ln -sfT /tmp .git",
          "echo x > .portcullis/hooks.json"
        ]
        const results = yield* Effect.forEach(attacks, (attack) => run(attack), { concurrency: 3 })
        results.forEach(({ code }, index) => assert.strictEqual(code, "command_failed", attacks[index]))
        assert.deepStrictEqual(tree(at.root), [])
        // What somebody outside puts there meanwhile is theirs.
        const running = yield* Effect.fork(run("touch begun; while [ ! -e go ]; do sleep 0.05; done"))
        yield* eventually(Effect.sync(() => existsSync(`${at.root}/begun`)), (there) => there)
        writeFileSync(`${at.root}/.git/config`, "the user's")
        writeFileSync(`${at.root}/go`, "")
        assert.strictEqual((yield* running).exitCode, 0)
        assert.deepStrictEqual(tree(at.root), [".git", ".git/config", "begun", "go"])
      })
    ))

  it.scopedLive("is not even started where a protected name is a link", () =>
    confined((at, run) =>
      Effect.gen(function*() {
        rmSync(`${at.root}/.git`, { recursive: true })
        symlinkSync(at.outside, `${at.root}/.git`)
        const { code, error } = yield* run("touch ran")
        assert.strictEqual(code, "sandbox_unavailable")
        assert.include(error, "is a link")
        assert.isFalse(existsSync(`${at.root}/ran`))
      })
    ))

  it.scopedLive("reaches no socket of the host, by path, by abstract name or by the network", () =>
    Effect.flatMap(folder("/var/tmp"), (elsewhere) =>
      confined((at, run) =>
        Effect.gen(function*() {
          const abstract = `\0portcullis-${randomUUID()}`
          const servers = yield* Effect.all([
            listening(`${at.outside}/s`),
            listening(`${elsewhere}/s`),
            listening(abstract),
            listening(0)
          ])
          const targets = [
            JSON.stringify(`${at.outside}/s`),
            JSON.stringify(`${elsewhere}/s`),
            JSON.stringify(abstract),
            `${servers[3].port}, "127.0.0.1"`
          ]
          for (const target of targets) {
            const { code, details } = yield* run(connect(target))
            assert.strictEqual(code, "command_failed", target)
            assert.strictEqual(details.exitCode, 7, details.output)
          }
          const away = yield* run(connect("80, \"192.0.2.1\""))
          assert.deepInclude(away.details, { exitCode: 7, output: "ENETUNREACH\n", sandbox: "suspected" })
          assert.deepStrictEqual(servers.map(({ reached }) => reached()), [0, 0, 0, 0])
        })
      )))

  it.scopedLive("finds no secret: not in the home, not in /etc, not in the state, not in its environment", () =>
    Effect.gen(function*() {
      const secret = `secret-${randomUUID()}`
      const key = `${homedir()}/.portcullis-test-${randomUUID()}`
      yield* vanishing(key)
      writeFileSync(key, secret, { mode: 0o600 })
      yield* confined((at, run) =>
        Effect.gen(function*() {
          linkSync(key, `${at.outside}/hardlink`)
          symlinkSync(key, `${at.root}/id_x`)
          for (const path of [key, "id_x", `${at.outside}/hardlink`, at.state, `/proc/1/root${key}`, "/etc/shadow"]) {
            const { code, details } = yield* run(`cat '${path}'`)
            assert.strictEqual(code, "command_failed", path)
            assert.match(details.output, /No such file|Permission denied/, path)
          }
          const { output } = yield* run(`env; cat /proc/*/environ /proc/self/mountinfo | tr '\\0' '\\n'; ls -A ~`)
          assert.notInclude(output, secret)
        }), { hostEnv: { PATH: process.env["PATH"], API_KEY: secret, GITHUB_TOKEN: secret, SOME: secret } })
    }))

  it.scopedLive("reaches no process of the host", () =>
    confined((_, run) =>
      Effect.gen(function*() {
        const victim = yield* Effect.acquireRelease(
          Effect.sync(() => spawn("sleep", [uniqueSleep()])),
          (child) => Effect.sync(() => child.kill("SIGKILL"))
        )
        for (const pid of [victim.pid, process.pid, process.ppid]) {
          const tell = `kill -0 ${pid}; kill -TERM ${pid}; cat /proc/${pid}/environ; ls /proc/${pid}/root/; false`
          assert.match((yield* run(tell)).details.output, /No such process[^]*No such file/)
        }
        assert.isNull(victim.exitCode)
        assert.isNull(victim.signalCode)
        // Everything in sight is its own.
        assert.match((yield* run("ls /proc/1/root; ls -d /proc/[0-9]* | wc -l")).output, /\n\d\n$/)
        assert.strictEqual((yield* run("kill -9 -1; kill -9 1; true")).code ?? "survived", "survived")
      })
    ))

  it.scopedLive("leaves no process: background, setsid, double fork, cleared environment, ignored TERM", () =>
    confined((_, run) =>
      Effect.gen(function*() {
        const word = uniqueSleep()
        const survivors = [
          `sleep ${word} &`,
          `setsid sleep ${word} >/dev/null 2>&1 </dev/null &`,
          `(setsid sh -c 'sleep ${word} & exec sleep ${word}' &) >/dev/null 2>&1`,
          `env -i setsid -f sleep ${word} >/dev/null 2>&1`,
          `nohup sh -c 'trap "" TERM HUP; while :; do sleep ${word}; done' >/dev/null 2>&1 &`
        ].join("\n")
        const before = performance.now()
        const { exitCode, output } = yield* run(`${survivors}\necho done`)
        assert.deepStrictEqual([exitCode, output], [0, "done\n"])
        nothingLives(word)
        const timedOut = yield* run(`${survivors}\necho begun; sleep ${word}`, 500)
        assert.strictEqual(timedOut.code, "command_timed_out")
        nothingLives(word)
        assert.isBelow(performance.now() - before, 10_000)
        const fiber = yield* Effect.fork(run(`${survivors}\nsleep ${word}`))
        yield* eventually(Effect.sync(() => livingWith(`sleep\0${word}`).length), (count) => count >= 5)
        yield* fiber.interruptAsFork(fiber.id())
        yield* fiber.await
        nothingLives(word)
      })
    ))

  it.scopedLive("that multiplies is all dead when its time is over", () =>
    confined((_, run) =>
      Effect.gen(function*() {
        const word = uniqueSleep()
        const bomb = `b() { if [ $1 -gt 0 ]; then b $(($1-1)) & b $(($1-1)) & fi; sleep ${word}; }; b 7`
        const { code } = yield* run(bomb, 1500)
        assert.strictEqual(code, "command_timed_out")
        nothingLives(word)
      })
    ))

  it.scopedLive("dies with its host, killed as hard as can be", () =>
    Effect.gen(function*() {
      const at = yield* place()
      const word = uniqueSleep()
      const child = yield* start(
        yield* bundle("confinedHost.ts"),
        at.root,
        at.state,
        `setsid sh -c 'trap "" TERM; sleep ${word}; sleep ${word}' & env -i sleep ${word} & touch begun; wait`
      )
      yield* eventually(
        Effect.sync(() => existsSync(`${at.root}/begun`) && livingWith(`sleep\0${word}`).length),
        (count) => Number(count) >= 2
      )
      yield* child.kill("SIGKILL")
      yield* child.ended
      yield* eventually(Effect.sync(() => livingWith(word).length), (count) => count === 0)
    }))
})
