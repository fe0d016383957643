import { parseDocument } from "yaml";
import { inputError, reasonOf } from "./release-input-error.ts";

export type JsonObject = { readonly [key: string]: unknown };

export const HTTP_METHODS = ["get", "put", "post", "delete", "options", "head", "patch", "trace"] as const;
export type HttpMethod = (typeof HTTP_METHODS)[number];

/** A parsed OpenAPI 3.x document. Plain JSON, so it can be stored and sent. */
export interface OpenApiDocument {
  /** How error messages call this document; normally its path. */
  readonly file: string;
  readonly root: JsonObject;
}

/** A value together with the place it stands at, so that every finding can be pointed to. */
export interface Located {
  readonly document: OpenApiDocument;
  readonly value: unknown;
  /** JSON Pointer (RFC 6901) from the document's root. */
  readonly pointer: string;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Reads OpenAPI YAML (or JSON, which is YAML).
 *
 * @throws ReleaseInputError when the text is not YAML, or not an OpenAPI 3 document with paths.
 */
export function parseOpenApi(text: string, file: string): OpenApiDocument {
  const yaml = parseDocument(text, { uniqueKeys: true });
  const [syntaxError] = yaml.errors;
  if (syntaxError) {
    const line = syntaxError.linePos?.[0].line;
    const where = line === undefined ? "" : ` at line ${line}`;
    const [firstLine = ""] = syntaxError.message.split("\n");
    throw inputError(file, `is not valid YAML${where}: ${firstLine}.`, "Correct the syntax.", syntaxError);
  }
  const root = toPlainValue(() => yaml.toJS({ maxAliasCount: 1000 }) as unknown, file);
  if (!isObject(root) || typeof root.openapi !== "string" || !/^3\.[01]\./.test(root.openapi)) {
    throw inputError(
      file,
      "is not an OpenAPI 3.0 or 3.1 document.",
      'Start it with a line such as "openapi: 3.1.0".',
    );
  }
  if (!isObject(root.paths)) {
    throw inputError(
      file,
      'has no "paths" object.',
      "Describe at least one path, or write `paths: {}` for none.",
    );
  }
  return { file, root };
}

function toPlainValue(read: () => unknown, file: string): unknown {
  try {
    // Through JSON: aliases are written out, and a structure that contains itself is found here and not later.
    return JSON.parse(JSON.stringify(read())) as unknown;
  } catch (error) {
    throw inputError(file, `cannot be expanded: ${reasonOf(error)}.`, "Remove the YAML aliases.", error);
  }
}

export function rootOf(document: OpenApiDocument): Located {
  return { document, value: document.root, pointer: "" };
}

/** The child under `key`, as written: a `$ref` in it is not followed. */
export function childOf(parent: Located, key: string | number): Located | undefined {
  const { value } = parent;
  const child = Array.isArray(value)
    ? (value as unknown[])[Number(key)]
    : isObject(value) && Object.hasOwn(value, key)
      ? value[key]
      : undefined;
  if (child === undefined) return undefined;
  return { document: parent.document, value: child, pointer: `${parent.pointer}/${escapeKey(String(key))}` };
}

/** The children of an object or array, as written, in the order they stand in. */
export function childrenOf(parent: Located | undefined): ReadonlyMap<string, Located> {
  const children = new Map<string, Located>();
  if (!parent || typeof parent.value !== "object" || parent.value === null) return children;
  for (const key of Object.keys(parent.value)) {
    const child = childOf(parent, key);
    if (child) children.set(key, child);
  }
  return children;
}

/**
 * Follows a chain of `$ref`s to the place they point at; anything else is returned as it is.
 *
 * @throws ReleaseInputError for a reference out of the document, to nothing, or in a circle.
 */
export function resolve(start: Located): Located {
  const visited = new Set<string>();
  let current = start;
  for (let reference = referenceOf(current); reference !== undefined; reference = referenceOf(current)) {
    if (visited.has(reference)) {
      throw referenceError(current, reference, "leads back to itself.", "Point it at a definition.");
    }
    visited.add(reference);
    current = target(current, reference);
  }
  return current;
}

/** The reference a value consists of, or undefined when it is not a reference. */
export function referenceOf(node: Located): string | undefined {
  const reference = isObject(node.value) ? node.value["$ref"] : undefined;
  return typeof reference === "string" ? reference : undefined;
}

function target(from: Located, reference: string): Located {
  if (reference !== "#" && !reference.startsWith("#/")) {
    throw referenceError(from, reference, "leaves the file.", "Bundle the description into one file first.");
  }
  let current: Located | undefined = rootOf(from.document);
  for (const key of reference.split("/").slice(1)) {
    current = current && childOf(current, unescapeKey(key));
  }
  if (!current)
    throw referenceError(from, reference, "points at nothing.", "Define it or correct the reference.");
  return current;
}

function referenceError(from: Located, reference: string, problem: string, fix: string): Error {
  return inputError(from.document.file, `the $ref "${reference}" at ${from.pointer} ${problem}`, fix);
}

/** A key of a JSON Pointer in a URI fragment; one that is not valid percent-encoding is taken as it stands. */
function unescapeKey(key: string): string {
  const encoded = /^(?:[^%]|%[0-7][0-9a-f])*$/i.test(key);
  return (encoded ? decodeURIComponent(key) : key).replaceAll("~1", "/").replaceAll("~0", "~");
}

function escapeKey(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}
