import { describe, expect, it } from "vitest";
import type { ApiChange, ApiChangeKind, ApiSubject } from "./api-change.ts";
import { type OperationUse, clientImpact, parseClients } from "./client-impact.ts";
import { inputErrorOf } from "./testing.ts";

function change(kind: ApiChangeKind, subject: ApiSubject, rest: Partial<ApiChange> = {}): ApiChange {
  return {
    kind,
    path: "/orders",
    method: "post",
    subject,
    pointer: "/paths",
    breaking: true,
    why: "",
    ...rest,
  };
}

function use(rest: Partial<OperationUse> = {}): OperationUse {
  return { method: "post", path: "/orders", parameters: [], sends: [], reads: [], ...rest };
}

function isHit(by: ApiChange, using: OperationUse): boolean {
  return !clientImpact([by], [{ name: "shop", owner: "web team", uses: [using] }]).passed;
}

const inRequest = (field: string): ApiSubject => ({ part: "request", field });
const inResponse = (field: string): ApiSubject => ({ part: "response", status: "200", field });
const parameter: ApiSubject = { part: "parameter", in: "query", name: "limit" };

describe("which client a breaking change hits", () => {
  it.each([
    ["the operation it calls is gone", change("operation_removed", { part: "operation" }), use(), true],
    [
      "another operation is gone",
      change("operation_removed", { part: "operation" }, { method: "get" }),
      use(),
      false,
    ],
    ["the path is gone", change("path_removed", { part: "operation" }, { method: undefined }), use(), true],
    [
      "another path is gone",
      change("path_removed", { part: "operation" }, { path: "/refunds" }),
      use(),
      false,
    ],
    [
      "a parameter it sends is gone",
      change("parameter_removed", parameter),
      use({ parameters: ["limit"] }),
      true,
    ],
    ["a parameter it leaves out is gone", change("parameter_removed", parameter), use(), false],
    ["a parameter it leaves out is required", change("parameter_now_required", parameter), use(), true],
    [
      "a parameter it sends is required",
      change("parameter_now_required", parameter),
      use({ parameters: ["limit"] }),
      false,
    ],
    [
      "a field it reads is gone",
      change("property_removed", inResponse("items[].sku")),
      use({ reads: ["items[].sku"] }),
      true,
    ],
    [
      "part of what it reads is gone",
      change("property_removed", inResponse("items[].sku")),
      use({ reads: ["items"] }),
      true,
    ],
    [
      "the whole it reads from is gone",
      change("property_removed", inResponse("items")),
      use({ reads: ["items[].sku"] }),
      true,
    ],
    [
      "a field beside it is gone",
      change("property_removed", inResponse("itemsTotal")),
      use({ reads: ["items"] }),
      false,
    ],
    ["the answer as a whole changed", change("type_changed", inResponse("")), use(), true],
    [
      "a field it sends lost a value",
      change("enum_values_removed", inRequest("currency")),
      use({ sends: ["currency"] }),
      true,
    ],
    [
      "a field it does not send lost a value",
      change("enum_values_removed", inRequest("currency")),
      use(),
      false,
    ],
    [
      "a field it does not send is required",
      change("property_now_required", inRequest("reason")),
      use(),
      true,
    ],
    [
      "a field it sends is required",
      change("property_now_required", inRequest("reason")),
      use({ sends: ["reason"] }),
      false,
    ],
    [
      "a field is required in an object it sends",
      change("property_added", inRequest("items[].tax")),
      use({ sends: ["items[].sku"] }),
      true,
    ],
    [
      "a field is required in an object it does not send",
      change("property_added", inRequest("gift.text")),
      use(),
      false,
    ],
    [
      "nothing breaks",
      change("property_removed", inResponse("items"), { breaking: false }),
      use({ reads: ["items"] }),
      false,
    ],
  ])("%s", (_, by, using, expected) => {
    expect(isHit(by, using)).toBe(expected);
  });

  it("names the owner, the unaffected, and what nobody uses", () => {
    const gone = change("property_removed", inResponse("note"));
    const unused = change("property_removed", inResponse("fax"));
    const impact = clientImpact(
      [gone, unused],
      [
        { name: "shop", owner: "web team", uses: [use({ reads: ["note"] })] },
        { name: "monitor", owner: "platform team", uses: [] },
      ],
    );
    expect(impact).toEqual({
      passed: false,
      hits: [{ client: "shop", owner: "web team", change: gone }],
      unaffectedClients: ["monitor"],
      unusedBreakingChanges: [unused],
    });
  });

  it("passes an empty list of changes", () => {
    expect(clientImpact([], [{ name: "shop", owner: "web team", uses: [use()] }])).toMatchObject({
      passed: true,
    });
  });
});

describe("clients.json", () => {
  it("fills in what a use leaves out", () => {
    const text = `{"clients":[{"name":"a","owner":"b","uses":[{"operation":"GET /orders","reads":["id"]}]}]}`;
    const uses = [{ method: "get", path: "/orders", parameters: [], sends: [], reads: ["id"] }];
    expect(parseClients(text, "clients.json")).toEqual([{ name: "a", owner: "b", uses }]);
  });

  it("lists every wrong entry at once", async () => {
    const text = `{"clients":[{"name":"","uses":[{"operation":"FETCH orders","sends":[1]}]},{"name":"a","owner":"b"}]}`;
    const { problems } = await inputErrorOf(() => parseClients(text, "clients.json"));
    expect(problems.map(({ problem }) => problem.split(" ")[0])).toEqual([
      "clients[0].name",
      "clients[0].owner",
      "clients[0].uses[0].operation",
      "clients[0].uses[0].sends",
      "clients[1].uses",
    ]);
  });

  it.each(["{", "[]", "null"])("refuses %s", async (text) => {
    const error = await inputErrorOf(() => parseClients(text, "clients.json"));
    expect(error.message).toMatch(/^clients\.json: /);
  });
});
