import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { acquire, createPaddock, PaddockError, type Lease, type State } from '../dist/index.js';
import { Proxy } from './proxy.js';
import { aborted, direct, kinds, lockEvents, unique, until, waiters } from './service.js';

const limit = { timeout: 90_000 };

describe('a lease in the background', { concurrency: true }, () => {
  test('is renewed far beyond its TTL', limit, async () => {
    const paddock = direct();
    const name = unique('kept');
    const states: State[] = [];
    const lease = await acquire(paddock, name, { ttlMs: 4_000, onState: (state) => states.push(state) });
    await until('three TTLs have passed on the database clock', async () => {
      const { as_of, leases } = await paddock.lock(name);
      assert.equal(leases[0]?.fencing_token, lease.token);
      return Date.parse(as_of) - Date.parse(leases[0]!.acquired_at) > 12_000;
    });
    assert.ok(lease.held());
    assert.equal(lease.signal.aborted, false);
    assert.ok(!states.includes('lost'));
    await lease.release();
    assert.deepEqual(await kinds(paddock, name), ['granted', 'released']);
  });

  test('reports its acquire, a refusal, its renewals and the last one', limit, async () => {
    const paddock = direct();
    const name = unique('reported');
    const acquired: [boolean, string | undefined][] = [];
    const renewed: [number, string | undefined][] = [];
    const options = {
      ttlMs: 3_000,
      onAcquired: (tookMs: number, error?: unknown) => acquired.push([tookMs >= 0, (error as PaddockError | undefined)?.code]),
      onRenewed: (left: number, error?: PaddockError) => renewed.push([left, error?.code]),
    };
    const lease = await acquire(paddock, name, options);
    await assert.rejects(acquire(paddock, name, options), { code: 'lock_held' });
    assert.deepEqual(acquired, [[true, undefined], [true, 'lock_held']]);
    await until('it is renewed', async () => renewed.length > 0);
    assert.ok(renewed[0]![0] > 0 && renewed[0]![0] < 1 && renewed[0]![1] === undefined, `renewed ${renewed[0]}`);
    await paddock.revoke(name, { fencing_token: lease.token, reason: 'test' });
    await lease.done;
    assert.equal(renewed.at(-1)![1], 'lease_lost');
  });

  test('is lost at the next renewal after a revocation', limit, async () => {
    const paddock = direct();
    const name = unique('revoked');
    const states: [State, string | undefined][] = [];
    const lease = await acquire(paddock, name, { ttlMs: 6_000, onState: (state, error) => states.push([state, error?.ended]) });
    await paddock.revoke(name, { fencing_token: lease.token, reason: 'db-3 is being replaced' });
    await lease.done;
    assert.ok(lease.remainingMs > 0, 'it is lost before its deadline');
    assert.equal(lease.signal.reason, lease.err);
    assert.equal(lease.err?.code, 'lease_lost');
    assert.equal(lease.err?.reason, 'db-3 is being replaced');
    assert.equal(lease.held(), false);
    assert.throws(() => lease.check(), { code: 'lease_lost', ended: 'revoked' });
    await assert.rejects(lease.release(), { code: 'lease_lost', ended: 'revoked' });
    assert.equal(lease.state, 'lost');
    const losses = states.filter(([state]) => state === 'lost'); // on a busy machine a renewal may fail before it
    assert.deepEqual(losses, [['lost', 'revoked']]);
  });

  test('is lost when the release reports an earlier loss', limit, async () => {
    const paddock = direct();
    const name = unique('late-report');
    const lease = await acquire(paddock, name, { ttlMs: 60_000 });
    await paddock.revoke(name, { fencing_token: lease.token, reason: 'enough' });
    await assert.rejects(lease.release(), { code: 'lease_lost', ended: 'revoked' });
    assert.equal(lease.state, 'lost');
    assert.equal(lease.err?.ended, 'revoked');
  });

  test('ends with max_hold_ms even if it is renewed', limit, async () => {
    const lease = await acquire(direct(), unique('max-hold'), { ttlMs: 1_000, maxHoldMs: 2_000 });
    await lease.done;
    assert.equal(lease.err?.code, 'lease_lost');
  });
});

