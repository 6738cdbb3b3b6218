import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, mock, test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';

import { acquire, createPaddock, guard, openSession, PaddockError, type Lease, type Options, type Paddock, type Session, type State } from '../dist/index.js';
import { Proxy } from './proxy.js';
import { aborted, direct, kinds, lockEvents, serviceUrl, unique, until, waiters } from './service.js';

const limit = { timeout: 90_000 };

/** hubPath is the path of the calls by which the client hears of revocations, which counted leaves out. */
const hubPath = '/v1/events/wait';

/** counted returns a client and the paths of the requests that it sent. */
function counted(): { paddock: Paddock; paths: string[] } {
  const paths: string[] = [];
  const send = (request: RequestInfo | URL) => {
    const { pathname } = new URL((request as Request).url);
    if (pathname !== hubPath) {
      paths.push(pathname);
    }
    return fetch(request);
  };
  return { paddock: createPaddock({ baseUrl: serviceUrl, fetch: send }), paths };
}

/** proxied returns a proxy that is closed after the test, and a client behind it. */
async function proxied(t: TestContext): Promise<{ proxy: Proxy; paddock: Paddock }> {
  const proxy = await Proxy.open();
  t.after(() => proxy.close());
  return { proxy, paddock: createPaddock({ baseUrl: proxy.url }) };
}

/** leasesIn acquires leases of this number of locks in the session. */
function leasesIn(session: Session, count: number, options: Options = {}, paddock = direct()): Promise<Lease[]> {
  return Promise.all(Array.from({ length: count }, (_, i) => acquire(paddock, unique(`in-session-${i}`), { ...options, session })));
}

