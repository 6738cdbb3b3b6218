import { Deadline, mark, since, type Mark } from './clock.js';
import { hasCode } from './error.js';

/** maxWaitMs is the longest wait that is asked for in one call. A longer wait takes several calls. */
const maxWaitMs = 10_000;

/** longWaitMs is how long a call must have waited for its connection to count as cut, and the shortest wait that is asked for. */
export const longWaitMs = 1_000;

/** forgetMs is how long what was learnt counts: a connection also breaks when a replica ends. */
const forgetMs = 10 * 60_000;

/** Waits are the lengths of the waits that a client asks for. It learns from waits that a proxy has cut. */
export class Waits {
  #longest = maxWaitMs;
  #forget = new Deadline(mark(), Infinity);

  /** ask returns how long the next call may wait, in whole milliseconds, if that much time is left. */
  ask(left = Infinity): number {
    if (this.#forget.passed()) {
      this.#longest = maxWaitMs;
      this.#forget = new Deadline(mark(), Infinity);
    }
    return Math.ceil(Math.max(Math.min(left, this.#longest), 0));
  }

  /**
   * cut reports whether the error is that of a wait whose connection was cut. That is no failure: later waits are shorter.
   */
  cut(error: unknown, askedMs: number, sent: Mark): boolean {
    const lasted = since(sent);
    if (lasted < longWaitMs || lasted >= askedMs || !isCut(error)) {
      return false;
    }
    this.#longest = Math.min(this.#longest, Math.max(longWaitMs, lasted * 0.8));
    this.#forget = new Deadline(mark(), forgetMs);
    return true;
  }
}

/** isCut reports whether the connection was closed, or a proxy has given up. */
function isCut(error: unknown): boolean {
  return hasCode(error, 'unavailable', 'unknown_outcome') && (error.status === undefined || [502, 504].includes(error.status));
}
