/** `proper-lockfile`: the usual way to keep other processes from a file. */
import lockfile from "proper-lockfile"
import { desk } from "../queue.mjs"

/** `n` no-op bodies under its lock, one after another, over so many files: it has no line of its own. */
export const sequence = (files) => {
  const { close, paths } = desk(files)
  return {
    run: async (n) => {
      for (let index = 0; index < n; index++) {
        const release = await lockfile.lock(paths[index % files], { realpath: false })
        await release()
      }
    },
    close
  }
}
