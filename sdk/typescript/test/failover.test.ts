import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { acquire, createPaddock, guard, openSession, type Lease, type Paddock } from '../dist/index.js';
import { Proxy } from './proxy.js';
import { Replica } from './replica.js';
import { direct, lockEvents, unique, until, waiters } from './service.js';

const limit = { timeout: 150_000 };

/** guards, callers and holdMs describe the load; the TTL leaves room for a busy machine. */
const guards = 20;
const callers = 4;
const ttlMs = 12_000;
const holdMs = 14_000;

/** Each fault ends the service at the first of two addresses. */
const faults: Record<string, (replica: Replica, proxy: Proxy) => void> = {
  killed: (replica) => replica.kill(),
  frozen: (replica) => replica.freeze(),
  'cut off': (_, proxy) => (proxy.mode = 'swallow'),
};

/** deployment returns a client of two replicas, the first one behind a proxy, and what ends that. */
async function deployment(t: TestContext, fault: keyof typeof faults): Promise<{ paddock: Paddock; fail: () => void }> {
  const [{ replica, baseUrl: first }, { baseUrl: second }] = await Promise.all([Replica.start(t), Replica.start(t)]);
  const proxy = await Proxy.open(first);
  t.after(() => proxy.close());
  return { paddock: createPaddock({ baseUrl: `${proxy.url},${second}` }), fail: () => faults[fault]!(replica, proxy) };
}

/** calls acquires and releases locks until the signal is aborted. */
async function calls(paddock: Paddock, signal: AbortSignal): Promise<number> {
  for (let n = 0; ; n++) {
    if (signal.aborted) {
      return n;
    }
    await guard(paddock, unique('load'), {}, () => undefined);
  }
}

describe('with two addresses, no lease and no place is lost when the first one is', () => {
  for (const fault of Object.keys(faults)) {
    test(fault, limit, async (t) => {
      const { paddock, fail } = await deployment(t, fault);
      const ending = new AbortController();
      t.after(() => ending.abort());
      const held: Lease[] = [];
      const work = (lease: Lease) => {
        held.push(lease);
        return new Promise<void>((resolve) => lease.signal.addEventListener('abort', () => resolve()));
      };
      const session = await openSession(paddock, { ttlMs });
      const works = Array.from({ length: guards }, (_, i) =>
        guard(paddock, unique(`kept-${i}`), { signal: ending.signal, ...(i % 4 === 0 ? { session } : { ttlMs }) }, work));
      await until('the guards run', () => held.length === guards);
      const line = unique('line');
      const first = await acquire(direct(), line);
      const waiting: Promise<void>[] = [];
      for (let i = 0; i < guards; i++) {
        waiting.push(acquire(paddock, line, { holder: `w${i}`, waitMs: Infinity }).then((lease) => lease.release()));
        await waiters(direct(), line, i + 1);
      }
      const places = async (kind: string) => (await lockEvents(direct(), line)).filter((event) => event.kind === kind && event.holder.startsWith('w'))
        .map(({ holder, place }) => `${holder} ${place}`).sort();
      const queued = await places('queued');
      const load = Array.from({ length: callers }, () => calls(paddock, ending.signal));
      await sleep(1_000);
      fail();
      const failed = performance.now();
      await acquire(paddock, unique('after')).then((lease) => lease.release());
      const backMs = performance.now() - failed;
      await sleep(holdMs);
      await first.release();
      await Promise.all(waiting);
      assert.equal(queued.length, guards);
      assert.deepEqual(await places('granted'), queued, 'each is granted the lock in the place that it had from the beginning');
      assert.deepEqual(await places('queued'), queued, 'none joins the queue twice');
      assert.deepEqual(held.filter((lease) => !lease.held()).map((lease) => lease.err), []);
      ending.abort();
      await Promise.all(works);
      const made = (await Promise.all(load)).reduce((sum, n) => sum + n, 0);
      await session.close();
      t.diagnostic(`first call after the fault in ${Math.round(backMs)} ms, ${made} calls beside it`);
    });
  }
});