describe('an outage', { concurrency: true }, () => {
  test('shorter than the deadline does not stop the work', limit, async (t) => {
    const proxy = await Proxy.open();
    t.after(() => proxy.close());
    const name = unique('outage');
    const states: State[] = [];
    const lease = await acquire(createPaddock({ baseUrl: proxy.url }), name, { ttlMs: 6_000, onState: (state) => states.push(state) });
    for (const mode of ['swallow', 'refuse'] as const) {
      states.length = 0;
      proxy.mode = mode;
      await until('a renewal has failed', () => states.includes('at_risk'));
      assert.ok(lease.held(), 'at risk is held');
      proxy.mode = 'pass';
      await until('a renewal has succeeded', () => states.includes('held'));
    }
    assert.equal(lease.signal.aborted, false);
    await lease.release();
    assert.deepEqual(await kinds(direct(), name), ['granted', 'released']);
  });

  test('longer than the deadline stops the work before the next grant, in each of 20 runs', limit, async (t) => {
    const proxy = await Proxy.open();
    t.after(() => proxy.close());
    const names = Array.from({ length: 20 }, (_, i) => unique(`silence-${i}`));
    const paddock = createPaddock({ baseUrl: proxy.url });
    const leases = await Promise.all(names.map((name) => acquire(paddock, name, { ttlMs: 8_000, marginMs: 1_600 })));
    const results = leases.map((lease) => lostInTime(lease));
    await Promise.all(names.map((name) => waiters(direct(), name, 1)));
    proxy.mode = 'swallow';
    const slack = await Promise.all(results);
    t.diagnostic(`aborted ${Math.min(...slack)} ms or more before the next grant`);
  });

  test('does not prevent the release of a lost lease after the outage', limit, async (t) => {
    const proxy = await Proxy.open();
    t.after(() => proxy.close());
    const name = unique('back');
    const lease = await acquire(createPaddock({ baseUrl: proxy.url }), name, { ttlMs: 6_000, marginMs: 2_000, graceMs: 60_000 });
    proxy.mode = 'refuse';
    await until('a renewal has failed', () => lease.state === 'at_risk');
    proxy.mode = 'swallow';
    await lease.done;
    assert.ok(lease.err?.cause instanceof PaddockError, 'the loss has the error of the last renewal as its cause');
    assert.ok(lease.err.detail.includes(lease.err.cause.detail), lease.err.detail);
    proxy.mode = 'pass';
    await assert.rejects(lease.release(), { code: 'lease_lost' });
    assert.equal((await direct().lock(name)).state, 'free');
  });
});

/**
 * lostInTime waits for the lease's lock and checks that the lease is lost before the service grants the lock again. It
 * resolves with the milliseconds between the two.
 */
async function lostInTime(lease: Lease): Promise<number> {
  const { name, token } = lease;
  const stopped = aborted(lease.signal);
  const other = await acquire(direct(), name, { waitMs: Infinity });
  assert.ok(lease.signal.aborted, 'the lock was granted again before the signal was aborted');
  const granted = (await lockEvents(direct(), name)).filter((event) => event.kind === 'granted');
  assert.equal(granted.length, 2);
  const slack = Date.parse(granted[1]!.at) - (await stopped);
  assert.ok(slack > 0, `aborted ${-slack} ms after the next grant`);
  assert.equal(lease.err?.code, 'lease_lost');
  assert.ok(other.token > token);
  const write = { lock: name, fencing_token: token, value: 1 };
  await assert.rejects(direct().writeFenced(name, write), { code: 'stale_token', newestToken: other.token });
  await other.release();
  return slack;
}
