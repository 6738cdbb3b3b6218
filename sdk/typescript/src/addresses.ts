import { Deadline, mark, since } from './clock.js';
import { changed, PaddockError } from './error.js';
import { isPaddock } from './failures.js';
import { longWaitMs } from './waits.js';

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

/** silentMs is how long after its wait one of several addresses may take to respond. */
const silentMs = 2_000;

/** firstReturnMs and maxReturnMs bound the time between two questions whether an earlier address is ready again. */
const firstReturnMs = 30_000;
const maxReturnMs = 5 * 60_000;

/** readyTimeoutMs is how long an earlier address may take to say that it is ready. */
const readyTimeoutMs = 1_000;

/**
 * Addresses are those of one deployment, in the order of preference. All calls go to the current one. A call that fails
 * there makes the next one current and goes there at once. An earlier address becomes current again when it is ready.
 */
export class Addresses {
  #current = 0;
  #returnMs = firstReturnMs;
  #return = new Deadline(mark(), Infinity);

  constructor(private readonly list: readonly Address[], private readonly headers: Record<string, string>) {}

  /** The URL with which requests are made; `call` says where they go. */
  get base(): string {
    return this.list[0]!.base;
  }

  /**
   * call makes an attempt at the current address, and after failures at the others, each once. A call that has waited in
   * vain is not repeated here, but by its caller, with the rest of its wait. It rejects with `unknown_outcome` if an attempt
   * did; the detail names each address.
   */
  async call<T>(plan: Plan, attempt: (address: Address, timeoutMs: number) => Promise<T>): Promise<T> {
    this.#lookBack();
    const until = new Deadline(mark(), plan.timeoutMs);
    const untried = new Set(this.list.keys());
    const failed: PaddockError[] = [];
    for (let at = this.#current; ; ) {
      const began = mark();
      const timeoutMs = this.#share(plan, until.left(), untried.size);
      untried.delete(at);
      try {
        return await attempt(this.list[at]!, timeoutMs);
      } catch (error) {
        if (!isAddressFailure(error)) {
          throw error;
        }
        this.#leave(at);
        failed.push(this.list.length === 1 ? error : changed(error, { detail: `${this.list[at]!.url}: ${error.detail}` }));
        const unknown = failed.some(({ code }) => code === 'unknown_outcome');
        const next = untried.has(this.#current) ? this.#current : [...untried][0];
        const waited = plan.waitMs > 0 && since(began) >= longWaitMs;
        if (next === undefined || waited || until.passed() || (unknown && !plan.repeatable)) {
          throw together(failed);
        }
        at = next;
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
    return Math.min(left, waitMs > 0 ? waitMs + silentMs : Math.max(minShareMs, left / (2 * untried)));
  }

  /** leave makes the next address current, unless another call has done so. */
  #leave(at: number): void {
    if (at !== this.#current || this.list.length === 1) {
      return;
    }
    this.#current = (at + 1) % this.list.length;
    this.#returnMs = firstReturnMs;
    this.#scheduleReturn();
  }

  #scheduleReturn(): void {
    this.#return = new Deadline(mark(), this.#returnMs * (0.8 + Math.random() * 0.4));
  }

  /** lookBack asks the earlier addresses whether they are ready, if it is time to. No timer runs for it. */
  #lookBack(): void {
    if (this.#current > 0 && this.#return.passed()) {
      this.#return = new Deadline(mark(), Infinity); // until this question is answered
      void this.#tryReturn();
    }
  }

  async #tryReturn(): Promise<void> {
    for (let at = 0; at < this.#current; at++) {
      if (await this.#isReady(this.list[at]!)) {
        this.#current = Math.min(this.#current, at);
        this.#returnMs = firstReturnMs;
        this.#scheduleReturn();
        return;
      }
    }
    this.#returnMs = Math.min(this.#returnMs * 2, maxReturnMs);
    this.#scheduleReturn();
  }

  async #isReady(address: Address): Promise<boolean> {
    const ending = new AbortController();
    const timer = setTimeout(() => ending.abort(), readyTimeoutMs);
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
function together(failed: readonly PaddockError[]): PaddockError {
  const worst = failed.find(({ code }) => code === 'unknown_outcome') ?? failed.at(-1)!;
  return failed.length === 1 ? worst : changed(worst, { detail: failed.map(({ detail }) => detail).join(' ') });
}

/** isAddressFailure reports whether another address may answer: there was no response, or that of a proxy or a replica that cannot serve. */
function isAddressFailure(error: unknown): error is PaddockError {
  return error instanceof PaddockError && ['unavailable', 'unknown_outcome'].includes(error.code) &&
    (error.status === undefined || [502, 503, 504].includes(error.status));
}
