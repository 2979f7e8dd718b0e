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

const tool = (name: string) =>
  Tool.make(name, {
    description: name,
    parameters: Schema.Struct({}),
    success: Schema.String,
    handler: () => Effect.succeed(name)
  })

/** A provider of no-op tools to test with. */
export const provider = (id: string, ...names: ReadonlyArray<string>) =>
  ToolProvider.make({ id, kind: "built-in", tools: names.map(tool) })

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
  ),
  law(
    "a replaced provider changes at once, and ends with the scope of the newest",
    Effect.scoped(Effect.gen(function*() {
      const registry = yield* CapabilityRegistry
      const [first, second] = yield* Effect.all([Scope.make(), Scope.make()])
      yield* Scope.extend(registry.replace(provider("one", "a", "b")), first)
      const before = yield* registry.snapshot
      yield* Scope.extend(registry.replace(provider("one", "b", "c")), second)
      const after = yield* registry.snapshot
      yield* equal(after.version, before.version + 1, "the version")
      yield* equal(yield* names, ["b", "c"], "replaced")
      yield* expect(before.tools.get("b") !== after.tools.get("b"), "a tool of the old provider is left")
      yield* registry.register(provider("two", "a"))
      yield* Scope.close(first, Exit.void)
      yield* equal(yield* names, ["a", "b", "c"], "after the old scope closed")
      yield* Scope.close(second, Exit.void)
      yield* equal(yield* names, ["a"], "after the new scope closed")
      yield* registry.register(provider("one", "b"))
    }))
  ),
  law(
    "a replacement that is refused leaves the old provider",
    Effect.scoped(Effect.gen(function*() {
      const registry = yield* CapabilityRegistry
      yield* registry.register(provider("one", "a"))
      yield* registry.register(provider("two", "b"))
      const before = yield* registry.snapshot
      const clash = yield* Effect.flip(registry.replace(provider("one", "c", "b")))
      yield* equal(clash.code, "duplicate_tool_name", "a name of another provider")
      const twice = yield* Effect.flip(registry.replace(provider("one", "a", "a")))
      yield* equal(twice.code, "duplicate_tool_name", "a name twice")
      const unnamed = yield* Effect.flip(registry.replace(provider("one", "")))
      yield* equal(unnamed.code, "invalid_tool", "no name")
      yield* expect((yield* registry.snapshot) === before, "the snapshot is another one")
    }))
  ),
  law(
    "a provider that was switched off stays so when it is replaced, and one that was broken does not",
    Effect.scoped(Effect.gen(function*() {
      const registry = yield* CapabilityRegistry
      const policy = Effect.map(registry.snapshot, ({ providers }) => providers.get("one")?.policy)
      yield* registry.register(provider("one", "a"))
      yield* registry.setPolicy("one", { enabled: true, available: false, reason: "broken" })
      yield* registry.replace(provider("one", "a"))
      yield* equal(yield* policy, usable, "after it was broken")
      const off = { enabled: false, available: true, reason: "not today" }
      yield* registry.setPolicy("one", off)
      yield* registry.replace(provider("one", "a"))
      yield* equal(yield* policy, off, "after it was switched off")
    }))
  )
]

/** What no child may hold, with the tool it is refused for. */
const mainOnly: ReadonlyArray<readonly [ToolProvider.ToolProvider, string | null]> = [
  [ToolProvider.make({ id: "p", kind: "gui", tools: [tool("fine"), { ...tool("main"), reach: "main" }] }), "main"],
  [ToolProvider.make({ id: "p", kind: "gui", tools: [{ ...tool("asks"), interactive: true }] }), "asks"],
  [provider("p", "fine", "computer_use"), "computer_use"],
  [provider("p", "browser_use"), "browser_use"],
  [provider("computerUse", "fine"), null],
  [provider("computerUse"), null],
  [{ ...provider("p", "fine"), reach: "main" }, null]
]

/** What a registry of reach `shared` does besides. The laws start from one that is empty. */
export const sharedLaws: ReadonlyArray<Law<CapabilityRegistry>> = [
  law(
    "what only a main agent may hold is refused, first or later, and nothing of it is registered",
    Effect.scoped(Effect.gen(function*() {
      const registry = yield* CapabilityRegistry
      const attempts = Effect.forEach(
        mainOnly,
        ([refused, toolName]) =>
          Effect.forEach(
            [registry.register(refused), registry.replace(refused)],
            (attempt) =>
              Effect.flatMap(Effect.flip(attempt), (error) =>
                equal(
                  [error.code, "toolName" in error ? error.toolName : undefined],
                  ["main_only_tool", toolName],
                  `${refused.id} ${refused.tools.map(({ name }) => name).join(" ")}`
                ))
          )
      )
      yield* attempts
      yield* equal(yield* names, [], "the names")
      yield* registry.register(provider("p", "fine"))
      yield* attempts
      yield* equal(yield* names, ["fine"], "the names later")
    }))
  )
]
