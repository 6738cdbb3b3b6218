import assert from 'node:assert/strict';
import { test } from 'node:test';

import { acquire, createPaddock, openSession, PaddockError, type Options } from '../dist/index.js';
import { Proxy } from './proxy.js';
import { direct, kinds, serviceUrl, unique, until } from './service.js';

const limit = { timeout: 60_000 };

test('a released lock is granted again under a greater token', limit, async () => {
  const paddock = direct();
  const name = unique('again');
  const first = await acquire(paddock, name, { holder: 'worker-1', metadata: { host: 'db-3' } });
  assert.equal((await paddock.lock(name)).leases[0]?.holder, 'worker-1');
  assert.equal(first.state, 'held');
  assert.ok(first.held() && first.remainingMs > 0 && first.deadline.getTime() > Date.now());
  await first.release();
  await first.release();
  assert.equal(first.state, 'released');
  assert.equal(first.held(), false);
  await first.done;
  assert.equal(first.err?.code, 'lease_released');
  assert.equal(first.signal.reason, first.err);
  const second = await acquire(paddock, name);
  assert.ok(second.token > first.token);
  await second.release();
  assert.deepEqual(await kinds(paddock, name), ['granted', 'released', 'granted', 'released']);
});

test('acquiring a held lock without waiting fails and names the holder', limit, async () => {
  const paddock = direct();
  const name = unique('held');
  const lease = await acquire(paddock, name, { holder: 'worker-1' });
  await assert.rejects(acquire(paddock, name), (error: PaddockError) => {
    assert.equal(error.code, 'lock_held');
    assert.equal(error.holder, 'worker-1');
    assert.equal(error.status, 409);
    assert.ok(error.retryAfterMs! > 0 && error.newestToken === lease.token);
    return true;
  });
  await lease.release();
});

test('an acquire is retried after a lost response and gets one lease', limit, async (t) => {
  const proxy = await Proxy.open();
  t.after(() => proxy.close());
  const name = unique('lost-answer');
  const retries: string[] = [];
  proxy.cuts = 2;
  const lease = await acquire(createPaddock({ baseUrl: proxy.url }), name, { onRetry: (e) => retries.push(e.code) });
  assert.deepEqual(retries, ['unknown_outcome', 'unknown_outcome']);
  assert.equal((await direct().lock(name)).fencing_token, lease.token);
  await lease.release();
  assert.deepEqual(await kinds(direct(), name), ['granted', 'released']);
});

test('a release is retried after a lost response', limit, async (t) => {
  const proxy = await Proxy.open();
  t.after(() => proxy.close());
  const name = unique('lost-release');
  const lease = await acquire(createPaddock({ baseUrl: proxy.url }), name);
  proxy.cuts = 1;
  await lease.release();
  assert.deepEqual(await kinds(direct(), name), ['granted', 'released']);
});

test('a name with a colon is sent percent-encoded and is the same lock', limit, async () => {
  const urls: string[] = [];
  const paddock = createPaddock({
    baseUrl: `${serviceUrl}/`,
    fetch: (request) => {
      urls.push((request as Request).url);
      return fetch(request);
    },
  });
  const name = unique('a:b@c');
  const lease = await acquire(paddock, name);
  assert.equal(urls[0], `${serviceUrl}/v1/locks/${name.replaceAll(':', '%3A').replace('@', '%40')}/acquire`);
  assert.equal((await direct().lock(name)).fencing_token, lease.token);
  await lease.release();
});

test('readers share a token and permits have slots', limit, async () => {
  const paddock = direct();
  const book = unique('book');
  const readers = await Promise.all([1, 2].map(() => acquire(paddock, book, { mode: 'shared' })));
  assert.equal(readers[0]!.token, readers[1]!.token);
  const pool = unique('pool');
  const permit: Options = { mode: 'permit', capacity: 2 };
  const permits = [await acquire(paddock, pool, permit), await acquire(paddock, pool, permit)];
  assert.deepEqual(permits.map((lease) => lease.slot), [1, 2]);
  await assert.rejects(acquire(paddock, pool, permit), { code: 'lock_held' });
  await assert.rejects(acquire(paddock, pool, { mode: 'permit', capacity: 3 }), { code: 'capacity_mismatch', capacity: 2 });
  await Promise.all([...readers, ...permits].map((lease) => lease.release()));
});

