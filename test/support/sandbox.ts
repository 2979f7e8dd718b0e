/** Whether bubblewrap works here; a test that needs it skips, and says so, where it does not. */
import * as Effect from "effect/Effect"
import * as NodeSubprocess from "../../layers/node/Subprocess.ts"
import * as Bubblewrap from "../../layers/sandbox/Bubblewrap.ts"

export const whyUnconfined: string | undefined = await Effect.runPromise(
  Bubblewrap.make().pipe(
    Effect.match({ onFailure: ({ reason }) => reason, onSuccess: () => undefined }),
    Effect.provide(NodeSubprocess.layer())
  )
)
if (whyUnconfined !== undefined) console.warn(`skipped without bubblewrap: ${whyUnconfined}`)

export const confines: boolean = whyUnconfined === undefined
