/**
 * The tools that look at files and change them, ready for a provider.
 *
 * @since 0.1.0
 */
import { edit } from "./edit.ts"
import { ls } from "./ls.ts"
import { read } from "./read.ts"
import { write } from "./write.ts"

export const fileTools = [read, ls, write, edit] as const
