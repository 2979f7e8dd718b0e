/** The package that this module belongs to. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { fileURLToPath } from "node:url"

const decode = Schema.decodeUnknownOption(
  Schema.parseJson(Schema.Struct({ name: Schema.Literal("portcullis"), version: Schema.String }))
)

/** Its folder and its version; `None` when the module was taken out of it. */
export const manifest = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const here = path.dirname(fileURLToPath(import.meta.url))
  for (let folder = here; folder !== path.dirname(folder); folder = path.dirname(folder)) {
    const text = yield* Effect.orElseSucceed(fs.readFileString(path.join(folder, "package.json")), () => "")
    const found = decode(text)
    if (Option.isSome(found)) return Option.some({ folder, version: found.value.version })
  }
  return Option.none()
})
