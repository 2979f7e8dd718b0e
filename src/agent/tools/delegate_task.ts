/**
 * `delegate_task` and `subagent_fork`: hand a task to a child agent (seed 7.2, seed 2).
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { toolError } from "../../contract/ToolFailure.ts"
import { text } from "../../contract/ToolResult.ts"
import { AgentId, type Turn } from "../../contract/Turn.ts"
import { delimited } from "../../internal/delimited.ts"
import { display } from "../../internal/display.ts"
import * as Tool from "../../tool/Tool.ts"
import { ToolInvocation } from "../../tool/ToolInvocation.ts"
import { AgentReport } from "../AgentReport.ts"
import { type Agent, AgentSystem, type SpawnOptions } from "../AgentSystem.ts"
import { Narrowing, type Profile, ToolPolicy } from "../Profile.ts"

const exact = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

const Prompt = Schema.String.pipe(Schema.minLength(1), Schema.maxLength(200_000)).annotations({
  description: "The task, complete in itself: the agent knows nothing else."
})
const Label = Schema.String.pipe(Schema.maxLength(120)).annotations({ description: "A few words, for lists." })
const ReturnFormat = Schema.Literal("summary", "evidence").annotations({
  description: "evidence adds what its first 32 calls found. Default summary."
})
const Detach = Schema.Boolean.annotations({
  description: "Return at once, without its answer. Default false: wait for it."
})

/** A detached agent that was sent its task. */
export const Started = Schema.Struct({
  agentId: AgentId,
  label: Schema.String,
  status: Schema.Literal("queued"),
  detached: Schema.Literal(true)
})

const Success = Schema.Union(AgentReport, Started)
type Success = typeof Success.Type

const codes = [
  "profile_unknown",
  "agent_unknown",
  "agent_busy",
  "agent_failed",
  "agent_interrupted",
  "agent_stopped",
  "mailbox_full",
  "state_lost"
] as const

/** Sends the task and waits for the report, without the slot of whoever waits; or does not wait. */
const perform = Effect.fnUntraced(function*(
  turn: Turn,
  acquire: Effect.Effect<Agent, Effect.Effect.Error<ReturnType<AgentSystem["Type"]["spawn"]>>>,
  prompt: string,
  detach: boolean
) {
  const system = yield* AgentSystem
  const acquired = Effect.catchTag(
    acquire,
    "StateUnavailable",
    ({ reason }) => Effect.fail(toolError("state_lost", `What is known of agents cannot be read: ${reason}`))
  )
  if (detach) {
    const agent = yield* Effect.uninterruptible(Effect.tap(acquired, (agent) => agent.tell(prompt)))
    const { label } = yield* agent.record
    const started: Success = { agentId: agent.id, label, status: "queued", detached: true }
    return started
  }
  const report = yield* system.waiting(
    turn,
    Effect.acquireUseRelease(
      acquired,
      (agent) => agent.ask(prompt),
      // One that was detached before goes on as it was.
      (agent) => Effect.flatMap(agent.record, ({ detached }) => detached ? Effect.void : agent.stop)
    )
  )
  if (report.status === "completed") return report
  const { agentId, error, label, status, summary } = report
  return yield* toolError(
    status === "failed" ? "agent_failed" : "agent_interrupted",
    `${display(label, { max: 120 })} (${agentId}) ${status === "failed" ? "failed" : "was interrupted"}: ` +
      `${display(error?.error ?? "no reason is known", { max: 600 })}` +
      (summary === "" ? "" : `\nIts last words:\n${quoted("summary", summary)}`),
    report
  )
})

/** What a child says is a stranger's word: nothing in it may pass for a line of the host's. */
const quoted = (name: string, words: string): string => delimited(name, words, maxQuoted)
const maxQuoted = 60_000

const rendered = (output: Success) => {
  if ("detached" in output) {
    return [
      text(
        `${display(output.label, { max: 120 })} (${output.agentId}) has its task. list_agents shows when it is done.`
      )
    ]
  }
  const { agentId, durationMs, evidence = [], fullText, label, summary, usage } = output
  const tokens = usage.inputTokens + usage.outputTokens
  const lines = [
    `${
      display(label, { max: 120 })
    } (${agentId}) is done after ${durationMs} ms, ${usage.calls} calls, ${tokens} tokens.`,
    ...(fullText === undefined ? [] : [`Its whole answer (${fullText.bytes} bytes) is at ${fullText.locator}.`]),
    ...(evidence.length === 0 ? [] : [
      "What its calls found:",
      ...evidence.map(({ digest, isError, target, toolName }) =>
        `- ${display(toolName, { max: 64 })} ${display(target, { max: 200 })}${isError ? " (failed)" : ""}: ${
          quoted("call", digest)
        }`
      )
    ]),
    "Its answer, in which & < > are written as &amp; &lt; &gt;:",
    quoted("summary", summary)
  ]
  return [text(lines.join("\n"))]
}

