/**
 * What every `ProcessSandbox` does, whatever it can confine.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { type ConfineOptions, ProcessSandbox } from "../../process/ProcessSandbox.ts"
import { equal, expect, type Law, law } from "./Law.ts"

const options = (mode: ConfineOptions["mode"]): ConfineOptions => ({ mode, roots: [], cwd: "/" })
const argv = ["/bin/echo", "a b", "$HOME", "--"]

export const laws: ReadonlyArray<Law<ProcessSandbox>> = [
  law(
    "full access runs the argv as it is",
    Effect.flatMap(
      ProcessSandbox,
      (sandbox) =>
        Effect.scoped(Effect.flatMap(
          sandbox.confine(argv, options("danger-full-access")),
          (confined) => equal(confined, argv, "argv")
        ))
    )
  ),
  law(
    "where it reports nothing, or that it cannot be had, it confines nothing, and says sandbox_unavailable",
    Effect.gen(function*() {
      const sandbox = yield* ProcessSandbox
      const report = yield* Effect.either(sandbox.report)
      for (const mode of ["read-only", "workspace-write", "external-sandbox"] as const) {
        const confined = yield* Effect.either(Effect.scoped(sandbox.confine(argv, options(mode))))
        const confines = Either.isRight(report) && report.right !== "none"
        if (Either.isLeft(confined)) yield* equal(confined.left.code, "sandbox_unavailable", mode)
        yield* expect(confines || Either.isLeft(confined), `${mode}: runs unconfined`)
      }
    })
  ),
  law(
    "what it confines ends in the argv itself, argument by argument",
    Effect.gen(function*() {
      const sandbox = yield* ProcessSandbox
      const confined = yield* Effect.either(Effect.scoped(sandbox.confine(argv, options("workspace-write"))))
      if (Either.isRight(confined)) yield* equal(confined.right.slice(-argv.length), argv, "the end of the argv")
    })
  ),
  law(
    "where it confines by itself, it never confines to everything",
    Effect.gen(function*() {
      const sandbox = yield* ProcessSandbox
      const report = yield* Effect.either(sandbox.report)
      if (Either.isLeft(report) || report.right === "external") return
      const everything = { ...options("workspace-write"), roots: ["/"] }
      const confined = yield* Effect.either(Effect.scoped(sandbox.confine(argv, everything)))
      yield* expect(Either.isLeft(confined) && confined.left.code === "sandbox_unavailable", "the root / was taken")
    })
  )
]
