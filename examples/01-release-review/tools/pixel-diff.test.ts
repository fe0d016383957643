import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PNG } from "pngjs";
import { describe, expect, it } from "vitest";
import { comparePngs, compareScreens } from "./pixel-diff.ts";
import { inputErrorOf, temporaryFolder } from "./testing.ts";

type Colour = readonly [number, number, number];
const NAMES = { before: "before.png", after: "after.png" };

/** A white image with one filled box. */
function image(
  width: number,
  height: number,
  box = { x: 0, y: 0, width: 0, height: 0 },
  colour: Colour = [0, 0, 0],
): Buffer {
  const png = new PNG({ width, height });
  png.data.fill(255);
  for (let y = box.y; y < box.y + box.height; y += 1) {
    for (let x = box.x; x < box.x + box.width; x += 1) png.data.set(colour, (y * width + x) * 4);
  }
  return PNG.sync.write(png);
}

describe("two images", () => {
  it("are the same", () => {
    expect(comparePngs(image(8, 4), image(8, 4), NAMES)).toEqual({
      status: "same",
      size: { width: 8, height: 4 },
    });
  });

  it("differ in a region, which is measured", () => {
    const box = { x: 20, y: 10, width: 12, height: 6 };
    const result = comparePngs(image(60, 40), image(60, 40, box), NAMES);
    expect(result).toMatchObject({ status: "changed", changedPixels: 72, ratio: 72 / 2400, box });
  });

  it("differ by less than the threshold, unless that is lowered", () => {
    const box = { x: 20, y: 10, width: 12, height: 6 };
    const faint = image(60, 40, box, [250, 250, 250]);
    expect(comparePngs(image(60, 40), faint, NAMES).status).toBe("same");
    expect(comparePngs(image(60, 40), faint, NAMES, { threshold: 0 }).status).toBe("changed");
  });

  it("have different sizes", () => {
    expect(comparePngs(image(8, 4), image(8, 5), NAMES)).toEqual({
      status: "resized",
      before: { width: 8, height: 4 },
      after: { width: 8, height: 5 },
    });
  });

  it.each([
    ["no PNG", Buffer.from("GIF89a and so on, with no picture in it"), /after\.png: is not a PNG file/],
    ["empty", Buffer.alloc(0), /after\.png: is not a PNG file/],
    ["cut off", image(60, 40).subarray(0, 60), /after\.png: is a damaged PNG/],
    ["corrupt", image(60, 40).fill(7, 45, 60), /after\.png: is a damaged PNG/],
    ["enormous", enormous(), /after\.png: has \d+ pixels/],
  ])("cannot be compared: %s", async (_, bytes, message) => {
    const error = await inputErrorOf(() => comparePngs(image(60, 40), bytes, NAMES));
    expect(error.message).toMatch(message);
  });

  function enormous(): Buffer {
    const png = image(8, 4);
    png.writeUInt32BE(100_000, 16);
    png.writeUInt32BE(100_000, 20);
    return png;
  }
});

describe("two sets of screens", () => {
  async function screens(files: Readonly<Record<string, Buffer>>): Promise<Readonly<Record<string, string>>> {
    const folder = await temporaryFolder();
    const paths = Object.keys(files).map((name) => [name, join(folder, name)] as const);
    await Promise.all(paths.map(([name, path]) => writeFile(path, files[name] ?? "")));
    return Object.fromEntries(paths);
  }

  it("are matched by name, in order, and only changed ones leave a picture", async () => {
    const box = { x: 2, y: 2, width: 4, height: 4 };
    const before = await screens({
      "same.png": image(9, 9),
      "list.png": image(9, 9),
      "old.png": image(9, 9),
      "wide.png": image(9, 9),
    });
    const after = await screens({
      "same.png": image(9, 9),
      "list.png": image(9, 9, box),
      "new.png": image(9, 9),
      "wide.png": image(12, 9),
    });
    const outDir = await temporaryFolder();
    const result = await compareScreens(before, after, { outDir });
    expect(result.passed).toBe(false);
    expect(result.screens.map(({ screen, status }) => `${screen} ${status}`)).toEqual([
      "list.png changed",
      "new.png added",
      "old.png removed",
      "same.png same",
      "wide.png resized",
    ]);
    expect(await readdir(outDir)).toEqual(["list.diff.png"]);
    expect(PNG.sync.read(await readFile(join(outDir, "list.diff.png")))).toMatchObject({
      width: 9,
      height: 9,
    });
  });

  it("pass when the only news is a new screen, and when there is none at all", async () => {
    const outDir = await temporaryFolder();
    expect((await compareScreens({}, await screens({ "new.png": image(9, 9) }), { outDir })).passed).toBe(
      true,
    );
    expect(await compareScreens({}, {}, { outDir })).toEqual({ passed: true, screens: [] });
  });

  it("give the same bytes twice, and no stale picture once the change is gone", async () => {
    const before = await screens({ "list.png": image(60, 40) });
    const after = await screens({ "list.png": image(60, 40, { x: 3, y: 3, width: 9, height: 9 }) });
    const outDir = await temporaryFolder();
    const first = await compareScreens(before, after, { outDir });
    const picture = await readFile(join(outDir, "list.diff.png"));
    expect(await compareScreens(before, after, { outDir })).toEqual(first);
    expect(picture.equals(await readFile(join(outDir, "list.diff.png")))).toBe(true);
    await compareScreens(before, before, { outDir });
    expect(await readdir(outDir)).toEqual([]);
  });

  it("name a file that is not there", async () => {
    const gone = { "list.png": join(await temporaryFolder(), "list.png") };
    const error = await inputErrorOf(
      async () => await compareScreens(gone, gone, { outDir: await temporaryFolder() }),
    );
    expect(error.message).toMatch(/list\.png: does not exist/);
  });

  it("stop when asked to", async () => {
    const one = await screens({ "list.png": image(9, 9) });
    const options = { outDir: await temporaryFolder(), signal: AbortSignal.abort() };
    await expect(compareScreens(one, one, options)).rejects.toThrow(/abort/i);
  });
});
