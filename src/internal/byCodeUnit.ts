/** The order of texts by UTF-16 code unit: the same on every machine, whatever its locale. */
export const byCodeUnit = (left: string, right: string): number => left < right ? -1 : left > right ? 1 : 0
