import { readdirSync, readlinkSync, realpathSync } from "node:fs";

/**
 * The other processes that have the database open: as the system tells (Linux: /proc), else those that have registered a
 * worker on this host. Only for an error message, when a lock could not be had.
 */
export function lockHolders(path: string, registeredPids: () => readonly number[]): readonly number[] {
  try {
    const seen = openedBy(`${realpathSync(path)}-shm`);
    return seen.length > 0 ? seen : registeredPids();
  } catch {
    return [];
  }
}

function openedBy(file: string): readonly number[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && pid !== process.pid && hasOpen(pid, file));
}

function hasOpen(pid: number, file: string): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => linkOf(`/proc/${pid}/fd/${fd}`) === file);
  } catch {
    return false;
  }
}

function linkOf(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}
