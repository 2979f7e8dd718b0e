import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import { AgentUnavailable, DelegationRefused } from "../../src/agent/AgentSystem.ts"
import { reportIn } from "../../src/agent/Ralph.ts"
import { ralph, type Success } from "../../src/agent/tools/ralph.ts"
import type { Json, JsonObject } from "../../src/contract/Json.ts"
import { AgentId } from "../../src/contract/Turn.ts"
import { type Asked, fakeAgents, type FakeOptions, over } from "../support/agents.ts"
import { call, failureOf, turnIn } from "../tools/processSupport.ts"

const fenced = (report: Json) => `I did things.\n\n\`\`\`json\n${JSON.stringify(report, null, 2)}\n\`\`\`\n`
const goOn = (summary: string) => fenced({ status: "continue", summary, nextSteps: ["more"] })
const complete = fenced({ status: "complete", summary: "Done.", evidence: ["tests pass"] })

const run = (answer: FakeOptions["answer"], args: JsonObject = {}, options: Partial<FakeOptions> = {}) => {
  const agents = fakeAgents({ answer, ...options })
  const progress: Array<JsonObject> = []
  const effect = over(
    call(ralph, { objective: "Reach the end.", ...args }, turnIn("/w"), (value) => void progress.push(Object(value))),
    agents
  )
  return { ...agents, progress, effect, output: Effect.map(effect, ({ output }): typeof Success.Type => output) }
}

/** Answers in turn, then for ever with the last. */
const inTurn = (...answers: ReadonlyArray<string>) => {
  let next = 0
  return (_: Asked) => Effect.sync(() => answers[Math.min(next++, answers.length - 1)] ?? "")
}

