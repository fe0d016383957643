import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Hostility, PeerStats } from "./loopback-peer.ts";

export interface SpawnedPeer extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
  stats(): Promise<PeerStats>;
}

const JITI = fileURLToPath(new URL("../../node_modules/jiti/lib/jiti-cli.mjs", import.meta.url));
const MAIN = fileURLToPath(new URL("loopback-peer-process.ts", import.meta.url));

/** Starts the loopback peer as a process of its own. */
export async function spawnLoopbackPeer(hostility: Hostility = {}, port = 0): Promise<SpawnedPeer> {
  const child = spawn(process.execPath, [JITI, MAIN, JSON.stringify(hostility), String(port)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const [url] = (await Promise.race([
    once(createInterface(child.stdout), "line"),
    exited.then(([code]) => Promise.reject(new Error(`The peer ended with code ${String(code)}.`))),
  ])) as [string];
  return {
    url,
    pid: child.pid ?? 0,
    stats: async () => (await (await fetch(`${url}/stats`)).json()) as PeerStats,
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      child.kill("SIGKILL");
      await exited;
    },
  };
}
