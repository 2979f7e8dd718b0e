/** One call through a whole plane, and what the world looked like meanwhile. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Test from "../../layers/stacks/Test.ts"
import type { ToolKind, ToolPolicy } from "../../src/contract/Policy.ts"
import * as ToolCall from "../../src/contract/ToolCall.ts"
import type { ToolResult } from "../../src/contract/ToolResult.ts"
import type { TurnSpecInput } from "../../src/contract/Turn.ts"
import type { ApprovalQuestion } from "../../src/gate/ApprovalGate.ts"
import { ToolHost } from "../../src/host/ToolHost.ts"
import * as Tool from "../../src/tool/Tool.ts"
import * as ToolProvider from "../../src/tool/ToolProvider.ts"

export interface ProbeOptions
  extends Partial<Omit<Tool.Options<{ readonly path?: string }, string, "shared", string>, "description">>
{
  readonly name?: string
  readonly kind?: ToolKind
  readonly policy?: ToolPolicy
  readonly body?: Effect.Effect<string, Tool.HandlerError<string>>
}

const Arguments = Schema.Struct({ path: Schema.optionalWith(Schema.String, { exact: true }) })

/** A tool that counts how often its handler was started. */
export const probe = (options: ProbeOptions = {}) => {
  const { body = Effect.succeed("done"), name = "probe", ...rest } = options
  const runs = { count: 0 }
  const tool = Tool.make(name, {
    description: "A probe.",
    ...rest,
    parameters: Arguments,
    success: Schema.String,
    handler: () =>
      Effect.suspend(() => {
        runs.count++
        return body
      })
  })
  return { tool, runs, provider: ToolProvider.make({ id: "probes", kind: "built-in", tools: [tool] }) }
}

/** An approver that allows (or denies) and keeps what it was asked. */
export const recorder = (decision: "allow" | "deny" = "allow") => {
  const asked: Array<ApprovalQuestion> = []
  return {
    asked,
    approver: {
      name: "recorder",
      review: (record: { readonly question: ApprovalQuestion }) =>
        Effect.sync(() => {
          asked.push(record.question)
          return { decision, principal: "recorder" } as const
        })
    }
  }
}

/** A temporary workspace; a folder beside it is outside. */
export const workspace = Effect.gen(function*() {
  const fileSystem = yield* FileSystem.FileSystem
  const root = yield* fileSystem.makeTempDirectoryScoped({ prefix: "portcullis-" })
  const real = yield* fileSystem.realPath(root)
  yield* fileSystem.makeDirectory(`${real}/ws`)
  yield* fileSystem.makeDirectory(`${real}/outside`)
  return { root: `${real}/ws`, outside: `${real}/outside` }
})

export const executeIn = (
  spec: TurnSpecInput,
  call: Parameters<typeof ToolCall.make>[0]
): Effect.Effect<ToolResult, never, ToolHost> =>
  Effect.flatMap(ToolHost, (host) => Effect.orDie(host.execute(ToolCall.make(call), spec)))

/** The first value that satisfies, looked for every few milliseconds of real time. */
export const eventually = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  satisfies: (value: A) => boolean
): Effect.Effect<A, E, R> =>
  Effect.flatMap(
    effect,
    (value) => satisfies(value) ? Effect.succeed(value) : Effect.delay(eventually(effect, satisfies), "5 millis")
  )

export { Test }
