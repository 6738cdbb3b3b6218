import type { Paddock } from './client.js';
import { leaseKind, suspectKind } from './kind.js';
import { omitUndefined } from './omit.js';
import { throwInOptions, type ResolvedOptions } from './options.js';
import type { LeaseRef } from './renewal.js';
import type { components } from './schema.js';

type Schemas = components['schemas'];

/** A SetMember is one lock of several that are acquired together; its mode, capacity and permits may be its own. */
export type SetMember = Schemas['SetMember'];

/**
 * Locks are the name of a lock, or up to 32 locks that are acquired together, all or none. The mode, the capacity
 * and the permits in the options are for those without a mode.
 */
export type Locks = string | readonly (string | SetMember)[];

/** LeaseAnswer is the lease of one lock or of several. */
export type LeaseAnswer = Schemas['Lease'] | Schemas['LeaseSet'];

/** locksOf returns what each lock of the lease has of its own, in the order of the names. */
export function locksOf(lease: LeaseAnswer): Schemas['SetLease'][] {
  return 'locks' in lease ? lease.locks : [lease];
}

/** leaseRef returns the LeaseRef of a lease with this lease_id. */
export function leaseRef(paddock: Paddock, locks: Locks, leaseId: string, options: Pick<ResolvedOptions, 'ttlMs' | 'marginMs' | 'onExpiry'>): LeaseRef {
  const { ttlMs, marginMs, onExpiry } = options;
  const { names, acquire, renew, end } = typeof locks === 'string' ? single(paddock, locks, leaseId) : set(paddock, locks, leaseId);
  return {
    kind: onExpiry === 'hold' ? suspectKind : leaseKind, paddock, leaseId, ttlMs, marginMs, names,
    acquire: (request, options) => acquire(request, options).catch(throwInOptions),
    renew: (options, to) => renew(options, to).catch(throwInOptions),
    end: (options, closing) => end(options, closing).catch(throwInOptions),
  };
}

type Calls = Pick<LeaseRef, 'names' | 'acquire' | 'renew' | 'end'>;

/** single returns the calls with the lease of one lock. */
function single(paddock: Paddock, name: string, leaseId: string): Calls {
  return {
    names: [name],
    acquire: (request, options) => paddock.acquire(name, { ...request, lease_id: leaseId }, options),
    renew: (options, to) => paddock.renew(name, { lease_id: leaseId, ...to }, options),
    end: (options, closing) => paddock.release(name, { lease_id: leaseId, ...closing }, options),
  };
}

/** set returns the calls with the lease of several locks. */
function set(paddock: Paddock, locks: Exclude<Locks, string>, leaseId: string): Calls {
  const members = locks.map((lock) => (typeof lock === 'string' ? { name: lock } : lock));
  const names = members.map((member) => member.name);
  const ref = { lease_id: leaseId, names };
  return {
    names,
    acquire: ({ mode, capacity, permits, ...request }, options) => {
      const own = omitUndefined({ mode, capacity, permits });
      const all = members.map((member) => (member.mode === undefined ? { ...own, ...member } : member));
      return paddock.acquireSet({ ...request, lease_id: leaseId, locks: all }, options);
    },
    renew: (options, to) => paddock.renewSet({ ...ref, ...to }, options),
    end: (options, closing) => paddock.releaseSet({ ...ref, ...closing }, options),
  };
}
