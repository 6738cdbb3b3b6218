import { responseTimeoutMs, tooSlow, type Grant } from './acquisition.js';
import { checkOptions, client, expect, sessionOptions } from './arguments.js';
import type { CallOptions, Paddock } from './client.js';
import { Deadline, mark } from './clock.js';
import { hasCode } from './error.js';
import { Heartbeat, type SessionRef } from './heartbeat.js';
import { sessionKind } from './kind.js';
import { notify } from './notify.js';
import { inOptions, resolveSessionOptions, throwInOptions, type ResolvedSessionOptions, type SessionOptions } from './options.js';
import { randomUUID } from './platform.js';
import { attemptTimeoutMs, deadlineOf, type LeaseRef } from './renewal.js';
import { Renewed, type Keeper } from './renewed.js';
import { backoff, isRetryable, sleep } from './retry.js';
import type { components } from './schema.js';
import type { LeaseState } from './state.js';

type Answer = components['schemas']['Session'];

/**
 * A Session keeps the leases that are acquired with it alive, by one renewal for all: one timer and one deadline. When it
 * is lost or closed, all of its leases are, and their signals are aborted. Pass it to `acquire` and `guard` as the option
 * `session`. In Node, it keeps the process running while a `guard` runs in it, and once its `done` or that of one
 * of its leases was read.
 */
export class Session extends Renewed {
  /** The public name. */
  readonly ref: string;
  /** The holder, as shown to people. If it was given, it is the default of the holder of its leases. */
  readonly holder: string;
  /** @internal The holder that was given. */
  readonly givenHolder: string | undefined;
  readonly #ref: SessionRef;
  readonly #heartbeat: Heartbeat;

  /** @internal Sessions come from `openSession`. */
  constructor(ref: SessionRef, answer: Answer, deadline: Deadline, options: SessionOptions) {
    const heartbeat = new Heartbeat(ref, options, deadline, answer.revoked_leases);
    super(ref, heartbeat.state, heartbeat);
    this.#ref = ref;
    this.ref = answer.session;
    this.holder = answer.holder;
    this.givenHolder = options.holder;
    this.#heartbeat = heartbeat;
    this.watch(ref.paddock.common?.hub, { tokens: new Map(), slots: new Map(), session: answer.session });
  }

  /** The secret `session_id`, with which other processes can acquire leases in the session. */
  get id(): string {
    return this.#ref.sessionId;
  }

  /** @internal */
  get times(): { ttlMs: number; marginMs: number } {
    const { ttlMs, marginMs } = this.#ref;
    return { ttlMs, marginMs };
  }

  /**
   * Closes the session and with it all of its leases. Stop their work before. If the service does not respond, it retries
   * for up to five seconds. Rejects with `session_lost` if the session ended before: the work may have overlapped with
   * another holder's. Rejects with another PaddockError if the service does not respond; the session then ends with its
   * TTL. A second call returns the same promise.
   */
  close(): Promise<void> {
    return this.end();
  }

  /** @internal How many of its leases were revoked, as of the last answer. */
  get revokedLeases(): number {
    return this.#heartbeat.revokedLeases;
  }

  /** @internal Makes a lease end with the session. */
  join(ref: LeaseRef, state: LeaseState, grant: Grant, keepsProcess: boolean): Keeper {
    return this.#heartbeat.join(ref, state, grant, keepsProcess);
  }
}

/**
 * Opens a session and renews it until it is closed or lost. While the service cannot be reached, it retries for `retryMs`.
 * Rejects with `session_id_in_use` if another holder has the `sessionId`, with `session_lost` if its session has ended, and
 * with the signal's reason if the signal is aborted. A session that remains after a failure ends with its TTL.
 */
export async function openSession(paddock: Paddock, options: SessionOptions = {}): Promise<Session> {
  expect('paddock', paddock, client('openSession'));
  checkOptions('openSession', options, sessionOptions);
  const resolved = await resolveSessionOptions(options);
  const { sessionId: chosen, onRetry, retryMs } = resolved;
  const signal = resolved.signal ?? undefined;
  const until = new Deadline(mark(), retryMs);
  let sessionId = chosen ?? await randomUUID();
  for (let failures = 0; ; failures++) {
    signal?.throwIfAborted();
    try {
      return await open(paddock, sessionId, resolved, signal);
    } catch (thrown) {
      const error = inOptions(thrown);
      const expired = chosen === undefined && hasCode(error, 'session_lost'); // before the caller got it
      if (!(expired || isRetryable(error)) || until.passed()) {
        throw error;
      }
      if (expired) {
        sessionId = await randomUUID();
      }
      notify(onRetry, error);
      await sleep(Math.min(backoff(failures, 100, 5_000, error), until.left()), signal);
    }
  }
}

/** open opens the session, or finds it, and resolves with it when it has most of its TTL left. */
async function open(paddock: Paddock, sessionId: string, options: ResolvedSessionOptions, signal: AbortSignal | undefined): Promise<Session> {
  const { ttlMs, marginMs, request } = options;
  let sent = mark();
  const within = (timeoutMs: number) => ({ timeoutMs, signal: signal ?? null });
  let answer = await paddock.openSession({ ...request, session_id: sessionId }, within(responseTimeoutMs));
  if (deadlineOf(sent, answer, marginMs).left() <= (ttlMs - marginMs) * 0.9) { // a slow response, or an earlier call has opened it
    sent = mark();
    answer = await paddock.renewSession({ session_id: sessionId, ttl_ms: ttlMs }, within(attemptTimeoutMs(ttlMs, 0)));
  }
  const deadline = deadlineOf(sent, answer, marginMs);
  if (deadline.passed()) {
    throw tooSlow(ttlMs);
  }
  const end = (call: CallOptions) => paddock.closeSession({ session_id: sessionId }, call).catch(throwInOptions);
  return new Session({ kind: sessionKind, paddock, sessionId: answer.session_id, ttlMs: answer.ttl_ms, marginMs, end }, answer, deadline, options);
}
