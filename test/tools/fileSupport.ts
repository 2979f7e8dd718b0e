/** A workspace, and the file tools bound to it. */
import * as Effect from "effect/Effect"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { JsonObject } from "../../src/contract/Json.ts"
import { ls } from "../../src/tools/ls.ts"
import { read } from "../../src/tools/read.ts"
import { readImage } from "../../src/tools/read_image.ts"
import { write } from "../../src/tools/write.ts"
import { call, world } from "../fixtures/files.ts"

export const plain = (output: unknown): Record<string, unknown> => Object(output)

export const detailsOf = <A, R>(effect: Effect.Effect<A, unknown, R>) =>
  Effect.map(Effect.flip(effect), (error) => plain(plain(error)["details"]))

export const desk = Effect.gen(function*() {
  const place = yield* world
  const { turn, workspace } = place
  const at = (name: string) => join(workspace, name)
  return {
    ...place,
    at,
    put: (name: string, content: string | Uint8Array) => writeFileSync(at(name), content),
    disk: (name: string) => readFileSync(at(name), "utf8"),
    bytes: (name: string) => [...readFileSync(at(name))],
    read: (args: JsonObject) =>
      Effect.map(call(read, turn, args), ({ content, output }) => ({ content, output: plain(output) })),
    image: (path: string) =>
      Effect.map(call(readImage, { ...turn, model: { inputModalities: ["text", "image"] } }, { path }), (produced) => ({
        ...produced,
        output: plain(produced.output)
      })),
    list: (args: JsonObject) =>
      Effect.map(call(ls, turn, args), ({ content, output }) => ({ content, output: plain(output) })),
    ls: (args: JsonObject) => Effect.map(call(ls, turn, args), ({ output }) => plain(output)),
    write: (path: string, content: string, more: JsonObject = {}) =>
      Effect.map(call(write, turn, { path, content, ...more }), ({ output }) => plain(output))
  }
})
