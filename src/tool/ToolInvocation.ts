/**
 * What a handler may use of the call it serves. It is a service, so a handler that never looks at it needs no argument.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Json, JsonObject } from "../contract/Json.ts"
import type { ToolKind } from "../contract/Policy.ts"
import type { CallId } from "../contract/ToolCall.ts"
import type { Turn } from "../contract/Turn.ts"

/** The call that hooks and decoding left: frozen, canonical, hashed. Approval, execution and audit see this one value. */
export interface EffectiveCall {
  readonly callId: CallId
  readonly toolName: string
  /** The stricter of the declared and the claimed kind. */
  readonly kind: ToolKind
  readonly arguments: JsonObject
  /** The kind, a colon, and the hexadecimal SHA-256 of the canonical arguments. */
  readonly digest: string
}

/** One existing file outside the roots that this call may write, by identity and not by name. */
export interface WriteGrant {
  /** Physical. */
  readonly path: string
  readonly device: number
  readonly inode: number
  readonly parentDevice: number
  readonly parentInode: number
}

/** What a tool saw of a file, for the read tracker. `write` is our own change and refreshes what was read. */
export interface Observation {
  readonly access: "read" | "write"
  /** Physical. */
  readonly path: string
  /** SHA-256 of the whole content on disk, hexadecimal. */
  readonly hash: string
  /** Whether only a part was shown. */
  readonly partial: boolean
  /**
   * Which part, by bytes of the text as UTF-8 without a byte order mark: from the first that was shown to the first after
   * it that was not; `null` when there is none. Parts of one content that join on to each other from its beginning become
   * a read of the whole.
   */
  readonly span?: { readonly from: number; readonly to: number | null }
}

export class ToolInvocation extends Context.Tag("portcullis/ToolInvocation")<ToolInvocation, {
  readonly turn: Turn
  readonly call: EffectiveCall
  /** Outside-workspace targets that were approved for this call alone. */
  readonly grants: ReadonlyArray<WriteGrant>
  /** Publishes a progress value; the newest wins, a slow listener never slows the tool. */
  readonly progress: (value: Json) => Effect.Effect<void>
  /** Tells what was seen of a file; it counts once the call has settled. */
  readonly observe: (observation: Observation) => Effect.Effect<void>
}>() {}
