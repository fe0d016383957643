import type { Json } from "./json.ts";

/**
 * The one text of a JSON value: keys sorted by UTF-16 code units, no spaces, `undefined` members left out.
 *
 * NUL and lone surrogates come out as `\u` escapes, so that the text is valid UTF-8 in every store.
 * @throws TypeError for a value that JSON cannot carry (NaN, Infinity, bigint, function, symbol, cycle).
 */
export function canonicalJson(value: Json | undefined): string {
  return write(value, 0);
}

const MAX_DEPTH = 256;

const remembered = new WeakMap<object, string>();

/**
 * Computes the text of a value that will never change (a published schema) once; from then on it is looked up wherever
 * the same object occurs. The caller promises not to change it.
 */
export function rememberCanonical<Value extends Json>(value: Value): Value {
  if (typeof value === "object" && value !== null && !remembered.has(value)) {
    remembered.set(value, write(value, 0));
  }
  return value;
}

function write(value: unknown, depth: number): string {
  if (value === null || value === undefined) return "null";
  switch (typeof value) {
    case "string":
      return JSON.stringify(value);
    case "number":
      if (!Number.isFinite(value)) throw new TypeError(`JSON cannot carry the number ${value}`);
      return JSON.stringify(value);
    case "boolean":
      return value ? "true" : "false";
    case "object":
      break;
    default:
      throw new TypeError(`JSON cannot carry a ${typeof value}`);
  }
  const known = remembered.get(value);
  if (known !== undefined) return known;
  if (depth > MAX_DEPTH) throw new TypeError(`JSON nested deeper than ${MAX_DEPTH} levels, or a cycle`);
  if (Array.isArray(value)) {
    let text = "[";
    for (let i = 0; i < value.length; i++) text += (i === 0 ? "" : ",") + write(value[i], depth + 1);
    return `${text}]`;
  }
  const toJson = (value as { toJSON?: unknown }).toJSON;
  if (typeof toJson === "function") return write(toJson.call(value), depth + 1);
  const record = value as Record<string, unknown>;
  const keys = Object.keys(record);
  if (keys.length > 1) keys.sort();
  let text = "{";
  for (const key of keys) {
    const member = record[key];
    if (member === undefined) continue;
    text += `${text === "{" ? "" : ","}${JSON.stringify(key)}:${write(member, depth + 1)}`;
  }
  return `${text}}`;
}
