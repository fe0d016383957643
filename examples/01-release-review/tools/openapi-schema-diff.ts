import type { SchemaChangeKind } from "./api-change.ts";
import type { Located } from "./openapi-document.ts";
import { LOWER_LIMITS, type SchemaView, UPPER_LIMITS, viewSchema } from "./openapi-schema-view.ts";

/** Who sends the value: the client (request) or the server (response). */
export type Direction = "request" | "response";

export interface SchemaChange {
  readonly kind: SchemaChangeKind;
  /** Path of the field inside the body, such as `items[].sku`; empty for the whole. */
  readonly field: string;
  readonly pointer: string;
  readonly breaking: boolean;
  readonly why: string;
}

/**
 * How the set of accepted values moved. Every rule below reduces to this:
 * a request breaks when the server accepts less, a response breaks when the server may send more.
 */
interface Movement {
  /** Some value that was allowed no longer is. */
  readonly narrowed: boolean;
  /** Some value that was not allowed now is. */
  readonly widened: boolean;
}

/**
 * Compares two versions of the schema of one body or parameter, through references, nested objects and arrays.
 *
 * @throws ReleaseInputError for a reference that cannot be followed.
 */
export function diffSchemas(before: Located, after: Located, direction: Direction): readonly SchemaChange[] {
  return new SchemaComparison(direction).run(before, after);
}

class SchemaComparison {
  private readonly changes: SchemaChange[] = [];
  /** Pairs of definitions on the way down; meeting one again means a recursive schema. */
  private readonly open = new Set<string>();
  private readonly direction: Direction;

  constructor(direction: Direction) {
    this.direction = direction;
  }

  run(before: Located, after: Located): readonly SchemaChange[] {
    this.compare(viewSchema(before), viewSchema(after), "");
    return this.changes;
  }

  private compare(before: SchemaView, after: SchemaView, field: string): void {
    const pair = `${before.pointer} ${after.pointer}`;
    if (this.open.has(pair)) return;
    this.open.add(pair);
    const comparable = this.compareTypes(before, after, field);
    if (comparable) {
      this.compareValues(before, after, field);
      this.compareTexts(before, after, field);
      this.compareLimits(before, after, field);
      this.compareProperties(before, after, field);
      this.compareUnknownProperties(before, after, field);
      this.compareVariants(before, after, field);
      if (before.items && after.items) {
        this.compare(viewSchema(before.items), viewSchema(after.items), `${field}[]`);
      }
    }
    this.open.delete(pair);
  }

  /** Returns whether a type is left in common, so that looking further makes sense. */
  private compareTypes(before: SchemaView, after: SchemaView, field: string): boolean {
    const [was, is] = [before.types, after.types];
    const movement = {
      narrowed: was ? [...was].some((type) => !acceptsType(is, type)) : is !== undefined,
      widened: is ? [...is].some((type) => !acceptsType(was, type)) : was !== undefined,
    };
    if (movement.narrowed || movement.widened) {
      this.report("type_changed", after, field, movement, `the type was ${show(was)} and is ${show(is)}`);
    }
    return (
      !was ||
      !is ||
      [...was].some((type) => acceptsType(is, type)) ||
      [...is].some((type) => acceptsType(was, type))
    );
  }

  private compareValues(before: SchemaView, after: SchemaView, field: string): void {
    const [was, is] = [before.values, after.values];
    const removed = was ? missing(was, is) : [];
    const added = is ? missing(is, was) : [];
    if (removed.length > 0 || (!was && is)) {
      const what = was ? `the allowed values lost ${removed.join(", ")}` : `only ${show(is)} is allowed now`;
      this.report("enum_values_removed", after, field, { narrowed: true, widened: false }, what);
    }
    if (added.length > 0 || (was && !is)) {
      const what = is ? `the allowed values gained ${added.join(", ")}` : "any value is allowed now";
      this.report("enum_values_added", after, field, { narrowed: false, widened: true }, what);
    }
  }

  private compareTexts(before: SchemaView, after: SchemaView, field: string): void {
    for (const keyword of ["format", "pattern"] as const) {
      const [was, is] = [before[keyword], after[keyword]];
      if (was === is) continue;
      const movement = { narrowed: is !== undefined, widened: was !== undefined };
      const what = `the ${keyword} was ${was ?? "free"} and is ${is ?? "free"}`;
      this.report(`${keyword}_changed`, after, field, movement, what);
    }
  }

  private compareLimits(before: SchemaView, after: SchemaView, field: string): void {
    for (const name of [...UPPER_LIMITS, ...LOWER_LIMITS]) {
      const [was, is] = [before.limits[name], after.limits[name]];
      if (was === is) continue;
      const sign = UPPER_LIMITS.some((upper) => upper === name) ? 1 : -1;
      const room = (limit: number | undefined): number =>
        limit === undefined ? Number.POSITIVE_INFINITY : sign * limit;
      const movement = { narrowed: room(is) < room(was), widened: room(is) > room(was) };
      const what = `${name} was ${was ?? "unlimited"} and is ${is ?? "unlimited"}`;
      this.report("limit_changed", after, field, movement, what);
    }
  }

