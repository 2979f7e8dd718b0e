/** Whether text that an edit could not find is what an earlier change of the same thread replaced. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { foldCrlf } from "../internal/lines.ts"
import { ToolInvocation } from "../tool/ToolInvocation.ts"
import { FileHistory } from "./FileHistory.ts"
import { decode } from "./TextFile.ts"
import type { Resolved } from "./WorkspacePath.ts"

/** How many changes back are looked at. */
const considered = 8

/**
 * A sentence that names the newest change of the thread after which one of the texts that the file does not hold now
 * was gone, or nothing: also where the history does not say. Of a file that may not be read it must not be asked.
 */
export const replacedBy = Effect.fnUntraced(function*(
  { physical }: Resolved,
  now: string,
  quotes: ReadonlyArray<string>
): Effect.fn.Return<string, never, FileHistory | ToolInvocation> {
  const history = yield* FileHistory
  const { call, turn } = yield* ToolInvocation
  const text = foldCrlf(now)
  const wanted = quotes.map(foldCrlf).filter((quote) => !text.includes(quote))
  const held = (version: { readonly hash: string } | null) =>
    version === null ? Effect.succeed([]) : Effect.map(history.bytes(version.hash), (bytes) => {
      const decoded = bytes && Either.getOrUndefined(decode(bytes))
      const text = foldCrlf(decoded?.text ?? "")
      return wanted.filter((quote) => text.includes(quote))
    })
  return yield* Effect.gen(function*() {
    const changes = yield* history.list({ threadId: turn.threadId, path: physical })
    for (const change of changes.slice(-considered).reverse()) {
      if (change.callId === call.callId) continue
      const after = yield* held(change.after)
      const gone = (yield* held(change.before)).some((quote) => !after.includes(quote))
      if (gone) return ` It was there until your own call ${change.callId} (${change.toolName}) replaced it.`
    }
    return ""
  }).pipe(Effect.orElseSucceed(() => ""))
})
