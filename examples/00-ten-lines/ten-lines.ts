import { createErrand, functionAgent } from "errand";
import { createSqliteStore } from "errand/sqlite";
import { z } from "zod";

const greeter = functionAgent({
  name: "greeter",
  version: "1",
  input: z.string(),
  output: z.string(),
  run: (_ctx, guest) => `Hello ${guest}`,
});
const host = functionAgent({
  name: "host",
  version: "1",
  input: z.array(z.string()),
  output: z.array(z.string()),
  roster: [greeter],
  run: (ctx, guests) => Promise.all(guests.map((guest) => ctx.run(greeter, guest))),
});

await using errand = await createErrand({ store: createSqliteStore("errand.db"), agents: [host] });
console.log(await errand.run(host, ["Ada", "Grace"], { key: "first party" }));
