/**
 * Where output goes that is too large for a conversation, and how it is read back.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { StateUnavailable } from "../contract/ToolFailure.ts"
import type { ThreadId } from "../contract/Turn.ts"
import { type Bounds, excerpt, fits, utf8Length } from "./Excerpt.ts"

export type { Bounds } from "./Excerpt.ts"

export interface Spilled {
  /** What `read` and `grep` take as a path. */
  readonly locator: string
  /** UTF-8 bytes kept. */
  readonly bytes: number
}

export class SpillStore extends Context.Tag("portcullis/SpillStore")<SpillStore, {
  /** Keeps a text for a thread. `name` is a hint for people; whatever it holds, it never leaves the store's own folder. */
  readonly save: (threadId: ThreadId, name: string, text: string) => Effect.Effect<Spilled, StateUnavailable>
}>() {}

/** A text as the model gets it: whole, or head, a visible gap and tail, with the way to the rest. */
export interface Bounded {
  readonly text: string
  readonly truncated: boolean
  readonly spilled: Spilled | undefined
}

/**
 * A text within its bounds; one that does not fit is saved first, and the gap says where. Never fails: when it cannot be
 * saved, head and tail are all there is, and the gap names no place. Whether an interruption leaves a saved text behind
 * is the store's affair.
 *
 * The text is kept as it is, and `read` takes no file with a NUL in it: escape control characters before.
 */
export const bounded = Effect.fnUntraced(function*(
  store: SpillStore["Type"],
  threadId: ThreadId,
  name: string,
  text: string,
  bounds: Bounds = {}
): Effect.fn.Return<Bounded> {
  const shown = text.toWellFormed()
  if (fits(shown, bounds)) return { text: shown, truncated: false, spilled: undefined }
  const spilled = yield* Effect.orElseSucceed(store.save(threadId, name, shown), () => undefined)
  return { text: excerpt(shown, bounds, spilled?.locator), truncated: true, spilled }
})

export interface MemoryOptions {
  /** UTF-8 bytes kept over all threads; the oldest texts go first. Default 64 MiB. */
  readonly maxBytes?: number
}

export interface MemoryStore {
  readonly store: SpillStore["Type"]
  /** A text that is still kept. */
  readonly find: (locator: string) => Effect.Effect<string | undefined>
}

/** However short, a text counts for this much, so that their number is bounded too. */
const leastSize = 1024

/** A store in memory, and the way to look into it. A text larger than the whole store is `state_unavailable`. */
export const makeMemory = ({ maxBytes = 64 * 1024 * 1024 }: MemoryOptions = {}): Effect.Effect<MemoryStore> =>
  Effect.sync(() => {
    const kept = new Map<string, { readonly text: string; readonly size: number }>()
    let total = 0
    return {
      store: {
        save: (_threadId, _name, text) =>
          Effect.suspend(() => {
            const bytes = utf8Length(text)
            const size = Math.max(bytes, leastSize)
            if (size > maxBytes) return Effect.fail(tooLarge(bytes, maxBytes))
            const locator = `spill:${globalThis.crypto.randomUUID()}`
            kept.set(locator, { text, size })
            total += size
            for (const [oldest, entry] of kept) {
              if (total <= maxBytes) break
              kept.delete(oldest)
              total -= entry.size
            }
            return Effect.succeed({ locator, bytes })
          })
      },
      find: (locator) => Effect.sync(() => kept.get(locator)?.text)
    }
  })

/** The refusal of a text that does not fit into a store, for stores. */
export const tooLarge = (bytes: number, maxBytes: number): StateUnavailable =>
  new StateUnavailable({
    reason: `A text of ${bytes} bytes does not fit into a spill store of ${maxBytes} bytes.`,
    executed: true
  })

/**
 * In memory, for tests and for hosts that have no disk. Its locators, `spill:<id>`, are no paths: `read` and `grep` cannot
 * open them, so what was left out is out of a model's reach.
 */
export const layerMemory = (options?: MemoryOptions): Layer.Layer<SpillStore> =>
  Layer.effect(SpillStore, Effect.map(makeMemory(options), ({ store }) => store))
