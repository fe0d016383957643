import type { Json } from "../../rules/json.ts";

export interface SentAnswer {
  readonly questionId: string;
  readonly answer: Json;
}

/** What a Run remembers of its peer between polls. Its presence says that the work was started. */
export interface RemoteNote {
  /** The question that was put to a person and has no answer yet. */
  readonly questionId: string | null;
  /** The last answers that were sent. A peer that asks one of these again gets the same answer, and nobody is asked twice. */
  readonly answered: readonly SentAnswer[];
  /** Polls since the peer last said something new. */
  readonly polls: number;
}

const ANSWERS_KEPT = 50;

export function answerTo(note: RemoteNote, questionId: string): SentAnswer | undefined {
  return note.answered.find((sent) => sent.questionId === questionId);
}

export function withAnswer(note: RemoteNote, sent: SentAnswer): RemoteNote {
  return { questionId: null, answered: [...note.answered, sent].slice(-ANSWERS_KEPT), polls: 0 };
}

export function noteJson(note: RemoteNote): Json {
  const { questionId, answered, polls } = note;
  return {
    started: true,
    questionId,
    answered: answered.map((sent) => ({ questionId: sent.questionId, answer: sent.answer })),
    polls,
  };
}

/** Null for a Run whose start has not been noted. */
export function readNote(note: Json): RemoteNote | null {
  if (typeof note !== "object" || note === null || Array.isArray(note)) return null;
  // Written by `noteJson` and stored with the Run.
  const { started, questionId, answered, polls } = note as unknown as RemoteNote & {
    readonly started: unknown;
  };
  return started === true ? { questionId, answered, polls } : null;
}
