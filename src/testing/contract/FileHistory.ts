/**
 * What every `FileHistory` that keeps something does.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { Digest } from "../../contract/Digest.ts"
import { CallId } from "../../contract/ToolCall.ts"
import { ThreadId, TurnId } from "../../contract/Turn.ts"
import { FileHistory, type Recorded } from "../../file/FileHistory.ts"
import { equal, expect, type Law, law } from "./Law.ts"

/** A change from one content to another; `null` is no file. */
export const change = (
  path: string,
  before: string | Uint8Array | null,
  after: string | Uint8Array | null,
  ids: { readonly thread?: string; readonly turn?: string; readonly call?: string; readonly tool?: string } = {}
): Effect.Effect<Recorded> =>
  Effect.map(Digest, (sha256) => {
    const bytes = (content: string | Uint8Array | null) =>
      typeof content === "string" ? new TextEncoder().encode(content) : content
    const version = (content: Uint8Array | null) =>
      content === null ? null : { hash: sha256(content), byteSize: content.length }
    return {
      threadId: ThreadId.make(ids.thread ?? "thread"),
      turnId: TurnId.make(ids.turn ?? "turn"),
      callId: CallId.make(ids.call ?? "call"),
      toolName: ids.tool ?? "edit",
      path,
      before: version(bytes(before)),
      after: version(bytes(after)),
      bytes: { before: bytes(before), after: bytes(after) }
    }
  })

const recordAll = (changes: ReadonlyArray<Effect.Effect<Recorded>>) =>
  Effect.flatMap(
    FileHistory,
    (history) => Effect.forEach(changes, (made) => Effect.tap(made, (recorded) => history.record(recorded)))
  )

const plain = ({ bytes: _, ...rest }: Recorded) => rest

export const laws: ReadonlyArray<Law<FileHistory>> = [
  law(
    "gives back what was recorded, in its order, with the bytes of both versions",
    Effect.gen(function*() {
      const history = yield* FileHistory
      const contents = ["", "one\r\n", "\ufeffone\n", new Uint8Array([0xff, 0xfe, 0, 0xd8, 0x80]), null, "结果 🜁"]
      const recorded = yield* recordAll(
        contents.map((content, index) => change(`/w/结果 ${index % 2}\n"`, contents[index - 1] ?? null, content))
      )
      const listed = yield* history.list()
      yield* equal(
        listed.map(({ at: _, sequence: __, ...rest }) => rest),
        recorded.map(plain),
        "the changes"
      )
      yield* expect(
        listed.every(({ sequence }, index) => sequence > (listed[index - 1]?.sequence ?? -1)),
        "sequence numbers that count up"
      )
      for (const { after, before, bytes } of recorded) {
        for (const [version, content] of [[before, bytes.before], [after, bytes.after]] as const) {
          if (version === null || content === null) continue
          yield* equal([...(yield* history.bytes(version.hash)) ?? []], [...content], "the bytes")
        }
      }
    })
  ),
  law(
    "keeps changes apart by thread, turn and path",
    Effect.gen(function*() {
      const history = yield* FileHistory
      yield* recordAll([
        change("/a", null, "1", { call: "1" }),
        change("/b", null, "2", { call: "2", turn: "other" }),
        change("/a", "1", "3", { call: "3", thread: "other" }),
        change("/a", "3", null, { call: "4", thread: "other", turn: "other" })
      ])
      const calls = (filter?: Parameters<typeof history.list>[0]) =>
        Effect.map(history.list(filter), (found) => found.map(({ callId }) => callId))
      yield* equal(yield* calls(), ["1", "2", "3", "4"], "all")
      yield* equal(yield* calls({ threadId: ThreadId.make("other") }), ["3", "4"], "of a thread")
      yield* equal(yield* calls({ turnId: TurnId.make("other") }), ["2", "4"], "of a turn")
      yield* equal(yield* calls({ threadId: ThreadId.make("thread"), turnId: TurnId.make("other") }), ["2"], "of both")
      yield* equal(yield* calls({ path: "/a" }), ["1", "3", "4"], "of a file")
      yield* equal(yield* calls({ path: "/" }), [], "of no file")
    })
  ),
  law(
    "knows nothing of a version that it was not given, whatever its name",
    Effect.gen(function*() {
      const history = yield* FileHistory
      yield* recordAll([change("/a", null, "text")])
      for (const hash of ["", ".", "../changes/1.log", "/etc/passwd", "0".repeat(64), "a\0b"]) {
        yield* equal(yield* history.bytes(hash), undefined, hash)
      }
    })
  ),
  law(
    "is not changed by what becomes of the bytes it was given or gave",
    Effect.gen(function*() {
      const history = yield* FileHistory
      const recorded = yield* change("/a", null, "text")
      yield* history.record(recorded)
      recorded.bytes.after?.fill(0)
      const hash = recorded.after?.hash ?? ""
      const given = yield* history.bytes(hash)
      given?.fill(0)
      yield* equal(new TextDecoder().decode(yield* history.bytes(hash)), "text", "the text")
    })
  ),
  law(
    "keeps all that is recorded at once",
    Effect.gen(function*() {
      const history = yield* FileHistory
      const indices = Array.from({ length: 50 }, (_, index) => index)
      yield* Effect.forEach(
        indices,
        (index) => Effect.flatMap(change(`/${index}`, null, `${index % 5}`), history.record),
        { concurrency: "unbounded", discard: true }
      )
      const listed = yield* history.list()
      yield* equal(new Set(listed.map(({ path }) => path)).size, 50, "files")
      yield* equal(new Set(listed.map(({ sequence }) => sequence)).size, 50, "sequence numbers")
    })
  )
]
