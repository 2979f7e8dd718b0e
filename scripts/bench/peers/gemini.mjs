/** @google/gemini-cli-core: one no-op tool through its scheduler, allowed by policy, its logs silenced. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const silence = () => {
  for (const level of ["debug", "error", "info", "log", "warn"]) console[level] = () => {}
}

export const channelCall = async () => {
  silence()
  const gemini = await import("@google/gemini-cli-core")
  const { BaseDeclarativeTool, BaseToolInvocation, Config, Scheduler, ToolRegistry } = gemini
  const workspace = mkdtempSync(join(tmpdir(), "portcullis-bench-"))
  const config = new Config({
    sessionId: "bench",
    targetDir: workspace,
    cwd: workspace,
    debugMode: false,
    model: "none",
    approvalMode: gemini.ApprovalMode.YOLO,
    enableHooks: false,
    telemetry: { enabled: false },
    usageStatisticsEnabled: false,
    policyEngineConfig: { defaultDecision: gemini.PolicyDecision.ALLOW }
  })
  const parameters = { type: "object", properties: { path: { type: "string" } }, required: ["path"] }

  class Invocation extends BaseToolInvocation {
    getDescription() {
      return "nothing"
    }
    execute() {
      return Promise.resolve({ llmContent: "done", returnDisplay: "done" })
    }
  }
  class Noop extends BaseDeclarativeTool {
    createInvocation(params, bus) {
      return new Invocation(params, bus, this.name, this.displayName)
    }
  }

  const messageBus = config.getMessageBus()
  const toolRegistry = new ToolRegistry(config, messageBus)
  toolRegistry.registerTool(new Noop("noop", "noop", "Does nothing.", gemini.Kind.Read, parameters, messageBus))
  const scheduler = new Scheduler({
    context: { config, promptId: "bench", toolRegistry, messageBus },
    messageBus,
    getPreferredEditor: () => undefined,
    schedulerId: "bench"
  })
  const { signal } = new AbortController()
  let next = 0
  const call = async () => {
    const request = {
      callId: `call_${next++}`,
      name: "noop",
      args: { path: "README.md" },
      isClientInitiated: false,
      prompt_id: "bench"
    }
    const [done] = await scheduler.schedule(request, signal)
    if (done?.status !== "success") throw new Error(`The call ended as ${done?.status}: ${done?.response?.error}`)
  }
  return {
    run: async (n) => {
      for (let index = 0; index < n; index++) await call()
    },
    close: () => rmSync(workspace, { recursive: true, force: true })
  }
}
