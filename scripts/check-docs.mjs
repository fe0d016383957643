// Holds the documents to the code:
//   laws    docs/laws.md has one row a law, and its rows and the tests name each other
//   errors  docs/errors/ has one page a code of ERROR_CODES, and no other
//   links   relative links in the documents lead to a file
//   words   no file names a registry host or leaves work for later in a comment
// `--list` prints, for each law, the test files that name it: what belongs in the Tests column of docs/laws.md.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const LAWS = Array.from({ length: 33 }, (_, index) => `L${index + 1}`);
const LAW = /\bL[1-9]\d?\b/g;
const STATUSES = ["tested", "partial", "planned"];
const LAWS_PAGE = "docs/laws.md";
const ERROR_TABLE = "src/domain/errand-error.ts";
const ERROR_PAGES = "docs/errors";

const problems = [];
const problem = (text) => problems.push(text);

function filesUnder(folder, accepts) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => posix.join(entry.parentPath.replaceAll("\\", "/"), entry.name))
    .filter((path) => accepts(path) && !/(^|\/)(node_modules|dist)\//.test(path))
    .sort();
}

/** Test file -> the laws that its strings name. A test's name is a string, and so is that of a case in a suite. */
function lawsNamedByTests() {
  const tests = [
    ...filesUnder("src", (path) => path.endsWith(".test.ts")),
    ...filesUnder("src/testing", (path) => path.endsWith(".ts") && !path.endsWith(".test.ts")),
    ...filesUnder("test", (path) => path.endsWith(".ts")),
    ...filesUnder("examples", (path) => path.endsWith(".test.ts")),
  ];
  const named = new Map();
  for (const path of tests) {
    const laws = new Set();
    const visit = (node) => {
      if (
        ts.isStringLiteralLike(node) ||
        ts.isTemplateHead(node) ||
        ts.isTemplateMiddleOrTemplateTail(node)
      ) {
        for (const law of node.text.match(LAW) ?? []) laws.add(law);
      }
      ts.forEachChild(node, visit);
    };
    visit(ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.ES2023, true));
    if (laws.size > 0) named.set(path, laws);
  }
  return named;
}

/** The rows of the table whose header has the columns Law, Design, Status and Tests, in any order. */
function lawRows() {
  const rows = [];
  let columns;
  for (const line of readFileSync(LAWS_PAGE, "utf8").split("\n")) {
    if (!line.trimStart().startsWith("|")) {
      columns = undefined;
      continue;
    }
    const cells = line
      .trim()
      .replace(/^\||\|$/g, "")
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim());
    if (columns === undefined) {
      columns = cells.map((cell) => cell.toLowerCase());
      continue;
    }
    const cell = (name) => cells[columns.indexOf(name)] ?? "";
    const law = /^\**(L\d+)\**$/.exec(cell("law"))?.[1];
    if (law) rows.push({ law, design: cell("design"), status: cell("status"), tests: cell("tests") });
  }
  return rows;
}

function checkLaws() {
  if (!existsSync(LAWS_PAGE)) {
    problem(
      `${LAWS_PAGE} is missing: a table with the columns Law, Design, Status and Tests, one row for each of L1 to L33.`,
    );
    return;
  }
  const named = lawsNamedByTests();
  const rows = lawRows();
  for (const law of LAWS) {
    const count = rows.filter((row) => row.law === law).length;
    if (count !== 1)
      problem(`${LAWS_PAGE}: ${law} has ${count} rows, not one. A row's first cell is the bare number.`);
  }
  const claims = new Map();
  for (const { law, design, status, tests } of rows) {
    const at = `${LAWS_PAGE}: ${law}`;
    const paths = [...tests.matchAll(/`([^`]+)`/g)].map((match) => match[1]);
    claims.set(law, { status, paths });
    if (!LAWS.includes(law)) problem(`${at} is not a law.`);
    if (design === "" || design === "-") problem(`${at} does not say where the design holds it.`);
    if (!STATUSES.includes(status)) problem(`${at} has the status "${status}"; use ${STATUSES.join(", ")}.`);
    if (status === "planned" && paths.length > 0) problem(`${at} is planned, so it cannot claim tests yet.`);
    if (status !== "planned" && paths.length === 0)
      problem(`${at} is ${status}, so it must name its tests, each in backquotes.`);
    for (const path of paths) {
      if (!existsSync(path)) problem(`${at} names ${path}, which does not exist.`);
      else if (![...named].some(([file, laws]) => covers(path, file) && laws.has(law))) {
        problem(`${at} names ${path}, where no test's name has ${law} in it.`);
      }
    }
  }
  for (const [file, laws] of named) {
    for (const law of laws) {
      const claim = claims.get(law);
      if (claim === undefined) problem(`${file} names ${law}, which ${LAWS_PAGE} does not list.`);
      else if (claim.status === "planned") problem(`${file} names ${law}, which ${LAWS_PAGE} calls planned.`);
      else if (!claim.paths.some((path) => covers(path, file))) {
        problem(
          `${file} names ${law}, but the row of ${law} in ${LAWS_PAGE} does not name that file or its folder.`,
        );
      }
    }
  }
}

