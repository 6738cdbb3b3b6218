import { Deadline, mark, since } from './clock.js';
import { changed, PaddockError } from './error.js';
import { isPaddock, notSent } from './failures.js';
import { minWaitMs, Waits } from './waits.js';

/** An Address is a replica of the service, or a proxy in front of several. */
export interface Address {
  /** The base URL as it was given, for people. */
  readonly url: string;
  /** The URL before the path of a call, without a slash at the end. */
  readonly base: string;
  send(request: Request): Promise<Response>;
  /** Whether a Paddock has answered here. */
  answered: boolean;
}

/** A Plan describes a call to Addresses. */
export interface Plan {
  /** How long the call may take at all addresses together. Infinity: no limit. */
  readonly timeoutMs: number;
  /** How long the service was asked to wait. */
  readonly waitMs: number;
  /** Whether the call may be repeated after a lost response. */
  readonly repeatable: boolean;
}

/** minShareMs is the shortest timeout at one of several addresses. */
const minShareMs = 250;

/** silenceMs is how long after its wait one of several addresses may take to respond. */
const silenceMs = 2_000;

/** minProbePauseMs and maxProbePauseMs bound the time between two questions whether an earlier address is ready again. */
const minProbePauseMs = 30_000;
const maxProbePauseMs = 5 * 60_000;

/** probeTimeoutMs is how long an earlier address may take to say that it is ready. */
const probeTimeoutMs = 1_000;

/**
 * Addresses are those of one deployment, in the order of preference. Calls go to the current one. A failure makes the next
 * one current; a probe brings an earlier one back.
 */
export class Addresses {
  readonly waits = new Waits();
  #current = 0;
  #probing = false;
  #pauseMs = minProbePauseMs;
  #probeAt = new Deadline(mark(), Infinity);

  constructor(private readonly list: readonly Address[], private readonly headers: Record<string, string>) {}

  /** The URL with which requests are made; `call` says where they go. */
  get base(): string {
    return this.list[0]!.base;
  }

  /**
   * call makes an attempt at the current address, and after failures at the others, each once. A call that has waited is
   * not repeated here, but by its caller, with the rest of its wait; at once if the wait was `cut`. It rejects with
   * `unknown_outcome` if an attempt did; the detail names each address.
   */
  async call<T>(plan: Plan, attempt: (address: Address, timeoutMs: number) => Promise<T>): Promise<T> {
    this.#probe();
    const until = new Deadline(mark(), plan.timeoutMs);
    const count = this.list.length;
    const failed: PaddockError[] = [];
    for (let at = this.#current, untried = count; ; at = (at + 1) % count) {
      const sent = mark();
      try {
        return await attempt(this.list[at]!, this.#share(plan, until.left(), untried));
      } catch (error) {
        if (!isAddressFailure(error)) {
          throw error;
        }
        const tookMs = since(sent);
        const waited = plan.waitMs > 0 && tookMs >= minWaitMs;
        const cut = waited && tookMs < plan.waitMs && error.status !== 503 && !notSent(error.cause);
        if (!cut || !this.waits.cut(sent, error.status)) {
          this.#failed(at);
        }
        failed.push(count === 1 ? error : changed(error, { detail: `${this.list[at]!.url}: ${error.detail}` }));
        const unknown = failed.some(({ code }) => code === 'unknown_outcome');
        if (--untried === 0 || waited || until.passed() || (unknown && !plan.repeatable)) {
          throw together(failed, cut);
        }
      }
    }
  }

  /**
   * share returns the timeout of an attempt: with several addresses at most the time left divided by twice the number of
   * untried ones, so that the last seconds of a lease are not spent on a dead one.
   */
  #share({ waitMs }: Plan, left: number, untried: number): number {
    if (this.list.length === 1) {
      return left;
    }
    return Math.min(left, waitMs > 0 ? waitMs + silenceMs : Math.max(minShareMs, left / (2 * untried)));
  }

  /** failed makes the next address current, unless another call has done so. */
  #failed(at: number): void {
    if (at !== this.#current || this.list.length === 1) {
      return;
    }
    if (at === 0) {
      this.#scheduleProbe(minProbePauseMs);
    }
    this.#current = (at + 1) % this.list.length;
  }

  #scheduleProbe(pauseMs: number): void {
    this.#pauseMs = pauseMs;
    this.#probeAt = new Deadline(mark(), pauseMs * (1 + Math.random() / 5));
  }

  /**
   * probe asks the earlier addresses whether they are ready, beside the call, if that is due. The first that is becomes
   * current. No timer runs for it.
   */
  #probe(): void {
    if (this.#current > 0 && !this.#probing && this.#probeAt.passed()) {
      this.#probing = true;
      void this.#askEarlier(this.list.slice(0, this.#current));
    }
  }

  async #askEarlier(earlier: readonly Address[]): Promise<void> {
    let ready = 0;
    while (ready < earlier.length && !(await this.#isReady(earlier[ready]!))) {
      ready++;
    }
    this.#probing = false;
    if (ready < earlier.length && ready < this.#current) {
      this.#current = ready;
      this.#scheduleProbe(minProbePauseMs); // of those before it
    } else {
      this.#scheduleProbe(Math.min(this.#pauseMs * 2, maxProbePauseMs));
    }
  }

  async #isReady(address: Address): Promise<boolean> {
    const ending = new AbortController();
    const timer = setTimeout(() => ending.abort(), probeTimeoutMs);
    try {
      const response = await address.send(new Request(`${address.base}/readyz`, { headers: this.headers, redirect: 'manual', signal: ending.signal }));
      await response.body?.cancel();
      return response.status === 200 && isPaddock(response);
    } catch {
      return false; // asked again later
    } finally {
      clearTimeout(timer);
    }
  }
}

/** together returns one error for the failures at several addresses: the outcome is unknown if it is at one of them. */
function together(failed: readonly PaddockError[], cut: boolean): PaddockError {
  const worst = failed.find(({ code }) => code === 'unknown_outcome') ?? failed.at(-1)!;
  return changed(worst, { detail: failed.map(({ detail }) => detail).join(' '), ...(cut && { cut }) });
}

/** isAddressFailure reports whether another address may answer: there was no response, or that of a proxy or a replica that cannot serve. */
function isAddressFailure(error: unknown): error is PaddockError {
  return error instanceof PaddockError && ['unavailable', 'unknown_outcome'].includes(error.code) &&
    (error.status === undefined || [502, 503, 504].includes(error.status));
}
