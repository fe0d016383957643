import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { type ApiClient, parseClients } from "./client-impact.ts";
import { listInputFolder, readInputFile } from "./input-file.ts";
import type { Migration, MigrationInput } from "./migration.ts";
import { type OpenApiDocument, childOf, parseOpenApi, resolve, rootOf } from "./openapi-document.ts";
import type { ScreenFiles } from "./pixel-diff.ts";
import { type InputProblem, ReleaseInputError } from "./release-input-error.ts";

/**
 * Two folders, as absolute paths: the version that runs and the version to release. Both hold `openapi.yaml`, `migrations/`,
 * `app-queries.sql` and `ui/`; the first also `clients.json` and `seed.sql`.
 */
export interface ReleaseFolders {
  readonly before: string;
  readonly after: string;
}

export interface ApiInput {
  readonly before: OpenApiDocument;
  readonly after: OpenApiDocument;
}

export interface ScreensInput {
  readonly before: ScreenFiles;
  readonly after: ScreenFiles;
}

/** Everything a review looks at. */
export interface ReleaseInput {
  readonly api: ApiInput;
  readonly clients: readonly ApiClient[];
  readonly migrations: MigrationInput;
  readonly screens: ScreensInput;
  /** SHA-256 over all that was read: a review with this digest is about exactly this input. */
  readonly digest: string;
}

/**
 * Reads a whole release.
 *
 * @throws ReleaseInputError listing everything that is missing or wrong, over all parts.
 */
export async function readReleaseInput(folders: ReleaseFolders, signal?: AbortSignal): Promise<ReleaseInput> {
  await checkFolders(folders);
  const [api, clients, migrations, screens] = await all([
    readApi(folders, signal),
    readClients(folders, signal),
    readMigrations(folders, signal),
    readScreens(folders, signal),
  ]);
  checkClients(clients, api.before);
  const parts = { api, clients, migrations, screens };
  return { ...parts, digest: await digestOf(parts, signal) };
}

/** Reads `openapi.yaml` of both sides. @throws ReleaseInputError */
export async function readApi({ before, after }: ReleaseFolders, signal?: AbortSignal): Promise<ApiInput> {
  const [was, is] = await all([readOpenApi(before, signal), readOpenApi(after, signal)]);
  return { before: was, after: is };
}

/** Reads `before/clients.json`. @throws ReleaseInputError */
export async function readClients(
  { before }: ReleaseFolders,
  signal?: AbortSignal,
): Promise<readonly ApiClient[]> {
  const file = join(before, "clients.json");
  const text = await readText(file, 'Write `{ "clients": [] }` if no client is known.', signal);
  return parseClients(text, file);
}

/** Reads `migrations/` and `app-queries.sql` of both sides, and the old side's `seed.sql`. @throws ReleaseInputError */
export async function readMigrations(
  { before, after }: ReleaseFolders,
  signal?: AbortSignal,
): Promise<MigrationInput> {
  const seedFix = "Write INSERTs for the old schema; without data nothing can be shown to survive.";
  const queriesFix = "List the SQL statements of this version; an empty file means none.";
  const [oldMigrations, newMigrations, seedSql, oldAppQueriesSql, newAppQueriesSql] = await all([
    readMigrationFolder(join(before, "migrations"), signal),
    readMigrationFolder(join(after, "migrations"), signal),
    readText(join(before, "seed.sql"), seedFix, signal),
    readText(join(before, "app-queries.sql"), queriesFix, signal),
    readText(join(after, "app-queries.sql"), queriesFix, signal),
  ]);
  return { oldMigrations, newMigrations, seedSql, oldAppQueriesSql, newAppQueriesSql };
}

/** Finds the PNG files in `ui/` of both sides. @throws ReleaseInputError */
export async function readScreens(
  { before, after }: ReleaseFolders,
  signal?: AbortSignal,
): Promise<ScreensInput> {
  const [was, is] = await all([listScreens(before, signal), listScreens(after, signal)]);
  return { before: was, after: is };
}

/** A use that the old API does not have would never be hit by any change: it must be a slip. */
function checkClients(clients: readonly ApiClient[], api: OpenApiDocument): void {
  const paths = childOf(rootOf(api), "paths");
  const problems = clients.flatMap(({ name, uses }) =>
    uses.flatMap(({ method, path }): readonly InputProblem[] => {
      const item = paths && childOf(paths, path);
      if (item && childOf(resolve(item), method)) return [];
      const problem = `has client "${name}" use ${method.toUpperCase()} ${path}, which ${api.file} does not have.`;
      return [{ file: "clients.json", problem, fix: "Correct the method or path, letter for letter." }];
    }),
  );
  if (problems.length > 0) throw new ReleaseInputError(problems);
}

