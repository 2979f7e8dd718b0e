/**
 * How often a law is tried: quickly in every run, at full count in a soak run (`npm run test:soak`).
 */
const soaking = process.env["PORTCULLIS_SOAK"] === "1"

export const count = (options: { readonly quick: number; readonly soak: number }): number =>
  soaking ? options.soak : options.quick
