import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { acquire, createPaddock, guard, once, openSession, PaddockError, type Lease, type Options } from '../dist/index.js';
import { Proxy } from './proxy.js';
import { direct, kinds, unique, until, waiters } from './service.js';

const limit = { timeout: 60_000 };
const stays: Options = { onExpiry: 'hold', ttlMs: 1_000 };

/** suspect resolves when an event tells that the lock is suspect. */
async function suspect(name: string): Promise<void> {
  await until(`${name} is suspect`, async () => (await kinds(direct(), name)).includes('suspected'));
}

/** revoke revokes the lease as an operator. */
async function revoke(name: string): Promise<void> {
  const { fencing_token } = await direct().lock(name);
  await direct().revoke(name, { fencing_token, reason: 'the state is sound' });
}

describe('a suspect lock', { concurrency: true }, () => {
  const ways: Record<string, (proxy: Proxy, name: string, work: (lease: Lease) => Promise<void>) => Promise<unknown>> = {
    'by guard': (proxy, name, work) => guard(createPaddock({ baseUrl: proxy.url }), name, stays, work),
    'by once': (proxy, name, work) => once(createPaddock({ baseUrl: proxy.url }), name, { ...stays, atLeastMs: 3_600_000 }, work),
    'by release': async (proxy, name, work) => {
      const lease = await acquire(createPaddock({ baseUrl: proxy.url }), name, stays);
      await work(lease);
      await lease.release();
    },
    'as one of several': (proxy, name, work) => guard(createPaddock({ baseUrl: proxy.url }), [name, unique('other')], stays, work),
  };
  for (const [way, run] of Object.entries(ways)) {
    test(`is not released ${way} after the loss, although the service can be reached again`, limit, async (t) => {
      const proxy = await Proxy.open();
      t.after(() => proxy.close());
      const name = unique('suspect');
      const lost = run(proxy, name, async (lease) => {
        proxy.mode = 'refuse';
        await lease.done;
        await suspect(name);
        proxy.mode = 'pass';
      });
      await assert.rejects(lost, { code: 'lease_lost', detail: /an operator has looked at the work and revokes the lease/ });
      assert.deepEqual(await kinds(direct(), name), ['granted', 'suspected']);
      await revoke(name);
      await (await acquire(direct(), name)).release();
    });
  }

  test('is released when the work has ended in time, also if it has failed', limit, async () => {
    const name = unique('in-time');
    const broken = new Error('the work failed');
    await guard(direct(), name, stays, () => undefined);
    await assert.rejects(guard(direct(), name, stays, () => Promise.reject(broken)), broken);
    assert.deepEqual(await kinds(direct(), name), ['granted', 'released', 'granted', 'released']);
  });

  test('is refused in clear words, or waited for until an operator revokes it', limit, async () => {
    const name = unique('looked-at');
    await direct().acquire(name, { holder: 'worker-1', ttl_ms: 100, on_expiry: 'hold' });
    await suspect(name);
    await assert.rejects(acquire(direct(), name), (error) => {
      assert.ok(error instanceof PaddockError);
      assert.deepEqual([error.code, error.holder, error.suspect], ['lock_held', 'worker-1', true]);
      assert.match(error.detail, /has not renewed it in time, so it is suspect: .* an operator has looked .* wait with waitMs/);
      return true;
    });
    const waiting = acquire(direct(), name, { waitMs: Infinity });
    await waiters(direct(), name, 1);
    await revoke(name);
    await (await waiting).release();
  });

  test('is held again after a late renewal', limit, async () => {
    const name = unique('late');
    const { lease_id, fencing_token } = await direct().acquire(name, { holder: 'worker-1', ttl_ms: 100, on_expiry: 'hold' });
    await suspect(name);
    assert.equal((await direct().renew(name, { lease_id, ttl_ms: 60_000 })).fencing_token, fencing_token);
    assert.equal((await direct().lock(name)).state, 'held');
    await direct().release(name, { lease_id });
    assert.equal((await direct().lock(name)).state, 'free');
  });

  test('is refused in a session, with the name of the option', limit, async () => {
    const session = await openSession(direct());
    try {
      await assert.rejects(acquire(direct(), unique('in-session'), { session, onExpiry: 'hold' }), { code: 'invalid_request', field: 'onExpiry', detail: /^onExpiry / });
    } finally {
      await session.close();
    }
  });
});