async function checkFolders(folders: ReleaseFolders): Promise<void> {
  const problems: InputProblem[] = [];
  for (const side of ["before", "after"] as const) {
    const folder = folders[side];
    if (!isAbsolute(folder)) {
      problems.push({
        file: folder,
        problem: `is not an absolute path (${side}).`,
        fix: "Resolve it first.",
      });
      continue;
    }
    const found = await stat(folder).catch(() => undefined);
    if (found?.isDirectory()) continue;
    const fix = `Name the folder of the ${side === "before" ? "running version" : "version to release"}.`;
    problems.push({ file: folder, problem: found ? "is not a folder." : "does not exist.", fix });
  }
  if (problems.length > 0) throw new ReleaseInputError(problems);
}

async function readOpenApi(folder: string, signal: AbortSignal | undefined): Promise<OpenApiDocument> {
  const file = join(folder, "openapi.yaml");
  return parseOpenApi(
    await readText(file, "Put the OpenAPI 3 description of the service there.", signal),
    file,
  );
}

async function readMigrationFolder(
  folder: string,
  signal: AbortSignal | undefined,
): Promise<readonly Migration[]> {
  const files = await listInputFolder(folder, "Put NNNN_name.up.sql and NNNN_name.down.sql files there.");
  const problems: InputProblem[] = [];
  const names = new Set<string>();
  for (const file of files.filter((name) => name.endsWith(".sql"))) {
    const name = /^(\d+_\w[\w-]*)\.(?:up|down)\.sql$/.exec(file)?.[1];
    if (name) names.add(name);
    else
      problems.push({
        file: join(folder, file),
        problem: "has no number.",
        fix: "Call it NNNN_name.up.sql or NNNN_name.down.sql.",
      });
  }
  const migrations: Migration[] = [];
  for (const name of names) {
    const number = Number.parseInt(name, 10);
    if (!files.includes(`${name}.up.sql`)) {
      problems.push({
        file: join(folder, `${name}.up.sql`),
        problem: "does not exist.",
        fix: "Add it, or remove the .down.sql.",
      });
      continue;
    }
    const twin = migrations.find((other) => other.number === number);
    if (twin) {
      const problem = `has the same number as ${twin.name}.`;
      problems.push({ file: join(folder, `${name}.up.sql`), problem, fix: "Renumber one of them." });
    }
    const up = await readText(join(folder, `${name}.up.sql`), "Add it.", signal);
    const hasWayBack = files.includes(`${name}.down.sql`);
    const down = hasWayBack ? await readText(join(folder, `${name}.down.sql`), "Add it.", signal) : null;
    migrations.push({ number, name, up, down });
  }
  if (problems.length > 0) throw new ReleaseInputError(problems);
  return migrations.toSorted((a, b) => a.number - b.number);
}

async function listScreens(folder: string, signal: AbortSignal | undefined): Promise<ScreenFiles> {
  signal?.throwIfAborted();
  const screens = join(folder, "ui");
  const files = await listInputFolder(
    screens,
    "Put one PNG screenshot a screen there, with the same names on both sides.",
  );
  return Object.fromEntries(
    files.filter((file) => file.endsWith(".png")).map((file) => [file, join(screens, file)]),
  );
}

async function readText(file: string, fix: string, signal: AbortSignal | undefined): Promise<string> {
  return (await readInputFile(file, fix, signal)).toString("utf8");
}

/** Waits for every part and reports the problems of all of them together. */
async function all<T extends readonly unknown[]>(
  parts: { readonly [K in keyof T]: Promise<T[K]> },
): Promise<T> {
  const outcomes = await Promise.allSettled(parts);
  const failures = outcomes
    .filter((outcome) => outcome.status === "rejected")
    .map(({ reason }): unknown => reason);
  const surprise = failures.find((failure) => !(failure instanceof ReleaseInputError));
  if (surprise instanceof Error) throw surprise;
  const problems = failures.flatMap((failure) =>
    failure instanceof ReleaseInputError ? failure.problems : [],
  );
  if (problems.length > 0) throw new ReleaseInputError(problems);
  return await Promise.all(parts);
}

async function digestOf(
  input: Omit<ReleaseInput, "digest">,
  signal: AbortSignal | undefined,
): Promise<string> {
  const hash = createHash("sha256");
  const { api, clients, migrations, screens } = input;
  hash.update(JSON.stringify([api.before.root, api.after.root, clients, migrations]));
  for (const side of [screens.before, screens.after]) {
    for (const [name, file] of Object.entries(side)) {
      hash
        .update(JSON.stringify(name))
        .update(await readInputFile(file, "Take the screenshot again.", signal));
    }
    hash.update("|");
  }
  return hash.digest("hex");
}