describe('a session', { concurrency: true }, () => {
  test('keeps many leases alive with one renewal for all', limit, async () => {
    const { paddock, paths } = counted();
    const renewed: (string | undefined)[] = [];
    const session = await openSession(paddock, { ttlMs: 9_000, onRenewed: (_, error) => renewed.push(error?.code) });
    const leases = await leasesIn(session, 30, {}, paddock);
    paths.length = renewed.length = 0;
    await sleep(13_500);
    assert.ok(renewed.length >= 3 && renewed.length <= 10, `${renewed.length} renewals in 1.5 TTLs`);
    assert.deepEqual(new Set(renewed), new Set([undefined]));
    assert.deepEqual(new Set(paths), new Set(['/v1/sessions/renew']));
    for (const lease of leases) {
      lease.check();
      assert.equal(lease.state, 'held');
      assert.ok(Math.abs(lease.remainingMs - session.remainingMs) < 50);
    }
    assert.equal(new Set(leases.map((lease) => lease.token)).size, 30);
    const { locks, leases: count } = await paddock.session(session.ref);
    assert.deepEqual(locks!.map((lock) => lock.name), leases.map((lease) => lease.name).sort());
    assert.equal(count, 30);
    await session.close();
  });

  test('is not changed by the release of one lease', limit, async () => {
    const session = await openSession(direct(), { ttlMs: 9_000 });
    const [released, kept] = await leasesIn(session, 2) as [Lease, Lease];
    await released.release();
    assert.equal(released.err?.code, 'lease_released');
    await sleep(10_000);
    assert.ok(kept.held() && session.held());
    assert.equal((await direct().session(session.ref)).leases, 1);
    await session.close();
  });

  test('frees all locks when it is closed', limit, async () => {
    const states: [State, string | undefined][] = [];
    const session = await openSession(direct(), { onState: (state, error) => states.push([state, error?.code]) });
    const leases = await leasesIn(session, 5, { onState: (state, error) => states.push([state, error?.code]) });
    const closed = session.close();
    for (const lease of leases) {
      assert.ok(lease.signal.aborted, 'its signal is aborted at once');
      assert.equal(lease.err?.code, 'lease_lost');
      assert.equal((lease.err?.cause as PaddockError).code, 'session_closed');
    }
    await closed;
    await session.close();
    for (const lease of leases) {
      assert.equal((await direct().lock(lease.name)).state, 'free');
      assert.deepEqual(await kinds(direct(), lease.name), ['granted', 'released']);
    }
    assert.equal((await direct().session(session.ref)).ended, 'released');
    assert.throws(() => session.check(), { code: 'session_closed' });
    assert.deepEqual(states, [...leases.map(() => ['lost', 'lease_lost']), ['released', undefined]]);
    await assert.rejects(leases[0]!.release(), { code: 'lease_lost' });
    await assert.rejects(acquire(direct(), leases[0]!.name, { session }), { code: 'session_closed' });
  });

  test('is closed at the end of an await using block', limit, async () => {
    const name = unique('block');
    {
      await using session = await openSession(direct());
      await acquire(direct(), name, { session });
    }
    assert.deepEqual(await kinds(direct(), name), ['granted', 'released']);
  });

  test('keeps the place of a waiter, whose lease has its holder', limit, async () => {
    const name = unique('waits');
    const other = await acquire(direct(), name);
    const session = await openSession(direct(), { ttlMs: 9_000, holder: 'worker-1' });
    const waiting = acquire(direct(), name, { session, waitMs: Infinity });
    await waiters(direct(), name, 1);
    await sleep(10_000); // longer than the TTL
    await other.release();
    const lease = await waiting;
    lease.check();
    assert.equal(lease.holder, 'worker-1');
    assert.equal((await direct().lock(name)).leases[0]!.session, session.ref);
    await session.close();
  });

  test('is lost with all leases at the next renewal after a revocation', limit, async () => {
    const states: [State, string | undefined][] = [];
    const session = await openSession(direct(), { ttlMs: 9_000 });
    const leases = await leasesIn(session, 20, { onState: (state, error) => states.push([state, error?.reason]) });
    const stopped = new Set<string>();
    session.signal.addEventListener('abort', () => leases.forEach((lease) => lease.signal.aborted && stopped.add(lease.name)));
    await direct().revokeSession(session.ref, { reason: 'db-3 is being replaced' });
    await session.done;
    assert.ok(session.remainingMs > 0, 'it is lost before its deadline');
    assert.equal(stopped.size, 20, 'a lease ended after the session');
    assert.throws(() => session.check(), { code: 'session_lost', ended: 'revoked', reason: 'db-3 is being replaced' });
    for (const lease of leases) {
      assert.throws(() => lease.check(), { code: 'lease_lost', ended: 'revoked', reason: 'db-3 is being replaced', cause: session.err });
    }
    const losses = states.filter(([state]) => state === 'lost'); // on a busy machine a renewal may fail before it
    assert.deepEqual(losses, leases.map(() => ['lost', 'db-3 is being replaced']));
    await assert.rejects(leases[0]!.release(), { code: 'lease_lost' });
    await assert.rejects(session.close(), { code: 'session_lost' });
  });

  test('finds the lease that was revoked alone', limit, async () => {
    const session = await openSession(direct(), { ttlMs: 9_000 });
    const [revoked, ...kept] = await leasesIn(session, 5) as [Lease, ...Lease[]];
    await direct().revoke(revoked.name, { fencing_token: revoked.token, reason: 'stuck' });
    await revoked.done;
    assert.throws(() => revoked.check(), { code: 'lease_lost', status: 409, reason: 'stuck' });
    assert.ok(session.held() && kept.every((lease) => lease.held()));
    await session.close();
  });

  test('finds the lease that was revoked beside those of another process, also before its answer', limit, async () => {
    const paddock = direct();
    let heartbeats = 0;
    const session = await openSession(paddock, { ttlMs: 9_000, onRenewed: () => heartbeats++ });
    const late = { ...paddock, acquire: async (...call: Parameters<Paddock['acquire']>) => {
      const lease = await paddock.acquire(...call);
      await paddock.revoke(lease.name, { fencing_token: lease.fencing_token, reason: 'early' });
      const told = heartbeats + 2;
      await until('a heartbeat has told of it', () => heartbeats >= told);
      return lease;
    } };
    const [early, revoked, kept] = [await acquire(late, unique('early'), { session }), ...await leasesIn(session, 2) as [Lease, Lease]];
    for (let i = 0; i < 5; i++) {
      await paddock.acquire(unique('of-another'), { holder: 'w', session_id: session.id });
    }
    await paddock.revoke(revoked.name, { fencing_token: revoked.token, reason: 'stuck' });
    await Promise.all([early.done, revoked.done]);
    assert.deepEqual([early.err?.reason, revoked.err?.reason], ['early', 'stuck']);
    assert.ok(session.held() && kept.held());
    await session.close();
  });

  test('searches for lost leases once at a time', limit, async () => {
    const paddock = direct();
    let heartbeats = 0;
    let batches = 0;
    let goOn = () => {};
    const held = new Promise<void>((resolve) => (goOn = resolve));
    const slow = { ...paddock, batch: async (...call: Parameters<Paddock['batch']>) => {
      batches++;
      const answer = await paddock.batch(...call);
      await held;
      return answer;
    } };
    const session = await openSession(slow, { ttlMs: 6_000, onRenewed: () => heartbeats++ });
    const [kept, first, second] = await leasesIn(session, 3, {}, slow) as [Lease, Lease, Lease];
    await paddock.revoke(first.name, { fencing_token: first.token, reason: 'stuck' });
    await until('a search has begun', () => batches > 0);
    await paddock.revoke(second.name, { fencing_token: second.token, reason: 'stuck' });
    const told = heartbeats + 2;
    await until('it is renewed meanwhile', () => heartbeats > told);
    assert.equal(batches, 1, 'searches overlap');
    goOn();
    await Promise.all([first.done, second.done]);
    assert.ok(kept.held());
    await session.close();
    assert.equal(batches, 2, 'one search after each revocation');
  });

  test('leaves a lease its max_hold_ms', limit, async () => {
    const session = await openSession(direct(), { ttlMs: 30_000 });
    const [lease] = await leasesIn(session, 1, { maxHoldMs: 9_000 }) as [Lease];
    assert.ok(lease.remainingMs > 0 && lease.remainingMs <= 9_000 - 3_000, `${lease.remainingMs}`);
    await lease.done;
    assert.equal((await direct().lock(lease.name)).state, 'held', 'it was lost after its end');
    assert.match(lease.err!.detail, /maxHoldMs/);
    assert.ok(session.held());
    await session.close();
  });

  test('ends the work of a guard in it', limit, async () => {
    const session = await openSession(direct(), { ttlMs: 9_000 });
    assert.equal(await guard(direct(), unique('done'), { session }, () => 'done'), 'done');
    const work = async (lease: Lease) => {
      await direct().revokeSession(session.ref, { reason: 'enough' });
      await aborted(lease.signal);
    };
    await assert.rejects(guard(direct(), unique('stopped'), { session }, work), { code: 'lease_lost', reason: 'enough' });
  });

  test('hides its session_id', limit, async () => {
    const session = await openSession(direct());
    assert.doesNotMatch(inspect(session, { depth: 9, showHidden: true }), new RegExp(session.id));
    await session.close();
  });
});

