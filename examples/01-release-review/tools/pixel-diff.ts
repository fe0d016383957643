import { rm } from "node:fs/promises";
import { join, parse } from "node:path";
import pixelmatch from "pixelmatch";
import { PNG } from "pngjs";
import { readInputFile } from "./input-file.ts";
import { writeResult } from "./output-folder.ts";
import { inputError, reasonOf } from "./release-input-error.ts";

/** Pixels from the top left corner. */
export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

export type PixelComparison =
  | { readonly status: "same"; readonly size: Size }
  | {
      readonly status: "changed";
      readonly size: Size;
      readonly changedPixels: number;
      /** Changed pixels as a share of all, 0 to 1. */
      readonly ratio: number;
      /** The smallest box around every changed pixel. */
      readonly box: Box;
      /** The old image, faint, with changed pixels in red. */
      readonly diffPng: Uint8Array;
    }
  | { readonly status: "resized"; readonly before: Size; readonly after: Size };

export interface PixelOptions {
  /** How different a pixel's colour must be to count, 0 (any difference) to 1 (black against white). Default 0.1. */
  readonly threshold?: number;
}

/** Refuses images that would need more memory than a screenshot has any reason to. */
const MAX_PIXELS = 50_000_000;
const PNG_SIGNATURE = "89504e470d0a1a0a";

/**
 * Compares two PNG files pixel by pixel. Smoothed edges that only moved within a pixel do not count.
 *
 * @throws ReleaseInputError when one of the files is not a readable PNG; `names` says how to call them.
 */
export function comparePngs(
  before: Uint8Array,
  after: Uint8Array,
  names: Readonly<{ before: string; after: string }>,
  options: PixelOptions = {},
): PixelComparison {
  const [was, is] = [decode(before, names.before), decode(after, names.after)];
  const size = { width: was.width, height: was.height };
  if (was.width !== is.width || was.height !== is.height) {
    return { status: "resized", before: size, after: { width: is.width, height: is.height } };
  }
  const { threshold = 0.1 } = options;
  const mask = new PNG({ ...size });
  const changedPixels = pixelmatch(was.data, is.data, mask.data, size.width, size.height, {
    threshold,
    diffMask: true,
  });
  const box = boxOf(mask);
  if (changedPixels === 0 || !box) return { status: "same", size };

  const picture = new PNG({ ...size });
  pixelmatch(was.data, is.data, picture.data, size.width, size.height, { threshold });
  const ratio = changedPixels / (size.width * size.height);
  return { status: "changed", size, changedPixels, ratio, box, diffPng: PNG.sync.write(picture) };
}

export type ScreenResult = { readonly screen: string } & (
  | { readonly status: "same"; readonly size: Size }
  | {
      readonly status: "changed";
      readonly size: Size;
      readonly changedPixels: number;
      readonly ratio: number;
      readonly box: Box;
      /** Name of the picture of the change in the output folder. */
      readonly diffFile: string;
    }
  | { readonly status: "resized"; readonly before: Size; readonly after: Size }
  /** Only the new side has the screen: there is nothing it could have broken. */
  | { readonly status: "added" }
  /** Only the old side has the screen. */
  | { readonly status: "removed" }
);

export interface ScreensComparison {
  /** Every screen of the old side is there and looks the same. */
  readonly passed: boolean;
  readonly screens: readonly ScreenResult[];
}

/** The screenshots of one side: file name (such as `order-list.png`) to absolute path. */
export type ScreenFiles = Readonly<Record<string, string>>;

export interface ScreensOptions extends PixelOptions {
  /** Absolute path; receives `<screen>.diff.png` for every changed screen. */
  readonly outDir: string;
  readonly signal?: AbortSignal;
}

/**
 * Compares screenshots of the same file name, in the order of their names.
 *
 * @throws ReleaseInputError when a file cannot be read as a PNG.
 */
export async function compareScreens(
  before: ScreenFiles,
  after: ScreenFiles,
  options: ScreensOptions,
): Promise<ScreensComparison> {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].toSorted();
  const screens: ScreenResult[] = [];
  for (const name of names) {
    options.signal?.throwIfAborted();
    screens.push(await compareScreen(name, before[name], after[name], options));
  }
  return { passed: screens.every(({ status }) => status === "same" || status === "added"), screens };
}

async function compareScreen(
  screen: string,
  before: string | undefined,
  after: string | undefined,
  options: ScreensOptions,
): Promise<ScreenResult> {
  const { outDir, signal } = options;
  const diffFile = `${parse(screen).name}.diff.png`;
  // A picture from an earlier comparison must not outlive the change it shows.
  await rm(join(outDir, diffFile), { force: true });
  if (before === undefined) return { screen, status: "added" };
  if (after === undefined) return { screen, status: "removed" };

  const [was, is] = await Promise.all([readScreen(before), readScreen(after)]);
  const comparison = comparePngs(was, is, { before, after }, options);
  if (comparison.status !== "changed") return { screen, ...comparison };
  const { diffPng, ...measures } = comparison;
  await writeResult(outDir, diffFile, diffPng);
  return { screen, ...measures, diffFile };

  function readScreen(file: string): Promise<Uint8Array> {
    return readInputFile(file, "Take the screenshot again.", signal);
  }
}

function decode(bytes: Uint8Array, file: string): PNG {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isPng = buffer.length >= 24 && buffer.toString("hex", 0, 8) === PNG_SIGNATURE;
  if (!isPng) throw inputError(file, "is not a PNG file.", "Save the screenshot as PNG.");
  const pixels = buffer.readUInt32BE(16) * buffer.readUInt32BE(20);
  if (pixels > MAX_PIXELS) {
    throw inputError(file, `has ${pixels} pixels, more than ${MAX_PIXELS}.`, "Take a smaller screenshot.");
  }
  try {
    return PNG.sync.read(buffer);
  } catch (error) {
    throw inputError(file, `is a damaged PNG: ${reasonOf(error)}.`, "Take the screenshot again.", error);
  }
}

/** The box around the drawn pixels of a mask. */
function boxOf({ width, height, data }: PNG): Box | undefined {
  let [left, top, right, bottom] = [width, height, -1, -1];
  for (let index = 0; index < width * height; index += 1) {
    if (data[index * 4 + 3] === 0) continue;
    const [x, y] = [index % width, Math.floor(index / width)];
    left = Math.min(left, x);
    right = Math.max(right, x);
    top = Math.min(top, y);
    bottom = Math.max(bottom, y);
  }
  return right < 0 ? undefined : { x: left, y: top, width: right - left + 1, height: bottom - top + 1 };
}
