import { mark, since, type Mark } from './clock.js';

/** maxWaitMs is the longest wait that is asked for in one call. A longer wait takes several calls. */
export const maxWaitMs = 10_000;

/** minWaitMs is the shortest wait that is learned. A call that failed sooner was not cut, but failed. */
export const minWaitMs = 1_000;

/** atOnceMs is how soon after a cut the next wait is sent. */
const atOnceMs = 1_000;

/** limitLastsMs is how long a limit is remembered. */
const limitLastsMs = 10 * 60_000;

/**
 * Waits are the lengths of the waits that a client asks for. A longer wait takes several calls, one after another.
 *
 * A proxy may limit the time of a call, and cut longer ones. So does a replica that crashes, but once and all of them
 * together. So a cut is a proxy's limit if it is a 504, or if it is the second one after about the same time, of a wait that
 * was sent at once after the first. Then calls ask for 80 % of that time, for ten minutes, and the address counts as well;
 * after any other cut, the wait goes on at the next address. client/testdata/waits.json has the cases.
 */
export class Waits {
  #limitMs = maxWaitMs; // which was learned at #limitAt
  #limitAt: Mark | undefined;
  #cutAfterMs = 0; // of the last cut that came alone or first
  #cutAt: Mark | undefined;

  /** longest returns the longest wait to ask for, in whole milliseconds. */
  longest(): number {
    return this.#limitAt && since(this.#limitAt) < limitLastsMs ? Math.ceil(this.#limitMs) : maxWaitMs;
  }

  /**
   * cut is called when a wait that was sent at that instant was cut: with 502, 504, or undefined if its connection broke. It
   * reports whether that was a proxy's limit.
   */
  cut(sent: Mark, status: number | undefined): boolean {
    const afterMs = since(sent);
    const pauseMs = this.#cutAt ? sent.steady - this.#cutAt.steady : Infinity;
    let isLimit = status === 504;
    if (!isLimit && pauseMs < 0) {
      return false; // one crash may have cut both
    }
    isLimit ||= pauseMs <= atOnceMs && most(afterMs) < this.#cutAfterMs && most(this.#cutAfterMs) < afterMs;
    [this.#cutAfterMs, this.#cutAt] = [afterMs, mark()];
    if (isLimit) {
      [this.#limitMs, this.#limitAt] = [Math.max(Math.min(most(afterMs), this.longest()), minWaitMs), mark()];
    }
    return isLimit;
  }
}

/** most returns what may be asked for where a wait was cut after that time. */
function most(afterMs: number): number {
  return afterMs * 0.8;
}
