/**
 * How file tools fail: `ToolError`s whose codes are closed lists, so that a tool declares exactly what it may fail
 * with.
 *
 * @since 0.1.0
 */
import type { PlatformError } from "@effect/platform/Error"
import { type CodedError, toolError } from "../contract/ToolFailure.ts"

/** A path that cannot be followed or may not be read. */
export const pathCodes = ["path_invalid", "outside_workspace", "file_access_denied", "file_withheld"] as const
export type PathCode = typeof pathCodes[number]

/** A file that is not there, or is not one that can be shown as text, or is another by now. */
export const readCodes = [
  "file_not_found",
  "is_a_directory",
  "not_a_regular_file",
  "file_too_large",
  "file_not_text",
  "file_access_denied",
  "file_io_failed",
  "path_changed"
] as const
export type ReadCode = typeof readCodes[number]

/** A file that somebody else holds, or a lock that cannot be taken. */
export const lockCodes = ["file_locked", "lock_unavailable"] as const
export type LockCode = typeof lockCodes[number]

/** A change that cannot be put on disk; also what reading fails with, because a change looks first. */
export const changeCodes = [...readCodes, ...lockCodes, "text_invalid"] as const
export type ChangeCode = typeof changeCodes[number]

/** Edits that do not say clearly what to replace. */
export const editCodes = ["edit_invalid", "edit_not_found", "edit_ambiguous", "edit_overlap", "edit_no_change"] as const
export type EditCode = typeof editCodes[number]

export type FileCode = PathCode | ChangeCode | EditCode | "not_a_directory" | "offset_out_of_range"
export type FileError<Code extends FileCode = FileCode> = CodedError<Code>

export const fileError: <Code extends FileCode>(
  code: Code,
  message: string,
  details?: { readonly [key: string]: unknown }
) => FileError<Code> = toolError

/** A path as shown in a message: quoted, and cut when it is absurd. */
export const quote = (path: string): string => JSON.stringify(path.length > 300 ? `${path.slice(0, 300)}…` : path)

/** What the platform said, under a code. */
export const fromPlatform =
  (path: string) => (error: PlatformError): FileError<"file_not_found" | "file_access_denied" | "file_io_failed"> => {
    if (error._tag === "SystemError" && error.reason === "NotFound") {
      return fileError("file_not_found", `There is no ${quote(path)}.`)
    }
    if (error._tag === "SystemError" && error.reason === "PermissionDenied") {
      return fileError("file_access_denied", `${quote(path)} cannot be accessed: permission denied.`)
    }
    // What the platform calls the file is not what the caller does: an entry of a descriptor, or a temporary name.
    const said = error._tag === "SystemError"
      ? error.description?.replace(/, \w+ '.*$/s, "") ?? error.reason
      : error.message
    return fileError("file_io_failed", `${quote(path)}: ${said.slice(0, 500)}`)
  }