describe('an outage of a session', { concurrency: true }, () => {
  test('shorter than the deadline does not stop the work', limit, async (t) => {
    for (const mode of ['swallow', 'refuse'] as const) {
      const { proxy, paddock } = await proxied(t);
      const states: string[] = [];
      const session = await openSession(paddock, { ttlMs: 6_000, onState: (state) => states.push(`session ${state}`) });
      const [lease] = await leasesIn(session, 1, { onState: (state) => states.push(`lease ${state}`) }, paddock) as [Lease];
      proxy.mode = mode;
      await until('the lease is at risk', () => lease.state === 'at_risk');
      assert.ok(lease.held(), 'at risk is held');
      const joined = await acquire(direct(), unique('joined'), { session });
      assert.equal(joined.state, 'at_risk');
      proxy.mode = 'pass';
      await until('a renewal has succeeded', () => lease.state === 'held');
      assert.equal(joined.state, 'held');
      assert.equal(lease.signal.aborted, false);
      await lease.release();
      await session.close();
      assert.deepEqual(states, ['lease at_risk', 'session at_risk', 'lease held', 'session held', 'lease released', 'session released']);
      assert.deepEqual(await kinds(direct(), lease.name), ['granted', 'released']);
    }
  });

  test('longer than the deadline stops the work of all leases before the next grants', limit, async (t) => {
    const { proxy, paddock } = await proxied(t);
    const session = await openSession(paddock, { ttlMs: 8_000, marginMs: 1_600 });
    const leases = await leasesIn(session, 20, {}, paddock);
    const results = leases.map(async (lease) => {
      const stopped = aborted(lease.signal);
      const other = await acquire(direct(), lease.name, { waitMs: Infinity });
      assert.ok(lease.signal.aborted, 'the lock was granted again before the signal was aborted');
      const [, granted] = (await lockEvents(direct(), lease.name)).filter((event) => event.kind === 'granted');
      const write = { lock: lease.name, fencing_token: lease.token, value: 1 };
      await assert.rejects(direct().writeFenced(lease.name, write), { code: 'stale_token', newestToken: other.token });
      await other.release();
      return Date.parse(granted!.at) - (await stopped);
    });
    await Promise.all(leases.map(({ name }) => waiters(direct(), name, 1)));
    proxy.mode = 'swallow';
    const slack = Math.min(...await Promise.all(results));
    assert.ok(slack > 0, `aborted ${-slack} ms after the next grant`);
    assert.equal(session.err?.code, 'session_lost');
    assert.ok(session.err?.cause instanceof PaddockError, 'the loss has the error of the last renewal as its cause');
    assert.ok(leases.every((lease) => lease.err?.code === 'lease_lost' && lease.err.cause === session.err));
    proxy.mode = 'refuse';
    await assert.rejects(acquire(paddock, unique('lost'), { session }), { code: 'session_lost' });
  });

  test('is retried when it is opened, and finds the same session after a lost response', limit, async (t) => {
    const { proxy, paddock } = await proxied(t);
    const holder = unique('worker');
    const retried: string[] = [];
    proxy.cuts = 1;
    const session = await openSession(paddock, { holder, onRetry: (error) => retried.push(error.code) });
    assert.deepEqual(retried, ['unknown_outcome']);
    assert.deepEqual((await direct().sessions({ holder })).sessions.map((s) => s.session), [session.ref]);
    proxy.cuts = 1;
    await session.close();
    assert.deepEqual((await direct().sessions({ holder })).sessions, []);
    proxy.mode = 'refuse';
    await assert.rejects(openSession(paddock, { retryMs: 300 }), (error: PaddockError) => ['unavailable', 'unknown_outcome'].includes(error.code));
    const enough = new Error('enough');
    await assert.rejects(openSession(paddock, { signal: AbortSignal.abort(enough) }), enough);
  });
});

