import { expect, test } from "vitest";
import { LoadedRun } from "../../src/runtime/run/loaded-run.ts";
import type { WarmRun } from "../../src/runtime/step/driver-host.ts";
import type { Errand } from "../../src/surfaces/library/errand.ts";
import { fn, secretAsker } from "../support/agents.ts";
import { Outside } from "../support/outside.ts";
import { onEachStore } from "../support/world.ts";

/** What a decoded Run knows, detached from it. */
function known(run: LoadedRun): unknown {
  const { state, version, appliedSignal, history, historyDigest, journal, decided } = run;
  const { executingSince, ticketOpenedAt, ticketDeadlineInMs, attemptDueAt, missingChildren } = run;
  return structuredClone({
    // As JSON, because that is what the log can give back.
    state: JSON.parse(JSON.stringify(state)) as unknown,
    version,
    appliedSignal,
    history,
    historyDigest,
    journal,
    decided,
    executingSince,
    ticketOpenedAt,
    ticketDeadlineInMs,
    attemptDueAt,
    missingChildren,
  });
}

/** Compares each Run that the worker parks in memory with the same Run read from the log up to there. */
function watchParked(errand: Errand): { readonly compared: Promise<void>[] } {
  const compared: Promise<void>[] = [];
  const worker = errand.worker!;
  const keep = worker.keepWarm.bind(worker);
  worker.keepWarm = (runId, warm: WarmRun) => {
    const { version, appliedSignal, state } = warm.run;
    const seen = known(warm.run);
    const compare = async (): Promise<void> => {
      const { tenant, store } = errand;
      const rows = await store.readLog(tenant, { threadId: state.header.threadId }, 0, 10_000);
      const upTo = rows.filter((row) =>
        row.source === "lane" ? row.version <= version : row.signal <= appliedSignal,
      );
      expect(known(LoadedRun.fold(runId, upTo)!)).toEqual(seen);
    };
    if (version > 0) compared.push(compare());
    keep(runId, warm);
  };
  return { compared };
}

onEachStore("A run in memory", (open) => {
  test("L2 is at every park exactly what its log says, through every kind of wait", async () => {
    await using world = await open();
    const outside = new Outside();
    const slow = outside.tool("slow", { replay: "safe", effect: "read_only", parallel: true });
    const ask = outside.tool("careful", { approval: true });
    const child = fn(
      "child",
      async (ctx, input) => {
        await ctx.sleep(400);
        return [await ctx.ask({ prompt: "Which?", deadlineMs: 60_000 }), input] as never;
      },
      { mayAsk: true },
    );
    let failures = 2;
    const agent = fn(
      "busy",
      async (ctx, input) => {
        if (input === "again") return ctx.now();
        await Promise.all([ctx.tool(slow, { id: "a" }), ctx.tool(slow, { id: "b" }), ctx.sleep(300)]);
        await ctx.run(child, 1);
        if (failures-- > 0) throw new Error("flaky");
        await ctx.tool(ask, { id: "c" }).catch(() => null);
        await ctx.ask({ prompt: "Nobody answers this.", deadlineMs: 2_000 }).catch(() => null);
        await ctx.run(child, 2);
        return ctx.continueAs("again");
      },
      { mayAsk: true, tools: [slow, ask], roster: [child], maxAttempts: 5 },
    );
    const errand = await world.errand({ agents: [agent] });
    const { compared } = watchParked(errand);
    const run = await errand.start(agent, null);
    await world.passUntil(async () => {
      const [ticket] = await errand.tickets();
      if (ticket?.prompt === "Which?") {
        await errand.pause(ticket.runId);
        await world.settled(10);
        await errand.continue(ticket.runId);
        await errand.resume(ticket.ticketId, "this");
      } else if (ticket?.kind === "approval") await errand.resume(ticket.ticketId, { approved: true });
      return (await run.status()).state === "ended";
    });
    expect(await errand.end(run.runId)).toMatchObject({ kind: "completed" });
    await Promise.all(compared);
    expect(compared.length).toBeGreaterThan(10);
    expect(outside.count("careful:c")).toBe(1);
  });

  test("L2 is what its log says when runs of one thread follow each other, and when its carrier asks", async () => {
    await using world = await open();
    const far = secretAsker("far");
    const errand = await world.errand({ agents: [far] });
    const { compared } = watchParked(errand);
    const first = await errand.start(far, 1);
    const second = await errand.start(far, 2, { threadId: first.threadId! });
    await world.passUntil(async () => {
      const [ticket] = await errand.tickets();
      if (ticket !== undefined) await errand.resume(ticket.ticketId, ticket.runId);
      return (await second.status()).state === "ended";
    });
    expect([await first.result(), await second.result()]).toEqual([first.runId, second.runId]);
    await Promise.all(compared);
    expect(compared).toHaveLength(2);
  });
});
