/**
 * What one agent can be told, as an RPC group: the same handlers serve it in this process and behind a transport.
 *
 * @since 0.1.0
 */
import * as Rpc from "@effect/rpc/Rpc"
import * as RpcGroup from "@effect/rpc/RpcGroup"
import * as Schema from "effect/Schema"
import { ContentPart } from "../contract/ToolResult.ts"
import { AgentRecord, AgentReport } from "./AgentReport.ts"
import { type Agent, AgentUnavailable } from "./AgentSystem.ts"
import { Bound } from "./Authority.ts"

/** What comes over a wire is bounded: a million characters, or a thousand parts. */
const Prompt = Schema.Union(
  Schema.String.pipe(Schema.maxLength(1_000_000)),
  Schema.Array(ContentPart).pipe(Schema.maxItems(1000))
)
const Message = { prompt: Prompt, bound: Schema.optionalWith(Bound, { exact: true }) }

/** One procedure for each member of `Agent` that does something. */
export const protocol = RpcGroup.make(
  Rpc.make("Ask", { payload: Message, success: AgentReport, error: AgentUnavailable }),
  Rpc.make("Tell", { payload: Message, error: AgentUnavailable }),
  Rpc.make("Interrupt", { success: Schema.Boolean }),
  Rpc.make("Stop"),
  Rpc.make("Narrow", { payload: { bound: Bound } }),
  Rpc.make("Record", { success: AgentRecord })
)

/** The handlers of one agent; interrupting a call of `Ask` interrupts the turn that it started. */
export const handlers = (agent: Agent) =>
  protocol.of({
    Ask: ({ bound, prompt }) => agent.ask(prompt, bound),
    Tell: ({ bound, prompt }) => agent.tell(prompt, bound),
    Interrupt: () => agent.interrupt,
    Stop: () => agent.stop,
    Narrow: ({ bound }) => agent.narrow(bound),
    Record: () => agent.record
  })
