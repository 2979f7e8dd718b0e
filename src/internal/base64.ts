const alphabet = new TextEncoder().encode("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")

const digit = (bits: number): number => alphabet[bits & 63] ?? 0

/** Base64 of any bytes, with padding: what `effect/Encoding` has takes seconds for a few megabytes. */
export const base64 = (bytes: Uint8Array): string => {
  const out = new Uint8Array(Math.ceil(bytes.length / 3) * 4).fill(0x3d)
  for (let at = 0, to = 0; at < bytes.length; at += 3, to += 4) {
    const bits = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0)
    out[to] = digit(bits >>> 18)
    out[to + 1] = digit(bits >>> 12)
    if (at + 1 < bytes.length) out[to + 2] = digit(bits >>> 6)
    if (at + 2 < bytes.length) out[to + 3] = digit(bits)
  }
  return new TextDecoder().decode(out)
}
