// The layer rule: a folder of src/ imports from itself and from the folders named here, and from no other.
// Tests may import more than the code they test, but they take part in no cycle either.
const layer = (name, may) => ({
  name: `${name}-stays-in-its-layer`,
  severity: "error",
  from: { path: `^src/${name}/`, pathNot: "\\.test\\.ts$" },
  to: { path: "^src/", pathNot: `^src/(${[`${name}/`, ...may].join("|")})` },
});

const outside = ["core", "npm", "npm-dev", "npm-optional", "npm-peer", "npm-no-pkg", "npm-unknown"];

/** @type {import("dependency-cruiser").IConfiguration} */
module.exports = {
  forbidden: [
    { name: "no-circular", severity: "error", from: {}, to: { circular: true } },
    layer("rules", []),
    layer("sql", []),
    layer("domain", ["rules/"]),
    layer("runtime", ["rules/", "domain/"]),
    layer("protocols", ["rules/", "domain/"]),
    layer("stores", ["rules/", "sql/", "domain/", "runtime/ports"]),
    layer("agents", ["rules/", "domain/", "protocols/", "runtime/ports"]),
    layer("tools", ["rules/", "domain/", "protocols/", "runtime/ports"]),
    layer("workforce", ["rules/", "sql/"]),
    layer("testing", ["rules/", "domain/", "runtime/"]),
    {
      name: "testing-is-for-tests-and-users",
      severity: "error",
      from: { path: "^src/", pathNot: ["^src/testing/", "\\.test\\.ts$"] },
      to: { path: "^src/testing/" },
    },
    {
      name: "a-file-belongs-to-a-layer",
      comment:
        "Every source file stands in one of the folders above, or in surfaces, which may import them all.",
      severity: "error",
      from: {
        path: "^src/",
        pathNot: "^src/(rules|sql|domain|runtime|protocols|stores|agents|tools|workforce|testing|surfaces)/",
      },
      to: {},
    },
    {
      name: "domain-imports-nothing-from-outside",
      severity: "error",
      from: { path: "^src/domain/", pathNot: "\\.test\\.ts$" },
      to: { dependencyTypes: outside },
    },
    {
      name: "rules-are-leaves",
      comment: "Of the platform only the hash, of npm only the JSON Schema validator.",
      severity: "error",
      from: { path: "^src/rules/", pathNot: "\\.test\\.ts$" },
      to: { dependencyTypes: outside, pathNot: ["^(node:)?crypto$", "node_modules/@cfworker/json-schema/"] },
    },
    {
      name: "sources-need-no-dev-dependency",
      severity: "error",
      from: { path: "^src/", pathNot: "\\.test\\.ts$" },
      to: { dependencyTypes: ["npm-dev"], dependencyTypesNot: ["npm", "npm-peer", "type-only"] },
    },
    {
      name: "sources-stay-in-src",
      severity: "error",
      from: { path: "^src/", pathNot: "\\.test\\.ts$" },
      to: { path: "^(test|examples|bench|scripts|dist)/" },
    },
    { name: "not-to-unresolvable", severity: "error", from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    tsConfig: { fileName: "tsconfig.json" },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["types", "import", "node", "default"],
    },
  },
};
