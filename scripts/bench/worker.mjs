/** Measures one side of one case in a process of its own, and sends the number to the parent. */
import { cases } from "./cases.mjs"
import { microseconds, several } from "./measure.mjs"

const [, , index, side] = process.argv
const options = cases[Number(index)][side]

const answer = await (async () => {
  const subject = await options.take()
  if (subject === undefined) return { value: null }
  try {
    return { value: subject.value === undefined ? await microseconds(subject, options) : await several(subject) }
  } finally {
    await subject.close?.()
  }
})().catch((error) => ({ value: null, why: String(error?.message ?? error).split("\n")[0] }))

process.send(answer, () => process.exit(0))
