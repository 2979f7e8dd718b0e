/**
 * What every `CapabilityRegistry` does. The laws start from one that is empty.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { CapabilityRegistry } from "../../catalog/CapabilityRegistry.ts"
import { usable } from "../../contract/Provider.ts"
import * as Tool from "../../tool/Tool.ts"
import * as ToolProvider from "../../tool/ToolProvider.ts"
import { equal, expect, type Law, law } from "./Law.ts"

/** A provider of no-op tools to test with. */
export const provider = (id: string, ...names: ReadonlyArray<string>) =>
  ToolProvider.make({
    id,
    kind: "built-in",
    tools: names.map((name) =>
      Tool.make(name, {
        description: name,
        parameters: Schema.Struct({}),
        success: Schema.String,
        handler: () => Effect.succeed(name)
      })
    )
  })

const names = Effect.flatMap(
  CapabilityRegistry,
  (registry) => Effect.map(registry.snapshot, ({ sorted }) => sorted.map(({ spec }) => spec.name))
)

export const laws: ReadonlyArray<Law<CapabilityRegistry>> = [
  law(
    "a provider's tools are there until its scope closes, sorted by code unit whatever the order",
    Effect.gen(function*() {
      const registry = yield* CapabilityRegistry
      const scope = yield* Scope.make()
      yield* Scope.extend(registry.register(provider("two", "b", "B", "_")), scope)
      yield* Scope.extend(registry.register(provider("one", "a")), scope)
      yield* equal(yield* names, ["B", "_", "a", "b"], "registered")
      yield* Scope.close(scope, Exit.void)
      yield* equal(yield* names, [], "after the scope closed")
    })
  ),
  law(
    "a clash refuses the whole provider and changes nothing",
    Effect.scoped(Effect.gen(function*() {
      const registry = yield* CapabilityRegistry
      yield* registry.register(provider("one", "a"))
      const before = yield* registry.snapshot
      const sameName = yield* Effect.flip(registry.register(provider("two", "b", "a")))
      yield* equal(sameName.code, "duplicate_tool_name", "code")
      const sameId = yield* Effect.flip(registry.register(provider("one", "c")))
      yield* equal(sameId.code, "duplicate_tool_provider", "code")
      yield* expect((yield* registry.snapshot) === before, "the snapshot is another one")
    }))
  ),
  law(
    "a snapshot never changes; the next one does",
    Effect.scoped(Effect.gen(function*() {
      const registry = yield* CapabilityRegistry
      yield* registry.register(provider("one", "a"))
      const before = yield* registry.snapshot
      yield* expect((yield* registry.snapshot) === before, "nothing changed, and the snapshot is another one")
      yield* registry.register(provider("two", "b"))
      yield* expect(
        yield* registry.setPolicy("one", { ...usable, available: false, reason: "broken" }),
        "no provider one"
      )
      yield* equal([...before.tools.keys()], ["a"], "the old snapshot's tools")
      yield* equal(before.providers.get("one")?.policy.available, true, "the old snapshot's policy")
      const after = yield* registry.snapshot
      yield* equal(after.providers.get("one")?.policy.reason, "broken", "the new snapshot's policy")
      yield* equal(yield* registry.setPolicy("none", usable), false, "a policy for no provider")
    }))
  )
]
