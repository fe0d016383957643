import type { ApiChange } from "./api-change.ts";
import { HTTP_METHODS, type HttpMethod, isObject } from "./openapi-document.ts";
import { type InputProblem, ReleaseInputError, inputError, reasonOf } from "./release-input-error.ts";

/** What one client does with one operation. Fields are paths such as `items[].sku`. */
export interface OperationUse {
  readonly method: HttpMethod;
  readonly path: string;
  /** Names of the parameters it sends. */
  readonly parameters: readonly string[];
  /** Fields of the request body it sends. */
  readonly sends: readonly string[];
  /** Fields of the response body it reads. */
  readonly reads: readonly string[];
}

export interface ApiClient {
  readonly name: string;
  /** Who to talk to before the release. */
  readonly owner: string;
  readonly uses: readonly OperationUse[];
}

export interface ClientHit {
  readonly client: string;
  readonly owner: string;
  readonly change: ApiChange;
}

export interface ClientImpact {
  /** No breaking change meets a client. Breaking changes that nobody uses do not count. */
  readonly passed: boolean;
  readonly hits: readonly ClientHit[];
  readonly unaffectedClients: readonly string[];
  /** Breaking changes in parts of the API that no listed client uses. */
  readonly unusedBreakingChanges: readonly ApiChange[];
}

/** Finds the clients that each breaking change hits, by the operations and fields they use. */
export function clientImpact(changes: readonly ApiChange[], clients: readonly ApiClient[]): ClientImpact {
  const breaking = changes.filter((change) => change.breaking);
  const hits = clients.flatMap((client) =>
    breaking
      .filter((change) => client.uses.some((use) => isHit(use, change)))
      .map((change) => ({ client: client.name, owner: client.owner, change })),
  );
  const affected = new Set(hits.map((hit) => hit.client));
  const used = new Set(hits.map((hit) => hit.change));
  return {
    passed: hits.length === 0,
    hits,
    unaffectedClients: clients.map((client) => client.name).filter((name) => !affected.has(name)),
    unusedBreakingChanges: breaking.filter((change) => !used.has(change)),
  };
}

function isHit(use: OperationUse, change: ApiChange): boolean {
  if (use.path !== change.path) return false;
  if (change.method !== undefined && change.method !== use.method) return false;
  const { subject } = change;
  switch (subject.part) {
    case "operation":
      return true;
    case "parameter":
      // A new demand hits whoever does not meet it yet; any other change hits whoever sends the parameter.
      return demandsMore(change) !== use.parameters.includes(subject.name) || subject.in === "path";
    case "request":
      if (subject.field === "") return true;
      return demandsMore(change)
        ? !use.sends.includes(subject.field) && sendsOwner(use, subject.field)
        : touches(use.sends, subject.field);
    case "response":
      return subject.field === "" || touches(use.reads, subject.field);
    default:
      return subject satisfies never;
  }
}

function demandsMore({ kind }: ApiChange): boolean {
  switch (kind) {
    case "parameter_added":
    case "parameter_now_required":
    case "property_added":
    case "property_now_required":
      return true;
    default:
      return false;
  }
}

/** Whether the client sends the object that `field` is a property of; the body itself is always sent. */
function sendsOwner(use: OperationUse, field: string): boolean {
  const owner = field.replace(/\.?[^.]*$/, "");
  return owner === "" || touches(use.sends, owner);
}

/** Whether one of the fields is `changed`, holds it, or lies inside it. */
function touches(fields: readonly string[], changed: string): boolean {
  return fields.some((field) => contains(field, changed) || contains(changed, field));
}

function contains(outer: string, inner: string): boolean {
  return inner === outer || inner.startsWith(`${outer}.`) || inner.startsWith(`${outer}[`);
}

/**
 * Reads `clients.json`: `{ "clients": [{ "name", "owner", "uses": [{ "operation": "GET /orders", … }] }] }`,
 * where a use may list `parameters`, `sends` and `reads`.
 *
 * @throws ReleaseInputError listing every entry that is wrong.
 */
export function parseClients(text: string, file: string): readonly ApiClient[] {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw inputError(file, `is not valid JSON: ${reasonOf(error)}.`, "Correct the syntax.", error);
  }
  const listed = isObject(json) ? json.clients : undefined;
  if (!Array.isArray(listed)) {
    throw inputError(file, 'has no "clients" list.', 'Write `{ "clients": [] }` if no client is known.');
  }
  const problems: InputProblem[] = [];
  const clients = (listed as unknown[]).map((entry, index) => readClient(entry, `clients[${index}]`, report));
  if (problems.length > 0) throw new ReleaseInputError(problems);
  return clients;

  function report(where: string, expected: string): void {
    problems.push({ file, problem: `${where} is not as expected.`, fix: `Write ${expected}.` });
  }
}

type Report = (where: string, expected: string) => void;

function readClient(entry: unknown, where: string, report: Report): ApiClient {
  const client = isObject(entry) ? entry : {};
  const [name, owner, uses] = [client.name, client.owner, client.uses];
  if (typeof name !== "string" || name === "") report(`${where}.name`, "the name of the client");
  if (typeof owner !== "string" || owner === "") report(`${where}.owner`, "who to talk to about the client");
  if (!Array.isArray(uses)) report(`${where}.uses`, "a list of the operations the client calls");
  return {
    name: String(name),
    owner: String(owner),
    uses: (Array.isArray(uses) ? (uses as unknown[]) : []).map((use, index) =>
      readUse(use, `${where}.uses[${index}]`, report),
    ),
  };
}

function readUse(entry: unknown, where: string, report: Report): OperationUse {
  const use = isObject(entry) ? entry : {};
  const [verb = "", path = ""] = String(use.operation).split(" ");
  const method = HTTP_METHODS.find((known) => known === verb.toLowerCase());
  if (!method || !path.startsWith("/"))
    report(`${where}.operation`, 'a method and a path, such as "GET /orders"');
  return {
    method: method ?? "get",
    path,
    parameters: readNames(use.parameters, `${where}.parameters`, report),
    sends: readNames(use.sends, `${where}.sends`, report),
    reads: readNames(use.reads, `${where}.reads`, report),
  };
}

function readNames(value: unknown, where: string, report: Report): readonly string[] {
  if (value === undefined) return [];
  const names = Array.isArray(value) ? (value as unknown[]) : [value];
  if (!names.every((name) => typeof name === "string" && name !== "")) report(where, "a list of names");
  return names.map(String);
}