  private compareProperties(before: SchemaView, after: SchemaView, field: string): void {
    const [was, is] = [this.visibleProperties(before), this.visibleProperties(after)];
    for (const [name, property] of was) {
      const inner = field === "" ? name : `${field}.${name}`;
      const next = is.get(name);
      if (next) {
        this.compareRequired(before.required.has(name), after.required.has(name), next.node, inner);
        this.compare(property.view, next.view, inner);
        continue;
      }
      const why =
        this.direction === "request"
          ? "the property is gone: what clients send in it is ignored or refused"
          : "the property is gone: clients that read it find nothing";
      const { pointer } = property.node;
      this.changes.push({ kind: "property_removed", field: inner, pointer, breaking: true, why });
    }
    for (const [name, { node }] of is) {
      if (was.has(name)) continue;
      const breaking = this.direction === "request" && after.required.has(name);
      const why = breaking
        ? "a new property is required: clients do not send it yet"
        : "a new property that existing clients can leave alone";
      const inner = field === "" ? name : `${field}.${name}`;
      this.changes.push({ kind: "property_added", field: inner, pointer: node.pointer, breaking, why });
    }
  }

  private compareRequired(was: boolean, is: boolean, at: Located, field: string): void {
    if (was === is) return;
    const kind = is ? "property_now_required" : "property_now_optional";
    const what = `the property became ${is ? "required" : "optional"}`;
    this.report(kind, at, field, { narrowed: is, widened: was }, what);
  }

  /**
   * The properties that travel in this direction: `readOnly` ones never do in a request, `writeOnly` ones never in a response.
   * `node` is where the property is listed, `view` what its schema says.
   */
  private visibleProperties(
    schema: SchemaView,
  ): ReadonlyMap<string, { readonly node: Located; readonly view: SchemaView }> {
    const visible = new Map<string, { readonly node: Located; readonly view: SchemaView }>();
    for (const [name, node] of schema.properties) {
      const property = viewSchema(node);
      const hidden = this.direction === "request" ? property.readOnly : property.writeOnly;
      if (!hidden) visible.set(name, { node, view: property });
    }
    return visible;
  }

  private compareUnknownProperties(before: SchemaView, after: SchemaView, field: string): void {
    if (before.open !== after.open) {
      const what = after.open
        ? "properties that are not listed are allowed now"
        : "properties that are not listed are refused now";
      // A client has to skip what it does not know, so an open response never breaks it.
      const breaking = this.direction === "request" && !after.open;
      this.changes.push({
        kind: "unknown_properties_changed",
        field,
        pointer: after.pointer,
        breaking,
        why: what,
      });
    }
    if (before.additionalProperties && after.additionalProperties) {
      const inner = field === "" ? "*" : `${field}.*`;
      this.compare(viewSchema(before.additionalProperties), viewSchema(after.additionalProperties), inner);
    }
  }

  private compareVariants(before: SchemaView, after: SchemaView, field: string): void {
    if (before.variants.size === 0 && after.variants.size === 0) return;
    if (before.variants.size === 0 || after.variants.size === 0) {
      // Alternatives against a single schema: neither is known to contain the other.
      const kind = before.variants.size === 0 ? "variant_added" : "variant_removed";
      const what = `the schema ${kind === "variant_added" ? "has alternatives now" : "has no alternatives any more"}`;
      this.report(kind, after, field, { narrowed: true, widened: true }, what);
      return;
    }
    for (const [name, variant] of before.variants) {
      const next = after.variants.get(name);
      if (next) this.compare(viewSchema(variant), viewSchema(next), field);
      else
        this.report(
          "variant_removed",
          before,
          field,
          { narrowed: true, widened: false },
          `the variant ${name} is gone`,
        );
    }
    for (const name of after.variants.keys()) {
      if (before.variants.has(name)) continue;
      this.report(
        "variant_added",
        after,
        field,
        { narrowed: false, widened: true },
        `the variant ${name} is new`,
      );
    }
  }

  private report(
    kind: SchemaChangeKind,
    at: { readonly pointer: string },
    field: string,
    movement: Movement,
    what: string,
  ): void {
    const breaking = this.direction === "request" ? movement.narrowed : movement.widened;
    const consequence =
      this.direction === "request"
        ? breaking
          ? "what a client may send today can be refused"
          : "what clients send today stays valid"
        : breaking
          ? "clients can receive what they were not written for"
          : "clients receive nothing they were not written for";
    this.changes.push({ kind, field, pointer: at.pointer, breaking, why: `${what}: ${consequence}` });
  }
}

function acceptsType(types: ReadonlySet<string> | undefined, type: string): boolean {
  return !types || types.has(type) || (type === "integer" && types.has("number"));
}

function missing(members: ReadonlySet<string>, from: ReadonlySet<string> | undefined): readonly string[] {
  return from ? [...members].filter((member) => !from.has(member)) : [];
}

function show(members: ReadonlySet<string> | undefined): string {
  return members ? [...members].join(" or ") || "nothing" : "anything";
}
