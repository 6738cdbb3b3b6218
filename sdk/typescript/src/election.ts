import { acquireLease } from './acquire.js';
import { campaignOptions, checkOptions, client, expect, text, watchOptions } from './arguments.js';
import type { CallOptions, Paddock } from './client.js';
import { invalid, type PaddockError } from './error.js';
import { Lease } from './lease.js';
import { notify } from './notify.js';
import type { Options } from './options.js';
import type { components } from './schema.js';
import { watchLock, type WatchOptions } from './watch.js';

/** maxValueBytes is the greatest size of a leader's value as the metadata of its lease. */
const maxValueBytes = 4_096;

/** CampaignOptions are options of `campaign`, with the meanings of those of `acquire`. Without `waitMs`, it waits until the signal is aborted. */
export type CampaignOptions = Omit<Options, 'mode' | 'capacity' | 'permits' | 'metadata'>;

/**
 * A Term is the lease of an elected leader. Stop leading when its `signal` is aborted. Its `token` grows with each term: send
 * it with every write that two leaders must not both make, because another leader may have been elected by the time the
 * write arrives.
 */
export class Term extends Lease {
  /** Replaces the leader's value. Observers may miss a value that is soon replaced, but never the last one. */
  async proclaim(value: string, options: CallOptions = {}): Promise<void> {
    return this.setMetadata(metadataOf(value), options);
  }

  /** Ends the term like `release`. The next candidate is elected immediately. */
  resign(): Promise<void> {
    return this.release();
  }
}

/** A Leader is the leader as of a time in the past. */
export interface Leader {
  readonly holder: string;
  readonly value: string;
  readonly token: number;
  /** When it was elected, by the database's clock. */
  readonly since: Date;
}

/**
 * Waits until it is elected, and resolves with the term. An election is an exclusive lock whose holder, the leader, publishes
 * a value, such as its address, in the metadata `value` of the lease. Candidates are elected in the order in which they
 * joined. Rejects like `acquire`, and has then withdrawn from the election.
 */
export async function campaign(paddock: Paddock, name: string, value: string, options: CampaignOptions = {}): Promise<Term> {
  expect('paddock', paddock, client('acquire'));
  expect('name', name, text);
  checkOptions('campaign', options, campaignOptions);
  const request = { ...options, waitMs: options.waitMs ?? Infinity, metadata: metadataOf(value) };
  return acquireLease(paddock, name, request, false, Term);
}

/** Resolves with the leader, or with undefined if there is none. A lease in its grace period makes no leader. */
export async function currentLeader(paddock: Paddock, name: string, options: CallOptions = {}): Promise<Leader | undefined> {
  expect('paddock', paddock, client('lock'));
  return leaderOf(await paddock.lock(name, options));
}

/**
 * Yields the leader, undefined if there is none, and then each change of the leader or of its value. Of several changes in
 * quick succession, it may yield only the last one. While the service cannot be reached, the leader yielded before may be
 * outdated; `onRetry` reports that, and the leader is yielded again afterwards, even if it is the same. It ends when the
 * signal is aborted, and throws a PaddockError that a retry cannot fix.
 */
export async function* observeLeader(paddock: Paddock, name: string, options: WatchOptions = {}): AsyncGenerator<Leader | undefined, void, undefined> {
  checkOptions('observeLeader', options, watchOptions);
  let known = false;
  let last: Leader | undefined;
  const onRetry = (error: PaddockError) => {
    known = false;
    notify(options.onRetry, error);
  };
  for await (const lock of watchLock(paddock, name, { ...options, onRetry })) {
    const leader = leaderOf(lock);
    if (!known || leader?.token !== last?.token || leader?.value !== last?.value) {
      known = true;
      last = leader;
      yield leader;
    }
  }
}

function metadataOf(value: string): { value: string } {
  expect('value', value, text);
  const bytes = new TextEncoder().encode(JSON.stringify({ value })).length;
  if (bytes > maxValueBytes) {
    throw invalid('value', `has ${bytes} bytes as JSON; at most ${maxValueBytes} are allowed`);
  }
  return { value };
}

/** leaderOf returns the leader according to the lock. A holder with other metadata leads with the value ''. */
function leaderOf({ state, leases }: components['schemas']['Lock']): Leader | undefined {
  const lease = leases[0];
  if (state !== 'held' || lease?.mode !== 'exclusive') {
    return undefined;
  }
  const value = lease.metadata?.['value'];
  return { holder: lease.holder, value: typeof value === 'string' ? value : '', token: lease.fencing_token, since: new Date(lease.acquired_at) };
}
