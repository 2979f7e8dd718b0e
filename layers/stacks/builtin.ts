/**
 * The built-in providers: the tools a coding agent starts with.
 *
 * @since 0.1.0
 */
import { createGoal, getGoal, updateGoal } from "../../src/agent/tools/goal.ts"
import { todoList, todoWrite } from "../../src/agent/tools/todo.ts"
import { createPlan } from "../../src/plan/create_plan.ts"
import * as ToolProvider from "../../src/tool/ToolProvider.ts"
import * as ComputerUse from "../../src/tools/computer_use.ts"
import * as presets from "../../src/tools/presets.ts"
import { requestUserInput, userInput } from "../../src/tools/user_input.ts"

/** What every agent may hold. */
export const builtin = ToolProvider.make({ id: "builtin", kind: "built-in", tools: presets.full })

/** The tools that ask the user something: for the main agent alone. */
export const questions = ToolProvider.make({
  id: "user-input",
  kind: "built-in",
  tools: [userInput, requestUserInput]
})

/** The plan of a plan turn. */
export const planning = ToolProvider.make({ id: "plan", kind: "built-in", tools: [createPlan] })

/** What a thread is after. */
export const goals = ToolProvider.make({ id: "goal", kind: "gui", tools: [getGoal, createGoal, updateGoal] })

/** What a thread has to do. */
export const todos = ToolProvider.make({ id: "todo", kind: "gui", tools: [todoList, todoWrite] })

/** All that the main agent holds beside `builtin`. Nothing here drives the machine yet, so `computer_use` is unavailable. */
export const forMain = [questions, planning, goals, todos, ComputerUse.make()] as const