describe("ralph", () => {
  it("is a call that every agent may hold and that asks nobody", () => {
    assert.deepInclude(ralph, { kind: "tool_call", policy: "auto", reach: "shared", readOnly: false })
  })

  it.effect("gives each round a fresh agent that knows the objective, the round and the last report alone", () =>
    Effect.gen(function*() {
      const { asked, counts, output, progress, spawned } = run(
        inTurn(`secret one\n${goOn("First.")}`, `secret two\n${goOn("Second </data> {{item}}.")}`, complete),
        { profile: "builder", maxRounds: 5 }
      )
      const result = yield* output
      assert.deepStrictEqual(result, {
        status: "complete",
        roundsStarted: 3,
        report: { status: "complete", summary: "Done.", evidence: ["tests pass"], nextSteps: [], blocker: null },
        usage: { inputTokens: 0, outputTokens: 30, requests: 3, calls: 0 }
      })
      assert.deepStrictEqual(asked.map(({ agent, turn }) => [agent, turn]), [[1, 1], [2, 1], [3, 1]])
      assert.deepStrictEqual(spawned, [1, 2, 3].map((round) => ({ label: `ralph ${round}/5`, profile: "builder" })))
      for (const [index, { prompt }] of asked.entries()) {
        assert.include(prompt, "Reach the end.")
        assert.include(prompt, `round ${index + 1} of at most 5`)
        assert.notInclude(prompt, "secret")
      }
      assert.notInclude(asked[0]?.prompt, "<data")
      assert.include(asked[1]?.prompt, "\"summary\":\"First.\"")
      assert.notInclude(asked[2]?.prompt, "First.")
      assert.include(asked[2]?.prompt, "Second &lt;/data&gt; {{item}}.")
      assert.deepStrictEqual(progress.map(({ round, summary }) => [round, summary]), [
        [1, null],
        [2, "First."],
        [3, "Second </data> {{item}}."]
      ])
      assert.deepInclude(counts, { mostLive: 1, live: 0, waiting: 0, spawnedUnlent: 0 })
    }))

  it.effect("ends when a round is blocked", () =>
    Effect.gen(function*() {
      const { output } = run(inTurn(fenced({ status: "blocked", summary: "Stuck.", blocker: "no key" })))
      assert.deepInclude(yield* output, { status: "blocked", roundsStarted: 1 })
    }))

  it.effect("is budget_limited when the rounds are used up, 8 unless told otherwise", () =>
    Effect.gen(function*() {
      for (const [args, rounds] of [[{}, 8], [{ maxRounds: 1 }, 1], [{ maxRounds: 64 }, 64]] as const) {
        const { output, spawned } = run(({ agent }) => Effect.succeed(goOn(`Round ${agent}.`)), args)
        const { report, roundsStarted, status } = yield* output
        assert.deepStrictEqual([status, roundsStarted, report.summary], ["budget_limited", rounds, `Round ${rounds}.`])
        assert.strictEqual(spawned.length, rounds)
      }
      for (
        const args of [{ maxRounds: 0 }, { maxRounds: 65 }, { maxRounds: 1.5 }, { objective: " " }, { profile: "A b" }]
      ) {
        const { output, spawned } = run(inTurn(complete), args)
        assert.strictEqual((yield* failureOf(output)).code, "arguments_invalid")
        assert.strictEqual(spawned.length, 0)
      }
    }))

  it("takes reports by the rules of their status", () => {
    const summary = "S."
    const table: ReadonlyArray<[Json, boolean]> = [
      [{ status: "continue", summary, nextSteps: ["n"] }, true],
      [{ status: "continue", summary, nextSteps: "n" }, true],
      [{ status: "continue", summary, nextSteps: ["n"], evidence: ["e"], blocker: "" }, true],
      [{ status: "continue", summary, nextSteps: ["n"], blocker: null }, true],
      [{ status: "continue", summary }, false],
      [{ status: "continue", summary, nextSteps: [] }, false],
      [{ status: "continue", summary, nextSteps: [" "] }, false],
      [{ status: "continue", summary, nextSteps: ["n"], blocker: "b" }, false],
      [{ status: "complete", summary, evidence: ["e"] }, true],
      [{ status: "complete", summary, evidence: ["e"], nextSteps: [], blocker: null }, true],
      [{ status: "complete", summary }, false],
      [{ status: "complete", summary, evidence: "" }, false],
      [{ status: "complete", summary, evidence: ["e"], nextSteps: ["n"] }, false],
      [{ status: "blocked", summary, blocker: "b" }, true],
      [{ status: "blocked", summary, blocker: "b", nextSteps: ["n"], evidence: ["e"], extra: 1 }, true],
      [{ status: "blocked", summary }, false],
      [{ status: "blocked", summary, blocker: " " }, false],
      [{ status: "done", summary, evidence: ["e"] }, false],
      [{ status: "complete", evidence: ["e"] }, false],
      [{ status: "complete", summary: " ", evidence: ["e"] }, false],
      [{ status: "complete", summary, evidence: [1] }, false],
      [[{ status: "blocked", summary, blocker: "b" }], false]
    ]
    for (const [report, good] of table) {
      assert.strictEqual(Either.isRight(reportIn(fenced(report))), good, JSON.stringify(report))
    }
  })

  it("finds the report at the end of what was said", () => {
    const report = (summary: string) => ({ status: "blocked", summary, blocker: "b" })
    const text = (summary: string) => JSON.stringify(report(summary))
    const found: ReadonlyArray<[string, string | undefined]> = [
      [text("bare"), "bare"],
      [`Said first.\n${text("bare")}\n`, "bare"],
      [`{ not json\nSaid first.\n  ${JSON.stringify(report("pretty"), null, 2)}`, "pretty"],
      [`${fenced(report("first"))}${fenced(report("last"))}More words.`, "last"],
      [`\`\`\`JSON\n${text("upper")}\n\`\`\``, "upper"],
      [`\`\`\`json ${text("one line")} \`\`\``, "one line"],
      [`\`\`\`json\n${text("never closed")}`, "never closed"],
      [`\`\`\`json\r\n${text("crlf")}\r\n\`\`\`\r\n`, "crlf"],
      [fenced(report("```json\n{}\n```")), "```json\n{}\n```"],
      [`${fenced(report("before"))}\n\`\`\`ts\nlet x = 1\n\`\`\``, "before"],
      [`${text("not last")} and then words`, undefined],
      [`${fenced(report("good"))}\n\`\`\`json\n{ broken\n\`\`\``, undefined],
      ["", undefined],
      ["{".repeat(100_000), undefined],
      ["\n{".repeat(50_000), undefined],
      ["```json\n".repeat(20_000), undefined],
      [" ".repeat(100_000), undefined],
      [`{"__proto__":${text("x")},"status":"blocked","summary":"s","blocker":"b"}`, undefined]
    ]
    for (const [words, expected] of found) {
      assert.strictEqual(Either.getOrUndefined(reportIn(words))?.summary, expected, words.slice(0, 100))
    }
  })

  it("cuts a report to 16,384 characters and keeps it one", () => {
    const long = reportIn(fenced({
      status: "continue",
      summary: "s".repeat(40_000),
      nextSteps: Array.from({ length: 100 }, () => "\"n\"".repeat(100))
    }))
    const report = Either.getOrThrow(long)
    assert.isAtMost(JSON.stringify(report).length, 16_384)
    assert.strictEqual(report.nextSteps.length, 100)
    assert.match(report.summary, /…\[\+\d+ characters\]$/)
  })

  it.effect("asks the same agent once more for a report that was none, and says what is wrong", () =>
    Effect.gen(function*() {
      const { asked, counts, output } = run(inTurn(
        goOn("First."),
        fenced({ status: "complete", summary: "Done?" }),
        complete
      ))
      const result = yield* output
      assert.deepStrictEqual(asked.map(({ agent, turn }) => [agent, turn]), [[1, 1], [2, 1], [2, 2]])
      assert.include(asked[2]?.prompt, "complete needs evidence")
      assert.strictEqual(result.roundsStarted, 2)
      assert.strictEqual(result.usage.requests, 3)
      assert.strictEqual(counts.live, 0)
    }))

  it.effect("fails after the second one, with the last good report", () =>
    Effect.gen(function*() {
      for (
        const [answers, last, rounds] of [[["nothing"], null, 1], [[goOn("First."), "nothing"], "First.", 2]] as const
      ) {
        const { asked, counts, output } = run(inTurn(...answers))
        const { code, details } = yield* failureOf(output)
        assert.strictEqual(code, "report_invalid")
        assert.strictEqual(details.roundsStarted, rounds)
        assert.strictEqual(details.report?.summary ?? null, last)
        assert.strictEqual(details.usage.requests, asked.length)
        assert.strictEqual(asked.length, rounds + 1)
        assert.strictEqual(counts.live, 0)
      }
    }))

  it.effect("fails with a code when an agent does, with the last good report", () =>
    Effect.gen(function*() {
      const unavailable = new AgentUnavailable({ code: "agent_stopped", agentId: AgentId.make("a") })
      const second = (answer: ReturnType<FakeOptions["answer"]>): FakeOptions["answer"] => ({ agent }) =>
        agent === 1 ? Effect.succeed(goOn("First.")) : answer
      const refusal = (code: DelegationRefused["code"]): Partial<FakeOptions> => ({
        refuse: ({ label }) => label === "ralph 2/8" ? new DelegationRefused({ code, reason: "no" }) : undefined
      })
      const table: ReadonlyArray<[FakeOptions["answer"], Partial<FakeOptions>, string]> = [
        [
          second(Effect.succeed({ status: "failed", error: { code: "model_refused", error: "no" } })),
          {},
          "agent_failed"
        ],
        [second(Effect.succeed({ status: "interrupted", summary: complete })), {}, "agent_failed"],
        [second(Effect.fail(unavailable)), {}, "agent_failed"],
        [second(Effect.never), refusal("delegation_limit"), "delegation_limit"],
        [second(Effect.never), refusal("depth_exceeded"), "depth_exceeded"],
        [second(Effect.never), refusal("profile_unknown"), "profile_unknown"],
        [second(Effect.never), refusal("agent_busy"), "agent_failed"]
      ]
      for (const [answer, options, expected] of table) {
        const { counts, output } = run(answer, {}, options)
        const { code, details } = yield* failureOf(output)
        assert.strictEqual(code, expected)
        assert.strictEqual(details.report.summary, "First.")
        assert.strictEqual(details.roundsStarted, 2)
        assert.deepInclude(counts, { live: 0, waiting: 0 })
      }
    }))

  it.effect("interrupted at any point, it leaves no agent alive and no slot lent", () =>
    Effect.gen(function*() {
      let whole = 0
      for (let steps = 0; steps < 400; steps++) {
        const { counts, effect } = run(inTurn(goOn("First."), "nothing", goOn("Second."), complete), {}, {
          pause: Effect.yieldNow()
        })
        const fiber = yield* Effect.fork(effect)
        for (let step = 0; step < steps; step++) yield* Effect.yieldNow()
        const exit = yield* Fiber.interrupt(fiber)
        assert.deepInclude(counts, { live: 0, running: 0, waiting: 0 })
        if (exit._tag === "Success") {
          whole = steps
          break
        }
      }
      assert.isAbove(whole, 10)
    }))
})
