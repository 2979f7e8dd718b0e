/** Whole planes: `Main` for an agent on Node, `Test` in memory, and the built-in tools they start with. */
export { builtin, forMain, goals, planning, questions, todos } from "./builtin.ts"
export * as Main from "./Main.ts"
export * as Test from "./Test.ts"
