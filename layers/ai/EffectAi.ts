/**
 * `@effect/ai`, both ways: its `LanguageModel` as our `Model`, our catalog as one of its toolkits, and an app's own toolkit
 * behind our gates.
 *
 * @since 0.1.0
 */
export { gate, type Gated, type GatedTool, type Options as GateOptions } from "./gate.ts"
export { layerModel, makeModel, type Options as ModelOptions } from "./languageModel.ts"
export { Refusal } from "./refusal.ts"
export { toolkit } from "./toolkit.ts"
