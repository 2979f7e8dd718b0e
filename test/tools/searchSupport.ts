/** The real ripgrep over a temporary workspace, and searching without it. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as NodeFileAccess from "../../layers/node/FileAccess.ts"
import * as NodeRipgrep from "../../layers/node/Ripgrep.ts"
import * as NodeSubprocess from "../../layers/node/Subprocess.ts"
import type { Json } from "../../src/contract/Json.ts"
import { WorkspacePath } from "../../src/file/WorkspacePath.ts"
import { layerUnavailable } from "../../src/process/Ripgrep.ts"
import { find, glob } from "../../src/tools/glob.ts"
import { grep } from "../../src/tools/grep.ts"
import { call, paths, turnIn, workspace, write } from "./processSupport.ts"

/** What is withheld in tests; each name for itself. */
const withheld = new Set([".env", "secret.txt"])

export const files = Layer.mergeAll(
  NodeFileSystem.layer,
  NodeFileAccess.layer(),
  Layer.succeed(WorkspacePath, { ...paths, withholds: (path) => withheld.has(path.slice(path.lastIndexOf("/") + 1)) })
)

export const layer = Layer.mergeAll(NodeSubprocess.layer(), NodeRipgrep.layer, files)

const scanning = Layer.mergeAll(NodeSubprocess.layer(), layerUnavailable("not here"), files)

export const tools = { grep, glob, find }

export const searching =
  (root: string, by: "ripgrep" | "scan" = "ripgrep") =>
  (name: keyof typeof tools, args: Readonly<Record<string, Json>>) =>
    Effect.provide(call(tools[name], args, turnIn(root)), by === "ripgrep" ? layer : scanning)

/** A workspace with these files, and its tools, with and without ripgrep. */
export const over = (content: Readonly<Record<string, string | Uint8Array>>) =>
  Effect.tap(
    Effect.map(workspace, (root) => ({ root, search: searching(root), scan: searching(root, "scan") })),
    ({ root }) => write(root, content)
  )
