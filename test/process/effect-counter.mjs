// The outside world, in a process that nobody kills: counts every effect that it is asked for, by key, before it answers.
//   POST /            {"key", "tool"}  counts, and answers a moment later, so that a kill falls between effect and answer
//   GET  /            [{"key", "tool", "requests"}]
// Prints its address on the first line and ends when its stdin does. Its argument: milliseconds from count to answer.
import { createServer } from "node:http";

const ANSWER_AFTER_MS = Number(process.argv[2]);
const effects = new Map();

const server = createServer((request, response) => {
  const answer = (value) =>
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
  if (request.method === "GET") {
    answer([...effects.values()]);
    return;
  }
  let body = "";
  request.on("data", (chunk) => (body += chunk));
  request.on("end", () => {
    const { key, tool } = JSON.parse(body);
    const effect = effects.get(key) ?? { key, tool, requests: 0 };
    effects.set(key, { ...effect, requests: effect.requests + 1 });
    setTimeout(() => answer({ done: true }), ANSWER_AFTER_MS);
  });
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/`));
process.stdin.resume().on("end", () => process.exit(0));
