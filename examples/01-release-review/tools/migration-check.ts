import {
  type DataLoss,
  type DatabaseSnapshot,
  findDataLoss,
  schemaOf,
  snapshotOf,
} from "./database-snapshot.ts";
import { type Migration, type MigrationInput, addedMigrations } from "./migration.ts";
import { type MigrationTrial, findDanglingRows, takeTurn, withMigrationTrial } from "./migration-trial.ts";
import { describeDifference, tryOldWrites, tryStatement } from "./old-application.ts";
import { writeResult } from "./output-folder.ts";
import { type NamedStatement, splitStatements } from "./sql-text.ts";
import { type Outcome, type SqliteDatabase, inTransaction } from "./sqlite-database.ts";

const FORWARD_CHECKS = [
  "history_unchanged",
  "migrations_apply",
  "integrity",
  "foreign_keys",
  "rows_kept",
  "old_statements_run",
  "new_statements_run",
  "old_writes_accepted",
] as const;

const ROLLBACK_CHECKS = [
  "ways_back_exist",
  "migrations_apply",
  "migrations_revert",
  "integrity",
  "foreign_keys",
  "schema_restored",
  "data_restored",
  "migrations_reapply",
  "revert_after_use",
] as const;

type CheckName = (typeof FORWARD_CHECKS)[number] | (typeof ROLLBACK_CHECKS)[number];

export interface MigrationCheck {
  readonly name: CheckName;
  readonly passed: boolean;
  readonly detail: string;
}

/** A change that takes something away which the release cannot give back by itself. */
export type DestructiveChange =
  | DataLoss
  /** The old application can no longer write to the table, for instance because a new column must not be null. */
  | { readonly kind: "old_writes_refused"; readonly table: string; readonly reason: string };

export interface MigrationTestResult {
  /** Every check passed. Destructive changes are listed apart: whether they are acceptable is the reviewer's decision. */
  readonly passed: boolean;
  readonly checks: readonly MigrationCheck[];
  readonly destructive: readonly DestructiveChange[];
}

export interface MigrationTestOptions {
  /** Absolute path; receives the result as JSON and, while the test runs, the database. */
  readonly outDir: string;
  readonly signal?: AbortSignal;
}

/**
 * Migrates a real database with data in it forward, and checks that it is sound, that nothing is lost, and that the old application,
 * which keeps running during the release, still reads and writes as before. The result is also written to `forward-test.json`.
 *
 * A migration that fails is a failed check.
 * @throws ReleaseInputError when the old migrations, seed or queries do not run on their own.
 */
export async function forwardTest(
  input: MigrationInput,
  options: MigrationTestOptions,
): Promise<MigrationTestResult> {
  const result = await withMigrationTrial(input, options.outDir, options.signal, async (trial) => {
    const added = addedMigrations(input);
    const checks = [checkHistory(input)];
    const failure = await trial.apply("up", added);
    checks.push(check("migrations_apply", failure, describeSteps("applied", added)));
    if (failure !== undefined) return conclude(FORWARD_CHECKS, checks, []);

    await takeTurn(options.signal);
    const after = snapshotOf(trial.database);
    checks.push(checkIntegrity(trial.database), checkForeignKeys(trial), checkRowsKept(trial, after));
    await takeTurn(options.signal);
    checks.push(checkOldStatements(trial), checkNewStatements(trial, input));
    await takeTurn(options.signal);
    const refusals = findRefusedWrites(trial);
    const refused = refusals.map(({ table, reason }) => `${table}: ${reason}`).join("; ");
    const accepted = "rows written the old way are accepted in every table";
    checks.push(check("old_writes_accepted", refused || undefined, accepted));
    return conclude(FORWARD_CHECKS, checks, [...findDataLoss(trial.baseline.data, after), ...refusals]);
  });
  await writeResult(options.outDir, "forward-test.json", toJson(result));
  return result;
}

/**
 * Migrates forward and back again, and checks that schema and data are exactly what they were and that going forward once more works.
 * Then lets the new version write, and checks that the way back still works for a database that has been used.
 * The result is also written to `rollback-test.json`; its destructive changes are those that the way back does not restore.
 *
 * A migration that fails, or has no way back, is a failed check.
 * @throws ReleaseInputError when the old migrations, seed or queries do not run on their own.
 */
