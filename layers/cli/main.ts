#!/usr/bin/env node
/** The `portcullis` program. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Digest from "../node/Digest.ts"
import { program } from "./program.ts"
import { runMain } from "./runMain.ts"
import * as Terminal from "./Terminal.ts"

const platform = Layer.mergeAll(Terminal.layer(process), NodeFileSystem.layer, NodePath.layer, Digest.layer)

runMain(Effect.provide(program(process.argv.slice(2)), platform))
