import type { ApiChange, ApiChangeKind, ApiSubject } from "./api-change.ts";
import {
  HTTP_METHODS,
  type HttpMethod,
  type Located,
  type OpenApiDocument,
  childOf,
  childrenOf,
  isObject,
  resolve,
  rootOf,
} from "./openapi-document.ts";
import { type Direction, diffSchemas } from "./openapi-schema-diff.ts";

/**
 * Compares two versions of an API as a client of the old version meets them.
 *
 * Compared: paths, operations, security, parameters, request and response bodies with their schemas, status codes.
 * Not compared: prose, examples, servers, headers, links, callbacks and webhooks.
 * The order of the result depends on the content only, not on the order of keys in the files.
 *
 * @throws ReleaseInputError for a reference that cannot be followed.
 */
export function diffOpenApi(
  before: OpenApiDocument,
  after: OpenApiDocument,
  signal?: AbortSignal,
): readonly ApiChange[] {
  const changes: ApiChange[] = [];
  const [was, is] = [pathsOf(before), pathsOf(after)];
  for (const [shape, old] of was) {
    signal?.throwIfAborted();
    const next = is.get(shape);
    if (next) changes.push(...new PathComparison(old, next).run());
    else changes.push(wholePath("path_removed", old, true, "the path is gone: every call to it fails"));
  }
  for (const [shape, path] of is) {
    if (!was.has(shape))
      changes.push(wholePath("path_added", path, false, "a new path that no existing client calls"));
  }
  return changes.toSorted((a, b) => compareText(sortKey(a), sortKey(b)));
}

interface Path {
  readonly template: string;
  readonly item: Located;
}

/** Paths by shape: `/orders/{id}` and `/orders/{orderId}` are the same address on the wire. */
function pathsOf(document: OpenApiDocument): ReadonlyMap<string, Path> {
  const paths = new Map<string, Path>();
  for (const [template, item] of childrenOf(childOf(rootOf(document), "paths"))) {
    if (template.startsWith("/")) {
      paths.set(template.replaceAll(/\{[^}]*\}/g, "{}"), { template, item: resolve(item) });
    }
  }
  return paths;
}

class PathComparison {
  private readonly changes: ApiChange[] = [];
  private readonly before: Path;
  private readonly after: Path;

  constructor(before: Path, after: Path) {
    this.before = before;
    this.after = after;
  }

  run(): readonly ApiChange[] {
    for (const method of HTTP_METHODS) {
      const was = childOf(this.before.item, method);
      const is = childOf(this.after.item, method);
      if (was && is) this.compareOperations(method, was, is);
      else if (was) {
        this.add(
          "operation_removed",
          method,
          OPERATION,
          was,
          true,
          "the operation is gone: every call to it fails",
        );
      } else if (is) {
        this.add(
          "operation_added",
          method,
          OPERATION,
          is,
          false,
          "a new operation that no existing client calls",
        );
      }
    }
    return this.changes;
  }

  private compareOperations(method: HttpMethod, was: Located, is: Located): void {
    if (!isDeprecated(was) && isDeprecated(is)) {
      this.add(
        "operation_deprecated",
        method,
        OPERATION,
        is,
        false,
        "the operation still works and will go away",
      );
    }
    this.compareSecurity(method, was, is);
    this.compareParameters(method, was, is);
    this.compareRequestBodies(method, childOf(was, "requestBody"), childOf(is, "requestBody"));
    this.compareResponses(method, was, is);
  }

  private compareSecurity(method: HttpMethod, was: Located, is: Located): void {
    const [accepted, accepting] = [securityOf(was), securityOf(is)];
    const refused = [...accepted].filter((way) => !accepting.has(way));
    if (refused.length === 0 && accepted.size === accepting.size) return;
    // An operation open to everyone also takes a call that carries credentials.
    const breaking = refused.length > 0 && !accepting.has(NO_CREDENTIALS);
    const why = breaking
      ? `a call with ${refused.join(" or ")} is refused now`
      : "every way to authenticate that worked still works";
    this.add("security_changed", method, OPERATION, is, breaking, why);
  }

