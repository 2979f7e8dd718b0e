import * as effect from "@effect/eslint-plugin"
import parser from "@typescript-eslint/parser"

const format = {
  indentWidth: 2,
  lineWidth: 120,
  semiColons: "asi",
  quoteStyle: "alwaysDouble",
  trailingCommas: "never",
  operatorPosition: "maintain",
  "arrowFunction.useParentheses": "force"
}

const barrels = [
  "effect",
  "@effect/ai",
  "@effect/cluster",
  "@effect/experimental",
  "@effect/platform",
  "@effect/platform-node",
  "@effect/rpc",
  "@effect/sql",
  "@effect/sql-sqlite-node",
  "@effect/workflow"
]

const barrelPaths = barrels.map((name) => ({ name, message: `Import the module: "${name}/Module".` }))

const ban = (selector, message) => ({ selector, message })
const member = (object, property) => `MemberExpression[object.name='${object}'][property.name=${property}]`

const everywhere = [
  ban("TSAnyKeyword", "No `any`: decode it with Schema, or take `unknown`."),
  ban("TSNonNullExpression", "No `!`: handle the missing case."),
  ban("MemberExpression[property.name='forkDaemon']", "No daemons: every fork names its scope."),
  ban("ImportDeclaration[source.value=/^\\.(?!.*\\/dist\\/).*(?<!\\.d)\\.js$/]", "Relative imports end in .ts.")
]

const doubleCast = ban("TSAsExpression > TSAsExpression[typeAnnotation.type='TSUnknownKeyword']", "No double cast.")

const shipped = [
  ...everywhere,
  ban("TSAsExpression[typeAnnotation.type='TSNeverKeyword']", "No cast to `never`."),
  ban("Program > VariableDeclaration[kind='let']", "No mutable state in a module."),
  ban("Program > ExportNamedDeclaration > VariableDeclaration[kind='let']", "No mutable state in a module."),
  ban(
    "Program > :matches(VariableDeclaration, ExportNamedDeclaration) " +
      "NewExpression[callee.name=/^(Weak)?(Map|Set)$/][arguments.length=0]:not(:function *)",
    "No mutable state in a module."
  ),
  ban(member("Effect", "'Service'"), "A tag and separate layers instead of Effect.Service."),
  ban(member("Effect", "/^(unsafeM|m)akeSemaphore$/"), "Not FIFO, and quadratic in its waiters: use FifoSemaphore."),
  ban("ImportDeclaration[source.value='effect/PartitionedSemaphore']", "Loses permits under interruption.")
]

const runsEffects = ban(member("Effect", "/^run/"), "Effects are run at the entry points only.")

const platformNeutral = [
  ...shipped,
  doubleCast,
  runsEffects,
  ban(member("Runtime", "/^run/"), "Effects are run at the entry points only."),
  ban("TryStatement", "No try: use Effect.try in a layer, or an Either."),
  ban(":function[async=true]", "No async functions: use Effect."),
  ban("AwaitExpression", "No await: use Effect."),
  ban("NewExpression[callee.name='Promise']", "No bare Promise: use Effect."),
  ban("MemberExpression[object.name='Promise']", "No bare Promise: use Effect."),
  ban(member("Date", "'now'"), "Tests own the time: use Clock."),
  ban("NewExpression[callee.name='Date'][arguments.length=0]", "Tests own the time: use Clock."),
  ban(member("Math", "'random'"), "Tests own chance: use Random."),
  ban("CallExpression[callee.name=/^set(Timeout|Interval|Immediate)$/]", "Tests own the time: use Effect.sleep.")
]

const unfinished = ["todo", "fixme", "xxx", "hack", "@ts-ignore", "@ts-nocheck"]

export default [
  { ignores: ["**/node_modules/", "dist/", ".cache/", "coverage/"] },
  {
    files: ["**/*.{ts,mjs}"],
    languageOptions: { parser, ecmaVersion: 2024, sourceType: "module" },
    // Exceptions to a rule live in this file, where they can be counted.
    linterOptions: { noInlineConfig: true },
    plugins: { "@effect": effect },
    rules: {
      "@effect/dprint": ["error", { config: format }],
      "@effect/no-import-from-barrel-package": ["error", { packageNames: barrels }],
      "no-restricted-imports": ["error", { paths: barrelPaths }],
      "no-restricted-syntax": ["error", ...everywhere],
      "no-warning-comments": ["error", { terms: unfinished, location: "anywhere" }],
      eqeqeq: "error",
      "no-debugger": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error"
    }
  },
  {
    files: ["src/**/*.ts", "layers/**/*.ts"],
    rules: {
      "max-lines": ["error", { max: 450 }],
      "no-console": "error",
      "no-warning-comments": ["error", { terms: [...unfinished, "@ts-expect-error"], location: "anywhere" }]
    }
  },
  {
    files: ["src/**/*.ts"],
    rules: {
      "no-restricted-imports": ["error", {
        paths: barrelPaths,
        patterns: [
          { regex: "^node:", message: "src is platform-neutral: put it in a layer." },
          { regex: "(^|/)layers/", message: "src declares, layers implement." }
        ]
      }],
      "no-restricted-syntax": ["error", ...platformNeutral]
    }
  },
  {
    files: ["layers/**/*.ts"],
    rules: { "no-restricted-syntax": ["error", ...shipped, doubleCast, runsEffects] }
  },
  {
    files: ["layers/cli/**/*.ts"],
    rules: { "no-restricted-syntax": ["error", ...shipped, doubleCast] }
  },
  {
    // The types of @effect/ai do not say what its toolkits hold at run time.
    files: ["layers/ai/gate.ts", "layers/ai/specTool.ts"],
    rules: { "no-restricted-syntax": ["error", ...shipped, runsEffects] }
  }
]
