import stringWidth from "string-width";
import { cut } from "./measure.ts";
import type { Style } from "./style.ts";

export interface Column<Row> {
  readonly title: string;
  readonly text: (row: Row) => string;
  /** Colour, given the text as it will stand there. */
  readonly paint?: (text: string, row: Row) => string;
  readonly align?: "right";
}

/**
 * Aligned columns. Where the terminal is too narrow the last column is cut, or left out when nothing of it would be seen;
 * in a pipe nothing is cut.
 */
export function tableLines<Row>(
  style: Style,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
): readonly string[] {
  const texts = rows.map((row) => columns.map((column) => column.text(row)));
  const widths = columns.map((column, at) =>
    Math.max(stringWidth(column.title), ...texts.map((line) => stringWidth(line[at] ?? ""))),
  );
  const line = (cells: readonly string[], paint: (text: string, at: number) => string): string => {
    let used = 0;
    let out = "";
    for (const [at, cell] of cells.entries()) {
      const isLast = at === cells.length - 1;
      const shown = isLast ? cut(cell, style.width - used) : cell;
      const gap = " ".repeat(Math.max(0, (widths[at] ?? 0) - stringWidth(shown)));
      const painted = shown === "" ? "" : paint(shown, at);
      const padded = columns[at]?.align === "right" ? `${gap}${painted}` : `${painted}${isLast ? "" : gap}`;
      out += isLast ? padded : `${padded}  `;
      used += (widths[at] ?? 0) + 2;
    }
    return out.trimEnd();
  };
  return [
    line(
      columns.map((column) => column.title),
      (text) => style.color.dim(text),
    ),
    ...texts.map((cells, index) =>
      line(cells, (text, at) => {
        const row = rows[index];
        const paint = columns[at]?.paint;
        return paint === undefined || row === undefined ? text : paint(text, row);
      }),
    ),
  ];
}
