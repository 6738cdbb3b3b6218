/**
 * The TypeScript SDK of Paddock: a client for the service's calls, and guards that renew a lease while work runs
 * under it and stop the work before another client can be granted the lock.
 *
 * A guard cannot stop a paused process or a request in flight. Check the fencing token where the write happens.
 */
export { acquire } from './acquire.js';
export { campaign, currentLeader, observeLeader, type Term, type CampaignOptions, type Leader } from './election.js';
export { createPaddock, type CallOptions, type Paddock, type PaddockOptions } from './client.js';
export { PaddockError, type Blocker, type Code, type DeadlockStep, type ErrorFields } from './error.js';
export { guard } from './guard.js';
export type { Lease } from './lease.js';
export { once, type OnceOptions, type Turn } from './once.js';
export type { Options, SessionOptions, State } from './options.js';
export type { components, operations, paths } from './schema.js';
export { openSession, type Session } from './session.js';
export type { Locks, SetMember } from './set.js';
export { streamEvents, watchLock, type StreamItem, type StreamOptions, type WatchOptions } from './watch.js';
