import * as RpcTest from "@effect/rpc/RpcTest"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { handlers, protocol } from "../../src/agent/AgentProtocol.ts"
import { AgentId } from "../../src/contract/Turn.ts"
import { layer, root } from "../support/agentPlane.ts"
import { probe } from "../support/plane.ts"

/** A client that speaks to a root agent through the protocol. */
const connected = Effect.gen(function*() {
  const agent = yield* root()
  const client = yield* Effect.provide(RpcTest.makeClient(protocol), protocol.toLayer(handlers(agent)))
  return { agent, client }
})

const until = <A, E, R>(effect: Effect.Effect<A, E, R>, satisfies: (value: A) => boolean): Effect.Effect<A, E, R> =>
  Effect.flatMap(
    effect,
    (value) => satisfies(value) ? Effect.succeed(value) : Effect.zipRight(Effect.yieldNow(), until(effect, satisfies))
  )

describe("the protocol of an agent", () => {
  it.scoped("asks, tells and shows the record, as the agent itself does", () =>
    Effect.gen(function*() {
      const { agent, client } = yield* connected
      const report = yield* client.Ask({ prompt: "Hello" })
      assert.deepInclude(report, { agentId: agent.id, status: "completed", summary: "Hello, heard" })
      yield* client.Tell({ prompt: [{ type: "text", text: "Again" }] })
      const record = yield* until(client.Record(), ({ turns }) => turns === 2)
      assert.deepStrictEqual(record, yield* agent.record)
    }).pipe(Effect.provide(layer(({ opening }) => ({ text: `${opening}, heard` })))))

  it.scoped("interrupts the turn of a call that is interrupted, and hands errors over as they are", () =>
    Effect.gen(function*() {
      const { agent, client } = yield* connected
      const asking = yield* Effect.fork(client.Ask({ prompt: "Hang" }))
      yield* until(agent.record, ({ status }) => status === "running")
      yield* Fiber.interrupt(asking)
      const record = yield* until(agent.record, ({ status }) => status !== "running")
      assert.strictEqual(record.status, "interrupted")
      assert.isFalse(yield* client.Interrupt())
      yield* client.Narrow({ bound: { blockedTools: ["hang"] } })
      yield* client.Stop()
      const refused = yield* Effect.flip(client.Ask({ prompt: "Late" }))
      assert.deepInclude(refused, { _tag: "AgentUnavailable", code: "agent_stopped", agentId: AgentId.make(agent.id) })
    }).pipe(
      Effect.provide(
        layer(() => ({ calls: [{ toolName: "hang" }] }), [
          probe({ name: "hang", policy: "auto", body: Effect.never }).provider
        ])
      )
    ))
})
