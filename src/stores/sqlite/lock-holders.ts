import { readdirSync, readlinkSync, realpathSync } from "node:fs";

/**
 * The other processes that have the database open: as the system tells (Linux: /proc), else those that have registered a
 * worker on this host. Only for an error message, when a lock could not be had.
 */
export function lockHolders(path: string, registeredPids: () => readonly number[]): readonly number[] {
  const seen = openedBy(path);
  if (seen.length > 0) return seen;
  try {
    return registeredPids();
  } catch {
    return [];
  }
}

function openedBy(path: string): readonly number[] {
  if (process.platform !== "linux") return [];
  try {
    const shared = `${realpathSync(path)}-shm`;
    return readdirSync("/proc")
      .map(Number)
      .filter((pid) => Number.isInteger(pid) && pid !== process.pid && hasOpen(pid, shared));
  } catch {
    return [];
  }
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