export async function rollbackTest(
  input: MigrationInput,
  options: MigrationTestOptions,
): Promise<MigrationTestResult> {
  const result = await withMigrationTrial(input, options.outDir, options.signal, async (trial) => {
    const added = addedMigrations(input);
    const oneWay = added.filter((migration) => migration.down === null).map((migration) => migration.name);
    const missing = oneWay.length > 0 ? `no .down.sql for ${oneWay.join(", ")}` : undefined;
    const checks = [check("ways_back_exist", missing, describeSteps("there is a way back for", added))];
    const failure = await trial.apply("up", added);
    checks.push(check("migrations_apply", failure, describeSteps("applied", added)));
    if (failure !== undefined || missing !== undefined) return conclude(ROLLBACK_CHECKS, checks, []);

    const newSchema = schemaOf(trial.database);
    const backFailure = await trial.apply("down", added);
    checks.push(check("migrations_revert", backFailure, describeSteps("reverted", added)));
    if (backFailure !== undefined) return conclude(ROLLBACK_CHECKS, checks, []);

    await takeTurn(options.signal);
    checks.push(checkIntegrity(trial.database), checkForeignKeys(trial));
    const schemaDifference = describeSchemaDifference(trial.baseline.schema, schemaOf(trial.database));
    checks.push(check("schema_restored", schemaDifference, "the schema is the old one"));
    const losses = findDataLoss(trial.baseline.data, snapshotOf(trial.database));
    const lost = losses.map(describeLoss).join("; ");
    checks.push(check("data_restored", lost || undefined, `${countRows(trial)} rows are what they were`));

    const againFailure = await trial.apply("up", added);
    const again = againFailure ?? describeSchemaDifference(newSchema, schemaOf(trial.database));
    checks.push(check("migrations_reapply", again, "after a rollback the release can be tried again"));
    if (again !== undefined) return conclude(ROLLBACK_CHECKS, checks, losses);
    checks.push(await checkRevertAfterUse(trial, input));
    return conclude(ROLLBACK_CHECKS, checks, losses);
  });
  await writeResult(options.outDir, "rollback-test.json", toJson(result));
  return result;
}

/** One line about a destructive change, for a report. */
export function describeDestructiveChange(change: DestructiveChange): string {
  return change.kind === "old_writes_refused"
    ? `${change.table} refuses what the old version writes: ${change.reason}`
    : describeLoss(change);
}

/** Migrations that have run somewhere must not change: a database that has them would never see the new text. */
function checkHistory({ oldMigrations, newMigrations }: MigrationInput): MigrationCheck {
  const carried = new Map(newMigrations.map((migration) => [migration.name, migration]));
  const last = Math.max(0, ...oldMigrations.map((migration) => migration.number));
  const known = new Set(oldMigrations.map((migration) => migration.name));
  const faults = [
    ...oldMigrations.filter(({ name }) => !carried.has(name)).map(({ name }) => `${name} is missing`),
    ...oldMigrations
      .filter(({ name, up }) => carried.has(name) && carried.get(name)?.up !== up)
      .map(({ name }) => `${name}.up.sql was edited`),
    ...newMigrations
      .filter(({ name, number }) => !known.has(name) && number <= last)
      .map(({ name }) => `${name} is new but numbered before the last old one`),
  ];
  return check(
    "history_unchanged",
    faults.join("; ") || undefined,
    `${oldMigrations.length} old migrations are as they were`,
  );
}

function checkIntegrity(database: SqliteDatabase): MigrationCheck {
  const faults = database.all("PRAGMA integrity_check(5)").map((row) => String(row.integrity_check));
  const sound = faults.length === 1 && faults[0] === "ok";
  return check("integrity", sound ? undefined : faults.join("; "), "the database file is sound");
}

function checkForeignKeys({ baseline, database }: MigrationTrial): MigrationCheck {
  const dangling = findDanglingRows(database);
  const [first] = dangling;
  const fault =
    first && dangling.length > baseline.danglingRows
      ? `${dangling.length} rows refer to missing ones, such as one from ${String(first.table)} to ${String(first.parent)}`
      : undefined;
  return check("foreign_keys", fault, "no row lost the row it refers to");
}

function checkRowsKept({ baseline }: MigrationTrial, after: DatabaseSnapshot): MigrationCheck {
  const faults = [...baseline.data].flatMap(([key, { name, rows }]) => {
    const count = after.get(key)?.rows.length;
    if (count === rows.length) return [];
    return [
      count === undefined
        ? `${name} (${rows.length} rows) is gone`
        : `${name} had ${rows.length} rows and has ${count}`,
    ];
  });
  const kept = [...baseline.data.values()].map(({ name, rows }) => `${name} ${rows.length}`).join(", ");
  return check("rows_kept", faults.join("; ") || undefined, `row counts are what they were: ${kept}`);
}

