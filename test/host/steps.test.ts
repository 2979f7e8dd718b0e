import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Test from "../../layers/stacks/Test.ts"
import { Digest } from "../../src/contract/Digest.ts"
import { defaultLimits } from "../../src/contract/Json.ts"
import { ReadTracker } from "../../src/file/ReadTracker.ts"
import { WorkspacePath } from "../../src/file/WorkspacePath.ts"
import { ApprovalGate } from "../../src/gate/ApprovalGate.ts"
import { PermissionRules } from "../../src/gate/PermissionRules.ts"
import type { Claimed, Received } from "../../src/host/CallState.ts"
import * as Channel from "../../src/host/Channel.ts"
import { OperationLedger } from "../../src/host/OperationLedger.ts"
import { startWith } from "../../src/host/Step.ts"
import { stepOf, steps } from "../../src/host/steps.ts"
import { EventJournal } from "../../src/journal/EventJournal.ts"

describe("the channel's steps", () => {
  it.live("are taken in the order of the table", () =>
    Effect.gen(function*() {
      const channel = Channel.make({
        sha256: yield* Digest,
        approvals: yield* ApprovalGate,
        ledger: yield* OperationLedger,
        paths: yield* WorkspacePath,
        reads: yield* ReadTracker,
        rules: yield* PermissionRules,
        journal: yield* EventJournal,
        planTools: new Set(),
        trustedTools: new Set(),
        argumentLimits: defaultLimits
      })
      assert.deepStrictEqual(channel.order, steps.map(({ number }) => number))
      assert.lengthOf(steps, 19, "eighteen and the peek")
    }).pipe(Effect.provide(Test.services())))

  it("do not type-check in an order in which one needs what a later one finds", () => {
    const first = startWith(stepOf("1", (state: Received) => Effect.succeed(state)))
    const execute = stepOf("15", (state: Claimed) => Effect.succeed(state))
    // @ts-expect-error nothing has claimed the call yet
    first.then(execute)
  })
})
