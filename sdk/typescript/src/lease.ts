import type { Grant } from './acquisition.js';
import { callOptions, checkOptions, expect, jsonObject } from './arguments.js';
import type { CallOptions } from './client.js';
import { hasCode } from './error.js';
import type { Options } from './options.js';
import { attemptTimeoutMs, type LeaseRef } from './renewal.js';
import { Renewed } from './renewed.js';
import { Renewer } from './renewer.js';
import { locksOf } from './set.js';
import { LeaseState } from './state.js';

/**
 * A Lease is a grant of one lock, or of several locks, to this holder. It is renewed in the background until it is
 * released or lost. In Node, that keeps the process running inside `guard`, and once `done` was read. A lease of a session has no
 * renewals of its own: it has the state and the deadline of the session, and is lost when that is lost or closed. A lease
 * of several locks is renewed, lost and released as a whole; `name`, `token` and `slot` are those of the first lock, in
 * the order of the names.
 */
export class Lease extends Renewed {
  /** The lock's name. */
  readonly name: string;
  /** The fencing token: send it with every write that the lock guards. */
  readonly token: number;
  /**
   * 0 for an exclusive lease, 1 or greater for others. Resources guarded by permits are fenced by name and slot. Of several
   * permits it is the first, see `slots`.
   */
  readonly slot: number;
  /** The token of each lock by its name, in order. All are the same, but for shared locks that have joined readers. */
  readonly tokens: ReadonlyMap<string, number>;
  /** The slots of each lock by its name, in order: one, unless it has several permits. */
  readonly slots: ReadonlyMap<string, readonly number[]>;
  /** The holder, as shown to people. */
  readonly holder: string;
  /** The thread of work, by which the service finds deadlocks. */
  readonly taskId: string | undefined;
  readonly #ref: LeaseRef;

  /** @internal Leases come from `acquire` and `guard`. */
  constructor(ref: LeaseRef, grant: Grant, options: Options, forGuard: boolean) {
    const { lease, deadline } = grant;
    const { onState, onRetry, onRenewed, session } = options;
    const state = new LeaseState(ref.kind, onState, forGuard ? options.signal : undefined);
    super(ref, state, session
      ? session.join(ref, state, grant, forGuard)
      : new Renewer(ref, state, { onRetry, onRenewed, keepsProcess: () => forGuard }, deadline));
    const locks = locksOf(lease);
    this.name = locks[0]!.name;
    this.token = locks[0]!.fencing_token;
    this.slot = locks[0]!.slot;
    this.tokens = new Map(locks.map((lock) => [lock.name, lock.fencing_token]));
    this.slots = new Map(locks.map((lock) => [lock.name, lock.slots ?? [lock.slot]]));
    this.holder = lease.holder;
    this.taskId = options.taskId;
    this.#ref = ref;
    this.watch(ref.paddock.common?.hub, { tokens: this.tokens, slots: this.slots });
  }

  /**
   * Replaces the metadata, a JSON object that every reader of the lock sees. Rejects with `lease_lost` if the lease has
   * ended. If the outcome is unknown, call it again.
   */
  async setMetadata(metadata: Record<string, unknown>, options: CallOptions = {}): Promise<void> {
    expect('metadata', metadata, jsonObject);
    checkOptions('setMetadata', options, callOptions);
    this.check();
    try {
      await this.#ref.renew({ timeoutMs: attemptTimeoutMs(this.#ref.ttlMs, 0), ...options }, { metadata });
    } catch (error) {
      if (hasCode(error, 'lease_lost')) {
        this.hint();
      }
      throw error;
    }
  }

  /**
   * Releases the lease. If the service does not respond, it retries for up to five seconds; no signal ends that
   * sooner. Rejects with `lease_lost` if the lease ended before: the work may have overlapped with another holder's.
   * Rejects with another PaddockError if the service does not respond; the lease then ends with its TTL. With
   * `onExpiry: 'hold'` a lost lease is not released, so that the lock is suspect. A second call returns the same promise.
   */
  release(): Promise<void> {
    return this.end();
  }
}
