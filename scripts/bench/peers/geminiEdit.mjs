/** @google/gemini-cli-core: its edit tool's matcher, exact or with the leniency for indentation that it tries next. */
export const matching = async ({ edit, text }) => {
  const { calculateReplacement } = await import("@google/gemini-cli-core/dist/src/tools/edit.js")
  const { Config } = await import("@google/gemini-cli-core")
  const config = new Config({
    sessionId: "bench",
    targetDir: "/",
    cwd: "/",
    debugMode: false,
    model: "none",
    telemetry: { enabled: false },
    usageStatisticsEnabled: false
  })
  const params = { file_path: "f", old_string: edit.oldText, new_string: edit.newText }
  const { occurrences } = await calculateReplacement(config, { params, currentContent: text })
  if (occurrences !== 1) throw new Error(`gemini-cli-core found ${occurrences} places`)
  return {
    run: async (n) => {
      for (let index = 0; index < n; index++) await calculateReplacement(config, { params, currentContent: text })
    }
  }
}
