import { describe, expect, it } from "vitest";
import type { ApiChange } from "./api-change.ts";
import { parseOpenApi } from "./openapi-document.ts";
import { diffOpenApi } from "./openapi-diff.ts";
import { inputErrorOf } from "./testing.ts";

type Json = Readonly<Record<string, unknown>>;

function changes(before: Json, after: Json): readonly ApiChange[] {
  return diffOpenApi(document(before), document(after));
}

function document(content: Json): ReturnType<typeof parseOpenApi> {
  return parseOpenApi(JSON.stringify({ openapi: "3.1.0", ...content }), "api.yaml");
}

/** An API with one operation that takes and gives the same schema. */
function echo(schema: unknown, components: Json = {}): Json {
  const content = { "application/json": { schema } };
  const operation = {
    requestBody: { required: true, content },
    responses: { 200: { description: "", content } },
  };
  return { paths: { "/echo": { post: operation } }, components: { schemas: components } };
}

/** What changed in the request and in the response, as `kind field breaking`. */
function echoChanges(before: unknown, after: unknown, components: readonly [Json, Json] = [{}, {}]): Json {
  const found = changes(echo(before, components[0]), echo(after, components[1]));
  const lines = (part: string): readonly string[] =>
    found.flatMap(({ kind, subject, breaking }) =>
      subject.part === part && "field" in subject
        ? [`${kind} ${subject.field || "(body)"} ${breaking ? "breaks" : "fits"}`]
        : [],
    );
  return { request: lines("request"), response: lines("response") };
}

function object(properties: Json, rest: Json = {}): Json {
  return { type: "object", properties, ...rest };
}

function operation(rest: Json): Json {
  return { paths: { "/orders/{id}": { get: { responses: {}, ...rest } } } };
}

describe("paths and operations", () => {
  const get = { responses: { 200: { description: "" } } };

  it("finds nothing between equal documents", () => {
    const api = echo(object({ a: { type: "string" } }));
    expect(changes(api, api)).toEqual([]);
  });

  it("takes a removed path or operation as breaking and an added one as not", () => {
    const before = { paths: { "/a": { get, post: get }, "/b": { get } } };
    const after = { paths: { "/a": { get, put: get }, "/c": { get } } };
    expect(changes(before, after)).toMatchObject([
      { kind: "operation_removed", path: "/a", method: "post", pointer: "/paths/~1a/post", breaking: true },
      { kind: "operation_added", path: "/a", method: "put", pointer: "/paths/~1a/put", breaking: false },
      { kind: "path_removed", path: "/b", breaking: true },
      { kind: "path_added", path: "/c", breaking: false },
    ]);
  });

  it("does not mind a path parameter of another name", () => {
    const at = (name: string): Json => ({
      paths: {
        [`/orders/{${name}}`]: {
          parameters: [{ name, in: "path", required: true, schema: { type: "integer" } }],
          get,
        },
      },
    });
    expect(changes(at("id"), at("orderId"))).toEqual([]);
  });

  it("reports a deprecation without calling it breaking", () => {
    const found = changes(operation({}), operation({ deprecated: true }));
    expect(found).toMatchObject([{ kind: "operation_deprecated", breaking: false }]);
  });

  it("gives the same result for another order of keys", () => {
    const schema = object({ a: { type: "string" }, b: { type: "integer" } });
    const turned = object({ b: { type: "integer" }, a: { type: "string" } });
    const after = object({ c: { type: "string" } });
    expect(changes(echo(turned), echo(after))).toEqual(changes(echo(schema), echo(after)));
  });
});

describe("security", () => {
  it.each([
    ["a new obligation", undefined, [{ key: [] }], true],
    ["an obligation dropped", [{ key: [] }], [], false],
    ["one more way", [{ key: [] }], [{ key: [] }, { token: [] }], false],
    ["one way less", [{ key: [] }, { token: [] }], [{ key: [] }], true],
    ["a wider scope", [{ token: ["read"] }], [{ token: ["read", "write"] }], true],
  ])("%s", (_, before, after, breaking) => {
    const found = changes(operation({ security: before }), operation({ security: after }));
    expect(found).toMatchObject([{ kind: "security_changed", breaking }]);
  });

  it("takes the rule of the document where an operation has none", () => {
    const before = { ...operation({}), security: [{ key: [] }] };
    const after = operation({ security: [{ key: [] }] });
    expect(changes(before, after)).toEqual([]);
  });
});

