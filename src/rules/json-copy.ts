import type { Json } from "./json.ts";

const MAX_DEPTH = 256;

/**
 * A copy of `value` as JSON, so that what is stored cannot change with the object it came from.
 *
 * `undefined` is null, and a member that is undefined is left out; objects with `toJSON` are asked.
 * @throws TypeError that names the place of a value JSON would lose or cannot carry (a Map, an Error, NaN, a function, a cycle).
 */
export function jsonCopy(value: unknown): Json {
  return copy(value, "", 0);
}

function copy(value: unknown, pointer: string, depth: number): Json {
  switch (typeof value) {
    case "undefined":
      return null;
    case "string":
    case "boolean":
      return value;
    case "number":
      if (!Number.isFinite(value)) throw refusal(`the number ${value}`, pointer);
      return value === 0 ? 0 : value;
    case "object":
      break;
    default:
      throw refusal(`a ${typeof value}`, pointer);
  }
  if (value === null) return null;
  if (depth > MAX_DEPTH) throw refusal(`more than ${MAX_DEPTH} levels, or a cycle,`, "");
  if (Array.isArray(value)) {
    const items: Json[] = [];
    for (let i = 0; i < value.length; i++) items.push(copy(value[i], `${pointer}/${i}`, depth + 1));
    return items;
  }
  const toJson = (value as { toJSON?: unknown }).toJSON;
  if (typeof toJson === "function") return copy(toJson.call(value), pointer, depth + 1);
  const tag = Object.prototype.toString.call(value);
  if (tag !== "[object Object]") throw refusal(`a ${tag.slice(8, -1)}`, pointer);
  const members: Record<string, Json> = {};
  for (const key of Object.keys(value)) {
    const member = (value as Record<string, unknown>)[key];
    if (member === undefined) continue;
    const copied = copy(member, `${pointer}/${key}`, depth + 1);
    if (key === "__proto__") {
      Object.defineProperty(members, key, {
        value: copied,
        enumerable: true,
        writable: true,
        configurable: true,
      });
    } else members[key] = copied;
  }
  return members;
}

function refusal(what: string, pointer: string): TypeError {
  return new TypeError(`JSON cannot carry ${what}${pointer === "" ? "" : ` at ${pointer}`}`);
}
