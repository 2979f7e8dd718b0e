import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as CapabilityRegistry from "../../src/catalog/CapabilityRegistry.ts"
import * as ProcessSandbox from "../../src/process/ProcessSandbox.ts"
import * as AgentLaws from "../../src/testing/contract/AgentSystem.ts"
import * as RegistryLaws from "../../src/testing/contract/CapabilityRegistry.ts"
import * as SandboxLaws from "../../src/testing/contract/ProcessSandbox.ts"
import * as HostLaws from "../../src/testing/contract/ToolHost.ts"
import { Test, workspace } from "../support/plane.ts"

describe("CapabilityRegistry", () => {
  const empty = (options: CapabilityRegistry.Options) =>
    Layer.effect(CapabilityRegistry.CapabilityRegistry, CapabilityRegistry.make(options))
  for (const { law, name } of RegistryLaws.laws) it.effect(name, () => Effect.provide(law, empty({})))
  for (const { law, name } of [...RegistryLaws.laws, ...RegistryLaws.sharedLaws]) {
    it.effect(`of reach shared: ${name}`, () => Effect.provide(law, empty({ reach: "shared" })))
  }
})

const sandboxes = {
  unconfined: ProcessSandbox.layerUnconfined,
  unavailable: ProcessSandbox.layerUnavailable("no runner"),
  external: ProcessSandbox.layerReporting("external")
}
for (const [kind, layer] of Object.entries(sandboxes)) {
  describe(`ProcessSandbox, ${kind}`, () => {
    for (const { law, name } of SandboxLaws.laws) it.effect(name, () => Effect.provide(law, layer))
  })
}

describe("ToolHost of the test stack", () => {
  HostLaws.laws("").forEach(({ name }, index) => {
    it.scopedLive(name, () =>
      Effect.gen(function*() {
        const { root } = yield* workspace
        const law = HostLaws.laws(root)[index]
        yield* (law?.law ?? Effect.dieMessage("no such law"))
      }).pipe(Effect.provide(Layer.merge(Test.layer([HostLaws.provider]), NodeFileSystem.layer))))
  })
})

describe("AgentSystem of the test stack", () => {
  const layer = Layer.provideMerge(Test.layerAgents([AgentLaws.provider]), AgentLaws.model)
  for (const { law, name } of AgentLaws.laws("/")) it.scoped(name, () => Effect.provide(law, layer))
})
