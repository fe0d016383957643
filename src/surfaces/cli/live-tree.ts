import type { TreeFrame } from "./follow-tree.ts";
import type { Style } from "./style.ts";
import { treeLines } from "./tree-lines.ts";

/** A tree that is drawn over itself on a terminal. */
export interface LiveTree {
  draw(frame: TreeFrame): void;
  /** Leaves the last picture standing, whole, and gives the cursor back. */
  done(): void;
}

export async function createLiveTree(
  stream: NodeJS.WriteStream,
  style: Style,
  scope: readonly string[],
): Promise<LiveTree> {
  const { createLogUpdate } = await import("log-update");
  const log = createLogUpdate(stream);
  let last: TreeFrame | null = null;
  const text = (frame: TreeFrame, maxLines?: number): string =>
    treeLines({ ...frame, scope, style: { ...style, width: stream.columns }, maxLines }).join("\n");
  const redraw = (): void => {
    if (last !== null) log(text(last, stream.rows - 2));
  };
  stream.on("resize", redraw);
  return {
    draw(frame) {
      last = frame;
      redraw();
    },
    done() {
      stream.off("resize", redraw);
      // The screen may hold a part of a tall tree; what stays in the scrollback is all of it.
      log.clear();
      if (last !== null) stream.write(`${text(last)}\n`);
      log.done();
    },
  };
}
