import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { acquire, createPaddock, guard, PaddockError, type Lease, type State } from '../dist/index.js';
import { Proxy } from './proxy.js';
import { direct, kinds, unique, until } from './service.js';

const soon = { timeout: 60_000 };
const broken = new Error('the work is broken');

/** oust takes the lease away as an operator does. */
async function oust(lease: Lease): Promise<void> {
  await direct().revoke(lease.name, { fencing_token: lease.token, reason: 'maintenance' });
}

describe('a guard', { concurrency: true }, () => {
  test('resolves with what the work did, and has released the lock', soon, async () => {
    const name = unique('result');
    const token = await guard(direct(), name, {}, (lease) => lease.token);
    assert.ok(token > 0);
    assert.deepEqual(await kinds(direct(), name), ['granted', 'released']);
  });

  test('passes the work\'s error on, and has released the lock', soon, async () => {
    for (const work of [() => Promise.reject(broken), () => { throw broken; }]) {
      const name = unique('broken');
      await assert.rejects(guard(direct(), name, {}, work), broken);
      assert.deepEqual(await kinds(direct(), name), ['granted', 'released']);
    }
  });

  test('does no work without the lock', soon, async () => {
    const name = unique('not-had');
    const lease = await acquire(direct(), name);
    await assert.rejects(guard(direct(), name, {}, () => assert.fail('it worked')), { code: 'lock_held' });
    await lease.release();
  });

  test('says that the lease was lost even if the work succeeded', soon, async () => {
    for (const settle of [(lease: Lease) => lease.done, () => undefined]) {
      const work = async (lease: Lease) => {
        await oust(lease);
        await settle(lease);
        return 'done';
      };
      await assert.rejects(guard(direct(), unique('overlap'), { ttlMs: 1_500 }, work), { code: 'lease_lost', reason: 'maintenance' });
    }
  });

  test('says that the lease was lost and what the work died of', soon, async () => {
    const dies = async (lease: Lease) => {
      await oust(lease);
      await lease.done;
      throw broken;
    };
    await assert.rejects(guard(direct(), unique('both'), { ttlMs: 1_500 }, dies), { code: 'lease_lost', reason: 'maintenance', cause: broken });
    const heeds = async (lease: Lease) => {
      await oust(lease);
      await lease.done;
      lease.signal.throwIfAborted();
    };
    let lost: unknown;
    const heeded = guard(direct(), unique('heeds'), { ttlMs: 1_500 }, (lease) => heeds(lease).finally(() => (lost = lease.err)));
    await assert.rejects(heeded, (error) => error === lost);
  });

  test('stops the work when the caller\'s signal says so, and keeps the lease until it has stopped', soon, async () => {
    const name = unique('caller');
    const ending = new AbortController();
    const enough = new Error('enough');
    const work = async (lease: Lease) => {
      ending.abort(enough);
      assert.equal(lease.signal.reason, enough);
      assert.throws(() => lease.check(), enough);
      assert.ok(lease.held());
      assert.equal((await direct().lock(name)).state, 'held');
      lease.signal.throwIfAborted();
    };
    await assert.rejects(guard(direct(), name, { signal: ending.signal }, work), enough);
    assert.deepEqual(await kinds(direct(), name), ['granted', 'released']);
  });

  test('resolves although nobody answers to the release, and says so', soon, async (t) => {
    const proxy = await Proxy.open();
    t.after(() => proxy.close());
    const told: [State, string | undefined][] = [];
    const work = () => {
      proxy.way = 'refuse';
      return 'done';
    };
    const options = { onState: (state: State, error?: PaddockError) => told.push([state, error?.code]) };
    assert.equal(await guard(createPaddock({ baseUrl: proxy.url }), unique('undelivered'), options, work), 'done');
    assert.equal(told.length, 1);
    assert.equal(told[0]![0], 'released');
    assert.ok(['unavailable', 'unknown_outcome'].includes(told[0]![1]!));
  });

  test('aborts the signal after the work, so that what it left running stops', soon, async () => {
    const left = await guard(direct(), unique('left'), {}, (lease) => lease);
    assert.equal(left.signal.aborted, true);
    assert.throws(() => left.check(), { code: 'lease_released' });
  });
});

test('one signal ends the work of many, without a warning', soon, async (t) => {
  const warn = (warning: Error) => assert.fail(warning);
  process.once('warning', warn);
  t.after(() => process.off('warning', warn));
  const ending = new AbortController();
  const options = { signal: ending.signal, ttlMs: 60_000 };
  const stopped = (lease: Lease) => new Promise<boolean>((resolve) => {
    lease.signal.addEventListener('abort', () => resolve(lease.held()));
    held.push(lease);
  });
  const held: Lease[] = [];
  const works = Array.from({ length: 20 }, (_, i) => guard(direct(), unique(`many-${i}`), options, stopped));
  await until('all are at work', () => held.length === works.length);
  ending.abort();
  assert.ok((await Promise.all(works)).every((stillHeld) => stillHeld));
});

test('the signal of an acquire bounds the acquiring only', soon, async () => {
  const ending = new AbortController();
  const lease = await acquire(direct(), unique('bounded'), { signal: ending.signal });
  ending.abort();
  assert.equal(lease.signal.aborted, false);
  await lease.release();
});

test('a lease is released at the end of its block, where the runtime knows of that', soon, async () => {
  const name = unique('block');
  {
    await using lease = await acquire(direct(), name);
    assert.ok(lease.held());
  }
  assert.deepEqual(await kinds(direct(), name), ['granted', 'released']);
});
