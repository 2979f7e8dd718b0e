/**
 * The built-in tools under short names that stay, wherever their implementation moves (seed 4.1).
 *
 * @since 0.1.0
 */
export { make as makeBash } from "./bash.ts"
export { make as makeComputerUse } from "./computer_use.ts"
export { edit } from "./edit.ts"
export { find, glob } from "./glob.ts"
export { grep } from "./grep.ts"
export { ls } from "./ls.ts"
export { bash, coding, full, readOnly } from "./presets.ts"
export { read } from "./read.ts"
export { readImage } from "./read_image.ts"
export { requestUserInput, userInput } from "./user_input.ts"
export { write } from "./write.ts"
