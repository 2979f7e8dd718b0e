/**
 * The port that agents know: open a turn, list it, execute in it.
 *
 * @since 0.1.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { CapabilityRegistry } from "../catalog/CapabilityRegistry.ts"
import { type Catalog, defaultPlanTools, makeBuilder } from "../catalog/Catalog.ts"
import { grade } from "../catalog/Drift.ts"
import type { Fingerprint } from "../catalog/Fingerprint.ts"
import { Digest } from "../contract/Digest.ts"
import type { CatalogChanged } from "../contract/Event.ts"
import { defaultLimits, type Limits } from "../contract/Json.ts"
import {
  type ApprovalPolicy,
  defaultApprovalPolicy,
  defaultSandboxMode,
  type SandboxMode,
  stricterApproval,
  stricterSandbox,
  stricterThreadMode,
  type ThreadMode
} from "../contract/Policy.ts"
import type { ToolCall } from "../contract/ToolCall.ts"
import type { ToolResult } from "../contract/ToolResult.ts"
import {
  type ModelCapabilities,
  type NameFilter,
  narrow,
  ThreadId,
  type Turn,
  TurnId,
  TurnMode,
  TurnSpec,
  type TurnSpecInput,
  within
} from "../contract/Turn.ts"
import { ReadTracker } from "../file/ReadTracker.ts"
import { WorkspacePath } from "../file/WorkspacePath.ts"
import { ApprovalGate } from "../gate/ApprovalGate.ts"
import { HookGate } from "../gate/HookGate.ts"
import { PermissionRules } from "../gate/PermissionRules.ts"
import { SandboxGate } from "../gate/SandboxGate.ts"
import * as FifoSemaphore from "../internal/FifoSemaphore.ts"
import { EventJournal } from "../journal/EventJournal.ts"
import type { Now, Pins } from "./CallState.ts"
import { closedResult, make as makeChannel } from "./Channel.ts"
import { OperationLedger } from "./OperationLedger.ts"

/** A turn that cannot be opened: its spec does not decode, or its workspace is not a directory. */
export class TurnRefused extends Schema.TaggedError<TurnRefused>("portcullis/TurnRefused")("TurnRefused", {
  code: Schema.Literal("turn_spec_invalid", "workspace_unavailable"),
  reason: Schema.String
}) {
  override get message() {
    return this.reason
  }
}

/** One turn: a frozen catalog and the way to execute in it, until its scope closes. */
export interface TurnSession {
  /** The turn as it stands now: modes may have changed since it was opened. */
  readonly turn: Effect.Effect<Turn>
  /** Frozen when the turn was opened. */
  readonly catalog: Catalog
  /**
   * Puts one call through the 18 steps. Never fails: failures and defects become results with a code. Interrupting it
   * interrupts the handler, waits for its finalizers and propagates; nothing else does.
   */
  readonly execute: (call: ToolCall) => Effect.Effect<ToolResult>
  /**
   * Changes modes for the calls that have not run yet, within the host's authority and what `narrow` has left. Returns the
   * turn as it is then; modes that are none change nothing and are `turn_spec_invalid`.
   */
  readonly setMode: (mode: TurnMode) => Effect.Effect<Turn, TurnRefused>
  /**
   * Takes away, for good: every call that is not claimed yet (step 14) is held against what is left, also one that waits
   * for an approval or in a hook. The catalog stays as it is. Returns the turn as it is then; an interruption waits for it.
   */
  readonly narrow: (limits: Authority) => Effect.Effect<Turn>
  /** Forgets what the thread has read, as when its context is compacted. */
  readonly forget: Effect.Effect<void>
  /** The change of the live tools against this frozen catalog, once for each distinct change, for a note to the model. */
  readonly drift: Effect.Effect<typeof CatalogChanged.Type | undefined>
}

