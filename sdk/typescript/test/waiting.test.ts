import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { acquire, createPaddock, type Lease } from '../dist/index.js';
import { direct, kinds, serviceUrl, lockEvents, unique, until, waiters } from './service.js';

const limit = { timeout: 90_000 };

describe('a waiter', { concurrency: true }, () => {
  test('is served in order of arrival', limit, async () => {
    const paddock = direct();
    const name = unique('line');
    const served: string[] = [];
    const serve = (lease: Lease) => {
      served.push(lease.holder);
      return lease.release();
    };
    const first = await acquire(paddock, name);
    const others: Promise<void>[] = [];
    for (const holder of ['anna', 'berta', 'cara']) {
      others.push(acquire(paddock, name, { holder, waitMs: Infinity }).then(serve));
      await waiters(paddock, name, others.length);
    }
    await first.release();
    await Promise.all(others);
    assert.deepEqual(served, ['anna', 'berta', 'cara']);
  });

  test('gets a lease with its full TTL after a long wait', limit, async () => {
    const paddock = direct();
    const name = unique('fresh');
    const first = await acquire(paddock, name);
    const next = acquire(paddock, name, { ttlMs: 3_000, waitMs: 60_000 });
    await until('it has waited longer than its TTL', async () => {
      const { waiters: [waiter] } = await paddock.queue(name);
      return waiter !== undefined && waiter.waited_ms > 3_500;
    });
    await first.release();
    const lease = await next;
    assert.ok(lease.remainingMs > 1_000, `${lease.remainingMs} ms are left`);
    await lease.release();
  });

  for (const [what, locksOf] of Object.entries({ 'one lock': (name: string) => name, 'a set': (name: string) => [name, `${name}:2`] })) {
    test(`waits for ${what} with a short TTL and renews to the whole`, limit, async () => {
      const name = unique('short');
      const first = await acquire(direct(), name);
      const bodies: string[] = [];
      const recording = createPaddock({
        baseUrl: serviceUrl,
        fetch: async (input) => {
          const request = (input as Request).clone();
          const { wait_ms, ttl_ms } = JSON.parse(await request.text()) as { wait_ms?: number; ttl_ms?: number };
          bodies.push(`${request.url.split('/').pop()} ${ttl_ms}${wait_ms ? ' waiting' : ''}`);
          return fetch(input);
        },
      });
      const second = acquire(recording, locksOf(name), { ttlMs: 600_000, waitMs: 60_000 });
      await waiters(direct(), name, 1);
      await first.release();
      const lease = await second;
      assert.deepEqual(bodies, ['acquire 600000', 'acquire 5000 waiting', 'renew 600000']);
      assert.ok(lease.remainingMs > 500_000, `${lease.remainingMs} ms are left`);
      await lease.release();
      bodies.length = 0;
      const free = await acquire(recording, locksOf(name), { ttlMs: 600_000, waitMs: 60_000 });
      assert.deepEqual(bodies, ['acquire 600000'], 'a free lock costs one call');
      await free.release();
    });
  }

  test('is rejected at the end of the wait and leaves the queue', limit, async () => {
    const paddock = direct();
    const name = unique('over');
    const first = await acquire(paddock, name, { holder: 'worker-1' });
    await assert.rejects(acquire(paddock, name, { waitMs: 300 }), { code: 'lock_held', holder: 'worker-1' });
    assert.deepEqual((await paddock.queue(name)).waiters, []);
    await first.release();
  });

  test('gives up the place when the signal is aborted', limit, async () => {
    const paddock = direct();
    const name = unique('aborted');
    const first = await acquire(paddock, name);
    const ending = new AbortController();
    const enough = new Error('enough');
    const second = acquire(paddock, name, { waitMs: Infinity, signal: ending.signal });
    await waiters(paddock, name, 1);
    ending.abort(enough);
    await assert.rejects(second, enough);
    assert.deepEqual((await paddock.queue(name)).waiters, [], 'it leaves before it rejects');
    assert.deepEqual(await kinds(paddock, name), ['granted', 'queued', 'dequeued']);
    await first.release();
    await assert.rejects(acquire(paddock, name, { signal: ending.signal }), enough);
    assert.equal((await paddock.lock(name)).state, 'free');
  });

  test('gives up the place when the reason of the signal is the loss of another lease', limit, async () => {
    const paddock = direct();
    const name = unique('lost');
    const first = await acquire(paddock, name);
    const outer = await acquire(paddock, `${name}:outer`);
    const second = acquire(paddock, name, { waitMs: Infinity, signal: outer.signal });
    await waiters(paddock, name, 1);
    const waits = assert.rejects(second, { code: 'lease_lost' });
    await paddock.revoke(`${name}:outer`, { fencing_token: outer.token, reason: 'enough' });
    await waits;
    assert.deepEqual((await paddock.queue(name)).waiters, [], 'it leaves before it rejects');
    await first.release();
  });

  test('returns at once after each cut connection', limit, async () => {
    const name = unique('cut');
    const first = await acquire(direct(), name);
    let cutAt = 0;
    const away: number[] = [];
    const cut = createPaddock({
      baseUrl: serviceUrl,
      fetch: async (input) => { // the connection of each of the first calls that wait is cut after a second
        if (away.length >= 6 || !(await (input as Request).clone().text()).includes('"wait_ms"')) {
          return fetch(input);
        }
        if (cutAt > 0) {
          away.push(performance.now() - cutAt);
        }
        await new Promise((resolve) => setTimeout(resolve, 1_100));
        cutAt = performance.now();
        throw new TypeError('the connection was cut');
      },
    });
    const second = acquire(cut, name, { waitMs: Infinity });
    await until('the connection was cut seven times', () => away.length >= 6);
    await first.release();
    await (await second).release();
    assert.ok(Math.max(...away) < 1_000, `away for ${away.map(Math.round).join(', ')} ms`); // they would double up to 3,200
  });

  test('keeps one place over many calls', limit, async () => {
    const name = unique('calls');
    const first = await acquire(direct(), name);
    const calls: { lease_id: string; keep_place: boolean; wait_ms?: number }[] = [];
    const hurried = createPaddock({
      baseUrl: serviceUrl,
      fetch: async (input) => { // each call waits 300 ms only, as if that were the maximum
        const request = input as Request;
        const text = await request.text();
        if (request.url.endsWith('/acquire') && text.includes('"wait_ms"')) { // not the first try
          calls.push(JSON.parse(text) as (typeof calls)[number]);
        }
        const { url, method, headers, signal } = request;
        return fetch(url, { method, headers, signal, body: text.replace(/"wait_ms":\d+/, '"wait_ms":300') });
      },
    });
    const second = acquire(hurried, name, { waitMs: Infinity });
    await until('three calls were made', () => calls.length >= 3);
    await first.release();
    await (await second).release();
    assert.equal(new Set(calls.map((call) => call.lease_id)).size, 1);
    assert.ok(calls.every((call) => call.keep_place));
    const events = await lockEvents(direct(), name);
    assert.deepEqual(events.map((event) => event.kind), ['granted', 'queued', 'released', 'granted', 'released']);
    assert.equal(events[1]!.place, events[3]!.place);
  });
});
