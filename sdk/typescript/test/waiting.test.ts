import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { acquire, createPaddock, type Lease } from '../dist/index.js';
import { direct, kinds, serviceUrl, story, unique, until, waiters } from './service.js';

const soon = { timeout: 90_000 };

describe('who waits', { concurrency: true }, () => {
  test('is served first come, first served', soon, async () => {
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

  test('has a lease with its whole TTL, however long the wait was', soon, async () => {
    const paddock = direct();
    const name = unique('fresh');
    const first = await acquire(paddock, name);
    const next = acquire(paddock, name, { ttlMs: 3_000, waitMs: 60_000 });
    await until('it has waited for longer than its TTL', async () => {
      const { waiters: [waiter] } = await paddock.queue(name);
      return waiter !== undefined && waiter.waited_ms > 3_500;
    });
    await first.release();
    const lease = await next;
    assert.ok(lease.remainingMs > 1_000, `${lease.remainingMs} ms are left`);
    await lease.release();
  });

  test('is refused when the wait is over, and has left', soon, async () => {
    const paddock = direct();
    const name = unique('over');
    const first = await acquire(paddock, name, { holder: 'worker-1' });
    await assert.rejects(acquire(paddock, name, { waitMs: 300 }), { code: 'lock_held', holder: 'worker-1' });
    assert.deepEqual((await paddock.queue(name)).waiters, []);
    await first.release();
  });

  test('gives the place up when the signal is aborted', soon, async () => {
    const paddock = direct();
    const name = unique('gone');
    const first = await acquire(paddock, name);
    const ending = new AbortController();
    const enough = new Error('enough');
    const second = acquire(paddock, name, { waitMs: Infinity, signal: ending.signal });
    await waiters(paddock, name, 1);
    ending.abort(enough);
    await assert.rejects(second, enough);
    assert.deepEqual((await paddock.queue(name)).waiters, [], 'it has left by the time that it rejects');
    assert.deepEqual(await kinds(paddock, name), ['granted', 'queued', 'left']);
    await first.release();
    await assert.rejects(acquire(paddock, name, { signal: ending.signal }), enough);
    assert.equal((await paddock.lock(name)).state, 'free');
  });

  test('waits at one place over many calls', soon, async () => {
    const name = unique('calls');
    const first = await acquire(direct(), name);
    const asked: { lease_id: string; keep_place: boolean }[] = [];
    const hurried = createPaddock({
      baseUrl: serviceUrl,
      fetch: async (input) => { // each call waits for a moment only, as if it were the longest that one may
        const request = input as Request;
        const text = await request.text();
        if (request.url.endsWith('/acquire')) {
          asked.push(JSON.parse(text) as (typeof asked)[number]);
        }
        const { url, method, headers, signal } = request;
        return fetch(url, { method, headers, signal, body: text.replace(/"wait_ms":\d+/, '"wait_ms":300') });
      },
    });
    const second = acquire(hurried, name, { waitMs: Infinity });
    await until('three calls were made', () => asked.length >= 3);
    await first.release();
    await (await second).release();
    assert.equal(new Set(asked.map((call) => call.lease_id)).size, 1);
    assert.ok(asked.every((call) => call.keep_place));
    const events = await story(direct(), name);
    assert.deepEqual(events.map((event) => event.kind), ['granted', 'queued', 'released', 'granted', 'released']);
    assert.equal(events[1]!.place, events[3]!.place);
  });
});
