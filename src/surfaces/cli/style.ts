import pc from "picocolors";
import type { RunStatus } from "./run-status.ts";

type Paint = (text: string) => string;
type Colors = ReturnType<typeof pc.createColors>;

/** How one stream is written to: with colour or not, in Unicode or ASCII, and how wide. */
export interface Style {
  readonly color: Colors;
  readonly unicode: boolean;
  /** Columns of the terminal; Infinity where nobody looks at columns, so that nothing is cut. */
  readonly width: number;
}

const STATUS: Readonly<
  Record<RunStatus, { readonly sign: string; readonly ascii: string; readonly paint: (c: Colors) => Paint }>
> = {
  created: { sign: "◌", ascii: ".", paint: (c) => c.dim },
  ready: { sign: "○", ascii: "o", paint: (c) => c.cyan },
  running: { sign: "●", ascii: "*", paint: (c) => c.cyan },
  waiting: { sign: "◐", ascii: "~", paint: (c) => c.blue },
  awaiting: { sign: "▲", ascii: "!", paint: (c) => c.yellow },
  paused: { sign: "‖", ascii: "=", paint: (c) => c.yellow },
  completed: { sign: "✓", ascii: "+", paint: (c) => c.green },
  failed: { sign: "✗", ascii: "x", paint: (c) => c.red },
  canceled: { sign: "⊘", ascii: "/", paint: (c) => c.magenta },
  stopped: { sign: "■", ascii: "#", paint: (c) => c.red },
  erased: { sign: "▁", ascii: "_", paint: (c) => c.dim },
  indeterminate: { sign: "◇", ascii: "?", paint: (c) => c.red },
};

/** Sign and word, so that the state can be read without colour and without the sign's shape. */
export function statusText(style: Style, status: RunStatus): string {
  const { sign, ascii, paint } = STATUS[status];
  return paint(style.color)(`${style.unicode ? sign : ascii} ${status}`);
}

export interface Terminal {
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** @param wanted what `--color` or `--no-color` said; undefined leaves it to the environment */
export function styleOf(stream: Terminal, env: NodeJS.ProcessEnv, wanted: boolean | undefined): Style {
  const isTTY = stream.isTTY === true;
  const dumb = env["TERM"] === "dumb";
  return {
    color: pc.createColors(wanted ?? colorWanted(isTTY && !dumb, env)),
    unicode: !dumb && !isLegacyLocale(env),
    width: isTTY ? (stream.columns ?? 80) : Number.POSITIVE_INFINITY,
  };
}

/** NO_COLOR (any text) wins over FORCE_COLOR (any text but 0 and false), which wins over the kind of stream. */
function colorWanted(terminal: boolean, env: NodeJS.ProcessEnv): boolean {
  const { NO_COLOR, FORCE_COLOR } = env;
  if (NO_COLOR !== undefined && NO_COLOR !== "") return false;
  if (FORCE_COLOR !== undefined) return FORCE_COLOR !== "0" && FORCE_COLOR !== "false";
  return terminal;
}

function isLegacyLocale(env: NodeJS.ProcessEnv): boolean {
  const locale = [env["LC_ALL"], env["LC_CTYPE"], env["LANG"]].find((one) => one !== undefined && one !== "");
  return locale !== undefined && locale !== "C.UTF-8" && !/utf-?8/i.test(locale);
}
