import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PNG } from "pngjs";
import { describe, expect, it } from "vitest";
import { drawScreens } from "./make-images.ts";
import { clientImpact } from "./tools/client-impact.ts";
import { forwardTest, rollbackTest } from "./tools/migration-check.ts";
import { diffOpenApi } from "./tools/openapi-diff.ts";
import { compareScreens } from "./tools/pixel-diff.ts";
import { type ReleaseFolders, readReleaseInput } from "./tools/release-input.ts";
import { SHIPPED, copyOfShipped, temporaryFolder } from "./tools/testing.ts";

interface Verdicts {
  readonly breakingChanges: number;
  readonly clientsHit: readonly string[];
  readonly forward: boolean;
  readonly rollback: boolean;
  readonly destructive: readonly string[];
  readonly changedScreens: readonly string[];
}

async function review(folders: ReleaseFolders): Promise<Verdicts> {
  const outDir = await temporaryFolder();
  const { api, clients, migrations, screens } = await readReleaseInput(folders);
  const changes = diffOpenApi(api.before, api.after);
  const forward = await forwardTest(migrations, { outDir });
  const rollback = await rollbackTest(migrations, { outDir });
  const comparison = await compareScreens(screens.before, screens.after, { outDir });
  return {
    breakingChanges: changes.filter(({ breaking }) => breaking).length,
    clientsHit: [...new Set(clientImpact(changes, clients).hits.map(({ client }) => client))],
    forward: forward.passed,
    rollback: rollback.passed,
    destructive: [...forward.destructive, ...rollback.destructive].map(({ kind }) => kind),
    changedScreens: comparison.screens.flatMap(({ screen, status }) => (status === "same" ? [] : [screen])),
  };
}

const VERDICTS: Verdicts = {
  breakingChanges: 8,
  clientsHit: ["storefront", "warehouse", "billing"],
  forward: true,
  rollback: true,
  destructive: [],
  changedScreens: ["order-list.png"],
};

describe("the review of the shipped release", () => {
  it("finds three clients to talk to, a sound migration and one changed screen", async () => {
    expect(await review(SHIPPED)).toEqual(VERDICTS);
  });

  it("finds nothing when the release changes nothing", async () => {
    const { before } = await copyOfShipped();
    expect(await review({ before, after: before })).toEqual({
      ...VERDICTS,
      breakingChanges: 0,
      clientsHit: [],
      changedScreens: [],
    });
  });

  it("spares a client when the breaking change it meets is taken back", async () => {
    const copy = await copyOfShipped();
    await edit(
      join(copy.after, "openapi.yaml"),
      "required: [orderId, cents, reason]",
      "required: [orderId, cents]",
    );
    expect(await review(copy)).toEqual({
      ...VERDICTS,
      breakingChanges: 7,
      clientsHit: ["storefront", "warehouse"],
    });
  });

  it("fails the migration when it drops a column with data in it", async () => {
    const copy = await copyOfShipped();
    const name = join(copy.after, "migrations/0005_drop_phone");
    await writeFile(`${name}.up.sql`, "ALTER TABLE customers DROP COLUMN phone;");
    await writeFile(`${name}.down.sql`, "ALTER TABLE customers ADD COLUMN phone TEXT;");
    const verdicts = await review(copy);
    expect(verdicts).toMatchObject({ forward: false, rollback: false });
    expect(verdicts.destructive).toEqual(["column_dropped", "old_writes_refused", "values_changed"]);
  });

  it("fails the rollback when the way back forgets the orders on hold", async () => {
    const copy = await copyOfShipped();
    const down = join(copy.after, "migrations/0004_put_orders_on_hold.down.sql");
    await edit(down, "iif(status = 'on_hold', 'pending', status)", "status");
    expect(await review(copy)).toEqual({ ...VERDICTS, rollback: false });
  });
});

it.each([...drawScreens()])("ships %s as make-images.ts draws it", async (path, png) => {
  const shipped = PNG.sync.read(await readFile(new URL(path, import.meta.url)));
  expect(shipped.data.equals(PNG.sync.read(png).data)).toBe(true);
});

async function edit(file: string, from: string, to: string): Promise<void> {
  const text = await readFile(file, "utf8");
  expect(text).toContain(from);
  await writeFile(file, text.replaceAll(from, to));
}