  private compareParameters(method: HttpMethod, was: Located, is: Located): void {
    const old = parametersOf(this.before, was, this.before);
    const next = parametersOf(this.after, is, this.before);
    for (const [id, parameter] of old) {
      const now = next.get(id);
      if (now) this.compareParameter(method, parameter, now);
      else {
        const why = "the parameter is gone: what clients ask with it is ignored or refused";
        this.add("parameter_removed", method, subjectOf(parameter), parameter.node, true, why);
      }
    }
    for (const [id, parameter] of next) {
      if (old.has(id)) continue;
      const why = parameter.required
        ? "a new parameter is required: clients do not send it yet"
        : "a new parameter that existing clients can leave out";
      this.add("parameter_added", method, subjectOf(parameter), parameter.node, parameter.required, why);
    }
  }

  private compareParameter(method: HttpMethod, was: Parameter, is: Parameter): void {
    const subject = subjectOf(was);
    if (!was.required && is.required) {
      const why = "the parameter became required: calls without it are refused";
      this.add("parameter_now_required", method, subject, is.node, true, why);
    } else if (was.required && !is.required) {
      this.add(
        "parameter_now_optional",
        method,
        subject,
        is.node,
        false,
        "calls with the parameter stay valid",
      );
    }
    const [oldSchema, newSchema] = [childOf(was.node, "schema"), childOf(is.node, "schema")];
    if (oldSchema && newSchema) this.addSchemaChanges(method, oldSchema, newSchema, "request", () => subject);
    this.compareContent(method, was.node, is.node, "request", () => subject);
  }

  private compareRequestBodies(
    method: HttpMethod,
    written: Located | undefined,
    rewritten: Located | undefined,
  ): void {
    const subject = { part: "request", field: "" } as const;
    const was = written && resolve(written);
    const is = rewritten && resolve(rewritten);
    if (was && !is) {
      const why = "the operation takes no body any more: what clients send in it is ignored or refused";
      this.add("request_body_removed", method, subject, was, true, why);
    } else if (!was && is) {
      const why = isRequired(is)
        ? "a body is required: clients do not send one yet"
        : "a body that clients can leave out";
      this.add("request_body_added", method, subject, is, isRequired(is), why);
    } else if (was && is) {
      if (!isRequired(was) && isRequired(is)) {
        const why = "the body became required: calls without it are refused";
        this.add("request_body_now_required", method, subject, is, true, why);
      } else if (isRequired(was) && !isRequired(is)) {
        this.add("request_body_now_optional", method, subject, is, false, "calls with a body stay valid");
      }
      this.compareContent(method, was, is, "request", (field) => ({ part: "request", field }));
    }
  }

  private compareResponses(method: HttpMethod, was: Located, is: Located): void {
    const old = childrenOf(childOf(was, "responses"));
    const next = childrenOf(childOf(is, "responses"));
    for (const [status, response] of old) {
      const now = next.get(status);
      const subjectAt = (field: string): ApiSubject => ({ part: "response", status, field });
      if (now) this.compareContent(method, resolve(response), resolve(now), "response", subjectAt);
      else {
        const success = isSuccess(status);
        const why = success
          ? "clients wait for this success and no longer get it"
          : "an error that is no longer reported";
        this.add("response_removed", method, subjectAt(""), response, success, why);
      }
    }
    for (const [status, response] of next) {
      if (old.has(status)) continue;
      const success = isSuccess(status);
      const why = success
        ? "a success that clients were not written for"
        : "a more precise error; clients treat an unknown one by its class";
      this.add("response_added", method, { part: "response", status, field: "" }, response, success, why);
    }
  }

  private compareContent(
    method: HttpMethod,
    was: Located,
    is: Located,
    direction: Direction,
    subjectAt: (field: string) => ApiSubject,
  ): void {
    const old = childrenOf(childOf(was, "content"));
    const next = childrenOf(childOf(is, "content"));
    for (const [mediaType, content] of old) {
      const now = next.get(mediaType);
      if (!now) {
        this.add(
          "media_type_removed",
          method,
          subjectAt(""),
          content,
          true,
          `${mediaType} is no longer spoken here`,
        );
        continue;
      }
      const [oldSchema, newSchema] = [childOf(content, "schema"), childOf(now, "schema")];
      if (oldSchema && newSchema) this.addSchemaChanges(method, oldSchema, newSchema, direction, subjectAt);
    }
    for (const [mediaType, content] of next) {
      if (old.has(mediaType)) continue;
      this.add("media_type_added", method, subjectAt(""), content, false, `${mediaType} is offered as well`);
    }
  }

