/** @mariozechner/pi-coding-agent: what its edit tool does between reading and writing a file. */
export const edits = async () => {
  // The package exports its tools only, and those read and write files.
  const file = new URL(
    "../node_modules/@mariozechner/pi-coding-agent/dist/core/tools/edit-diff.js",
    import.meta.url
  )
  const { applyEditsToNormalizedContent, generateDiffString, normalizeToLF } = await import(file.href)
  return { applyEditsToNormalizedContent, generateDiffString, normalizeToLF }
}

export const matching = async ({ edit, text }) => {
  const { applyEditsToNormalizedContent } = await edits()
  return {
    run: (n) => {
      for (let index = 0; index < n; index++) applyEditsToNormalizedContent(text, [edit], "f")
    }
  }
}

export const whole = async ({ edit, text }) => {
  const { applyEditsToNormalizedContent, generateDiffString, normalizeToLF } = await edits()
  return {
    run: (n) => {
      for (let index = 0; index < n; index++) {
        const { baseContent, newContent } = applyEditsToNormalizedContent(normalizeToLF(text), [edit], "f")
        generateDiffString(baseContent, newContent)
      }
    }
  }
}
