export interface StarterFile {
  readonly path: string;
  readonly text: string;
}

/** What `errand init` writes: a project that runs without a key, a network or a server. */
export function starterFiles(): readonly StarterFile[] {
  return [
    { path: "errand.config.ts", text: CONFIG },
    { path: "agents/party.ts", text: AGENTS },
  ];
}

const CONFIG = `import { defineConfig } from "errand";
import { party } from "./agents/party.ts";

export default defineConfig({
  // One SQLite file keeps every run. Remove the line to use .errand/errand.db.
  store: ".errand/errand.db",
  agents: [party],
});
`;

const AGENTS = `import { appendFile } from "node:fs/promises";
import { defineTool, functionAgent } from "errand";

/** Writes one invitation to a file: an effect on the world, so the call is recorded before it starts. */
const deliver = defineTool({
  name: "deliver",
  description: "Delivers one invitation.",
  inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  replay: "never",
  effect: "any",
  run: async (input) => {
    const { text } = input as { text: string };
    await appendFile("invitations.txt", \`\${text}\\n\`);
    return "delivered";
  },
});

/** A child: writes the invitation of one guest. */
const writer = functionAgent({
  name: "writer",
  description: "Writes one invitation.",
  version: "1",
  inputSchema: { type: "object", properties: { guest: { type: "string" } }, required: ["guest"] },
  outputSchema: { type: "string" },
  run: async (_ctx, input) => {
    const { guest } = input as { guest: string };
    return \`Dear \${guest}, you are invited.\`;
  },
});

/** The parent: delegates a letter a guest, asks before it sends if it is told to, then delivers. */
export const party = functionAgent({
  name: "party",
  description: "Invites guests to a party.",
  version: "1",
  inputSchema: {
    type: "object",
    properties: {
      guests: { type: "array", items: { type: "string" }, minItems: 1 },
      confirm: { type: "boolean" },
    },
    required: ["guests"],
  },
  outputSchema: {
    type: "object",
    properties: { sent: { type: "integer" }, letters: { type: "array", items: { type: "string" } } },
    required: ["sent", "letters"],
  },
  tools: [deliver],
  roster: [writer],
  mayAsk: true,
  run: async (ctx, input) => {
    const { guests, confirm = false } = input as { guests: string[]; confirm?: boolean };
    const letters = await Promise.all(guests.map((guest) => ctx.run(writer, { guest }, { goal: \`Invite \${guest}\` })));
    if (confirm) {
      const agreed = await ctx.ask({
        prompt: \`Send \${letters.length} invitations?\`,
        schema: { type: "boolean" },
      });
      if (agreed !== true) return { sent: 0, letters };
    }
    for (const text of letters) await ctx.tool(deliver, { text: String(text) });
    return { sent: letters.length, letters };
  },
});
`;
