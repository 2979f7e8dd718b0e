/**
 * Where tools come from. "Switched off" and "broken" are two things, and each carries its reason (seed 3.1).
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/** The seed's ten kinds (3.1), closed. */
export const ProviderKind = Schema.Literal(
  "built-in",
  "mcp",
  "web",
  "skill",
  "memory",
  "gui",
  "delegation",
  "image",
  "audio",
  "video"
)
export type ProviderKind = typeof ProviderKind.Type

export const ProviderPolicy = Schema.Struct({
  /** The user's switch. */
  enabled: Schema.Boolean,
  /** The backend's health. */
  available: Schema.Boolean,
  /** Why it is off or broken, for people. */
  reason: Schema.optionalWith(Schema.String, { exact: true })
})
export type ProviderPolicy = typeof ProviderPolicy.Type

export const usable: ProviderPolicy = { enabled: true, available: true }
