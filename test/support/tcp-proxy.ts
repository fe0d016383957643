import { once } from "node:events";
import { type Socket, connect, createServer } from "node:net";

/** Stands between a client and a server on this machine, as a bad network does. */
export interface TcpProxy {
  readonly port: number;
  /** Connections that are open. */
  readonly open: number;
  /** Where new connections lead from now on. */
  aim(port: number): void;
  /** Breaks every open connection, whatever is under way on it. */
  cut(): void;
  /** Loses whatever is sent over the open connections from now on, either way, and leaves them open. */
  swallow(): void;
  /** Holds back what is sent, each way, for so long. */
  delay(ms: number): void;
  stop(): Promise<void>;
}

interface Pair {
  readonly sockets: readonly [Socket, Socket];
  swallows: boolean;
}

export async function startTcpProxy(target: number): Promise<TcpProxy> {
  const pairs = new Set<Pair>();
  let aim = target;
  let delayMs = 0;

  const pipe = (pair: Pair, from: Socket, to: Socket): void => {
    // In order, also where a shorter delay follows a longer one.
    let held = 0;
    let last = Promise.resolve();
    const pass = (data: Buffer): void => {
      if (!pair.swallows && !to.destroyed) to.write(data);
    };
    from.on("data", (data: Buffer) => {
      if (delayMs === 0 && held === 0) return pass(data);
      const late = delayMs;
      held += 1;
      last = last
        .then(() => new Promise<void>((resolve) => setTimeout(resolve, late)))
        .then(() => {
          held -= 1;
          pass(data);
        });
    });
  };

  const server = createServer({ noDelay: true }, (client) => {
    const pair: Pair = {
      sockets: [client, connect({ port: aim, host: "127.0.0.1", noDelay: true })],
      swallows: false,
    };
    pairs.add(pair);
    for (const [from, to] of [pair.sockets, pair.sockets.toReversed()] as [Socket, Socket][]) {
      pipe(pair, from, to);
      from.on("error", () => undefined);
      from.on("close", () => {
        // Whoever swallows does not tell the other side either.
        if (pair.swallows && from === pair.sockets[1]) return;
        to.destroy();
        pairs.delete(pair);
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The proxy has no port.");
  const cut = (): void => {
    for (const { sockets } of pairs) for (const socket of sockets) socket.destroy();
  };
  return {
    port: address.port,
    get open() {
      return pairs.size;
    },
    aim: (port) => void (aim = port),
    cut,
    swallow() {
      for (const pair of pairs) pair.swallows = true;
    },
    delay: (ms) => void (delayMs = ms),
    async stop() {
      const closed = once(server, "close");
      server.close();
      cut();
      await closed;
    },
  };
}
