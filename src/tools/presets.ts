/**
 * The built-in tools in the three selections that hosts start from (seed 4.1): arrays for `ToolProvider.make`, which
 * infers what they need. The two question tools are not among them: a child agent has nobody to ask.
 *
 * @since 0.1.0
 */
import { make } from "./bash.ts"
import { edit } from "./edit.ts"
import { find, glob } from "./glob.ts"
import { grep } from "./grep.ts"
import { ls } from "./ls.ts"
import { read } from "./read.ts"
import { readImage } from "./read_image.ts"
import { write } from "./write.ts"

/** Commands, with the limits that `make` has by default. */
export const bash = make()

/** All of them. */
export const full = [read, readImage, ls, glob, find, grep, write, edit, bash] as const

/** What changing code takes. */
export const coding = [read, bash, edit, write] as const

/** What changes nothing, neither files nor anything else. */
export const readOnly = [read, readImage, grep, glob, find, ls] as const
