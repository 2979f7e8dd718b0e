/** What the host of the demo wants: a guard, a rule, and somebody who answers. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Path from "node:path"
import { isObject, type Json } from "../../src/contract/Json.ts"
import { compile, defaultProtected } from "../../src/file/ProtectedName.ts"
import type { Approver } from "../../src/gate/ApprovalGate.ts"
import type { Guard } from "../../src/gate/HookGate.ts"
import type { Rule } from "../../src/gate/PermissionRules.ts"

const property = (value: Json, name: string): string => {
  const found = isObject(value) ? value[name] : undefined
  return typeof found === "string" ? found : ""
}

export const guard: Guard = {
  phase: "Guard",
  name: "tests-are-the-specification",
  tools: ["edit", "write"],
  run: (call, turn) =>
    Effect.sync(() => {
      const path = Path.relative(turn.workspace, Path.resolve(turn.workspace, property(call.arguments, "path")))
      return path.split(Path.sep)[0] === "test" ? "the tests say what the code shall do; change the code" : undefined
    })
}

const isProtected = Either.getOrThrow(compile(defaultProtected))

export const rule: Rule = {
  name: "git-belongs-to-the-user",
  decision: "deny",
  reason: "only the user writes below .git",
  matches: ({ arguments: args, kind }) =>
    kind === "file_change" && isProtected(property(args, "path").replaceAll("\\", "/"))
}

const commands: ReadonlySet<string> = new Set(["npm test", "npm test --silent", "node --test"])

/** Agrees to changes in the workspace and to the test command, and to nothing else. */
export const approver: Approver = {
  name: "the demo",
  review: ({ question }) =>
    Effect.sync(() => {
      const fine = question.kind === "file_change"
        ? question.outsideTargets.length === 0
        : commands.has(property(question.arguments, "command").trim())
      return fine
        ? { decision: "allow", principal: "the demo" } as const
        : { decision: "deny", principal: "the demo", reason: "it agrees to the test command and to no other" } as const
    })
}
