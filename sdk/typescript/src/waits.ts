import { Deadline, mark, since, type Mark } from './clock.js';
import { hasCode, type PaddockError } from './error.js';

/** maxWaitMs is the longest wait that is asked for in one call. A longer wait takes several calls. */
const maxWaitMs = 10_000;

/** longWaitMs is how long a call must have waited for its connection to count as cut, and the shortest wait that is asked for. */
export const longWaitMs = 1_000;

/** forgetMs is how long what was learnt counts. */
const forgetMs = 10 * 60_000;

/** Waits are the lengths of the waits that a client asks for. It learns from waits that a proxy has cut. */
export class Waits {
  #longest = maxWaitMs;
  #forget = new Deadline(mark(), Infinity);
  #broken: Mark | undefined; // when a connection broke that may have ended with a replica

  /** ask returns how long the next call may wait, in whole milliseconds, if that much time is left. */
  ask(left = Infinity): number {
    if (this.#forget.passed()) {
      this.#longest = maxWaitMs;
      this.#forget = new Deadline(mark(), Infinity);
    }
    return Math.ceil(Math.max(Math.min(left, this.#longest), 0));
  }

  /**
   * cut reports whether the error is that of a wait whose connection was cut. That is no failure. Later waits are shorter if a
   * proxy has given up, or if a connection breaks again: a first one, and all that are open with it, may have ended with a replica.
   */
  cut(error: unknown, askedMs: number, sent: Mark): boolean {
    const lasted = since(sent);
    if (lasted < longWaitMs || lasted >= askedMs || !isCut(error)) {
      return false;
    }
    if (error.status === undefined && !this.#brokeBefore(sent)) {
      return true;
    }
    this.#longest = Math.min(this.#longest, Math.max(longWaitMs, lasted * 0.8));
    this.#forget = new Deadline(mark(), forgetMs);
    return true;
  }

  /** brokeBefore reports whether a connection had broken shortly before the wait was sent whose connection has now broken. */
  #brokeBefore(sent: Mark): boolean {
    const before = this.#broken === undefined ? Infinity : sent.steady - this.#broken.steady;
    if (before > maxWaitMs) {
      this.#broken = mark();
    }
    return before >= 0 && before <= maxWaitMs;
  }
}

/** isCut reports whether the connection was closed, or a proxy has given up. */
function isCut(error: unknown): error is PaddockError {
  return hasCode(error, 'unavailable', 'unknown_outcome') && (error.status === undefined || [502, 504].includes(error.status));
}