describe("parameters", () => {
  const parameter = (rest: Json = {}): Json => ({
    name: "q",
    in: "query",
    schema: { type: "string" },
    ...rest,
  });
  const withParameters = (...parameters: readonly Json[]): Json => operation({ parameters });

  it.each([
    ["added, required", [], [parameter({ required: true })], "parameter_added", true],
    ["added, optional", [], [parameter()], "parameter_added", false],
    ["removed", [parameter()], [], "parameter_removed", true],
    ["now required", [parameter()], [parameter({ required: true })], "parameter_now_required", true],
    ["now optional", [parameter({ required: true })], [parameter()], "parameter_now_optional", false],
    ["other type", [parameter()], [parameter({ schema: { type: "integer" } })], "type_changed", true],
    [
      "wider type",
      [parameter()],
      [parameter({ schema: { type: ["string", "null"] } })],
      "type_changed",
      false,
    ],
    [
      "upper limit",
      [parameter()],
      [parameter({ schema: { type: "string", maxLength: 9 } })],
      "limit_changed",
      true,
    ],
  ])("%s", (_, before, after, kind, breaking) => {
    const subject = { part: "parameter", in: "query", name: "q" };
    expect(changes(withParameters(...before), withParameters(...after))).toMatchObject([
      { kind, breaking, subject },
    ]);
  });

  it("reads parameters of the path and by reference, an operation's own first", () => {
    const before = {
      paths: {
        "/a": {
          parameters: [{ $ref: "#/components/parameters/q" }],
          get: { parameters: [parameter({ required: true })] },
        },
      },
      components: { parameters: { q: parameter() } },
    };
    const after = { paths: { "/a": { get: { parameters: [parameter({ required: true })] } } } };
    expect(changes(before, after)).toEqual([]);
  });
});

describe("bodies and status codes", () => {
  const body = (required: boolean): Json => ({ requestBody: { required, content: {} } });
  const responses = (...statuses: readonly string[]): Json => ({
    responses: Object.fromEntries(statuses.map((status) => [status, { description: "" }])),
  });

  it.each([
    ["required body added", {}, body(true), "request_body_added", true],
    ["optional body added", {}, body(false), "request_body_added", false],
    ["body removed", body(false), {}, "request_body_removed", true],
    ["body now required", body(false), body(true), "request_body_now_required", true],
    ["body now optional", body(true), body(false), "request_body_now_optional", false],
    ["success removed", responses("200", "201"), responses("200"), "response_removed", true],
    ["error removed", responses("200", "404"), responses("200"), "response_removed", false],
    ["success added", responses("200"), responses("200", "202"), "response_added", true],
    ["error added", responses("200"), responses("200", "409"), "response_added", false],
  ])("%s", (_, before, after, kind, breaking) => {
    expect(changes(operation(before), operation(after))).toMatchObject([{ kind, breaking }]);
  });

  it("misses a media type that is gone", () => {
    const of = (...types: readonly string[]): Json => {
      const content = Object.fromEntries(types.map((type) => [type, {}]));
      return operation({ responses: { 200: { description: "", content } } });
    };
    expect(changes(of("application/json", "text/csv"), of("application/json", "text/html"))).toMatchObject([
      { kind: "media_type_removed", breaking: true },
      { kind: "media_type_added", breaking: false },
    ]);
  });
});

