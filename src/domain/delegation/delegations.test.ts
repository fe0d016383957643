import * as fc from "fast-check";
import { describe, expect, expectTypeOf, it } from "vitest";
import { PARENT, verdict, wish } from "../../../test/support/domain-values.ts";
import { parsePublicationRef } from "../id.ts";
import {
  type Delegation,
  type DelegationCommand,
  type Delegations,
  NO_DELEGATIONS,
  type OpenRequest,
  decideDelegations,
  evolveDelegations,
  treeRunsLeft,
} from "./delegations.ts";
import { derivedIds } from "./derived-ids.ts";
import { DEFAULT_LIMITS } from "./limits.ts";

const open = (request: OpenRequest): DelegationCommand => ({ type: "open", request });
const idOf = (step: number, index = 0) => derivedIds(PARENT, { step, index }).delegationId;
const close = (step: number, treeRunsUsed = 1): DelegationCommand => ({
  type: "close",
  delegationId: idOf(step),
  reason: "consumed",
  treeRunsUsed,
});
const cancel = (step: number): DelegationCommand => ({
  type: "request_cancel",
  delegationId: idOf(step),
  reason: "enough",
});

function after(state: Delegations, ...commands: readonly DelegationCommand[]): Delegations {
  return commands.reduce((now, command) => {
    const decision = decideDelegations(now, command);
    return decision.ok ? decision.facts.reduce(evolveDelegations, now) : now;
  }, state);
}

const none = NO_DELEGATIONS;
const ended: Delegations = { ...none, parentEnded: true };
const tight = { ...DEFAULT_LIMITS, maxChildren: 1, maxParallelChildren: 1 };

describe("decideDelegations", () => {
  it.each<[string, Delegations, DelegationCommand, readonly string[] | string]>([
    ["a first request opens", none, open(wish(1, 0)), ["delegation_opened"]],
    ["the same request again is the same relationship", after(none, open(wish(1, 0))), open(wish(1, 0)), []],
    [
      "the same call with another target is a conflict",
      after(none, open(wish(1, 0))),
      open(wish(1, 0, { publication: parsePublicationRef("other@0123456789abcdef") })),
      "DELEGATION_CONFLICT",
    ],
    [
      "the same call under another contract is a conflict",
      after(none, open(wish(1, 0))),
      open(wish(1, 0, { contractDigest: "e".repeat(64) })),
      "DELEGATION_CONFLICT",
    ],
    ["an ended parent opens nothing", ended, open(wish(1, 0)), "PARENT_ENDED"],
    ["a child deeper than allowed", none, open(wish(1, 0, { depth: 8 })), "DEPTH_LIMIT"],
    ["the deepest child that is allowed", none, open(wish(1, 0, { depth: 7 })), ["delegation_opened"]],
    ["a target already at work above", none, open(wish(1, 0, { target: "root" })), "CYCLE"],
    [
      "a target that may recur",
      none,
      open(wish(1, 0, { target: "root", recursionAllowed: true })),
      ["delegation_opened"],
    ],
    [
      "one child too many",
      after(none, open(wish(1, 0)), close(1)),
      open(wish(2, 0, { limits: tight })),
      "CHILDREN_LIMIT",
    ],
    [
      "one child too many at a time",
      after(none, open(wish(1, 0))),
      open(wish(2, 0, { limits: { ...tight, maxChildren: 9 } })),
      "PARALLEL_LIMIT",
    ],
    ["no run left of the tree", none, open(wish(1, 0, { granted: 1 })), "TREE_LIMIT"],
    ["more runs than are left", none, open(wish(1, 0, { granted: 4, treeRuns: 4 })), "TREE_LIMIT"],
    ["an allowance of nothing", none, open(wish(1, 0, { treeRuns: 0 })), "TREE_LIMIT"],
    ["a cancel is asked", after(none, open(wish(1, 0))), cancel(1), ["delegation_cancel_requested"]],
    ["a cancel is asked once", after(none, open(wish(1, 0)), cancel(1)), cancel(1), []],
    [
      "a closed relationship is not reopened, not even to cancel it",
      after(none, open(wish(1, 0)), close(1)),
      cancel(1),
      [],
    ],
    ["a relationship closes", after(none, open(wish(1, 0))), close(1), ["delegation_closed"]],
    [
      "a relationship under cancel closes",
      after(none, open(wish(1, 0)), cancel(1)),
      close(1),
      ["delegation_closed"],
    ],
    ["a relationship closes once", after(none, open(wish(1, 0)), close(1)), close(1), "DELEGATION_CLOSED"],
  ])("L14 %s", (_, state, command, then) => {
    expect(verdict(decideDelegations(state, command))).toEqual(then);
  });

  /** Each refusal of admission, in its order, with what provokes it on top of all those that come later. */
  const PROVOKED: readonly [string, Partial<OpenRequest>, Partial<Delegations>][] = [
    ["TREE_LIMIT", { granted: 1 }, {}],
    ["PARALLEL_LIMIT", { limits: { ...DEFAULT_LIMITS, maxParallelChildren: 1 } }, {}],
    ["CHILDREN_LIMIT", { limits: tight }, {}],
    ["CYCLE", { target: "root" }, {}],
    ["DEPTH_LIMIT", { limits: { ...tight, maxDepth: 1 }, depth: 1 }, {}],
    ["PARENT_ENDED", {}, { parentEnded: true }],
    ["DELEGATION_CONFLICT", { contractDigest: "e".repeat(64) }, {}],
  ];

  it("L14 admission looks at duplicate, conflict, ended, depth, cycle, slots and allowance, in this order", () => {
    let request: Partial<OpenRequest> = {};
    let state = after(none, open(wish(1, 0)));
    for (const [code, provoked, more] of PROVOKED) {
      request = { ...request, ...provoked };
      state = { ...state, ...more };
      const again = code === "DELEGATION_CONFLICT";
      expect(verdict(decideDelegations(state, open(wish(again ? 1 : 2, 0, request))))).toBe(code);
    }
    const { contractDigest: _, ...sameContract } = request;
    expect(verdict(decideDelegations(state, open(wish(1, 0, sameContract))))).toEqual([]);
  });
});

