/** Our conversation as a prompt of `@effect/ai`. */
import * as Prompt from "@effect/ai/Prompt"
import type { Message, ModelRequest } from "../../src/agent/Model.ts"
import { isObject } from "../../src/contract/Json.ts"
import type { ContentPart } from "../../src/contract/ToolResult.ts"
import { parseJson } from "../../src/internal/parseJson.ts"
import { textOf } from "./refusal.ts"

/**
 * Images in tool results follow them in a message of the user: a tool result of `@effect/ai` holds text alone. Arguments
 * that are not a JSON object are repeated as `{}`, and tool names in the characters that every provider takes, since one
 * request refused for them would end the thread.
 */
export const toPrompt = (request: ModelRequest): Prompt.Prompt =>
  Prompt.fromMessages([
    ...request.system === undefined ? [] : [Prompt.systemMessage({ content: request.system })],
    ...request.messages.flatMap(toMessages)
  ])

const toMessages = (message: Message): ReadonlyArray<Prompt.Message> => {
  switch (message.role) {
    case "user":
      return [Prompt.userMessage({ content: message.content.map(toUserPart) })]
    case "assistant":
      return [Prompt.assistantMessage({
        content: [
          ...message.text === "" ? [] : [Prompt.textPart({ text: message.text })],
          ...message.calls.map((call) =>
            Prompt.toolCallPart({
              id: call.callId,
              name: portableName(call.toolName),
              params: asObject(call.arguments),
              providerExecuted: false
            })
          )
        ]
      })]
    case "tool": {
      const images = message.results.flatMap(({ callId, content }) => {
        const parts = content.filter((part) => part.type === "image")
        return parts.length === 0
          ? []
          : [Prompt.textPart({ text: `Images in the result of ${callId}:` }), ...parts.map(toUserPart)]
      })
      return [
        Prompt.toolMessage({
          content: message.results.map((result) =>
            Prompt.toolResultPart({
              id: result.callId,
              name: portableName(result.toolName),
              isFailure: result.isError,
              result: textOf(result.content),
              providerExecuted: false
            })
          )
        }),
        ...images.length === 0 ? [] : [Prompt.userMessage({ content: images })]
      ]
    }
  }
}

const toUserPart = (part: ContentPart): Prompt.UserMessagePart =>
  part.type === "image"
    ? Prompt.filePart({ mediaType: part.mediaType, data: part.data })
    : Prompt.textPart({ text: textOf([part]) })

const asObject = (value: unknown): { readonly [key: string]: unknown } => {
  const parsed = typeof value === "string" ? parseJson(value) : value
  return isObject(parsed) ? parsed : {}
}

const portableName = (name: string): string => name.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64) || "_"