export class ToolHost extends Context.Tag("portcullis/ToolHost")<ToolHost, {
  /** Opens a turn. It is clamped by the host's authority and released with the scope. */
  readonly openTurn: (spec: TurnSpecInput) => Effect.Effect<TurnSession, TurnRefused, Scope.Scope>
  /** A session of one call. */
  readonly execute: (call: ToolCall, spec: TurnSpecInput) => Effect.Effect<ToolResult, TurnRefused>
}>() {}

/** The most a turn can get, whatever it asks for. What is not given is no limit. */
export interface Authority {
  readonly sandboxMode?: SandboxMode
  readonly approvalPolicy?: ApprovalPolicy
  readonly threadMode?: ThreadMode
  readonly providers?: NameFilter
  readonly tools?: NameFilter
  readonly skills?: NameFilter
}

export interface Options {
  /** Default: no limit. */
  readonly authority?: Authority
  /**
   * What a turn gets that does not say. Default `workspace-write` and `on-request`; the seed's own full-access default
   * is `{ sandboxMode: "danger-full-access", approvalPolicy: "auto" }`.
   */
  readonly defaults?: { readonly sandboxMode?: SandboxMode; readonly approvalPolicy?: ApprovalPolicy }
  /** Tools that a plan turn admits beside those declared read-only; default the seed's seven. */
  readonly planTools?: Iterable<string>
  /** Tools of policy `auto` that run without a question under approval policy `untrusted`; default none. */
  readonly trustedTools?: Iterable<string>
  /** Size and depth budget of arguments; default 8 MiB, 64 levels. */
  readonly argumentLimits?: Limits
}

export type Requirements =
  | CapabilityRegistry
  | SandboxGate
  | ApprovalGate
  | HookGate
  | PermissionRules
  | OperationLedger
  | WorkspacePath
  | ReadTracker
  | EventJournal
  | FileSystem.FileSystem
  | Path.Path

