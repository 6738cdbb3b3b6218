import { changed, invalid, PaddockError } from './error.js';
import { omitUndefined } from './omit.js';
import { defaultHolder } from './platform.js';
import type { components } from './schema.js';
import type { Session } from './session.js';
import { newTask, taskLabel } from './task.js';

type Schemas = components['schemas'];
type AcquireRequest = Schemas['AcquireRequest'];

/** defaultTtlMs is the TTL of a lease or a session if none is given. */
export const defaultTtlMs = 30_000;

/** defaultRetryMs is how long an acquire is retried if `retryMs` is not given. */
export const defaultRetryMs = 10_000;

/** maxDefaultMarginMs is the greatest default margin. */
export const maxDefaultMarginMs = 5_000;

/**
 * Options of `acquire` and `guard`; times in milliseconds. Without options: an exclusive lease, without waiting, with
 * the default TTL.
 */
export interface Options {
  /** A display name of the holder, for people. The default is host name, process ID and, in Node, a name of the work. */
  holder?: string | undefined;
  /** `exclusive`, the default; `shared` for readers; `permit` for a semaphore with `capacity`. */
  mode?: components['schemas']['Mode'] | undefined;
  /** The number of permits that there are; only for the mode `permit`. */
  capacity?: number | undefined;
  /** How many permits to acquire, all or none; only for the mode `permit`. The default is 1. */
  permits?: number | undefined;
  /** How long the lease lasts without a renewal. The default is 30000. The service may set a lower maximum. */
  ttlMs?: number | undefined;
  /** How long after its end the lease still blocks other grants. */
  graceMs?: number | undefined;
  /** The maximum time from the grant to the end of the lease, renewals included. */
  maxHoldMs?: number | undefined;
  /**
   * `hold`: the lease does not end by itself. If it is not renewed in time, it is lost and not released: the lock is
   * `suspect`, and granted to no other client until an operator revokes the lease. The default is `expire`. Not with `session`.
   */
  onExpiry?: components['schemas']['OnExpiry'] | undefined;
  /** A JSON object, visible to every reader of the lock. */
  metadata?: Record<string, unknown> | undefined;
  /**
   * The session that keeps the lease alive, from `openSession`. `ttlMs`, `graceMs` and `marginMs` are then those of the
   * session and must be left out, and `onRenewed` is not called.
   */
  session?: Session | undefined;

  /**
   * The thread of work, by which the service finds deadlocks. By default a part of the task of the `guard` around it or of
   * the environment variable PADDOCK_TASK, or else a new one.
   */
  taskId?: string | undefined;

  /** How long to wait for the lock. 0, the default, does not wait; Infinity waits until the signal is aborted. */
  waitMs?: number | undefined;
  /**
   * How long the acquire is retried while the service cannot be reached or asks to retry later, unless `waitMs` is
   * longer. The default is 10000.
   */
  retryMs?: number | undefined;
  /**
   * How long before its end the lease counts as lost: the time your work needs to stop, at most a third of the TTL.
   * The default is a tenth of the TTL, at most 5000.
   */
  marginMs?: number | undefined;
  /** Ends the wait and gives up the place. In `guard` it also ends the work: the lease's signal is aborted with it. */
  signal?: AbortSignal | null | undefined;
  /**
   * Called on each change of state, with its cause: for `at_risk`, why the renewal failed; for `lost`, the loss; for
   * `released`, why the release call failed, if it did. If the state ends the work, the lease's signal is already
   * aborted.
   */
  onState?: ((state: State, error?: PaddockError) => void) | undefined;
  /** Called for each failed call that will be retried. */
  onRetry?: ((error: PaddockError) => void) | undefined;
  /** Called when the acquire has ended: how long it took, waits and retries included, and its error. For metrics. */
  onAcquired?: ((tookMs: number, error?: unknown) => void) | undefined;
  /**
   * Called after each attempt to renew, with the share of the TTL that was left then, and its error. For metrics: with a
   * share near a tenth, the next slow answer costs the lease.
   */
  onRenewed?: ((left: number, error?: PaddockError) => void) | undefined;
}

/** SessionOptions are options of `openSession`; times in milliseconds. They have the meanings of those of `acquire`. */
export interface SessionOptions extends Pick<Options, 'holder' | 'ttlMs' | 'graceMs' | 'metadata' | 'retryMs' | 'marginMs' | 'onState' | 'onRetry' | 'onRenewed'> {
  /**
   * The `session_id`, a random UUID that you keep secret. By default `openSession` chooses one. With it and the same
   * holder, another process finds the same session.
   */
  sessionId?: string | undefined;
  /** Ends the opening, not the session. */
  signal?: AbortSignal | null | undefined;
}

/**
 * State is the state of a lease or a session as its holder sees it. `held`: the last renewal succeeded. `at_risk`: a renewal
 * failed and is retried; the work may continue until the deadline. `lost`: it has ended or may have ended; stop the
 * work. `released`: it was released, or closed.
 */
export type State = 'held' | 'at_risk' | 'lost' | 'released';

/** AcquireOptions are options of `acquire` with what only `once` asks for. */
export interface AcquireOptions extends Options {
  /** Whether the acquire is rejected if the work is done. */
  readonly once?: true | undefined;
}

