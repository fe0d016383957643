import { type Located, childOf, childrenOf, isObject, referenceOf, resolve } from "./openapi-document.ts";

/** Limits where a smaller number accepts fewer values. */
export const UPPER_LIMITS = [
  "maximum",
  "exclusiveMaximum",
  "maxLength",
  "maxItems",
  "maxProperties",
] as const;
/** Limits where a larger number accepts fewer values. */
export const LOWER_LIMITS = [
  "minimum",
  "exclusiveMinimum",
  "minLength",
  "minItems",
  "minProperties",
] as const;
export type Limit = (typeof UPPER_LIMITS)[number] | (typeof LOWER_LIMITS)[number];

/** A schema with its `$ref` followed and its `allOf` merged: what it really says about a value. */
export interface SchemaView {
  /** Where the schema is defined (the target of its `$ref`, if it is one). */
  readonly pointer: string;
  /** JSON type names; undefined means any type. */
  readonly types: ReadonlySet<string> | undefined;
  /** The allowed values as JSON text; undefined means any value. */
  readonly values: ReadonlySet<string> | undefined;
  readonly format: string | undefined;
  readonly pattern: string | undefined;
  readonly limits: Readonly<Partial<Record<Limit, number>>>;
  readonly properties: ReadonlyMap<string, Located>;
  readonly required: ReadonlySet<string>;
  /** Whether properties that are not listed are allowed. */
  readonly open: boolean;
  readonly additionalProperties: Located | undefined;
  readonly items: Located | undefined;
  /** Alternatives of `oneOf` or `anyOf`, by reference, title or position. */
  readonly variants: ReadonlyMap<string, Located>;
  readonly readOnly: boolean;
  readonly writeOnly: boolean;
}

/**
 * Reads the schema at a place.
 *
 * @throws ReleaseInputError for a reference that cannot be followed.
 */
export function viewSchema(node: Located): SchemaView {
  return view(node, new Set());
}

function view(node: Located, beingMerged: ReadonlySet<string>): SchemaView {
  // A schema that includes itself by allOf adds nothing the second time.
  if (beingMerged.has(node.pointer))
    return { ...viewKeywords(node), properties: new Map(), required: new Set() };
  const merging = new Set(beingMerged).add(node.pointer);

  let merged = viewKeywords(node);
  if (referenceOf(node) !== undefined) {
    // OpenAPI 3.1 allows keywords beside $ref; they add to the referenced schema.
    const referenced = view(resolve(node), merging);
    merged = { ...merge(referenced, merged), pointer: referenced.pointer };
  }
  for (const part of childrenOf(childOf(node, "allOf")).values()) {
    merged = { ...merge(merged, view(part, merging)), pointer: merged.pointer };
  }
  return merged;
}

function viewKeywords(node: Located): SchemaView {
  const schema = isObject(node.value) ? node.value : {};
  const additional = childOf(node, "additionalProperties");
  return {
    pointer: node.pointer,
    types: typesOf(schema.type, schema.nullable === true),
    // The boolean schema `false` accepts no value at all.
    values: node.value === false ? new Set() : valuesOf(schema),
    format: textOf(schema.format),
    pattern: textOf(schema.pattern),
    limits: limitsOf(schema),
    properties: childrenOf(childOf(node, "properties")),
    required: new Set(Array.isArray(schema.required) ? schema.required.map(String) : []),
    open: additional?.value !== false,
    additionalProperties: isObject(additional?.value) ? additional : undefined,
    items: childOf(node, "items"),
    variants: new Map([...variantsOf(node, "oneOf"), ...variantsOf(node, "anyOf")]),
    readOnly: schema.readOnly === true,
    writeOnly: schema.writeOnly === true,
  };
}

function typesOf(type: unknown, nullable: boolean): ReadonlySet<string> | undefined {
  if (type === undefined) return undefined;
  const types = new Set((Array.isArray(type) ? (type as unknown[]) : [type]).map(String));
  if (nullable) types.add("null");
  return types;
}

function valuesOf(schema: Readonly<Record<string, unknown>>): ReadonlySet<string> | undefined {
  if (Object.hasOwn(schema, "const")) return new Set([JSON.stringify(schema.const)]);
  const listed = schema.enum;
  return Array.isArray(listed) ? new Set(listed.map((value) => JSON.stringify(value))) : undefined;
}

function limitsOf(schema: Readonly<Record<string, unknown>>): Partial<Record<Limit, number>> {
  const limits: Partial<Record<Limit, number>> = {};
  for (const name of [...UPPER_LIMITS, ...LOWER_LIMITS]) {
    const limit = schema[name];
    if (typeof limit === "number") limits[name] = limit;
  }
  return limits;
}

function variantsOf(node: Located, keyword: "oneOf" | "anyOf"): ReadonlyMap<string, Located> {
  const variants = new Map<string, Located>();
  for (const [position, variant] of childrenOf(childOf(node, keyword))) {
    const title = isObject(variant.value) ? textOf(variant.value.title) : undefined;
    variants.set(referenceOf(variant) ?? title ?? `${keyword}[${position}]`, variant);
  }
  return variants;
}

/** Both schemas at once: what the pair accepts is what each accepts. Of a property that both describe, the second counts. */
function merge(first: SchemaView, second: SchemaView): SchemaView {
  const limits: Partial<Record<Limit, number>> = { ...first.limits, ...second.limits };
  for (const name of UPPER_LIMITS) tighten(name, Math.min);
  for (const name of LOWER_LIMITS) tighten(name, Math.max);
  return {
    pointer: first.pointer,
    types: intersection(first.types, second.types),
    values: intersection(first.values, second.values),
    format: second.format ?? first.format,
    pattern: second.pattern ?? first.pattern,
    limits,
    properties: new Map([...first.properties, ...second.properties]),
    required: new Set([...first.required, ...second.required]),
    open: first.open && second.open,
    additionalProperties: second.additionalProperties ?? first.additionalProperties,
    items: second.items ?? first.items,
    variants: new Map([...first.variants, ...second.variants]),
    readOnly: first.readOnly || second.readOnly,
    writeOnly: first.writeOnly || second.writeOnly,
  };

  function tighten(name: Limit, pick: (a: number, b: number) => number): void {
    const [a, b] = [first.limits[name], second.limits[name]];
    if (a !== undefined && b !== undefined) limits[name] = pick(a, b);
  }
}

function intersection(
  first: ReadonlySet<string> | undefined,
  second: ReadonlySet<string> | undefined,
): ReadonlySet<string> | undefined {
  if (!first || !second) return first ?? second;
  return new Set([...first].filter((member) => second.has(member)));
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
