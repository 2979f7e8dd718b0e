import { assert, it } from "@effect/vitest"
import { count } from "./counts.ts"

it("a law is tried at its quick count, and at its full count in a soak run", () => {
  assert.strictEqual(count({ quick: 5, soak: 200 }), process.env["PORTCULLIS_SOAK"] === "1" ? 200 : 5)
})
