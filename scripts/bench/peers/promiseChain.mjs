/** A chain of promises: the shortest line of one. */
import { writeFile } from "node:fs/promises"
import { content, desk } from "../queue.mjs"

/** `n` writes of one file handed in at once. */
export const writes = () => {
  const { close, paths: [path] } = desk(1)
  return {
    run: (n) => {
      let chain = Promise.resolve()
      for (let index = 0; index < n; index++) chain = chain.then(() => writeFile(path, content))
      return chain
    },
    close
  }
}