/** Children whose use is known when they close: at most what they were granted, as every Run keeps to its own grant. */
const command = (granted: number): fc.Arbitrary<DelegationCommand> => {
  const step = fc.integer({ min: 1, max: 12 });
  const limits = { ...DEFAULT_LIMITS, maxChildren: 10, maxParallelChildren: 3 };
  return fc.oneof(
    {
      weight: 3,
      arbitrary: fc
        .tuple(step, fc.integer({ min: 1, max: 6 }))
        .map(([at, treeRuns]) => open(wish(at, 0, { granted, treeRuns, limits }))),
    },
    { weight: 2, arbitrary: step.map((at) => close(at)) },
    step.map(cancel),
    fc.constant({ type: "end_parent", reason: "over" } as const),
  );
};

const walk = fc
  .integer({ min: 1, max: 20 })
  .chain((granted) =>
    fc.record({ granted: fc.constant(granted), commands: fc.array(command(granted), { maxLength: 60 }) }),
  );

interface Step {
  readonly command: DelegationCommand;
  readonly before: Delegations;
  readonly now: Delegations;
}

/** Every step of a walk; `share` says how much of its grant each closing child has used. */
function trail(commands: readonly DelegationCommand[], share: number): readonly Step[] {
  const steps: Step[] = [];
  for (const one of commands) {
    const before = steps.at(-1)?.now ?? none;
    const target = before.open.find((open) => one.type === "close" && open.delegationId === one.delegationId);
    const treeRunsUsed = Math.max(1, Math.floor((target?.treeRuns ?? 1) * share));
    const command = one.type === "close" ? { ...one, treeRunsUsed } : one;
    const now = after(before, command);
    steps.push({ command, before, now: one.type === "end_parent" ? { ...now, parentEnded: true } : now });
  }
  return steps;
}

const ids = (open: readonly Delegation[]): readonly string[] => open.map((one) => one.delegationId);

describe("relationships under commands in any order", () => {
  const share = fc.double({ min: 0, max: 1, noNaN: true });

  it("L22 never promise more runs than were granted, for any interleaving of opens and closes", () => {
    fc.assert(
      fc.property(walk, share, ({ granted, commands }, used) => {
        for (const { now } of trail(commands, used)) {
          expect(treeRunsLeft(now, granted)).toBeGreaterThanOrEqual(0);
        }
      }),
    );
  });

  it("L17 leak no slot: those counted are those open, and every one that closes is free again", () => {
    fc.assert(
      fc.property(walk, share, ({ commands }, used) => {
        let closed = 0;
        for (const { now, before } of trail(commands, used)) {
          closed += ids(before.open).filter((id) => !ids(now.open).includes(id)).length;
          expect(now.open.length).toBe(now.total - closed);
          expect(now.open.length).toBeLessThanOrEqual(3);
          expect(now.total).toBeLessThanOrEqual(10);
          expect(new Set(ids(now.open)).size).toBe(now.open.length);
        }
      }),
    );
  });

  it("L17 a cancel is never taken back, and brings nothing closed back", () => {
    const asked = (open: readonly Delegation[]) => open.filter((one) => one.status === "cancel_requested");
    fc.assert(
      fc.property(walk, share, ({ commands }, used) => {
        for (const { now, before, command } of trail(commands, used)) {
          const kept = ids(asked(before.open)).filter((id) => ids(now.open).includes(id));
          expect(ids(asked(now.open))).toEqual(expect.arrayContaining([...kept]));
          const fresh = ids(now.open).filter((id) => !ids(before.open).includes(id));
          expect(fresh.length).toBe(command.type === "open" && now.total > before.total ? 1 : 0);
        }
      }),
    );
  });

  it("L17 the parent's end asks every open child once, and nothing is opened afterwards", () => {
    fc.assert(
      fc.property(walk, share, ({ commands }, used) => {
        const steps = trail(commands, used);
        for (const { now, before, command } of steps.filter((step) => step.command.type === "end_parent")) {
          const asked = decideDelegations(before, command);
          const open = before.open.filter((one) => one.status === "open");
          expect(asked.ok && asked.facts.map((fact) => fact.delegationId)).toEqual(ids(open));
          expect(verdict(decideDelegations(now, command))).toEqual([]);
        }
        const over = steps.filter((step) => step.before.parentEnded);
        expect(over.map((step) => step.now.total)).toEqual(over.map((step) => step.before.total));
      }),
    );
  });
});

it("a relationship that is kept is open or under cancel; its end is its absence", () => {
  expectTypeOf<Delegation["status"]>().toEqualTypeOf<"open" | "cancel_requested">();
});