describe('an acquire in a session', { concurrency: true }, () => {
  test('that has ended rejects with session_lost', limit, async () => {
    const session = await openSession(direct());
    await direct().revokeSession(session.ref, { reason: 'stuck' });
    const name = unique('ended');
    await assert.rejects(acquire(direct(), name, { session }), { code: 'session_lost', reason: 'stuck' });
    await assert.rejects(direct().acquire(name, { holder: 'w', session_id: randomUUID() }), { code: 'session_lost', status: 409 });
    assert.deepEqual(await kinds(direct(), name), []);
    await assert.rejects(session.close(), { code: 'session_lost' });
  });

  test('that is lost meanwhile leaves no lease', limit, async () => {
    const paddock = direct();
    const session = await openSession(paddock, { ttlMs: 600_000 });
    const name = unique('meanwhile');
    const late = { ...paddock, acquire: async (...call: Parameters<Paddock['acquire']>) => {
      const lease = await paddock.acquire(...call);
      const now = mock.method(Date, 'now', () => performance.timeOrigin + performance.now() + 600_000); // a suspension
      session.held();
      now.mock.restore();
      return lease;
    } };
    await assert.rejects(acquire(late, name, { session }), { code: 'session_lost' });
    assert.deepEqual(await kinds(paddock, name), ['granted', 'released']);
    await assert.rejects(session.close(), { code: 'session_lost' });
  });

  test('with times of its own is rejected', limit, async () => {
    const session = await openSession(direct());
    const name = unique('times');
    for (const field of ['ttlMs', 'graceMs', 'marginMs'] as const) {
      await assert.rejects(acquire(direct(), name, { session, [field]: 1_000 }), { code: 'invalid_request', field });
    }
    await assert.rejects(direct().acquire(name, { holder: 'w', session_id: session.id, ttl_ms: 1_000 }), { code: 'invalid_request', field: 'ttl_ms' });
    await session.close();
  });
});

