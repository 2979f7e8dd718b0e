/** Why a command could not be carried out; it exits with code 2 and this one line. */
import * as Schema from "effect/Schema"

export class CliError extends Schema.TaggedError<CliError>("portcullis/cli/CliError")("CliError", {
  /**
   * `usage`: the command line is wrong. `workspace_unavailable`: no such directory. `state_refused`: the state file may not
   * be used, and was not touched. `input_unreadable`: a file or stdin could not be read. `model_unavailable`: the model that
   * was asked for cannot be had.
   */
  code: Schema.Literal("usage", "workspace_unavailable", "state_refused", "input_unreadable", "model_unavailable"),
  /** As it is; it is escaped when it is printed. */
  message: Schema.String
}) {}

export const usage = (message: string): CliError => new CliError({ code: "usage", message })