/** The tool as these profiles make it: they are in its schema, so an edited profile is a changed tool. */
export const delegateTask = (profiles: ReadonlyArray<Profile>) => {
  const [first = "general", ...others] = profiles.map(({ name }) => name)
  const Parameters = Schema.Struct({
    prompt: Prompt,
    label: exact(Label),
    profile: exact(
      Schema.Literal(first, ...others).annotations({
        description: [
          "What kind of agent; default general.",
          ...profiles.map((one) => `${one.name}: ${one.description}`)
        ]
          .join("\n")
      })
    ),
    toolPolicy: exact(ToolPolicy.annotations({ description: "readOnly bounds it to tools that only read." })),
    ...Narrowing.fields,
    systemPrompt: exact(
      Schema.String.pipe(Schema.maxLength(12_000)).annotations({ description: "Added to what its profile says." })
    ),
    returnFormat: exact(ReturnFormat),
    detach: exact(Detach),
    resume: exact(
      Schema.String.pipe(Schema.maxLength(200)).annotations({
        description: "The id of an earlier agent to go on with, in place of a new one."
      })
    )
  }).pipe(
    Schema.filter(
      (args) =>
        args.resume === undefined || args.resume.trim() === "" ||
        [
          args.profile,
          args.toolPolicy,
          args.allowedTools,
          args.blockedTools,
          args.blockedMcpServers,
          args.blockedSkills,
          args.systemPrompt
        ]
          .every((one) => one === undefined) ||
        "resume goes on with an agent as it is: give prompt, label and detach beside it, nothing else.",
      { jsonSchema: {} }
    )
  )
  return Tool.make("delegate_task", {
    description:
      "Hands a task to an agent of its own and returns its answer. It has at most your own rights and asks nobody. " +
      "Several calls in one message run side by side.",
    policy: "auto",
    codes,
    parameters: Parameters,
    success: Success,
    render: rendered,
    handler: Effect.fnUntraced(function*(args) {
      const { turn } = yield* ToolInvocation
      const system = yield* AgentSystem
      const { detach = false, label, profile, prompt, resume = "", returnFormat, systemPrompt, toolPolicy, ...rest } =
        args
      const { allowedTools, blockedMcpServers, blockedSkills, blockedTools } = rest
      const options: SpawnOptions = {
        detached: detach,
        evidence: returnFormat === "evidence",
        bound: {
          ...(toolPolicy === undefined ? {} : { toolPolicy }),
          ...(allowedTools === undefined ? {} : { allowedTools }),
          ...(blockedTools === undefined ? {} : { blockedTools }),
          ...(blockedMcpServers === undefined ? {} : { blockedMcpServers }),
          ...(blockedSkills === undefined ? {} : { blockedSkills })
        },
        ...(label === undefined ? {} : { label }),
        ...(profile === undefined ? {} : { profile }),
        ...(systemPrompt === undefined ? {} : { systemPrompt })
      }
      const acquire = resume.trim() === ""
        ? system.spawn(turn, options)
        : system.resume(turn, resume.trim(), { detached: detach })
      return yield* perform(turn, acquire, prompt, detach)
    })
  })
}

/** A child that knows the conversation so far, without the turn that runs, and works under the same prompt. */
export const subagentFork = Tool.make("subagent_fork", {
  description:
    "Hands a task to an agent that knows this conversation up to your last finished turn. Otherwise as delegate_task.",
  policy: "auto",
  codes,
  parameters: Schema.Struct({
    prompt: Prompt,
    label: exact(Label),
    returnFormat: exact(ReturnFormat),
    detach: exact(Detach)
  }),
  success: Success,
  render: rendered,
  handler: Effect.fnUntraced(function*({ detach = false, label, prompt, returnFormat }) {
    const { turn } = yield* ToolInvocation
    const system = yield* AgentSystem
    const options: SpawnOptions = {
      fork: true,
      detached: detach,
      evidence: returnFormat === "evidence",
      ...(label === undefined ? {} : { label })
    }
    return yield* perform(turn, system.spawn(turn, options), prompt, detach)
  })
})
