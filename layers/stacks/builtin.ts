/**
 * The built-in provider: the tools a coding agent starts with.
 *
 * @since 0.1.0
 */
import * as ToolProvider from "../../src/tool/ToolProvider.ts"
import * as Bash from "../../src/tools/bash.ts"
import { edit } from "../../src/tools/edit.ts"
import { find, glob } from "../../src/tools/glob.ts"
import { grep } from "../../src/tools/grep.ts"
import { ls } from "../../src/tools/ls.ts"
import { read } from "../../src/tools/read.ts"
import { requestUserInput, userInput } from "../../src/tools/user_input.ts"
import { write } from "../../src/tools/write.ts"

export const builtin = ToolProvider.make({
  id: "builtin",
  kind: "built-in",
  tools: [read, ls, glob, find, grep, write, edit, Bash.make(), userInput, requestUserInput]
})
