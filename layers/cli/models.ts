/** `--model`: a script, or a vendor's model through the packages of `@effect/ai`, which are loaded when one is asked for. */
import type * as LanguageModel from "@effect/ai/LanguageModel"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as FileSystem from "@effect/platform/FileSystem"
import type * as HttpClient from "@effect/platform/HttpClient"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import type { Model } from "../../src/agent/Model.ts"
import * as ScriptedModel from "../../src/testing/ScriptedModel.ts"
import { CliError } from "./CliError.ts"

/** A package that provides a `LanguageModel`; none is installed unless the user wants it. */
export interface Vendor {
  readonly package: string
  readonly range: string
  readonly client: string
  readonly model: string
  /** Environment variable of the key. */
  readonly key: string
  readonly config?: { readonly max_tokens: number }
}

export const vendors: { readonly [Name in "openai" | "anthropic"]: Vendor } = {
  openai: {
    package: "@effect/ai-openai",
    range: "^0.41.0",
    client: "OpenAiClient",
    model: "OpenAiLanguageModel",
    key: "OPENAI_API_KEY"
  },
  anthropic: {
    package: "@effect/ai-anthropic",
    range: "^0.27.0",
    client: "AnthropicClient",
    model: "AnthropicLanguageModel",
    key: "ANTHROPIC_API_KEY",
    // The package's own default of 4096 cuts a file of ordinary length off.
    config: { max_tokens: 8192 }
  }
}

const unavailable = (message: string): CliError => new CliError({ code: "model_unavailable", message })

/** What the packages export, as far as it is used; a client is a service that only they know. */
interface Client {
  readonly client: unique symbol
}
interface ClientModule {
  readonly layer: (options: { readonly apiKey: Redacted.Redacted }) => Layer.Layer<Client, never, HttpClient.HttpClient>
}
interface ModelModule {
  readonly layer: (
    options: { readonly model: string; readonly config?: Vendor["config"] }
  ) => Layer.Layer<LanguageModel.LanguageModel, never, Client>
}

const hasLayer = (module: unknown): boolean =>
  Predicate.hasProperty(module, "layer") && typeof module.layer === "function"
const isClient = (module: unknown): module is ClientModule => hasLayer(module)
const isModel = (module: unknown): module is ModelModule => hasLayer(module)

const load = (vendor: Vendor, name: string): Effect.Effect<unknown, CliError> => {
  const specifier = `${vendor.package}/${name}`
  return Effect.tryPromise({
    try: (): Promise<unknown> => import(specifier),
    catch: (cause) =>
      unavailable(
        Predicate.hasProperty(cause, "code") && cause.code === "ERR_MODULE_NOT_FOUND"
          ? `this model needs a package that is not installed: npm install ${vendor.package}@${vendor.range} @effect/ai@^0.37.0`
          : `${specifier} cannot be loaded: ${cause instanceof Error ? cause.message : String(cause)}`
      )
  })
}

/** The key is looked for first: it is what is missing most often. */
const fromVendor = (vendor: Vendor, model: string): Effect.Effect<Layer.Layer<Model>, CliError> =>
  Effect.gen(function*() {
    const apiKey = yield* Effect.orElseSucceed(Config.redacted(vendor.key), () => Redacted.make(""))
    if (Redacted.value(apiKey) === "") return yield* unavailable(`${vendor.key} is not set`)
    const client = yield* load(vendor, vendor.client)
    const language = yield* load(vendor, vendor.model)
    if (!isClient(client) || !isModel(language)) {
      return yield* unavailable(`${vendor.package} is not the version that is known here (${vendor.range})`)
    }
    const { layerModel } = yield* Effect.promise(() => import("../ai/EffectAi.ts"))
    return layerModel({ name: model }).pipe(
      Layer.provide(language.layer({ model, ...vendor.config === undefined ? {} : { config: vendor.config } })),
      Layer.provide(client.layer({ apiKey })),
      Layer.provide(FetchHttpClient.layer)
    )
  })

const maxScriptBytes = 16 * 1024 * 1024

const fromScript = (file: string): Effect.Effect<Layer.Layer<Model>, CliError, FileSystem.FileSystem> =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const { size } = yield* fs.stat(file)
    if (size > maxScriptBytes) return yield* unavailable(`the script ${file} is larger than ${maxScriptBytes} bytes`)
    return ScriptedModel.layer(yield* ScriptedModel.decode(yield* fs.readFileString(file)))
  }).pipe(
    Effect.mapError((error) => error._tag === "CliError" ? error : unavailable(`the script ${file}: ${error.message}`))
  )

/** Of `scripted:FILE`, `openai:NAME`, `anthropic:NAME`. A missing key, package or script is `model_unavailable`. */
export const layer = (choice: string): Effect.Effect<Layer.Layer<Model>, CliError, FileSystem.FileSystem> => {
  const [kind = ""] = choice.split(":", 1)
  const name = choice.slice(kind.length + 1)
  return kind === "openai" || kind === "anthropic" ? fromVendor(vendors[kind], name) : fromScript(name)
}