export const make = (options: Options = {}): Effect.Effect<ToolHost["Type"], never, Requirements> =>
  Effect.gen(function*() {
    const registry = yield* CapabilityRegistry
    const sandbox = yield* SandboxGate
    const hooks = yield* HookGate
    const journal = yield* EventJournal
    const fileSystem = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const sha256 = yield* Digest
    const reads = yield* ReadTracker
    const planTools = new Set(options.planTools ?? defaultPlanTools)
    const channel = makeChannel({
      sha256,
      journal,
      approvals: yield* ApprovalGate,
      ledger: yield* OperationLedger,
      paths: yield* WorkspacePath,
      reads,
      rules: yield* PermissionRules,
      planTools,
      trustedTools: new Set(options.trustedTools),
      argumentLimits: options.argumentLimits ?? defaultLimits
    })
    const list = makeBuilder(sha256)
    const authority = options.authority ?? {}
    const seen = lastFingerprints()

    const directory = (root: string): Effect.Effect<boolean> =>
      Effect.match(fileSystem.stat(root), { onFailure: () => false, onSuccess: (info) => info.type === "Directory" })

    const most = stricter({ threadMode: "agent", sandboxMode: "danger-full-access", approvalPolicy: "auto" }, authority)

    const grant = Effect.fnUntraced(function*(input: TurnSpecInput) {
      const spec = yield* Effect.mapError(decodeSpec(input), refuseSpec)
      const workspace = path.resolve(spec.workspace)
      if (spec.workspace.includes("\0") || !(yield* directory(workspace))) {
        return yield* new TurnRefused({
          code: "workspace_unavailable",
          reason: `The workspace ${JSON.stringify(spec.workspace)} is not a directory.`
        })
      }
      const extra = yield* Effect.filter((spec.extraRoots ?? []).map((root) => path.resolve(root)), directory)
      const turn: Turn = Object.freeze({
        threadId: spec.threadId ?? ThreadId.make(`thread_${globalThis.crypto.randomUUID()}`),
        turnId: spec.turnId ?? TurnId.make(`turn_${globalThis.crypto.randomUUID()}`),
        workspace,
        roots: Object.freeze([workspace, ...extra]),
        ...stricter(most, {
          threadMode: spec.threadMode ?? "agent",
          sandboxMode: spec.sandboxMode ?? options.defaults?.sandboxMode ?? defaultSandboxMode,
          approvalPolicy: spec.approvalPolicy ?? options.defaults?.approvalPolicy ?? defaultApprovalPolicy
        }),
        plan: spec.plan,
        providers: narrow(spec.providers, authority.providers),
        tools: narrow(spec.tools, authority.tools),
        skills: narrow(spec.skills, authority.skills),
        clientSurface: spec.clientSurface ?? "api",
        model: spec.model ?? textOnly,
        lineage: spec.lineage ?? []
      })
      return turn
    })

    const changed = (
      turn: Turn,
      before: Fingerprint,
      after: Fingerprint,
      deferred: boolean
    ): Effect.Effect<typeof CatalogChanged.Type> =>
      Effect.flatMap(Clock.currentTimeMillis, (at) => {
        const event: typeof CatalogChanged.Type = {
          _tag: "tool_catalog_changed",
          threadId: turn.threadId,
          turnId: turn.turnId,
          at,
          grade: grade(before, after),
          deferred,
          fingerprint: after.fingerprint,
          toolCount: after.toolCount,
          toolNames: after.toolNames.slice(0, 50)
        }
        return Effect.as(journal.append(event), event)
      })

    const openTurn = Effect.fnUntraced(function*(input: TurnSpecInput) {
      const granted = yield* grant(input)
      const look = (turn: Turn): Effect.Effect<Now> =>
        Effect.map(sandbox.table(turn.sandboxMode), (table) => ({ turn, sandbox: table, open: true }))
      const survey = ({ sandbox, turn }: Now) =>
        Effect.map(
          registry.snapshot,
          (snapshot) => ({ snapshot, catalog: list({ snapshot, turn, planTools, sandbox }) })
        )
      const opened = yield* look(granted)
      let now: Now = opened
      const { catalog, snapshot } = yield* survey(now)
      const pins: Pins = { snapshot, catalog, hooks: yield* hooks.current, now: () => now }
      const changing = yield* FifoSemaphore.make(1)
      const become = (changed: () => Turn): Effect.Effect<Turn> =>
        changing.withPermit(Effect.suspend(() => {
          const turn = Object.freeze(changed())
          return Effect.map(look(turn), (next) => {
            now = { ...next, open: now.open }
            return turn
          })
        }))
      let ceiling = most
      const ids = { threadId: granted.threadId, turnId: granted.turnId }
      yield* Effect.acquireRelease(
        Effect.flatMap(
          Clock.currentTimeMillis,
          (at) => journal.append({ _tag: "turn_opened", ...ids, at, ...countOf(catalog) })
        ),
        () =>
          Effect.flatMap(Clock.currentTimeMillis, (at) => {
            now = { ...now, open: false }
            return journal.append({ _tag: "turn_closed", ...ids, at })
          })
      )
      const previous = seen.swap(viewOf(granted), catalog.fingerprint)
      const applied = previous !== undefined && previous.fingerprint !== catalog.fingerprint.fingerprint
        ? yield* changed(granted, previous, catalog.fingerprint, false)
        : undefined
      const reported = new Set([catalog.fingerprint.fingerprint])
      let announced = applied

      const session: TurnSession = {
        turn: Effect.sync(() => now.turn),
        catalog,
        execute: (call) => Effect.suspend(() => now.open ? channel.execute(pins, call) : closedResult(pins, call)),
        setMode: (input) =>
          Effect.flatMap(
            decodeMode(input),
            (mode) => become(() => ({ ...now.turn, ...stricter(ceiling, { ...modesOf(now.turn), ...mode }) }))
          ),
        narrow: (limits) =>
          Effect.uninterruptible(become(() => {
            ceiling = stricter(ceiling, limits)
            return {
              ...now.turn,
              ...stricter(ceiling, now.turn),
              providers: within(now.turn.providers, limits.providers),
              tools: within(now.turn.tools, limits.tools),
              skills: within(now.turn.skills, limits.skills)
            }
          })),
        forget: reads.clear(granted.threadId),
        drift: Effect.suspend(() => {
          if (announced !== undefined) {
            const first = announced
            announced = undefined
            return Effect.succeed(first)
          }
          // Against the modes the catalog was made with: a change of mode is no change of the tools.
          return Effect.flatMap(survey(opened), (live) => {
            const { fingerprint } = live.catalog.fingerprint
            if (reported.has(fingerprint)) return Effect.succeed(undefined)
            if (reported.size < 256) reported.add(fingerprint)
            return changed(granted, catalog.fingerprint, live.catalog.fingerprint, true)
          })
        })
      }
      return session
    })

    return ToolHost.of({
      openTurn,
      execute: (call, spec) => Effect.scoped(Effect.flatMap(openTurn(spec), (session) => session.execute(call)))
    })
  })

