import { ErrandError } from "../../domain/errand-error.ts";
import { sqliteTrouble } from "../../sql/sqlite-driver.ts";
import { lockHolders } from "./lock-holders.ts";

/**
 * Turns what the driver threw into an error that says what has happened to which file and what to do next.
 * @param registeredPids processes of this host that work on the file by its own account.
 */
export function storeError(
  path: string,
  cause: unknown,
  registeredPids: () => readonly number[] = () => [],
): ErrandError {
  if (ErrandError.is(cause)) return cause;
  const file = JSON.stringify(path);
  const text = cause instanceof Error ? cause.message : String(cause);
  const trouble = sqliteTrouble(cause);
  switch (trouble) {
    case "busy":
      return busyError(path, cause, registeredPids);
    case "full":
      return new ErrandError(
        "STORE_FULL",
        `There is no room left to write to ${file} (${text}); nothing of this call was written.`,
        "Free disk space or raise the quota, then try again: the store stays usable.",
        { cause, details: { path } },
      );
    case "corrupt":
      return new ErrandError(
        "STORE_CORRUPT",
        `${file} is not a sound SQLite database (${text}).`,
        "Stop every process that uses it, keep a copy of the file with its -wal and -shm files, and restore a backup.",
        { cause, details: { path } },
      );
    case "read_only":
      return new ErrandError(
        "STORE_UNAVAILABLE",
        `${file} cannot be written (${text}).`,
        "Give this user the right to write the file and its folder, or choose another path.",
        { cause, details: { path } },
      );
    case "cannot_open":
      return new ErrandError(
        "STORE_UNAVAILABLE",
        `${file} cannot be opened (${text}).`,
        "Make sure that its folder exists and may be written by this user, and that the path is not a folder.",
        { cause, details: { path } },
      );
    case "io":
      return new ErrandError(
        "STORE_UNAVAILABLE",
        `Reading or writing ${file} failed (${text}).`,
        "Check the disk, and that the file is on a local file system; then open the store again.",
        { cause, details: { path } },
      );
    case "other":
      return new ErrandError(
        "STORE_CORRUPT",
        `SQLite refused a statement on ${file} (${text}).`,
        "Run `errand doctor`; if the file was changed by another program, restore a backup.",
        { cause, details: { path } },
      );
    case null:
      return new ErrandError(
        "INVALID_INPUT",
        `The call holds something that ${file} cannot store (${text}).`,
        "Give strings, whole numbers and null where the store port asks for them.",
        { cause, details: { path } },
      );
    default:
      return trouble satisfies never;
  }
}

function busyError(path: string, cause: unknown, registeredPids: () => readonly number[]): ErrandError {
  const pids = lockHolders(path, registeredPids);
  const holder =
    pids.length === 0
      ? "a process that cannot be seen from here"
      : `process ${pids.join(" or ")}, which ${pids.length === 1 ? "has" : "have"} the file open`;
  return new ErrandError(
    "STORE_BUSY",
    `${JSON.stringify(path)} is locked by ${holder}; nothing of this call was written.`,
    "Let that process end its transaction, or stop it; then try again.",
    { cause, details: { path, pids } },
  );
}