describe("schemas, which break the other way round in a response", () => {
  const text = { type: "string" };

  it.each([
    ["type narrowed", { type: "number" }, { type: "integer" }, "type_changed (body)", true, false],
    ["type widened", { type: "integer" }, { type: "number" }, "type_changed (body)", false, true],
    ["type replaced", { type: "integer" }, { type: "boolean" }, "type_changed (body)", true, true],
    ["null allowed", text, { type: ["string", "null"] }, "type_changed (body)", false, true],
    ["null allowed (3.0)", text, { type: "string", nullable: true }, "type_changed (body)", false, true],
    ["enum value lost", { enum: ["a", "b"] }, { enum: ["a"] }, "enum_values_removed (body)", true, false],
    ["enum value gained", { enum: ["a"] }, { enum: ["a", "b"] }, "enum_values_added (body)", false, true],
    ["enum introduced", {}, { enum: ["a"] }, "enum_values_removed (body)", true, false],
    ["enum dropped", { const: "a" }, {}, "enum_values_added (body)", false, true],
    ["everything refused", {}, false, "enum_values_removed (body)", true, false],
    ["format introduced", text, { type: "string", format: "uuid" }, "format_changed (body)", true, false],
    ["pattern replaced", { pattern: "a" }, { pattern: "b" }, "pattern_changed (body)", true, true],
    ["maximum lowered", { maximum: 9 }, { maximum: 5 }, "limit_changed (body)", true, false],
    ["minimum lowered", { minimum: 9 }, { minimum: 5 }, "limit_changed (body)", false, true],
    ["minimum dropped", { minItems: 1 }, {}, "limit_changed (body)", false, true],
    ["array items", { items: text }, { items: { type: "integer" } }, "type_changed []", true, true],
    [
      "nested object",
      object({ a: object({ b: text }) }),
      object({ a: object({ b: {} }) }),
      "type_changed a.b",
      false,
      true,
    ],
    [
      "property required",
      object({ a: text }),
      object({ a: text }, { required: ["a"] }),
      "property_now_required a",
      true,
      false,
    ],
    [
      "property optional",
      object({ a: text }, { required: ["a"] }),
      object({ a: text }),
      "property_now_optional a",
      false,
      true,
    ],
    ["property removed", object({ a: text }), object({}), "property_removed a", true, true],
    ["property added", object({}), object({ a: text }), "property_added a", false, false],
    [
      "required property added",
      object({}),
      object({ a: text }, { required: ["a"] }),
      "property_added a",
      true,
      false,
    ],
    [
      "map values",
      { additionalProperties: text },
      { additionalProperties: {} },
      "type_changed *",
      false,
      true,
    ],
    [
      "unknown refused",
      {},
      { additionalProperties: false },
      "unknown_properties_changed (body)",
      true,
      false,
    ],
    [
      "unknown allowed",
      { additionalProperties: false },
      {},
      "unknown_properties_changed (body)",
      false,
      false,
    ],
  ])("%s", (_, before, after, what, breaksRequest, breaksResponse) => {
    expect(echoChanges(before, after)).toEqual({
      request: [`${what} ${breaksRequest ? "breaks" : "fits"}`],
      response: [`${what} ${breaksResponse ? "breaks" : "fits"}`],
    });
  });

  it("leaves readOnly properties out of requests and writeOnly ones out of responses", () => {
    const after = object(
      { id: { readOnly: true }, secret: { writeOnly: true } },
      { required: ["id", "secret"] },
    );
    expect(echoChanges(object({}), after)).toEqual({
      request: ["property_added secret breaks"],
      response: ["property_added id fits"],
    });
  });

  it("follows references and points at the definition", () => {
    const reference = { type: "array", items: { $ref: "#/components/schemas/Item" } };
    const components = [
      { Item: object({ sku: text }) },
      { Item: object({ sku: { type: "integer" } }) },
    ] as const;
    const [change] = changes(echo(reference, components[0]), echo(reference, components[1]));
    expect(change).toMatchObject({
      kind: "type_changed",
      pointer: "/components/schemas/Item/properties/sku",
      subject: { field: "[].sku" },
    });
  });

  it("comes to an end on a recursive schema", () => {
    const tree = (leaf: Json): Json => ({
      Tree: object({ leaf, children: { type: "array", items: { $ref: "#/components/schemas/Tree" } } }),
    });
    const root = { $ref: "#/components/schemas/Tree" };
    expect(echoChanges(root, root, [tree(text), tree({ type: "integer" })]).request).toEqual([
      "type_changed leaf breaks",
    ]);
  });

  it("sees through allOf, whether written out or not", () => {
    const merged = object({ a: text, b: text }, { required: ["a"] });
    const composed = { allOf: [{ $ref: "#/components/schemas/A" }, object({ b: text })] };
    const components = { A: object({ a: text }, { required: ["a"] }) };
    expect(echoChanges(merged, composed, [components, components])).toEqual({ request: [], response: [] });
  });

  it("matches variants by reference", () => {
    const components = { Card: object({ number: text }), Bank: object({ iban: text }) };
    const [card, bank] = [{ $ref: "#/components/schemas/Card" }, { $ref: "#/components/schemas/Bank" }];
    expect(echoChanges({ oneOf: [card] }, { oneOf: [bank, card] }, [components, components])).toEqual({
      request: ["variant_added (body) fits"],
      response: ["variant_added (body) breaks"],
    });
    expect(echoChanges({ oneOf: [card, bank] }, { oneOf: [card] }, [components, components])).toEqual({
      request: ["variant_removed (body) breaks"],
      response: ["variant_removed (body) fits"],
    });
  });
});

describe("documents that cannot be compared", () => {
  it.each([
    ["broken YAML", "openapi: 3.1.0\npaths: [", /not valid YAML at line 2/],
    ["a key twice", "openapi: 3.1.0\npaths: {}\npaths: {}", /not valid YAML at line 3/],
    ["another format", "swagger: '2.0'\npaths: {}", /not an OpenAPI 3\.0 or 3\.1 document/],
    ["no paths", "openapi: 3.1.0", /has no "paths"/],
    ["an empty file", "", /not an OpenAPI/],
    ["a structure in itself", "openapi: 3.1.0\npaths: &p\n  /a: *p", /cannot be expanded/],
  ])("%s", async (_, text, message) => {
    const error = await inputErrorOf(() => parseOpenApi(text, "before/openapi.yaml"));
    expect(error.message).toMatch(message);
    expect(error.problems).toMatchObject([{ file: "before/openapi.yaml" }]);
  });

  it.each([
    ["to nothing", "#/components/schemas/Nobody", /points at nothing/],
    ["to another file", "common.yaml#/Order", /leaves the file/],
    ["to itself", "#/components/schemas/Self", /leads back to itself/],
  ])("a reference %s", async (_, $ref, message) => {
    const api = echo({ $ref }, { Self: { $ref: "#/components/schemas/Self" } });
    expect((await inputErrorOf(() => changes(api, api))).message).toMatch(message);
  });

  it("stops when asked to", () => {
    const api = document(echo({}));
    expect(() => diffOpenApi(api, api, AbortSignal.abort())).toThrow(/abort/i);
  });
});
