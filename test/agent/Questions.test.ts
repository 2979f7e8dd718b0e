import { assert, describe, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import { layer, layerUserInput, make, maxOpen, Questions } from "../../src/agent/Questions.ts"
import * as CapabilityRegistry from "../../src/catalog/CapabilityRegistry.ts"
import * as ToolHost from "../../src/host/ToolHost.ts"
import * as ToolProvider from "../../src/tool/ToolProvider.ts"
import type { Answer, Question } from "../../src/tool/UserInput.ts"
import { userInput } from "../../src/tools/user_input.ts"
import { count } from "../support/counts.ts"
import { executeIn, Test } from "../support/plane.ts"
import { fakeTurn } from "../support/session.ts"

const turn = fakeTurn("on-request")
const option = (label: string) => ({ label, description: "" })
const free: Question = { id: "why", header: "Why", question: "Why?", options: [], min: 1, max: 1 }
const one: Question = { ...free, id: "one", options: [option("a"), option("b")] }
const some: Question = { ...free, id: "some", options: [option("a"), option("b"), option("c")], min: 1, max: 2 }
const because: ReadonlyArray<Answer> = [{ id: "why", values: ["because"] }]

/** An asker, and the record of what it asks. */
const asking = (questions: ReadonlyArray<Question> = [free]) =>
  Effect.gen(function*() {
    const service = yield* Questions
    const before = (yield* service.pending).length
    const fiber = yield* Effect.fork(service.ask(questions, turn))
    const records = yield* Effect.repeat(Effect.zipRight(Effect.yieldNow(), service.pending), {
      until: (found) => found.length > before
    })
    const record = records.at(-1)
    if (record === undefined) return yield* Effect.dieMessage("nothing is open")
    return { ...service, fiber, record, id: record.id }
  })

const codeOf = <A, E extends { readonly code: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.match(effect, { onFailure: ({ code }): string => code, onSuccess: () => "done" })

describe("questions", () => {
  it.scoped("are listed while they are open, claimed, and answered in the order they were asked in", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(1000)
      const { answer, claim, fiber, id, pending, record } = yield* asking([free, some])
      assert.deepStrictEqual(record, {
        id,
        threadId: turn.threadId,
        turnId: turn.turnId,
        questions: [free, some],
        askedAt: 1000,
        claimedBy: null
      })
      assert.match(id, /^question_[0-9a-f]{32}$/)
      const held = yield* claim(id, "ann")
      assert.deepStrictEqual(yield* pending, [{ ...record, claimedBy: "ann" }])
      yield* answer(held, [{ id: "some", values: ["c", "a"] }, ...because])
      assert.deepStrictEqual(yield* pending, [])
      assert.deepStrictEqual(yield* Fiber.join(fiber), [...because, { id: "some", values: ["c", "a"] }])
    }).pipe(Effect.provide(layer)))

  it.scoped("of two claimers that come at once one wins, and the other hears who, a hundred times", () =>
    Effect.gen(function*() {
      const { claim, id, pending } = yield* asking()
      for (let round = 0; round < 100; round++) {
        const names = round % 2 === 0 ? ["ann", "bob"] : ["bob", "ann"]
        const claims = names.map((name) => Effect.either(claim(id, name)))
        yield* Effect.scoped(Effect.gen(function*() {
          const results = yield* Effect.all(claims, { concurrency: "unbounded" })
          const by = results.flatMap((result) => result._tag === "Right" ? [result.right.principal] : [])
          assert.strictEqual(by.length, 1)
          const lost = results.flatMap((result) => result._tag === "Left" ? [result.left.message] : [])
          assert.deepStrictEqual(lost, [`${id} is claimed by ${by[0]}.`])
          assert.deepStrictEqual((yield* pending).map(({ claimedBy }) => claimedBy), by)
        }))
        assert.deepStrictEqual((yield* pending).map(({ claimedBy }) => claimedBy), [null])
      }
    }).pipe(Effect.provide(layer)))

  it.scoped("of two answers in one tick the asker gets the first, and the second hears that it is late", () =>
    Effect.gen(function*() {
      for (let round = 0; round < 100; round++) {
        const { answer, claim, dismiss, fiber, id } = yield* asking()
        const held = yield* claim(id, "ann")
        const answers = [answer(held, because), round % 2 === 0 ? answer(held, because) : dismiss(held)]
        const codes = yield* Effect.all(answers.map(codeOf), { concurrency: "unbounded" })
        assert.deepStrictEqual(codes, ["done", "question_settled"])
        assert.deepStrictEqual(yield* Fiber.join(fiber), because)
        assert.strictEqual(yield* codeOf(claim(id, "bob")), "question_settled")
      }
    }).pipe(Effect.provide(layer)))

  it.scoped("are withdrawn when their asker is interrupted, claimed or not, and late answers are refused", () =>
    Effect.gen(function*() {
      const { answer, claim, dismiss, fiber, id, pending, release } = yield* asking()
      const held = yield* claim(id, "ann")
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(yield* pending, [])
      const late = [codeOf(answer(held, because)), codeOf(dismiss(held)), codeOf(claim(id, "bob"))]
      for (const code of late) assert.strictEqual(yield* code, "question_withdrawn")
      yield* release(held)
      assert.strictEqual(yield* codeOf(claim("question_none", "bob")), "question_unknown")
    }).pipe(Effect.provide(layer)))

  it.scoped("can be claimed by another once a claim is released or its scope is closed, which then answers nothing", () =>
    Effect.gen(function*() {
      const { answer, claim, dismiss, fiber, id, pending, release } = yield* asking()
      const scope = yield* Scope.make()
      const first = yield* Scope.extend(claim(id, "ann"), scope)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(yield* codeOf(answer(first, because)), "claim_lost")
      const second = yield* claim(id, "bob")
      yield* release(second)
      yield* release(second)
      const third = yield* claim(id, "bob")
      yield* release(second)
      assert.deepStrictEqual((yield* pending).map(({ claimedBy }) => claimedBy), ["bob"])
      assert.strictEqual(yield* codeOf(dismiss(second)), "claim_lost")
      yield* dismiss(third)
      assert.isUndefined(yield* Fiber.join(fiber))
    }).pipe(Effect.provide(layer)))

  it.scoped("refuse answers that do not fit, and stay open and claimed", () =>
    Effect.gen(function*() {
      const { answer, claim, fiber, id, pending } = yield* asking([free, one, some])
      const held = yield* claim(id, "ann")
      const good = { why: ["because"], one: ["a"], some: ["a", "b"] }
      const answers = (changes: Readonly<Record<string, ReadonlyArray<string>>>): ReadonlyArray<Answer> =>
        Object.entries({ ...good, ...changes }).map(([id, values]) => ({ id, values }))
      const wrong: ReadonlyArray<ReadonlyArray<Answer>> = [
        [],
        answers({}).slice(1),
        answers({ other: ["a"] }),
        [...answers({}), { id: "one", values: ["b"] }],
        answers({ why: [] }),
        answers({ why: [" "] }),
        answers({ why: ["x", "y"] }),
        answers({ why: ["x".repeat(65_537)] }),
        answers({ why: ["\ud800"] }),
        answers({ one: ["A"] }),
        answers({ one: ["a", "b"] }),
        answers({ one: ["toString"] }),
        answers({ some: [] }),
        answers({ some: ["a", "a"] }),
        answers({ some: ["a", "b", "c"] })
      ]
      for (const bad of wrong) assert.strictEqual(yield* codeOf(answer(held, bad)), "answer_invalid")
      assert.deepStrictEqual((yield* pending).map(({ claimedBy }) => claimedBy), ["ann"])
      yield* answer(held, answers({}))
      assert.deepStrictEqual(yield* Fiber.join(fiber), answers({}))
    }).pipe(Effect.provide(layer)))

  it.scoped("are a hundred at one time; the next is unavailable until one is over", () =>
    Effect.gen(function*() {
      const { ask, fiber, pending } = yield* asking()
      for (let index = 1; index < maxOpen; index++) yield* asking()
      assert.strictEqual(yield* codeOf(ask([free], turn)), "user_input_unavailable")
      assert.strictEqual((yield* pending).length, maxOpen)
      yield* Fiber.interrupt(fiber)
      yield* asking()
    }).pipe(Effect.provide(layer)))

  it.scoped("are watched: the state at first, then after every change, and a slow watcher sees the newest", () =>
    Effect.gen(function*() {
      const { claim, dismiss, id, watch } = yield* asking()
      const pull = yield* Effect.map(Stream.toPull(Stream.rechunk(watch, 1)), Effect.map(Chunk.unsafeHead))
      const next = Effect.map(pull, (records) => records.map(({ claimedBy }) => claimedBy))
      assert.deepStrictEqual(yield* next, [null])
      const held = yield* claim(id, "ann")
      assert.deepStrictEqual(yield* next, ["ann"])
      const waiting = yield* Effect.fork(next)
      yield* Effect.yieldNow()
      assert.isNull(yield* Fiber.poll(waiting).pipe(Effect.map((exit) => exit._tag === "Some" ? exit : null)))
      yield* asking()
      assert.deepStrictEqual(yield* Fiber.join(waiting), ["ann", null])
      yield* asking()
      yield* dismiss(held)
      yield* asking()
      assert.deepStrictEqual(yield* next, [null, null, null])
    }).pipe(Effect.provide(layer)))

  it.effect("that are open when the service closes are unavailable, and so are later ones", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const service = yield* Scope.extend(make, scope)
      const { claim, fiber, id } = yield* Effect.provideService(asking(), Questions, service)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(yield* codeOf(Effect.scoped(claim(id, "ann"))), "question_withdrawn")
      assert.strictEqual(yield* codeOf(Fiber.join(fiber)), "user_input_unavailable")
      assert.strictEqual(yield* codeOf(service.ask([free], turn)), "user_input_unavailable")
    }))

  it.effect("that come and go in any order leave nothing open, and every asker with what it was told", () =>
    Effect.gen(function*() {
      const { pending } = yield* Questions
      const rounds = Array.from(
        { length: count({ quick: 50, soak: 2000 }) },
        (_, round) =>
          Effect.scoped(Effect.gen(function*() {
            const { answer, claim, fiber, id } = yield* asking()
            const answering = Effect.flatMap(claim(id, "ann"), (held) => answer(held, because))
            const [code] = yield* Effect.all([
              codeOf(round % 3 === 0 ? Effect.zipRight(Effect.yieldNow(), answering) : answering),
              round % 2 === 0 ? Fiber.interrupt(fiber) : Effect.yieldNow()
            ], { concurrency: "unbounded" })
            const exit = yield* Fiber.await(fiber)
            if (Exit.isSuccess(exit)) assert.deepStrictEqual([code, exit.value], ["done", because])
            else assert.isTrue(Exit.isInterrupted(exit))
          }))
      )
      yield* Effect.all(rounds, { concurrency: 1, discard: true })
      assert.deepStrictEqual(yield* pending, [])
    }).pipe(Effect.provide(layer)))

  const provider = ToolProvider.make({ id: "ask", kind: "built-in", tools: [userInput] })
  const plane = ToolHost.layer().pipe(
    Layer.provideMerge(CapabilityRegistry.layer([provider])),
    Layer.provideMerge(Layer.mergeAll(Test.services(), Layer.provideMerge(layerUserInput, layer)))
  )

  it.scoped("are what user_input asks through", () =>
    Effect.gen(function*() {
      const { answer, claim, pending } = yield* Questions
      const asked = executeIn({ workspace: "/" }, { toolName: "user_input", arguments: { question: "Why?" } })
      const opened = Effect.repeat(Effect.zipRight(Effect.yieldNow(), pending), { until: ({ length }) => length === 1 })
      const call = yield* Effect.fork(asked)
      const [record] = yield* opened
      yield* answer(yield* claim(record?.id ?? "", "ann"), [{ id: "question_1", values: ["because"] }])
      const result = yield* Fiber.join(call)
      assert.deepStrictEqual(result.output, {
        answers: [{ id: "question_1", question: "Why?", values: ["because"] }]
      })
      const aborted = yield* Effect.fork(asked)
      yield* opened
      yield* Fiber.interrupt(aborted)
      assert.deepStrictEqual(yield* pending, [])
    }).pipe(Effect.provide(plane)))
})
