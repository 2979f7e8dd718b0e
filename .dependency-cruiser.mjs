import { pureLibraries } from "./scripts/check/libraries.mjs"

/** The folders of `src/`, lowest first. A folder may import its own row and the rows above it; rows never form a cycle. */
const rows = [
  ["contract", "internal"],
  ["journal", "spill"],
  ["tool"],
  ["file", "process"],
  ["gate"],
  ["catalog"],
  ["host"],
  ["tools", "hook", "plan", "mcp", "skill", "memory", "web"],
  ["agent"],
  ["testing"]
]

const folders = (names) => `^src/(${names.join("|")})/`

const arrows = rows.slice(0, -1).map((row, index) => ({
  name: `arrow-${row.join("-")}`,
  comment: `src/{${row.join(",")}} stands below what it imports here.`,
  severity: "error",
  from: { path: folders(row) },
  to: { path: folders(rows.slice(index + 1).flat()) }
}))

const packages = (names) => `(^|/)node_modules/(${names.join("|")})/`

const forbid = (name, comment, from, to) => ({ name, comment, severity: "error", from, to })

export default {
  forbidden: [
    ...arrows,
    forbid("no-cycle", "Modules never load each other in a circle; types may refer to each other.", {}, {
      circular: true,
      viaOnly: { dependencyTypesNot: ["type-only"] }
    }),
    {
      name: "no-folder-cycle",
      comment: "Folders of one row never import each other in a circle.",
      severity: "error",
      scope: "folder",
      from: { path: "^(src|layers)/[^/]+$" },
      to: { circular: true, path: "^(src|layers)/[^/]+$" }
    },
    forbid("known-folder", "Every folder of src has a place in the order of arrows.", {
      path: "^src/[^/]+/",
      pathNot: folders(rows.flat())
    }, {}),
    forbid("internal-is-low", "src/internal serves every folder, so it knows the vocabulary alone.", {
      path: "^src/internal/"
    }, { path: "^src/", pathNot: folders(rows[0]) }),
    forbid("src-no-platform", "src never imports node:*.", { path: "^src/" }, { dependencyTypes: ["core"] }),
    forbid("src-no-layers", "src declares, layers implement.", { path: "^src/" }, {
      path: "^(layers|scripts|test)/"
    }),
    forbid("src-pure-libraries", "src imports the pure libraries alone (scripts/check/libraries.mjs).", {
      path: "^src/"
    }, {
      path: "(^|/)node_modules/",
      pathNot: packages(pureLibraries)
    }),
    forbid("layers-not-scripts", "What is shipped never imports what is not.", { path: "^layers/" }, {
      path: "^(scripts|test)/"
    }),
    forbid("layers-apart", "Two layer folders never import each other; the stacks and the entry points compose them.", {
      path: "^layers/([^/]+)/",
      pathNot: "^layers/(stacks|cli|http)/|^layers/mcp/Serv"
    }, { path: "^layers/", pathNot: "^layers/$1/" }),
    forbid(
      "testing-is-for-tests",
      "src/testing is for tests, for the Test stack, for the command line and for scripts.",
      {
        path: "^(src|layers)/",
        pathNot: "^src/testing/|^src/index\\.ts$|^layers/(stacks|cli)/"
      },
      { path: "^src/testing/" }
    ),
    forbid("index-is-for-users", "The barrel is for users: inside, import the module.", { path: "^(src|layers)/" }, {
      path: "^src/index\\.ts$"
    }),
    forbid("declared", "A shipped module imports dependencies and peers, never a dev dependency.", {
      path: "^(src|layers)/"
    }, {
      dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown"],
      dependencyTypesNot: ["npm", "npm-peer", "npm-optional"]
    }),
    forbid("resolvable", "Every import leads somewhere.", {}, { couldNotResolve: true })
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    exclude: { path: "^(dist|\\.cache|scripts/bench)/" },
    // Type-only imports obey the arrows too.
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "node", "default", "types"],
      mainFields: ["module", "main", "types"]
    },
    combinedDependencies: false
  }
}
