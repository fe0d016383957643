// The pure folders and the loop around them take time, randomness and identity from their arguments and ports.
// This fails on a clock or a random source read anywhere in src/rules, src/domain or src/runtime, tests excepted.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const MEMBERS = new Map([
  ["Date", ["now"]],
  ["Math", ["random"]],
  ["performance", ["now"]],
  ["crypto", ["randomUUID", "getRandomValues"]],
  ["process", ["hrtime", "uptime"]],
]);
const IMPORTS = new Map([
  ["node:crypto", ["randomUUID", "randomBytes", "randomInt", "randomFillSync", "webcrypto"]],
  ["node:perf_hooks", ["performance"]],
]);

/** What is wrong with one node, or undefined. */
function impurity(node) {
  if (ts.isPropertyAccessExpression(node) || ts.isElementAccessExpression(node)) {
    let object = node.expression;
    if (ts.isPropertyAccessExpression(object) && object.expression.getText() === "globalThis")
      object = object.name;
    const member = ts.isPropertyAccessExpression(node) ? node.name.text : node.argumentExpression.text;
    if (ts.isIdentifier(object) && MEMBERS.get(object.text)?.includes(member))
      return `${object.text}.${member}`;
  }
  if (ts.isVariableDeclaration(node) && ts.isObjectBindingPattern(node.name) && node.initializer) {
    const banned = MEMBERS.get(node.initializer.getText());
    const taken = node.name.elements.find((element) =>
      banned?.includes((element.propertyName ?? element.name).getText()),
    );
    if (taken) return `${node.initializer.getText()}.${(taken.propertyName ?? taken.name).getText()}`;
  }
  if (ts.isNewExpression(node) && node.expression.getText() === "Date" && !node.arguments?.length)
    return "new Date()";
  if (ts.isCallExpression(node) && node.expression.getText() === "Date") return "Date()";
  if (ts.isImportSpecifier(node)) {
    const from = node.parent.parent.parent.moduleSpecifier.text;
    const name = (node.propertyName ?? node.name).text;
    const full = from.startsWith("node:") ? from : `node:${from}`;
    if (IMPORTS.get(full)?.includes(name)) return `${name} from ${full}`;
  }
  return undefined;
}

const findings = [];
for (const folder of ["src/rules", "src/domain", "src/runtime"]) {
  if (!existsSync(folder)) continue;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !/(?<!\.test|\.d)\.ts$/.test(entry.name)) continue;
    const path = join(entry.parentPath, entry.name);
    const source = ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.ES2023, true);
    const visit = (node) => {
      const what = impurity(node);
      if (what) {
        const { line } = source.getLineAndCharacterOfPosition(node.getStart());
        findings.push(
          `${path}:${line + 1}: ${what} is not allowed here. Take time, randomness and ids from an argument or a port.`,
        );
      }
      ts.forEachChild(node, visit);
    };
    visit(source);
  }
}
for (const finding of findings) console.error(finding);
process.exit(findings.length > 0 ? 1 : 0);
