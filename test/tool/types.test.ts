/** What must not compile: each line under an expected error is a promise of the types. */
import { describe, expectTypeOf, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { builtin, questions } from "../../layers/stacks/builtin.ts"
import * as Test from "../../layers/stacks/Test.ts"
import * as ChildStack from "../../src/agent/ChildStack.ts"
import * as CapabilityRegistry from "../../src/catalog/CapabilityRegistry.ts"
import { toolError } from "../../src/contract/ToolFailure.ts"
import { Ripgrep } from "../../src/process/Ripgrep.ts"
import { Subprocess } from "../../src/process/Subprocess.ts"
import * as Tool from "../../src/tool/Tool.ts"
import { ToolInvocation } from "../../src/tool/ToolInvocation.ts"
import * as ToolProvider from "../../src/tool/ToolProvider.ts"
import * as ComputerUse from "../../src/tools/computer_use.ts"

class Deployments extends Context.Tag("test/Deployments")<Deployments, { readonly start: Effect.Effect<string> }>() {}

const base = { description: "", parameters: Schema.Struct({}), success: Schema.String }

const plain = Tool.make("plain", { ...base, handler: () => Effect.succeed("x") })
const asking = Tool.make("asking", { ...base, handler: () => Effect.map(ToolInvocation, ({ call }) => call.toolName) })
const deploy = Tool.make("deploy", {
  ...base,
  reach: "main",
  codes: ["frozen"],
  handler: () =>
    Effect.gen(function*() {
      const deployments = yield* Deployments
      const { turn } = yield* ToolInvocation
      if (turn.workspace === "") return yield* toolError("frozen", "not now")
      return yield* deployments.start
    })
})

describe("the types of a tool", () => {
  it("keep what its handler requires until a registry layer takes it", () => {
    expectTypeOf(plain).toEqualTypeOf<Tool.Tool<"plain", never, "shared">>()
    expectTypeOf(asking).toEqualTypeOf<Tool.Tool<"asking", never, "shared">>()
    expectTypeOf(deploy).toEqualTypeOf<Tool.Tool<"deploy", Deployments, "main">>()
    const provider = ToolProvider.make({ id: "p", kind: "built-in", tools: [plain, deploy] })
    expectTypeOf(CapabilityRegistry.layer([provider])).toEqualTypeOf<
      Layer.Layer<CapabilityRegistry.CapabilityRegistry, CapabilityRegistry.RegistrationError, Deployments>
    >()
    // @ts-expect-error the stack has no Deployments, so a provider that needs it is refused where it is handed over
    Test.layer([provider])
  })

  it("give a provider the reach of its widest tool", () => {
    const mixed = ToolProvider.make({ id: "p", kind: "built-in", tools: [plain, deploy] })
    const shared = ToolProvider.make({ id: "p", kind: "built-in", tools: [plain, asking] })
    expectTypeOf(mixed.reach).toEqualTypeOf<"main">()
    expectTypeOf(shared.reach).toEqualTypeOf<"shared">()
    const forChildren = (_provider: ToolProvider.ToolProvider<Deployments, "shared">): void => {}
    forChildren(shared)
    // @ts-expect-error one main-only tool makes the whole provider main-only
    forChildren(mixed)
  })

  it("keep what only a main agent may hold out of the stack of children", () => {
    const shared = ToolProvider.make({ id: "p", kind: "built-in", tools: [plain, asking] })
    expectTypeOf(ChildStack.layer([shared])).toEqualTypeOf<
      Layer.Layer<ChildStack.ChildStack, CapabilityRegistry.RegistrationError, ChildStack.Shared>
    >()
    expectTypeOf(ChildStack.layer([shared, builtin], { shares: [Subprocess, Ripgrep] })).toEqualTypeOf<
      Layer.Layer<
        ChildStack.ChildStack,
        CapabilityRegistry.RegistrationError,
        ChildStack.Shared | Subprocess | Ripgrep
      >
    >()
    // @ts-expect-error one main-only tool makes the whole provider main-only
    ChildStack.layer([ToolProvider.make({ id: "p", kind: "built-in", tools: [plain, deploy] })])
    // @ts-expect-error a child has no user to ask
    ChildStack.layer([questions])
    // @ts-expect-error a child controls no machine
    ChildStack.layer([ComputerUse.make()])
    const unknown: ToolProvider.ToolProvider = shared
    // @ts-expect-error a reach that is not known counts as main
    ChildStack.layer([unknown])
    // @ts-expect-error what its tools need has to be shared by name
    ChildStack.layer([builtin], { shares: [Subprocess] })
  })

  it("hold a handler's failures against the codes it declares", () => {
    Tool.make("undeclared", {
      ...base,
      codes: ["declared"],
      // @effect-diagnostics-next-line missingEffectError:off
      // @ts-expect-error this code is declared nowhere
      handler: () => toolError("other", "x")
    })
    Tool.make("declared", { ...base, codes: ["declared"], handler: () => toolError("declared", "x") })
  })

  it("hold arguments and success against the handler", () => {
    Tool.make("typed", {
      description: "",
      parameters: Schema.Struct({ path: Schema.String }),
      success: Schema.Number,
      // @ts-expect-error a string is not the declared success
      handler: ({ path }) => Effect.succeed(path)
    })
  })
})
