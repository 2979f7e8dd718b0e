/** The real ripgrep over a temporary workspace. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as NodeRipgrep from "../../layers/node/Ripgrep.ts"
import * as NodeSubprocess from "../../layers/node/Subprocess.ts"
import type { Json } from "../../src/contract/Json.ts"
import { WorkspacePath } from "../../src/file/WorkspacePath.ts"
import { find, glob } from "../../src/tools/glob.ts"
import { grep } from "../../src/tools/grep.ts"
import { call, paths, turnIn, workspace, write } from "./processSupport.ts"

export const layer = Layer.mergeAll(
  NodeSubprocess.layer(),
  NodeRipgrep.layer,
  Layer.succeed(WorkspacePath, paths)
)

const tools = { grep, glob, find }

export const searching = (root: string) => (name: keyof typeof tools, args: Readonly<Record<string, Json>>) =>
  Effect.provide(call(tools[name], args, turnIn(root)), layer)

/** A workspace with these files, and its tools. */
export const over = (files: Readonly<Record<string, string | Uint8Array>>) =>
  Effect.tap(Effect.map(workspace, (root) => ({ root, search: searching(root) })), ({ root }) => write(root, files))
