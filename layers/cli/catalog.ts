/** `portcullis catalog`: what a turn would see, and why not the rest. */
import * as Effect from "effect/Effect"
import { CapabilityRegistry } from "../../src/catalog/CapabilityRegistry.ts"
import { ToolHost } from "../../src/host/ToolHost.ts"
import type { TurnOptions } from "./arguments.ts"
import { displayJson, lines, table } from "./output.ts"
import { plane, turnRefused } from "./plane.ts"
import { Terminal } from "./Terminal.ts"

export const catalog = Effect.fnUntraced(function*(options: TurnOptions & { readonly explain?: boolean }) {
  const terminal = yield* Terminal
  const { layer, spec } = yield* plane(options)
  const look = Effect.gen(function*() {
    const session = yield* (yield* ToolHost).openTurn(spec)
    const { tools } = yield* (yield* CapabilityRegistry).snapshot
    return { catalog: session.catalog, turn: yield* session.turn, registered: tools }
  })
  const seen = yield* Effect.scoped(look).pipe(
    Effect.catchTag("TurnRefused", (error) => Effect.fail(turnRefused(error))),
    Effect.provide(layer)
  )
  const { fingerprint, toolHashes } = seen.catalog.fingerprint
  const { approvalPolicy, sandboxMode, threadMode } = seen.turn
  const hidden = options.explain === true ? seen.catalog.explain() : undefined
  const tools = seen.catalog.tools.map((spec) => {
    const tool = seen.registered.get(spec.name)?.tool
    return { ...spec, kind: tool?.kind, policy: tool?.policy, hash: toolHashes.get(spec.name) }
  })
  if (options.json === true) {
    yield* terminal.out(
      `${
        displayJson({
          fingerprint,
          threadMode,
          sandboxMode,
          approvalPolicy,
          tools,
          ...hidden === undefined ? {} : { hidden }
        })
      }\n`
    )
    return 0
  }
  yield* terminal.out(lines(
    `catalog ${fingerprint}: ${tools.length} tools, ${threadMode}, ${sandboxMode}, ${approvalPolicy}\n\n` +
      table([
        ["TOOL", "KIND", "POLICY"],
        ...tools.map(({ kind = "", name, policy = "" }) => [name, kind, policy])
      ]) +
      (hidden === undefined || hidden.length === 0 ? "" : `\n${
        table([
          ["HIDDEN", "FILTER", "WHY"],
          ...hidden.map(({ filter, reason, toolName }) => [toolName, filter, reason])
        ])
      }`)
  ))
  return 0
})