/** Whether a Tests entry, a file or a folder, takes in this test file. */
function covers(entry, file) {
  return file === entry || file.startsWith(entry.replace(/\/?$/, "/"));
}

function checkErrors() {
  if (!existsSync(ERROR_TABLE)) {
    problem(`${ERROR_TABLE} is missing: the table ERROR_CODES stands there.`);
    return;
  }
  const table = /export const ERROR_CODES\b[^{]*\{\n([\s\S]*?)\n\}/.exec(
    readFileSync(ERROR_TABLE, "utf8"),
  )?.[1];
  const codes = [...(table ?? "").matchAll(/^ {2}([A-Z][A-Z0-9_]*): \{/gm)].map((match) => match[1]);
  if (codes.length === 0) problem(`${ERROR_TABLE}: found no code in the table ERROR_CODES.`);
  if (!existsSync(ERROR_PAGES)) {
    problem(`${ERROR_PAGES}/ is missing: one page for each of ${codes.length} codes, named CODE.md.`);
    return;
  }
  const pages = readdirSync(ERROR_PAGES).filter((name) => name !== "README.md");
  for (const code of codes) {
    if (!pages.includes(`${code}.md`)) problem(`${ERROR_PAGES}/${code}.md is missing.`);
    else if (!readFileSync(join(ERROR_PAGES, `${code}.md`), "utf8").startsWith(`# ${code}\n`)) {
      problem(`${ERROR_PAGES}/${code}.md must start with the line "# ${code}".`);
    }
  }
  for (const page of pages) {
    if (!codes.includes(page.replace(/\.md$/, "")))
      problem(`${ERROR_PAGES}/${page} is a page without a code.`);
  }
}

function repositoryFiles() {
  const git = spawnSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    encoding: "utf8",
  });
  if (git.status !== 0) {
    problem("git ls-files failed; this check needs a git checkout.");
    return [];
  }
  return git.stdout.split("\0").filter((path) => path !== "" && existsSync(path) && statSync(path).isFile());
}

function checkLinks(files) {
  for (const path of files.filter((file) => file.endsWith(".md"))) {
    const text = readFileSync(path, "utf8").replace(/^```[\s\S]*?^```/gm, "");
    for (const [, target] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^([a-z]+:|#)/.test(target)) continue;
      if (!existsSync(join(dirname(path), target.replace(/#.*$/, ""))))
        problem(`${path} links to ${target}, which does not exist.`);
    }
  }
}

// Written in pieces, so that this file does not find itself.
const WORDS = [
  [["registry", "npm" + "js"].join("."), "a registry host"],
  [["registry", "yarn" + "pkg"].join("."), "a registry host"],
  [["deb", "deb" + "ian"].join("."), "a registry host"],
];
const LATER = new RegExp(`\\b(${["TO" + "DO", "FIX" + "ME"].join("|")})\\b`);

function checkWords(files) {
  for (const path of files) {
    const bytes = readFileSync(path);
    if (bytes.subarray(0, 8000).includes(0)) continue;
    const lock = path.endsWith("package-lock.json");
    bytes
      .toString("utf8")
      .split("\n")
      .forEach((line, index) => {
        const at = `${path}:${index + 1}`;
        for (const [word, what] of WORDS) if (line.includes(word)) problem(`${at} names ${what}.`);
        if (lock && line.includes('"resolved"')) problem(`${at} has a "resolved" address; see .npmrc.`);
        if (!lock && LATER.test(line)) problem(`${at} leaves work for later in a comment; do it or file it.`);
      });
  }
}

if (process.argv.includes("--list")) {
  const named = lawsNamedByTests();
  for (const law of LAWS) {
    const files = [...named].filter(([, laws]) => laws.has(law)).map(([file]) => `\`${file}\``);
    console.log(`${law}: ${files.join(", ") || "none"}`);
  }
} else {
  checkLaws();
  checkErrors();
  const files = repositoryFiles();
  checkLinks(files);
  checkWords(files);
  for (const text of problems) console.error(text);
  console.log(
    problems.length === 0
      ? "The documents and the code agree."
      : `${problems.length} problems in the documents.`,
  );
  process.exit(problems.length === 0 ? 0 : 1);
}