export const layer = (options: Options = {}): Layer.Layer<ToolHost, never, Requirements> =>
  Layer.effect(ToolHost, make(options))

const refuseSpec = (error: ParseResult.ParseError): TurnRefused =>
  new TurnRefused({ code: "turn_spec_invalid", reason: ParseResult.TreeFormatter.formatErrorSync(error) })

const decodeSpec = Schema.decodeUnknown(TurnSpec, { onExcessProperty: "error" })

const decodeMode = (mode: TurnMode): Effect.Effect<TurnMode, TurnRefused> =>
  Effect.mapError(Schema.decodeUnknown(TurnMode, { onExcessProperty: "error" })(mode), refuseSpec)

type Modes = Required<TurnMode>

const modesOf = ({ approvalPolicy, sandboxMode, threadMode }: Turn): Modes => ({
  approvalPolicy,
  sandboxMode,
  threadMode
})

/** Of each mode the stricter one. */
const stricter = (ceiling: Modes, mode: TurnMode): Modes => ({
  threadMode: stricterThreadMode(ceiling.threadMode, mode.threadMode ?? ceiling.threadMode),
  sandboxMode: stricterSandbox(ceiling.sandboxMode, mode.sandboxMode ?? ceiling.sandboxMode),
  approvalPolicy: stricterApproval(ceiling.approvalPolicy, mode.approvalPolicy ?? ceiling.approvalPolicy)
})

const textOnly: ModelCapabilities = { inputModalities: ["text"] }

const countOf = (catalog: Catalog) => ({
  fingerprint: catalog.fingerprint.fingerprint,
  toolCount: catalog.fingerprint.toolCount
})

/** What a thread looks at the tools through: another mode or another list shows other tools, and that is no drift. */
const viewOf = (
  { clientSurface, model, plan, providers, sandboxMode, skills, threadId, threadMode, tools }: Turn
): string =>
  JSON.stringify([
    threadId,
    plan === undefined ? threadMode : "plan",
    sandboxMode,
    clientSurface,
    model.inputModalities,
    [providers, tools, skills].map(({ allow, deny }) => [allow === undefined ? null : [...allow], [...deny]])
  ])

/** The catalog each view saw last, for the 1024 views that opened a turn most recently. */
const lastFingerprints = () => {
  const byView = new Map<string, Fingerprint>()
  return {
    swap: (view: string, fingerprint: Fingerprint): Fingerprint | undefined => {
      const previous = byView.get(view)
      byView.delete(view)
      byView.set(view, fingerprint)
      const oldest = byView.size > 1024 ? byView.keys().next().value : undefined
      if (oldest !== undefined) byView.delete(oldest)
      return previous
    }
  }
}
