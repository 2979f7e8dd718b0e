/**
 * Steps 1 to 13: everything between a model asking and a call being claimed. Nothing here has an effect on the world,
 * nothing is recorded, and an interruption leaves no trace but a cancelled question.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { advertiseRefusal, nameRefusal, planAdmits, providerRefusal } from "../catalog/Catalog.ts"
import type { Sha256 } from "../contract/Digest.ts"
import { canonical, type Json, type Limits } from "../contract/Json.ts"
import { stricterKind } from "../contract/Policy.ts"
import {
  ApprovalRefused,
  CallNotCompleted,
  PlanModeBlocked,
  RuleDenied,
  SandboxBlocked,
  ToolDisabled,
  type ToolFailure,
  ToolNotAdvertised,
  ToolUnknown
} from "../contract/ToolFailure.ts"
import type { ToolResult } from "../contract/ToolResult.ts"
import { isPlan } from "../contract/Turn.ts"
import type { ReadTracker } from "../file/ReadTracker.ts"
import { mayBeRead, type WorkspacePath } from "../file/WorkspacePath.ts"
import type { ApprovalGate } from "../gate/ApprovalGate.ts"
import { before, guard, type HookCall } from "../gate/HookGate.ts"
import { none as noRules, type PermissionRules, type RuleSubject } from "../gate/PermissionRules.ts"
import type { SandboxVerdict } from "../gate/SandboxGate.ts"
import { near } from "../internal/near.ts"
import { asObject, receive } from "./Arguments.ts"
import { digestOf, reasonsToAsk } from "./Asking.ts"
import type {
  Approved,
  Effective,
  Executed,
  Heard,
  Identified,
  Inventoried,
  Located,
  Received,
  Replay,
  Resolved,
  Ruled
} from "./CallState.ts"
import { known, operationOf } from "./Operation.ts"
import type { OperationLedger } from "./OperationLedger.ts"
import { andThen, grow, type Restore, type Sequence, startWith } from "./Step.ts"
import { stepOf } from "./steps.ts"

export interface Collaborators {
  readonly sha256: Sha256
  readonly approvals: ApprovalGate["Type"]
  readonly ledger: OperationLedger["Type"]
  readonly paths: WorkspacePath["Type"]
  readonly reads: ReadTracker["Type"]
  readonly rules: PermissionRules["Type"]
  readonly planTools: ReadonlySet<string>
  /** Tools whose policy is `auto` that run without a question under approval policy `untrusted`. */
  readonly trustedTools: ReadonlySet<string>
  readonly argumentLimits: Limits
}

const blocked = (verdict: SandboxVerdict): Effect.Effect<never, SandboxBlocked> | undefined =>
  verdict._tag === "Block" ? Effect.fail(new SandboxBlocked({ code: verdict.code, reason: verdict.reason })) : undefined

const hookCall = (state: Resolved, args: Json): HookCall => ({
  callId: state.call.callId,
  toolName: state.registered.tool.name,
  kind: state.kind,
  declaredKind: state.registered.tool.kind,
  arguments: args
})

/** A claimed kind only tightens: the call is held against the rules as what it is and as what it says it is. */
const subjectOf = (state: Located): RuleSubject => {
  const { tool } = state.registered
  const kinds = tool.kind === state.kind ? [tool.kind] : [tool.kind, state.kind]
  const forms = (args: Json) => kinds.map((kind) => ({ toolName: tool.name, kind, arguments: args }))
  return {
    original: forms(Either.getOrElse(state.received, (): Json => ({}))),
    effective: forms(state.effective.arguments)
  }
}

const policyBlocked = (): ApprovalRefused =>
  new ApprovalRefused({
    code: "approval_policy_blocked",
    reason: "The approval policy is never: nothing runs that somebody would have to agree to."
  })

const explicitDemand = (state: Ruled): Either.Either<boolean, ApprovalRefused> => {
  const { explicitApproval } = state.prepared
  if (typeof explicitApproval === "boolean") return Either.right(explicitApproval)
  return Either.mapLeft(Either.try(() => explicitApproval(state.now.turn)), () =>
    new ApprovalRefused({
      code: "approval_classification_failed",
      reason: "Whether this call needs approval could not be determined, so it was not run."
    }))
}

