/** Text of strangers, made safe for the eyes of a person. */

/** Controls, formats (bidi, zero-width), line and paragraph separators, what draws nothing, lone surrogates; and `\u{` itself. */
const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]|\\(?=u\{)/gu

export interface Options {
  /** Keep newlines and tabs. Default `false`. */
  readonly lines?: boolean
  /** Characters shown, about; what is longer keeps its head and its tail. Default: all. */
  readonly max?: number | undefined
}

/**
 * `text` with everything that a terminal would act on or that an eye would miss as `\u{202e}`. Two different texts never
 * look alike, unless they were cut.
 */
export const display = (text: string, options: Options = {}): string => {
  const { max = Number.POSITIVE_INFINITY } = options
  if (text.length <= max) return escape(text, options.lines === true)
  const characters = Array.from(text)
  const head = Math.ceil(max * 0.7)
  const tail = Math.floor(max * 0.3)
  const missing = characters.length - head - tail
  if (missing <= 0) return escape(text, options.lines === true)
  const part = (from: number, to: number) => escape(characters.slice(from, to).join(""), options.lines === true)
  return `${part(0, head)} [… ${missing} characters not shown …] ${part(characters.length - tail, characters.length)}`
}

const escape = (text: string, lines: boolean): string =>
  text.replace(
    hidden,
    (found) => lines && (found === "\n" || found === "\t") ? found : `\\u{${(found.codePointAt(0) ?? 0).toString(16)}}`
  )

/** JSON text in which what `display` would escape is escaped as JSON does it: the same value, safe to print. */
export const displayJson = (value: unknown, indent?: number): string =>
  JSON.stringify(value, undefined, indent).replace(hidden, (found) =>
    found === "\n" || found === "\\"
      ? found
      : Array.from(
        { length: found.length },
        (_, index) => `\\u${found.charCodeAt(index).toString(16).padStart(4, "0")}`
      ).join(""))