/** ResolvedOptions are options with defaults. */
export interface ResolvedOptions extends Options, Times {
  readonly ttlMs: number;
  readonly retryMs: number;
  readonly marginMs: number;
  readonly waitMs: number;
  /** The part of the options that is sent to the service. */
  readonly request: AcquireRequest;
}

/** resolveOptions adds the defaults. It throws `invalid_request` for invalid options. */
export async function resolveOptions(o: AcquireOptions): Promise<ResolvedOptions> {
  const { waitMs = 0, session } = o;
  for (const field of ['ttlMs', 'graceMs', 'marginMs'] as const) {
    if (session && o[field] !== undefined) {
      throw invalid(field, 'is that of the session; leave it out');
    }
  }
  if (!(waitMs >= 0)) {
    throw invalid('waitMs', `is ${waitMs}; use 0 or more, or Infinity`);
  }
  const times = resolveTimes({ ...o, ...session?.times });
  const taskId = o.taskId ?? (await newTask());
  const label = await taskLabel(o.taskId, taskId);
  return { ...o, ...times, waitMs, taskId, request: await requestOf({ ...o, taskId }, times.ttlMs, label) };
}

/** ResolvedSessionOptions are options of a session with defaults. */
export interface ResolvedSessionOptions extends SessionOptions, Times {
  readonly ttlMs: number;
  readonly retryMs: number;
  readonly marginMs: number;
  /** The part of the options that is sent to the service. */
  readonly request: Schemas['OpenSessionRequest'];
}

/** resolveSessionOptions adds the defaults. It throws `invalid_request` for invalid options. */
export async function resolveSessionOptions(o: SessionOptions): Promise<ResolvedSessionOptions> {
  const times = resolveTimes(o);
  const request = {
    ...omitUndefined({ grace_ms: o.graceMs, metadata: o.metadata }),
    ttl_ms: times.ttlMs,
    holder: o.holder ?? (await defaultHolder()),
  };
  return { ...o, ...times, request };
}

/** Times are those that leases and sessions have. */
interface Times {
  readonly ttlMs: number;
  readonly retryMs: number;
  readonly marginMs: number;
}

function resolveTimes(o: Pick<Options, keyof Times>): Times {
  const { ttlMs = defaultTtlMs, retryMs = defaultRetryMs } = o;
  const marginMs = o.marginMs ?? Math.min(ttlMs / 10, maxDefaultMarginMs);
  if (!(ttlMs > 0 && Number.isFinite(ttlMs))) {
    throw invalid('ttlMs', `is ${ttlMs}; use a number of milliseconds above 0`);
  }
  if (!(marginMs >= 0 && marginMs <= ttlMs / 3)) {
    throw invalid('marginMs', `is ${marginMs}; use at most a third of the TTL (${ttlMs}), so that renewals are in time`);
  }
  if (!(retryMs >= 0)) {
    throw invalid('retryMs', `is ${retryMs}; use 0 or more`);
  }
  return { ttlMs, retryMs, marginMs };
}

/** optionNames are the options by the members of the requests that they become. */
const optionNames: Readonly<Record<string, string>> = {
  ttl_ms: 'ttlMs', grace_ms: 'graceMs', wait_ms: 'waitMs', max_hold_ms: 'maxHoldMs', on_expiry: 'onExpiry', session_id: 'sessionId', task_id: 'taskId',
  once_per: 'period', time_zone: 'timeZone', closed_ms: 'atLeastMs',
};

/** members finds these members in a text; a quotation, which it finds as well, and a name of a lock have none. */
const members = new RegExp(`"(?:[^"\\\\]|\\\\.)*"|(?<![\\w.:@-])(?:${Object.keys(optionNames).join('|')})(?![\\w:@-])`, 'g');

/** inOptions returns the error of a call of the service with the names of the options, as the caller writes them. */
export function inOptions(error: unknown): unknown {
  if (!(error instanceof PaddockError)) {
    return error;
  }
  const { reason = '' } = error; // in the words of an operator
  const named = (text: string) => text.replace(members, (member) => optionNames[member] ?? member);
  const detail = reason === '' ? named(error.detail) : error.detail.split(reason).map(named).join(reason);
  const field = named(error.field ?? '');
  return detail === error.detail && field === (error.field ?? '') ? error : changed(error, { detail, ...(field !== '' && { field }) });
}

/** throwInOptions throws that error. */
export function throwInOptions(error: unknown): never {
  throw inOptions(error);
}

async function requestOf(o: AcquireOptions, ttlMs: number, label: string | undefined): Promise<AcquireRequest> {
  const { session } = o;
  return {
    ...omitUndefined({
      mode: o.mode, capacity: o.capacity, permits: o.permits, grace_ms: o.graceMs, max_hold_ms: o.maxHoldMs, on_expiry: o.onExpiry, metadata: o.metadata,
      task_id: o.taskId, once: o.once,
    }),
    ...(session ? { session_id: session.id } : { ttl_ms: ttlMs }),
    holder: o.holder ?? session?.givenHolder ?? (await defaultHolder(label)),
  };
}
