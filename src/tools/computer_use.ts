/**
 * `computer_use`: looks at the screen of this machine and acts on it, for the main agent alone (seed 5.2).
 *
 * Three things keep it from children: a registry of theirs refuses it, a host of theirs denies its name, and whoever makes
 * the provider has to hand over a capability that no child can come by.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { reservedProvider } from "../catalog/CapabilityRegistry.ts"
import { usable } from "../contract/Provider.ts"
import { toolError } from "../contract/ToolFailure.ts"
import { ImagePart, text } from "../contract/ToolResult.ts"
import type { Turn } from "../contract/Turn.ts"
import * as Tool from "../tool/Tool.ts"
import { ToolInvocation } from "../tool/ToolInvocation.ts"
import * as ToolProvider from "../tool/ToolProvider.ts"

/** In pixels of the last screenshot, from its top left corner. */
const Coordinate = Schema.Int.pipe(Schema.between(0, 32_767))
const at = { x: Coordinate, y: Coordinate }
const exact = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

export const Action = Schema.Union(
  Schema.Struct({ type: Schema.Literal("screenshot") }),
  Schema.Struct({ type: Schema.Literal("move"), ...at }),
  Schema.Struct({
    type: Schema.Literal("click"),
    ...at,
    button: exact(
      Schema.Literal("left", "middle", "right").annotations({ description: "Default left." })
    ),
    count: exact(Schema.Int.pipe(Schema.between(1, 3)).annotations({ description: "Default 1." }))
  }),
  Schema.Struct({
    type: Schema.Literal("type"),
    text: Schema.String.pipe(Schema.minLength(1), Schema.maxLength(10_000))
  }),
  Schema.Struct({
    type: Schema.Literal("key"),
    keys: Schema.String.pipe(Schema.pattern(/^[\x21-\x7e]{1,64}$/)).annotations({
      description: "One key, or several held together, joined by +: Return, ctrl+s."
    })
  }),
  Schema.Struct({
    type: Schema.Literal("scroll"),
    ...at,
    direction: Schema.Literal("up", "down", "left", "right"),
    amount: exact(Schema.Int.pipe(Schema.between(1, 100)).annotations({ description: "Notches. Default 3." }))
  }),
  Schema.Struct({
    type: Schema.Literal("wait"),
    seconds: Schema.Number.pipe(Schema.greaterThan(0), Schema.lessThanOrEqualTo(30))
  })
)
export type Action = typeof Action.Type

/** What the screen shows after an action. */
export interface Seen {
  /** Base64, with its media type; `null` when the action leaves nothing to see. */
  readonly screenshot: { readonly mediaType: "image/png" | "image/jpeg"; readonly data: string } | null
}

/** Why an action was not done, or not to its end. */
export class ComputerError extends Schema.TaggedError<ComputerError>("portcullis/ComputerError")("ComputerError", {
  code: Schema.Literal("computer_use_unavailable", "unsupported_action", "action_failed"),
  reason: Schema.String
}) {
  override get message() {
    return this.reason
  }
}

export class ComputerControl extends Context.Tag("portcullis/ComputerControl")<ComputerControl, {
  /** Does one action. An interruption stops it and leaves no key or button down. */
  readonly act: (action: Action) => Effect.Effect<Seen, ComputerError>
}>() {}

/**
 * The right to control this machine: an object that the host's own code mints and hands over in this process. It holds
 * nothing that could be written down, so no copy, file, message or environment variable can stand for it.
 */
export class Capability {
  readonly #minted = true

  private constructor() {}

  /** For the host's own code; nothing of this library calls it. */
  static mint(): Capability {
    return new Capability()
  }

  /** Whether a value is one that was minted here; a look-alike is none. */
  static holds(value: unknown): value is Capability {
    return typeof value === "object" && value !== null && #minted in value && value.#minted
  }
}

export interface Options {
  readonly capability?: Capability
  readonly driver?: ComputerControl["Type"]
  /** Default 50; failed ones count. */
  readonly maxActionsPerTurn?: number
}

export const codes = [
  "computer_use_unavailable",
  "unsupported_action",
  "action_failed",
  "action_budget_exhausted"
] as const

const Parameters = Schema.Struct({ action: Action })

/** The screenshot goes to the model as an image, and is no part of the output. */
const Success = Schema.transform(
  Schema.Struct({ action: Schema.String, actionsLeft: Schema.Number }),
  Schema.Struct({ action: Schema.String, actionsLeft: Schema.Number, image: Schema.NullOr(ImagePart) }),
  {
    strict: true,
    decode: (output) => ({ ...output, image: null }),
    encode: ({ action, actionsLeft }) => ({ action, actionsLeft })
  }
)

const missing = ({ capability, driver }: Options): string | undefined =>
  !Capability.holds(capability)
    ? "this process holds no capability to control the machine"
    : driver === undefined
    ? "no driver for this machine is installed"
    : undefined

/**
 * The provider `computerUse`. Without a capability or a driver it is unavailable, and says why.
 *
 * Each call fails with a code of its driver's, or with `action_budget_exhausted` once its turn has had its actions: nothing
 * is done then. An interruption stops the action.
 */
export const make = (options: Options = {}): ToolProvider.ToolProvider<never, "main"> => {
  const { driver, maxActionsPerTurn = 50 } = options
  const reason = missing(options)
  const spend = budget(maxActionsPerTurn)
  const tool = Tool.make("computer_use", {
    description:
      "Controls the screen, mouse and keyboard of this machine. Take a screenshot first, and look at the one that " +
      `each action returns before the next. At most ${maxActionsPerTurn} actions a turn.`,
    kind: "command_execution",
    policy: "on-request",
    runs: "host",
    reach: "main",
    codes,
    explicitApproval: true,
    shouldAdvertise: (turn) => turn.model.inputModalities.includes("image"),
    parameters: Parameters,
    success: Success,
    handler: Effect.fnUntraced(function*({ action }) {
      if (driver === undefined || reason !== undefined) {
        return yield* toolError("computer_use_unavailable", `The machine cannot be controlled: ${reason}.`)
      }
      const { turn } = yield* ToolInvocation
      const actionsLeft = spend(turn)
      if (actionsLeft === undefined) {
        return yield* toolError(
          "action_budget_exhausted",
          `All ${maxActionsPerTurn} actions of this turn are used up. Say what is left to do, and go on in the next turn.`
        )
      }
      const { screenshot } = yield* driver.act(action)
      return {
        action: action.type,
        actionsLeft,
        image: screenshot === null ? null : ImagePart.make({ type: "image", ...screenshot })
      }
    }),
    render: ({ action, actionsLeft, image }) => [
      text(`Done: ${action}. Actions left in this turn: ${actionsLeft}.`),
      ...(image === null ? [] : [image])
    ]
  })
  return ToolProvider.make({
    id: reservedProvider,
    kind: "gui",
    tools: [tool],
    policy: reason === undefined ? usable : { enabled: true, available: false, reason }
  })
}

/** Turns whose actions are counted, those that acted last: far more than are open at once. */
const maxTurns = 1024

/** Takes one action of a turn; says how many are left, or `undefined` when there was none. */
const budget = (max: number) => {
  const used = new Map<string, number>()
  return ({ threadId, turnId }: Turn): number | undefined => {
    const turn = JSON.stringify([threadId, turnId])
    const count = (used.get(turn) ?? 0) + 1
    if (!(count <= max)) return undefined
    used.delete(turn)
    used.set(turn, count)
    const oldest = used.size > maxTurns ? used.keys().next().value : undefined
    if (oldest !== undefined) used.delete(oldest)
    return max - count
  }
}
