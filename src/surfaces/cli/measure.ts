import stringWidth from "string-width";
import type { Usage } from "../../domain/budget/usage.ts";

/** `840ms`, `12.3s`, `3m04s`, `2h05m`, `3d04h`. */
export function durationText(ms: number): string {
  const whole = Math.max(0, Math.round(ms));
  if (whole < 1_000) return `${whole}ms`;
  if (whole < 59_950) return `${(whole / 1_000).toFixed(1)}s`;
  const seconds = Math.round(whole / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1_440) return `${Math.floor(minutes / 60)}h${two(minutes % 60)}m`;
  const hours = Math.floor(minutes / 60);
  return `${Math.floor(hours / 24)}d${two(hours % 24)}h`;
}

/** Milliseconds of `500ms`, `30s`, `5m`, `2h`, `30d`; null for anything else. */
export function parseDuration(text: string): number | null {
  const found = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text.trim());
  if (found === null) return null;
  const unit = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }[
    found[2] as "ms" | "s" | "m" | "h" | "d"
  ];
  return Math.round(Number(found[1]) * unit);
}

/** Tokens and cost, or nothing where no model was called. A `+` says that some calls reported no count. */
export function usageText(usage: Usage): string {
  const tokens = usage.inputTokens + usage.outputTokens;
  const parts: string[] = [];
  if (tokens > 0 || usage.unreportedModelCalls > 0) {
    parts.push(`${countText(tokens)}${usage.unreportedModelCalls > 0 ? "+" : ""} tok`);
  }
  if (usage.costMicros > 0) parts.push(`cost ${costText(usage.costMicros)}`);
  return parts.join(" · ");
}

/** `950`, `1.2k`, `3.4M`. */
export function countText(count: number): string {
  if (count < 1_000) return String(count);
  if (count < 999_950) return `${(count / 1_000).toFixed(1)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}

/** In the unit of the agents' prices, with two digits that say something. */
export function costText(micros: number): string {
  const units = micros / 1_000_000;
  return units >= 0.01 ? units.toFixed(2) : units.toFixed(6).replace(/0+$/, "");
}

/** Local time of day, to the millisecond. */
export function clockText(at: number): string {
  const time = new Date(at);
  const ms = String(time.getMilliseconds()).padStart(3, "0");
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}.${ms}`;
}

/** One line of plain characters: line breaks become spaces, and control characters cannot reach the terminal. */
export function plain(text: string): string {
  // oxlint-disable-next-line no-control-regex -- control characters are what is taken out
  return text.replace(/\s+/g, " ").replace(/[\u0000-\u001f\u007f-\u009f]/g, "");
}

/** Cuts to a number of columns, with an ellipsis where something is missing. Colours are kept, and so are their ends. */
export function cut(text: string, columns: number): string {
  if (stringWidth(text) <= columns) return text;
  if (columns < 1) return "";
  let kept = "";
  let width = 0;
  let isFull = false;
  // oxlint-disable-next-line no-control-regex -- colours begin with an escape
  for (const part of text.split(/(\u001b\[[0-9;]*m)/)) {
    if (part.startsWith("\u001b")) {
      kept += part;
      continue;
    }
    for (const character of isFull ? "" : part) {
      const more = stringWidth(character);
      if (width + more > columns - 1) {
        kept += "…";
        isFull = true;
        break;
      }
      kept += character;
      width += more;
    }
  }
  return kept;
}

/** Breaks at spaces into lines of so many columns, at most `most` of them; the last is cut. */
export function wrap(text: string, columns: number, most = 4): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (line === "" || lines.length === most - 1 || stringWidth(longer) <= columns) line = longer;
    else {
      lines.push(line);
      line = word;
    }
  }
  return [...lines, line].map((one) => cut(one, columns));
}

function two(number: number): string {
  return String(number).padStart(2, "0");
}