/** `resume` goes on with an operation that was executed and never settled. */
export const make = (
  plane: Collaborators,
  resume: (state: Executed, restore: Restore) => Effect.Effect<ToolResult>
): Sequence<Received, Approved> => {
  const { approvals, ledger, paths, reads, rules, sha256, trustedTools } = plane

  const pins = stepOf("1", (state: Received) => grow(state, { now: state.pins.now() }))

  // Entering the admission is an operation of the fiber's loop, where a pending interruption takes effect, and so is every
  // step that waits; between those nothing else can run.
  const abortPoint = stepOf("2", (state: Received) => Effect.succeed(state))

  const resolve = stepOf("3", (state: Received): Effect.Effect<Resolved, ToolFailure> => {
    const { call, now, pins } = state
    const registered = pins.snapshot.tools.get(call.toolName)
    if (registered === undefined) {
      const shown = call.toolName.slice(0, 200).toWellFormed()
      return Effect.fail(new ToolUnknown({ toolName: shown, near: near(shown, pins.catalog.fingerprint.toolNames) }))
    }
    const { tool } = registered
    const provider = pins.snapshot.providers.get(registered.providerId)
    const refuse = (filter: ToolNotAdvertised["filter"], reason: string) =>
      Effect.fail(new ToolNotAdvertised({ toolName: tool.name, filter, reason }))
    const broken = providerRefusal(provider, now.turn)
    if (provider === undefined || broken !== undefined) return refuse("provider", broken ?? "its provider is gone")
    if (call.providerId !== undefined && call.providerId !== provider.id) {
      return refuse("provider", "it belongs to another provider than the call names")
    }
    const name = nameRefusal(tool.name, now.turn)
    if (name !== undefined) return refuse("names", name)
    const advertise = advertiseRefusal(tool, now.turn)
    if (advertise !== undefined) return refuse("advertise", advertise)
    const kind = call.claimedKind === undefined ? tool.kind : stricterKind(tool.kind, call.claimedKind)
    return grow(state, { registered, provider, kind })
  })

  const peek = stepOf("3b", (state: Resolved): Effect.Effect<Identified, ToolFailure | Replay> => {
    const received = receive(state.call, plane.argumentLimits)
    // Arguments that step 7 is going to refuse were never claimed, so there is nothing to look for.
    const original = Either.isRight(received) ? sha256(canonical(received.right)) : ""
    const operation = operationOf(state.now.turn, state.call, state.registered.tool.name, original)
    const identified = grow(state, { received, operation })
    if (Either.isLeft(received)) return identified
    return Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(
        ledger.peek(operation),
        (seen): Effect.Effect<Identified, ToolFailure | Replay> =>
          seen._tag === "Absent" ? identified : known(state, operation, seen, (executed) => resume(executed, restore))
      )
    )
  })

  const disabled = stepOf("4", (state: Identified): Effect.Effect<Identified, ToolFailure> => {
    const { name, policy } = state.registered.tool
    return policy === "never" ? Effect.fail(new ToolDisabled({ toolName: name })) : Effect.succeed(state)
  })

  const sandbox = stepOf("5", (state: Identified): Effect.Effect<Identified, ToolFailure> => {
    const { tool } = state.registered
    return blocked(state.now.sandbox(tool.kind, tool.runs, tool.interactive)) ?? Effect.succeed(state)
  })

  const hooks = stepOf("6", (state: Identified): Effect.Effect<Heard, ToolFailure> => {
    const { received, registered } = state
    const { hooks } = state.pins
    const { turn } = state.now
    const ready = Either.flatMap(received, registered.prepare)
    // A hook is not shown arguments that step 7 is going to refuse whatever it says.
    if ((hooks.pre.length === 0 && hooks.guards.length === 0) || Either.isLeft(received)) {
      return grow(state, { ready, hookAllowed: false, hookAsks: [] })
    }
    return Effect.gen(function*() {
      const shown = Either.isRight(ready) ? ready.right.arguments : received.right
      const said = yield* before(hooks, hookCall(state, shown), turn)
      const left = said.arguments === shown ? ready : Either.flatMap(asObject(said.arguments), registered.prepare)
      // Guards judge what is going to run, so nothing that decoding mends gets past them.
      const judged = Either.isRight(left) ? left.right.arguments : said.arguments
      yield* guard(hooks, hookCall(state, judged), turn)
      return yield* grow(state, { ready: left, hookAllowed: said.allowed, hookAsks: said.asks })
    })
  })

  const decode = stepOf("7", (state: Heard): Effect.Effect<Effective, ToolFailure> => {
    if (Either.isLeft(state.ready)) return Effect.fail(state.ready.left)
    const prepared = state.ready.right
    const unchanged = Either.isRight(state.received) && prepared.arguments === state.received.right
    const effective = Object.freeze({
      callId: state.call.callId,
      toolName: state.registered.tool.name,
      kind: state.kind,
      arguments: prepared.arguments,
      digest: `${state.kind}:${unchanged ? state.operation.originalHash : sha256(canonical(prepared.arguments))}`
    })
    return grow(state, { prepared, effective })
  })

  const plan = stepOf(
    "8",
    (state: Effective): Effect.Effect<Effective, ToolFailure> =>
      isPlan(state.now.turn) && !planAdmits(state.registered.tool, plane.planTools)
        ? Effect.fail(new PlanModeBlocked({ toolName: state.registered.tool.name }))
        : Effect.succeed(state)
  )

  const readFirst = stepOf("9", (state: Effective): Effect.Effect<Located, ToolFailure> => {
    const { targets } = state.prepared
    if (targets.length === 0) return grow(state, { targets: [] })
    const located = Effect.forEach(targets, (target) =>
      Effect.tap(
        Effect.map(paths.resolve(state.now.turn, target.path), (resolved) => ({ target, resolved })),
        ({ resolved }) =>
          target.requiresRead
            ? Effect.whenEffect(
              reads.require(state.now.turn.threadId, resolved, target),
              mayBeRead(paths, state.now.turn, resolved)
            )
            : Effect.void
      ))
    return Effect.flatMap(located, (found) => grow(state, { targets: found }))
  })

  const runtimePolicy = stepOf("10", (state: Located): Effect.Effect<Ruled, ToolFailure> => {
    const { tool } = state.registered
    const { sandbox, turn } = state.now
    const verdict = sandbox(state.kind, tool.runs, tool.interactive)
    const refusal = blocked(verdict)
    if (refusal !== undefined) return refusal
    return andThen(rules.current, (set): Effect.Effect<Ruled, ToolFailure> => {
      const rule = set === noRules ? undefined : set.judge(subjectOf(state))
      if (rule?.decision === "deny") return Effect.fail(new RuleDenied({ rule: rule.name, reason: rule.reason }))
      if (turn.approvalPolicy === "never" && !tool.interactive) return Effect.fail(policyBlocked())
      return grow(state, {
        ruleAsks: rule?.decision === "ask" ? rule.reason : undefined,
        ruleAllows: rule?.decision === "allow",
        unconfined: verdict._tag === "Approve"
      })
    })
  })

  const inventory = stepOf("11", (state: Ruled): Effect.Effect<Inventoried, ToolFailure> => {
    const { sandboxMode } = state.now.turn
    const demand = explicitDemand(state)
    if (Either.isLeft(demand)) return Effect.fail(demand.left)
    const explicit = demand.right
    const outside = state.targets.filter(({ resolved }) => !resolved.inside)
    if (outside.length === 0 || sandboxMode === "danger-full-access") return grow(state, { explicit, grants: [] })
    if (sandboxMode !== "workspace-write") {
      return Effect.fail(
        new SandboxBlocked({
          code: "sandbox_write_blocked",
          reason: `Nothing outside the workspace can be written in sandbox mode ${sandboxMode}.`,
          path: outside[0]?.target.path ?? ""
        })
      )
    }
    return Effect.flatMap(
      Effect.forEach(outside, ({ resolved }) => paths.identify(resolved)),
      (grants) => grow(state, { explicit, grants })
    )
  })

  const approve = stepOf("12", (state: Inventoried): Effect.Effect<Approved, ToolFailure> => {
    const reasons = reasonsToAsk(state, trustedTools)
    if (reasons.length === 0) return grow(state, { approval: null, asked: null })
    const { turn } = state.now
    if (turn.approvalPolicy === "never") return Effect.fail(policyBlocked())
    const { effective, operation } = state
    const asked = digestOf(sha256, state, reasons)
    return Effect.flatMap(
      approvals.authorize({
        operationId: operation.id,
        digest: asked,
        threadId: turn.threadId,
        turnId: turn.turnId,
        callId: effective.callId,
        toolName: effective.toolName,
        kind: effective.kind,
        arguments: effective.arguments,
        reasons,
        notes: state.ruleAsks === undefined ? state.hookAsks : [...state.hookAsks, state.ruleAsks],
        outsideTargets: state.grants.map((grant) => grant.path),
        workspace: turn.workspace,
        approvalPolicy: turn.approvalPolicy,
        sandboxMode: turn.sandboxMode,
        lineage: turn.lineage
      }),
      (approval) => grow(state, { approval, asked })
    )
  })

  /** Steps 3, 5 and 8 to 11 once more over the turn as it is now, which may be another than the one asked about. */
  const again = (state: Approved): Effect.Effect<Inventoried, ToolFailure | Replay> =>
    andThen(
      resolve.run(state),
      () =>
        andThen(sandbox.run(state), () =>
          andThen(plan.run(state), (effective) =>
            andThen(readFirst.run(effective), (located) =>
              andThen(runtimePolicy.run(located), inventory.run))))
    )

  const rejudge = stepOf("13", (state: Approved): Effect.Effect<Approved, ToolFailure | Replay> => {
    const now = state.pins.now()
    if (!now.open) return Effect.fail(new CallNotCompleted({ code: "tool_not_started", reason: "The turn is closed." }))
    const { asked } = state
    if (now === state.now && asked === null) return Effect.succeed(state)
    return andThen(
      grow(state, { now }),
      (current) =>
        andThen(again(current), (judged): Effect.Effect<Approved, ToolFailure> => {
          const reasons = reasonsToAsk(judged, trustedTools)
          const same = asked === null ? reasons.length === 0 : digestOf(sha256, judged, reasons) === asked
          if (same) return Effect.succeed(current)
          return Effect.fail(
            new ApprovalRefused({
              code: "approval_superseded",
              reason: asked === null
                ? "The turn's modes or rules changed while this call was judged, and now somebody must agree to it."
                : "What was asked about has changed meanwhile: the target, the sandbox mode, or why it is asked."
            })
          )
        })
    )
  })

  return startWith(pins).then(abortPoint).then(resolve).then(peek).then(disabled).then(sandbox).then(hooks).then(decode)
    .then(plan).then(readFirst).then(runtimePolicy).then(inventory).then(approve).then(rejudge)
}
