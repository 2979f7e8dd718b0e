/** The grep tool of `@mariozechner/pi-coding-agent`, with the same ripgrep. */
import { createGrepTool } from "@mariozechner/pi-coding-agent"
import { rgPath } from "@vscode/ripgrep"
import { delimiter, dirname } from "node:path"
import { tree } from "../search.mjs"

export const grepCommon = async () => {
  process.env.PATH = dirname(rgPath) + delimiter + process.env.PATH
  const root = tree()
  const tool = createGrepTool(root)
  return {
    run: async (n) => {
      for (let index = 0; index < n; index++) {
        const { content } = await tool.execute("call", { pattern: "everywhere", path: root })
        if (!content[0].text.includes("everywhere")) throw new Error("nothing was found")
      }
    }
  }
}
