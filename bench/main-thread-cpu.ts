import { readFileSync } from "node:fs";

/** CPU that the main thread has used, in microseconds; Linux counts it in ticks of 10 ms. */
export function mainThreadCpuMicros(): number {
  const fields = readFileSync(`/proc/self/task/${process.pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}
