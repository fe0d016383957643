import type { Commit, LogRow, Receipt } from "../../runtime/ports/store.ts";
import type { Transaction } from "./transaction.ts";

/** Where a commit without facts keeps its operation id; no Run has this number, so no reader sees the row. */
const NO_RUN = 0;
const NO_FACTS = "[]";

interface FirstRow {
  readonly seq: number;
  readonly runNo: number;
  readonly source: LogRow["source"];
  readonly version: number;
  readonly signal: number;
  readonly lifecycle: boolean;
  readonly body: string;
}

/** The log rows of one commit. The first takes the first number and is inserted last, for it carries the receipt. */
export class CommitLog {
  readonly #tx: Transaction;
  readonly #commit: Commit;
  #first: FirstRow | null = null;

  constructor(tx: Transaction, commit: Commit) {
    this.#tx = tx;
    this.#commit = commit;
  }

  add(
    runNo: number,
    source: LogRow["source"],
    version: number,
    signal: number,
    lifecycle: boolean,
    body: string,
  ): void {
    this.addAt(this.#tx.nextSeq(), runNo, source, version, signal, lifecycle, body);
  }

  addAt(
    seq: number,
    runNo: number,
    source: LogRow["source"],
    version: number,
    signal: number,
    lifecycle: boolean,
    body: string,
  ): void {
    if (this.#first !== null) this.#insert(seq, runNo, source, version, signal, lifecycle, body, null);
    else this.#first = { seq, runNo, source, version, signal, lifecycle, body };
  }

  writeFirst(receipt: Receipt): void {
    const first = this.#first;
    if (first === null) {
      this.#insert(this.#tx.nextSeq(), NO_RUN, "signal", 0, 0, false, NO_FACTS, receipt);
      return;
    }
    const { seq, runNo, source, version, signal, lifecycle, body } = first;
    this.#insert(seq, runNo, source, version, signal, lifecycle, body, receipt);
  }

  #insert(
    seq: number,
    runNo: number,
    source: LogRow["source"],
    version: number,
    signal: number,
    lifecycle: boolean,
    body: string,
    receipt: Receipt | null,
  ): void {
    const { tenant, operationId, digest, claim } = this.#commit;
    const claimedBy = receipt !== null && receipt.claimed.length > 0 ? claim?.incarnation : null;
    this.#tx.sql.insertLog.run(
      seq,
      tenant,
      runNo,
      source,
      version,
      signal,
      this.#tx.now,
      lifecycle ? 1 : 0,
      claimedBy ?? null,
      receipt === null ? null : operationId,
      receipt === null ? null : digest,
      receipt === null ? null : JSON.stringify(receipt),
      body,
    );
  }
}