test('a suspension longer than the TTL loses the session and its leases, with or without a check', limit, async () => {
  const [checked, unchecked] = [await openSession(direct(), { ttlMs: 600_000 }), await openSession(direct(), { ttlMs: 600_000 })];
  const leases = [...await leasesIn(checked, 2), ...await leasesIn(unchecked, 2)];
  const now = mock.method(Date, 'now', () => performance.timeOrigin + performance.now() + 600_000);
  try {
    assert.equal(leases[0]!.held(), false);
    assert.ok(checked.signal.aborted && leases[1]!.signal.aborted);
    await until('the other leases are lost', () => leases[2]!.signal.aborted && leases[3]!.signal.aborted);
  } finally {
    now.mock.restore();
  }
  await Promise.allSettled([checked.close(), unchecked.close()]);
});

test('a session is found again by its session_id and holder', limit, async () => {
  const sessionId = randomUUID();
  const first = await openSession(direct(), { sessionId: sessionId.toUpperCase(), holder: 'worker-1', ttlMs: 60_000 });
  const again = await openSession(direct(), { sessionId, holder: 'worker-1', ttlMs: 90_000 });
  assert.deepEqual([first.id, again.ref], [sessionId, first.ref]);
  assert.ok(again.remainingMs > 60_000, 'the session has the old TTL');
  await assert.rejects(openSession(direct(), { sessionId, holder: 'worker-2' }), { code: 'session_id_in_use' });
  await first.close();
  await assert.rejects(openSession(direct(), { sessionId, holder: 'worker-1' }), { code: 'session_lost' });
  for (const options of [{ ttlMs: 0 }, { ttlMs: 3_000, marginMs: 2_000 }, { retryMs: -1 }]) {
    await assert.rejects(openSession(direct(), options), { code: 'invalid_request' });
  }
});

test('the calls of sessions', limit, async () => {
  const paddock = direct();
  const [name, holder, sessionId] = [unique('call'), unique('worker'), randomUUID()];
  const opened = await paddock.openSession({ session_id: sessionId, holder, ttl_ms: 60_000, grace_ms: 1_000, metadata: { host: 'db-3' } });
  assert.deepEqual([opened.ttl_ms, opened.revoked_leases, opened.metadata], [60_000, 0, { host: 'db-3' }]);
  assert.equal((await paddock.openSession({ session_id: sessionId, holder })).session, opened.session);
  const lease = await paddock.acquire(name, { holder, session_id: sessionId });
  assert.deepEqual([lease.session, lease.ttl_ms], [opened.session, 60_000]);
  const renewed = await paddock.renewSession({ session_id: sessionId, ttl_ms: 120_000 });
  assert.deepEqual([renewed.ttl_ms, renewed.revoked_leases], [120_000, 0]);
  assert.equal((await paddock.session(opened.session)).locks![0]!.fencing_token, lease.fencing_token);
  assert.deepEqual((await paddock.sessions({ holder })).sessions.map((s) => s.session), [opened.session]);
  await paddock.closeSession({ session_id: sessionId });
  await paddock.closeSession({ session_id: sessionId });
  assert.equal((await paddock.lock(name)).state, 'free');
  await assert.rejects(paddock.renewSession({ session_id: sessionId }), { code: 'session_lost', ended: 'released' });
  await assert.rejects(paddock.revokeSession(opened.session, { reason: 'late' }), { code: 'session_lost' });
  await assert.rejects(paddock.session('0123456789abcdef'), { code: 'not_found' });
  await assert.rejects(paddock.session('..'), { code: 'invalid_request', field: 'session' });
  const other = createPaddock({ baseUrl: 'http://paddock.test', fetch: () => Promise.resolve(Response.json({ ...opened, session_id: randomUUID() }, { headers: { 'Paddock-Api': 'v1' } })) });
  await assert.rejects(other.renewSession({ session_id: sessionId }), { code: 'unknown_outcome' });
});
