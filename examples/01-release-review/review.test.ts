import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { type Meeting, type ReviewOptions, type Reviewed, reviewRelease } from "./review.ts";
import { copyOfShipped, temporaryFolder } from "./tools/testing.ts";

interface Call {
  readonly reviewed: Reviewed | null;
  readonly meeting: Meeting["kind"];
  readonly runId: string;
}

let options: ReviewOptions;

beforeEach(async () => {
  const folder = await temporaryFolder();
  options = {
    ...(await copyOfShipped()),
    out: join(folder, "out"),
    store: join(folder, "data/errand.db"),
    model: { name: "scripted", model: null },
    again: false,
    paceMs: 0,
  };
});

/** One call, as by one process; `leave` stops watching as soon as the Run is there. */
async function call(changes: Partial<ReviewOptions> = {}, leave = false): Promise<Call> {
  let met: Pick<Call, "meeting" | "runId"> | undefined;
  const reviewed = await reviewRelease(
    { ...options, ...changes },
    {
      async watch(_errand, run, meeting) {
        met = { meeting: meeting.kind, runId: run.runId };
        if (!leave) await run.result({ timeoutMs: 30_000 });
      },
    },
  );
  if (met === undefined) throw new Error("nothing was watched");
  return { reviewed, ...met };
}

describe("a release review that is asked for twice", () => {
  it("is found again when it is done, and made anew only when that is asked for", async () => {
    const first = await call();
    expect(first).toMatchObject({ meeting: "started", reviewed: { result: { verdict: "hold" } } });
    expect(await call()).toEqual({ ...first, meeting: "done" });
    const again = await call({ again: true });
    expect(again.meeting).toBe("started");
    expect(again.runId).not.toBe(first.runId);
    expect(await call()).toMatchObject({ meeting: "done", runId: again.runId });
  });

  it("goes on with the same Run when the first process left in the middle, also with --again", async () => {
    const first = await call({ paceMs: 10 }, true);
    expect(first).toMatchObject({ meeting: "started", reviewed: null });
    const second = await call({ again: true });
    expect(second).toMatchObject({ meeting: "goes_on", runId: first.runId });
    expect(second.reviewed?.result.verdict).toBe("hold");
  });

  it("is another review when the release has changed", async () => {
    const first = await call();
    await writeFile(
      join(options.after, "migrations/0005_more.up.sql"),
      "CREATE TABLE more (id INTEGER PRIMARY KEY);",
    );
    const second = await call();
    expect(second.meeting).toBe("started");
    expect(second.runId).not.toBe(first.runId);
    expect(second.reviewed?.review.migration.status).toBe("failed");
  });

  it("is made anew when another review has taken its place in the folder", async () => {
    const first = await call();
    await call({ after: options.before });
    const third = await call();
    expect(third.meeting).toBe("started");
    expect(third.runId).not.toBe(first.runId);
    expect(third.reviewed?.result.verdict).toBe("hold");
  });
});
