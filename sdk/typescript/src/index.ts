/**
 * The TypeScript SDK of Paddock: the service's calls, and guards that keep a lease alive while work is done under it
 * and stop the work before the lease can be somebody else's.
 *
 * A guard does not stop a process that is paused, nor a request that is on its way. The fencing token does, checked where the write lands.
 */
export { acquire } from './acquire.js';
export { createPaddock, type CallOptions, type Paddock, type PaddockOptions } from './client.js';
export { PaddockError, type Code, type Facts } from './error.js';
export { guard } from './guard.js';
export type { Lease } from './lease.js';
export type { Options, State } from './options.js';
export type { components, operations, paths } from './schema.js';
