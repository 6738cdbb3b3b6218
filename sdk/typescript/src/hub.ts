import type { Client } from 'openapi-fetch';

import { Deadline, mark, since } from './clock.js';
import { PaddockError, wasCut } from './error.js';
import { unref } from './platform.js';
import { bodyOf } from './response.js';
import { backoff } from './retry.js';
import type { components, paths } from './schema.js';
import { maxWaitMs, type Waits } from './waits.js';

/** joinMs is how long a lease must have been held before the hub watches it: a short critical section costs nothing. */
const joinMs = 300;

/** resendMs is the shortest time between two calls. */
const resendMs = 300;

/**
 * exitMs is how long all hubs of a process pause together, once every maxWaitMs. An open call keeps a process of Node
 * running. In this pause, a process that has nothing else to do exits, however many clients it has.
 */
const exitMs = 500;

/** maxLocks and maxSessions are how many of each one call may watch. */
const maxLocks = 5_000;
const maxSessions = 1_000;

/** refusedMs is the pause after the service has refused the call, or does not know it. */
const refusedMs = 5 * 60_000;

/** responseMs is how long a response may take beyond the wait. */
const responseMs = 10_000;

/**
 * News says why to renew: the hub watches it from now on, it has heard of its end, or news of its end may have been missed, as
 * for all others.
 */
export type News = 'joined' | 'ended' | 'missed';

/** A Watched is a lease or a session that the hub watches. */
export interface Watched {
  /** The token and the slots of each lock by its name; leases of a shared lock differ only in the slot. */
  readonly tokens: ReadonlyMap<string, number>;
  readonly slots: ReadonlyMap<string, readonly number[]>;
  /** The public name of a session. */
  readonly session?: string;
  /** Renews it soon. Only the answer of the renewal decides whether it is lost. */
  hint(news: News): void;
}

/**
 * A Hub hears of all ends of leases and sessions of one client with one long call, and makes them renew at once. What it
 * hears is a hint: without it, or while it fails, the next renewal finds out. It runs only while it has something to watch.
 */
export class Hub {
  readonly #members = new Map<Watched, 'joined' | 'missed' | 'watched' | 'ended'>(); // joined, missed: to tell when there is a cursor
  #running = false;
  #cursor: string | undefined;
  #call = new AbortController(); // ends the call, or the pause before it
  #waiting = false; // whether the call may be given up, for one that watches more
  #givenUp = false;
  #sent = mark();
  #next = new Deadline(mark(), 0); // before which there is no call, whoever joins or leaves
  #resend: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly api: Client<paths>, private readonly waits: Waits) {}

  /** join watches after a while, and returns a function that ends it. */
  join(member: Watched): () => void {
    const timer = setTimeout(() => this.#add(member), joinMs);
    unref(timer);
    return () => {
      clearTimeout(timer);
      this.#remove(member);
    };
  }

  #add(member: Watched): void {
    this.#members.set(member, 'joined');
    if (!this.#running) {
      this.#running = true;
      void this.#run();
    } else if (this.#waiting) {
      this.#resend ??= setTimeout(() => this.#watchMore(), Math.max(resendMs - since(this.#sent), 0));
      unref(this.#resend);
    }
  }

  /**
   * watchMore gives up the call, so that the next one watches what has joined meanwhile. The next one does not wait and is not
   * given up: the cursor advances, and ends are heard, even if leases join all the time.
   */
  #watchMore(): void {
    if (this.#waiting) {
      this.#givenUp = true;
      this.#call.abort();
    }
  }