  private addSchemaChanges(
    method: HttpMethod,
    was: Located,
    is: Located,
    direction: Direction,
    subjectAt: (field: string) => ApiSubject,
  ): void {
    for (const { kind, field, pointer, breaking, why } of diffSchemas(was, is, direction)) {
      this.changes.push({
        kind,
        path: this.before.template,
        method,
        subject: subjectAt(field),
        pointer,
        breaking,
        why,
      });
    }
  }

  private add(
    kind: ApiChangeKind,
    method: HttpMethod,
    subject: ApiSubject,
    at: Located,
    breaking: boolean,
    why: string,
  ): void {
    this.changes.push({
      kind,
      path: this.before.template,
      method,
      subject,
      pointer: at.pointer,
      breaking,
      why,
    });
  }
}

const OPERATION = { part: "operation" } as const;
const NO_CREDENTIALS = "no credentials";

interface Parameter {
  readonly in: string;
  /** Of a path parameter, the name it has in the old template. */
  readonly name: string;
  readonly required: boolean;
  readonly node: Located;
}

/** The parameters of an operation, those of its path included, by place and name. */
function parametersOf(path: Path, operation: Located, naming: Path): ReadonlyMap<string, Parameter> {
  const renamed = new Map(zip(placeholdersOf(path.template), placeholdersOf(naming.template)));
  const parameters = new Map<string, Parameter>();
  for (const owner of [path.item, operation]) {
    for (const written of childrenOf(childOf(owner, "parameters")).values()) {
      const node = resolve(written);
      const place = String(childOf(node, "in")?.value);
      const ownName = String(childOf(node, "name")?.value);
      const name = place === "path" ? (renamed.get(ownName) ?? ownName) : ownName;
      parameters.set(`${place} ${name}`, { in: place, name, required: isRequired(node), node });
    }
  }
  return parameters;
}

function placeholdersOf(template: string): readonly string[] {
  return [...template.matchAll(/\{([^}]*)\}/g)].map(([, name = ""]) => name);
}

function zip(keys: readonly string[], values: readonly string[]): readonly (readonly [string, string])[] {
  return keys.map((key, index) => [key, values[index] ?? key]);
}

function subjectOf(parameter: Parameter): ApiSubject {
  return { part: "parameter", in: parameter.in, name: parameter.name };
}

/** The ways to authenticate a call, as text; the document's own rule where the operation has none. */
function securityOf(operation: Located): ReadonlySet<string> {
  const rule = childOf(operation, "security") ?? childOf(rootOf(operation.document), "security");
  const ways = [...childrenOf(rule).values()].map(({ value }) => {
    const schemes = isObject(value) ? Object.entries(value) : [];
    return schemes
      .map(([name, scopes]) => `${name} ${JSON.stringify(scopes)}`)
      .toSorted(compareText)
      .join(" and ");
  });
  return new Set(ways.length === 0 ? [NO_CREDENTIALS] : ways.map((way) => way || NO_CREDENTIALS));
}

function isRequired(node: Located): boolean {
  return childOf(node, "required")?.value === true;
}

function isDeprecated(operation: Located): boolean {
  return childOf(operation, "deprecated")?.value === true;
}

function isSuccess(status: string): boolean {
  return status.startsWith("2");
}

function wholePath(kind: ApiChangeKind, path: Path, breaking: boolean, why: string): ApiChange {
  return { kind, path: path.template, subject: OPERATION, pointer: path.item.pointer, breaking, why };
}

function sortKey({ path, method, pointer, kind, subject, why }: ApiChange): string {
  return JSON.stringify([path, method ?? "", pointer, kind, subject, why]);
}

/** Orders by code unit: the same on every machine, whatever its locale. */
function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