test('several permits are one lease with a slot each', limit, async () => {
  const paddock = direct();
  const gpus = unique('gpus');
  const two = await acquire(paddock, gpus, { mode: 'permit', capacity: 3, permits: 2 });
  assert.deepEqual([two.slot, [...two.slots]], [1, [[gpus, [1, 2]]]]);
  await assert.rejects(acquire(paddock, gpus, { mode: 'permit', capacity: 3, permits: 2 }), { code: 'lock_held' });
  const set = [{ name: gpus, mode: 'permit' as const, capacity: 3 }, unique('gpus')];
  const one = await acquire(paddock, set, { mode: 'permit', capacity: 4, permits: 4 });
  assert.deepEqual([...one.slots.values()].sort(), [[1, 2, 3, 4], [3]]);
  await assert.rejects(acquire(paddock, gpus, { mode: 'permit', capacity: 3, permits: 4 }), { code: 'invalid_request', field: 'permits' });
  await Promise.all([two, one].map((lease) => lease.release()));
});

test('invalid options are rejected before a request is sent', limit, async () => {
  const paddock = createPaddock({ baseUrl: 'http://127.0.0.1:1', fetch: () => assert.fail('a request was sent') });
  const cases: [name: string, options: Options, field: string][] = [
    ['..', {}, 'name'],
    ['', {}, 'name'],
    ['a/b', {}, 'name'],
    ['a'.repeat(201), {}, 'name'],
    ['jobs', { ttlMs: 0 }, 'ttlMs'],
    ['jobs', { ttlMs: Infinity }, 'ttlMs'],
    ['jobs', { ttlMs: 900, marginMs: 301 }, 'marginMs'],
    ['jobs', { marginMs: -1 }, 'marginMs'],
    ['jobs', { waitMs: -1 }, 'waitMs'],
    ['jobs', { waitMs: NaN }, 'waitMs'],
    ['jobs', { retryMs: -1 }, 'retryMs'],
  ];
  for (const [name, options, field] of cases) {
    await assert.rejects(acquire(paddock, name, options), { code: 'invalid_request', field });
  }
});

test('a request that the service rejects is not retried', limit, async () => {
  const refused = acquire(direct(), unique('refused'), { ttlMs: 1, waitMs: Infinity, onRetry: () => assert.fail('it was retried') });
  await assert.rejects(refused, { code: 'invalid_request', field: 'ttlMs', message: /^invalid_request: ttlMs is 1;/ });
});

test('the texts of the service name the options as the caller writes them', limit, async () => {
  const name = unique('named');
  const lease = await acquire(direct(), name);
  await assert.rejects(acquire(direct(), name), { code: 'lock_held', detail: / or wait with waitMs \(not in a batch\);/ });
  await assert.rejects(acquire(direct(), [name, unique('named')]), { code: 'lock_held', detail: /or wait with waitMs\.$/ });
  await assert.rejects(direct().acquire(name, { holder: 'w' }), { code: 'lock_held', detail: /or wait with wait_ms/ });
  const reason = 'ttl_ms is 9';
  await direct().revoke(name, { fencing_token: lease.token, reason });
  await until('it is lost', () => lease.err !== undefined);
  assert.match(lease.err!.detail, /: ttl_ms is 9\. Stop/);
});

test('every text of the service is in options, without the names and words of others', async () => {
  const texts = {
    'The lease has reached its max_hold_ms and cannot be renewed.': 'The lease has reached its maxHoldMs and cannot be renewed.',
    'calls without a task_id are of one task.': 'calls without a taskId are of one task.',
    '"say \\"wait_ms\\" or ttl_ms" holds jobs:ttl_ms, jobs.ttl_ms and ttl_ms-1. Or wait with wait_ms.': '"say \\"wait_ms\\" or ttl_ms" holds jobs:ttl_ms, jobs.ttl_ms and ttl_ms-1. Or wait with waitMs.',
  };
  for (const [detail, expected] of Object.entries(texts)) {
    const problem = () => new Response(JSON.stringify({ code: 'lock_held', detail }), { status: 409, headers: { 'Content-Type': 'application/problem+json', 'Paddock-Api': 'v1' } });
    const paddock = createPaddock({ baseUrl: 'http://paddock.test', fetch: async () => problem() });
    await assert.rejects(acquire(paddock, 'jobs'), { detail: expected });
    await assert.rejects(openSession(paddock), { detail: expected });
    await assert.rejects(paddock.acquire('jobs', { holder: 'w' }), { detail });
  }
});

test('an unreachable service is retried for retryMs', limit, async (t) => {
  const proxy = await Proxy.open();
  const { url } = proxy;
  await proxy.close();
  let retries = 0;
  const paddock = createPaddock({ baseUrl: url });
  const options: Options = { retryMs: 1_000, onRetry: () => retries++ };
  await assert.rejects(acquire(paddock, unique('away'), options), { code: 'unavailable' });
  assert.ok(retries > 0);
  t.diagnostic(`${retries} retries`);
});