  #remove(member: Watched): void {
    if (this.#members.delete(member) && this.#members.size === 0) {
      this.#call.abort();
    }
  }

  /** run calls until nothing is watched. */
  async #run(): Promise<void> {
    let failures = 0;
    while (this.#members.size > 0) {
      this.#call = new AbortController();
      const { signal } = this.#call;
      await pause(Math.max(this.#next.left(), exitMs - sincePause(), 1), signal);
      if (signal.aborted) {
        continue; // the last one has left
      }
      this.#sent = mark();
      this.#next = new Deadline(this.#sent, resendMs);
      clearTimeout(this.#resend);
      this.#resend = undefined;
      const waitMs = this.#cursor === undefined || this.#givenUp ? 0 : Math.ceil(Math.min(this.waits.longest(), maxWaitMs - sincePause()));
      this.#waiting = waitMs > 0;
      this.#givenUp = false;
      try {
        this.#hear(await this.#wait(waitMs, signal));
        failures = 0;
      } catch (error) {
        if (!signal.aborted && !wasCut(error)) {
          this.#recover(error, failures++);
        }
      } finally {
        this.#waiting = false;
      }
    }
    this.#cursor = undefined;
    this.#running = false;
  }

  /**
   * wait sends one call. The leases that it watches for the first time are renewed: that covers what happened before the
   * cursor.
   */
  #wait(waitMs: number, signal: AbortSignal): Promise<Heard> {
    const locks = new Set<string>();
    const sessions: string[] = [];
    for (const [member, state] of this.#members) {
      if (this.#cursor !== undefined && (state === 'joined' || state === 'missed')) {
        this.#members.set(member, 'watched');
        member.hint(state);
      }
      if (member.session !== undefined && state !== 'ended' && sessions.length < maxSessions) {
        sessions.push(member.session);
      }
      for (const name of member.tokens.keys()) {
        if (locks.size < maxLocks) {
          locks.add(name);
        }
      }
    }
    if (locks.size === 0 && sessions.length === 0) {
      this.#waiting = true;
      return new Promise((_, reject) => signal.addEventListener('abort', reject, { once: true }));
    }
    const body = {
      locks: [...locks], sessions, kinds: ['released', 'expired', 'revoked'] as Kind[], wait_ms: waitMs,
      ...(this.#cursor !== undefined && { cursor: this.#cursor }),
    };
    const options = { signal, timeoutMs: waitMs + responseMs };
    return this.api.POST('/v1/events/wait', { ...options, body })
      .then((response) => bodyOf('read', response, (heard) => Array.isArray(heard.events) && typeof heard.next_cursor === 'string'));
  }

  /** hear makes all leases and sessions renew that the answer is about. */
  #hear({ events, next_cursor, gap, unreadable = [], ended_sessions = [] }: Heard): void {
    const ended = new Set(ended_sessions);
    const leases = new Set(events.map(({ lock, fencing_token, slot }) => `${lock} ${fencing_token} ${slot}`));
    this.#cursor = next_cursor;
    for (const member of [...this.#members.keys()]) {
      if (member.session !== undefined && ended.has(member.session)) {
        this.#members.set(member, 'ended'); // the service would answer at once, again and again
        member.hint('ended');
      } else if ([...member.tokens].some(([name, token]) => leases.has(`${name} ${token} ${member.slots.get(name)?.[0]}`))) {
        member.hint('ended');
      } else if (gap || unreadable.length > 0) {
        member.hint('missed');
      }
    }
  }

  /** recover puts off the next call. A cursor that the service does not accept is dropped. */
  #recover(error: unknown, failures: number): void {
    const refused = hasStatus(error, 403, 404);
    if (hasStatus(error, 400)) {
      this.#cursor = undefined;
      for (const [member, state] of this.#members) {
        this.#members.set(member, state === 'watched' ? 'missed' : state);
      }
    }
    this.#next = new Deadline(mark(), refused ? refusedMs : backoff(failures, 1_000, 30_000, error));
  }
}

type Heard = components['schemas']['EventPage'];
type Kind = components['schemas']['EventKind'];

function hasStatus(error: unknown, ...statuses: number[]): boolean {
  return error instanceof PaddockError && statuses.includes(error.status ?? 0);
}

/** sincePause returns how many milliseconds ago all hubs began to pause. */
function sincePause(): number {
  return performance.now() % maxWaitMs;
}

/** pause resolves after the milliseconds, without keeping the process running, or when the signal is aborted. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, signal.aborted ? 0 : ms);
    unref(timer);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    }, { once: true });
  });
}
