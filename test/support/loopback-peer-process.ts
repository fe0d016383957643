// The loopback peer as a process of its own: takes its hostility and port as JSON arguments, prints its address,
// and ends with its standard input, so that it never outlives the test that started it.
import { type Hostility, startLoopbackPeer } from "./loopback-peer.ts";

const [hostility = "{}", port = "0"] = process.argv.slice(2);
const peer = await startLoopbackPeer(JSON.parse(hostility) as Hostility, Number(port));
process.stdout.write(`${peer.url}\n`);
process.stdin.on("end", () => process.exit(0)).resume();