function checkOldStatements({ baseline, database }: MigrationTrial): MigrationCheck {
  const faults = baseline.statements.flatMap(({ statement, rows }) => {
    const difference = describeDifference(rows, tryStatement(database, statement));
    return difference === undefined ? [] : [`${statement.name}: ${difference}`];
  });
  const passed = `${baseline.statements.length} statements of the old version give the same`;
  return check("old_statements_run", faults.join("; ") || undefined, passed);
}

function checkNewStatements({ database }: MigrationTrial, input: MigrationInput): MigrationCheck {
  const statements = splitStatements(input.newAppQueriesSql);
  const faults = describeRefusals(statements, (statement) => tryStatement(database, statement));
  return check("new_statements_run", faults, `${statements.length} statements of the new version run`);
}

/** A rollback comes after the new version has written rows of its own, which the old schema may not allow. */
async function checkRevertAfterUse(trial: MigrationTrial, input: MigrationInput): Promise<MigrationCheck> {
  const { baseline, database } = trial;
  const fault =
    describeRefusals(splitStatements(input.newAppQueriesSql), ({ sql }) =>
      inTransaction(database, "keep", () => database.all(sql)),
    ) ??
    (await trial.apply("down", addedMigrations(input))) ??
    describeSchemaDifference(baseline.schema, schemaOf(database)) ??
    [checkIntegrity(database), checkForeignKeys(trial)].find(({ passed }) => !passed)?.detail;
  return check("revert_after_use", fault, "the way back also works after the new version has written");
}

function describeRefusals(
  statements: readonly NamedStatement[],
  run: (statement: NamedStatement) => Outcome<unknown>,
): string | undefined {
  const faults = statements.flatMap((statement) => {
    const outcome = run(statement);
    return outcome.ok ? [] : [`${statement.name}: ${outcome.reason}`];
  });
  return faults.join("; ") || undefined;
}

function findRefusedWrites({
  baseline,
  database,
}: MigrationTrial): readonly Extract<DestructiveChange, { reason: string }>[] {
  return [...baseline.data.values()].flatMap((table) => {
    const reason = tryOldWrites(database, table);
    return reason === undefined ? [] : [{ kind: "old_writes_refused", table: table.name, reason } as const];
  });
}

function describeSchemaDifference(was: readonly string[], is: readonly string[]): string | undefined {
  const faults = [
    ...was.filter((definition) => !is.includes(definition)).map((definition) => `missing: ${definition}`),
    ...is.filter((definition) => !was.includes(definition)).map((definition) => `unexpected: ${definition}`),
  ];
  return faults.join("; ") || undefined;
}

function describeLoss(loss: DataLoss): string {
  switch (loss.kind) {
    case "table_dropped":
      return `table ${loss.table} with ${loss.rows} rows is gone`;
    case "column_dropped":
      return `column ${loss.table}.${loss.column} with ${loss.values} values is gone`;
    case "rows_removed":
      return `${loss.rows} rows of ${loss.table} are gone`;
    case "values_changed":
      return `${loss.values} values of ${loss.table}.${loss.column} are not what they were`;
    default:
      return loss satisfies never;
  }
}

function check(name: CheckName, fault: string | undefined, otherwise: string): MigrationCheck {
  return { name, passed: fault === undefined, detail: fault ?? otherwise };
}

/** Completes the list with the checks that an earlier failure kept from running. */
function conclude(
  planned: readonly CheckName[],
  done: readonly MigrationCheck[],
  destructive: readonly DestructiveChange[],
): MigrationTestResult {
  const reached = new Set(done.map(({ name }) => name));
  const skipped = planned
    .filter((name) => !reached.has(name))
    .map((name) => check(name, "not reached: an earlier step failed", ""));
  const checks = [...done, ...skipped];
  return { passed: checks.every(({ passed }) => passed), checks, destructive };
}

function describeSteps(verb: string, migrations: readonly Migration[]): string {
  return migrations.length === 0
    ? "the release adds no migration"
    : `${verb} ${migrations.map(({ name }) => name).join(", ")}`;
}

function countRows({ baseline }: MigrationTrial): number {
  return [...baseline.data.values()].reduce((sum, table) => sum + table.rows.length, 0);
}

function toJson(result: MigrationTestResult): string {
  return `${JSON.stringify(result, null, 2)}\n`;
}
