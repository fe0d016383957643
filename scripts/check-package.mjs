// Checks the package as its users get it: the manifest (publint), the types behind every door (attw), the files in
// the tarball, and a fresh install of that tarball from which every door loads and the CLI starts.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
const manifest = JSON.parse(readFileSync("package.json", "utf8"));
const folder = mkdtempSync(join(tmpdir(), "errand-package-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

function run(command, args, options = {}) {
  const done = spawnSync(command, args, { stdio: "inherit", encoding: "utf8", ...options });
  if (done.error) console.error(`${command} could not be started: ${done.error.message}`);
  if (done.status !== 0) {
    console.error(done.stdout ?? "", done.stderr ?? "");
    console.error(`Failed: ${command} ${args.join(" ")}`);
    process.exit(done.status || 1);
  }
  return done.stdout;
}

run(process.execPath, ["scripts/build.mjs"]);
run("npx", ["--no-install", "publint", "--strict", "--pack", "false"]);

const packed = run("npm", ["pack", "--ignore-scripts", "--json", "--pack-destination", folder], {
  stdio: ["ignore", "pipe", "inherit"],
});
const [{ filename, files }] = Object.values(JSON.parse(packed));
const tarball = join(folder, filename);
const strays = files
  .map((file) => file.path)
  .filter((path) => /\.test\.|(^|\/)tsconfig|\.tsbuildinfo$/.test(path));
if (strays.length > 0) {
  console.error(`The package must not carry ${strays.join(", ")}.`);
  process.exit(1);
}
run("npx", ["--no-install", "attw", tarball, "--profile", "esm-only"]);

// The optional peers are installed too: the door to language models needs them.
const home = join(folder, "fresh");
const peers = Object.keys(manifest.peerDependencies).map(
  (name) => `${name}@${manifest.devDependencies[name]}`,
);
run("npm", ["install", "--no-audit", "--no-fund", "--prefix", home, tarball, ...peers], {
  stdio: ["ignore", "ignore", "inherit"],
});
const doors = Object.keys(manifest.exports)
  .filter((door) => !door.endsWith(".json"))
  .map((door) => manifest.name + door.slice(1));
const probe = join(home, "probe.mjs");
writeFileSync(probe, doors.map((door) => `await import(${JSON.stringify(door)});\n`).join(""));
run(process.execPath, [probe]);
for (const name of Object.keys(manifest.bin)) {
  run(join(home, "node_modules/.bin", name), ["--help"], { stdio: ["ignore", "ignore", "inherit"] });
}
console.log(`The package installs; ${doors.join(", ")} load and the command starts.`);
