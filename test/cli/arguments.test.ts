import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import { type Command, parse } from "../../layers/cli/arguments.ts"

const parsed = (...words: ReadonlyArray<string>): Command => Either.getOrThrow(parse(words))
const refused = (...words: ReadonlyArray<string>): string =>
  Either.match(parse(words), { onLeft: (error) => error.message, onRight: () => "it was taken" })

describe("the command line", () => {
  it("reads a call with all its options, in any order", () => {
    assert.deepStrictEqual(
      parsed(
        "call",
        "--json",
        "write",
        "--sandbox",
        "read-only",
        "{}",
        "--call-id=c1",
        "--claim-kind",
        "tool_call",
        "--reply=--"
      ),
      {
        _tag: "call",
        tool: "write",
        args: "{}",
        options: { json: true, sandbox: "read-only", "call-id": "c1", "claim-kind": "tool_call", reply: "--" }
      }
    )
  })

  it("takes a dash as stdin, and words after -- as they are", () => {
    assert.deepStrictEqual(parsed("call", "read", "-"), { _tag: "call", tool: "read", args: "-", options: {} })
    assert.deepStrictEqual(parsed("call", "--", "--odd", "{}"), {
      _tag: "call",
      tool: "--odd",
      args: "{}",
      options: {}
    })
  })

  it("reads the other commands", () => {
    assert.deepStrictEqual(parsed("catalog", "--explain"), { _tag: "catalog", options: { explain: true } })
    assert.deepStrictEqual(parsed("ledger"), { _tag: "ledger", options: {} })
    assert.deepStrictEqual(parsed("ledger", "list"), { _tag: "ledger", options: {} })
    assert.deepStrictEqual(parsed("ledger", "reconcile", "op_1", "--outcome", "failed"), {
      _tag: "reconcile",
      operation: "op_1",
      outcome: "failed",
      options: { outcome: "failed" }
    })
    assert.deepStrictEqual(parsed("changes"), { _tag: "changes", options: {} })
    assert.deepStrictEqual(parsed("changes", "list", "--thread", "t", "--turn", "u"), {
      _tag: "changes",
      options: { thread: "t", turn: "u" }
    })
    assert.deepStrictEqual(parsed("changes", "diff", "u", "--json"), {
      _tag: "diff",
      turn: "u",
      options: { json: true }
    })
    assert.deepStrictEqual(parsed("changes", "revert", "--thread=t", "u"), {
      _tag: "revert",
      turn: "u",
      options: { thread: "t" }
    })
    for (const words of [["help"], ["--help"], ["-h"], ["call", "--help"], ["run", "-h"]]) {
      assert.deepStrictEqual(parsed(...words), { _tag: "help" })
    }
  })

  it("says in one line what is wrong", () => {
    assert.strictEqual(refused(), "which command? portcullis help lists them")
    assert.strictEqual(refused("changes", "undo"), "changes knows list, diff and revert, not \"undo\"")
    assert.strictEqual(refused("changes", "diff"), "changes diff needs TURN")
    assert.strictEqual(refused("changes", "revert", "u", "--turn", "u"), "--turn goes with changes list")
    assert.strictEqual(
      refused("changes", "list", "u"),
      "changes list does not take \"u\"; name the turn with --turn"
    )
    assert.strictEqual(refused("cal"), "there is no command \"cal\"; did you mean call?")
    assert.strictEqual(refused("call"), "call needs TOOL")
    assert.strictEqual(refused("call", "read"), "call needs ARGS_JSON")
    assert.strictEqual(refused("call", "read", "{}", "x"), "call does not take \"x\"")
    assert.strictEqual(
      refused("call", "read", "{}", "--sandbx", "x"),
      "call has no option \"--sandbx\"; did you mean --sandbox?"
    )
    assert.strictEqual(
      refused("call", "read", "{}", "--no-json"),
      "call has no option \"--no-json\"; did you mean --json?"
    )
    assert.strictEqual(
      refused("call", "read", "{}", "--sandbox", "full"),
      "--sandbox must be one of danger-full-access, workspace-write, external-sandbox, read-only"
    )
    assert.strictEqual(refused("call", "read", "{}", "--call-id", "a", "--call-id", "b"), "--call-id is given twice")
    assert.strictEqual(
      refused("call", "read", "{}", "--call-id", "a b"),
      "--call-id must be 1 to 200 printable ASCII characters without blanks"
    )
    assert.strictEqual(refused("call", "read", "{}", "--json=yes"), "--json takes no value")
    assert.strictEqual(refused("call", "read", "{}", "--state"), "--state needs a value")
    assert.strictEqual(
      refused("call", "read", "{}", "--state", "--json"),
      "--state needs a value; one that begins with a dash is written --state=VALUE"
    )
    assert.strictEqual(refused("call", "read", "{}", "--workspace="), "--workspace must not be empty")
    assert.strictEqual(refused("run", "--model", "gpt"), "--model must be scripted:FILE, openai:NAME or anthropic:NAME")
    assert.strictEqual(refused("ledger", "burn"), "ledger knows list and reconcile, not \"burn\"")
    assert.strictEqual(
      refused("ledger", "reconcile", "op_1"),
      "ledger reconcile needs --outcome completed or --outcome failed"
    )
    assert.strictEqual(refused("ledger", "--outcome", "failed"), "--outcome goes with ledger reconcile")
  })
})
