import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { acquire, createPaddock, guard, PaddockError, type Lease, type State } from '../dist/index.js';
import { Proxy } from './proxy.js';
import { direct, kinds, unique, until } from './service.js';

const limit = { timeout: 60_000 };
const broken = new Error('the work failed');

/** ttlMs leaves four seconds between the renewal that finds a revocation and the deadline, even on a busy machine. */
const ttlMs = 6_000;

/** revoke revokes the lease, as an operator does. */
async function revoke(lease: Lease): Promise<void> {
  await direct().revoke(lease.name, { fencing_token: lease.token, reason: 'maintenance' });
}

describe('a guard', { concurrency: true }, () => {
  test('resolves with the result of the work and releases the lock', limit, async () => {
    const name = unique('result');
    const token = await guard(direct(), name, {}, (lease) => lease.token);
    assert.ok(token > 0);
    assert.deepEqual(await kinds(direct(), name), ['granted', 'released']);
  });

  test('needs no options', limit, async () => {
    const name = unique('without');
    assert.equal(await guard(direct(), name, (lease) => lease.name), name);
    assert.equal(await guard(direct(), [name, unique('without')], async (lease) => lease.tokens.size), 2);
  });

  test('rejects with the error of the work and releases the lock', limit, async () => {
    for (const work of [() => Promise.reject(broken), () => { throw broken; }]) {
      const name = unique('broken');
      await assert.rejects(guard(direct(), name, {}, work), broken);
      assert.deepEqual(await kinds(direct(), name), ['granted', 'released']);
    }
  });

  test('does not run the work without the lock', limit, async () => {
    const name = unique('not-granted');
    const lease = await acquire(direct(), name);
    await assert.rejects(guard(direct(), name, {}, () => assert.fail('the work ran')), { code: 'lock_held' });
    await lease.release();
  });

  test('rejects with lease_lost even if the work succeeded', limit, async () => {
    for (const settle of [(lease: Lease) => lease.done, () => undefined]) {
      const work = async (lease: Lease) => {
        await revoke(lease);
        await settle(lease);
        return 'done';
      };
      await assert.rejects(guard(direct(), unique('overlap'), { ttlMs }, work), { code: 'lease_lost', reason: 'maintenance' });
    }
  });

  test('rejects with lease_lost and the error of the work as its cause', limit, async () => {
    const fails = async (lease: Lease) => {
      await revoke(lease);
      await lease.done;
      throw broken;
    };
    await assert.rejects(guard(direct(), unique('both'), { ttlMs }, fails), { code: 'lease_lost', reason: 'maintenance', cause: broken });
    const stops = async (lease: Lease) => {
      await revoke(lease);
      await lease.done;
      lease.signal.throwIfAborted();
    };
    let lost: unknown;
    const stopped = guard(direct(), unique('stops'), { ttlMs }, (lease) => stops(lease).finally(() => (lost = lease.err)));
    await assert.rejects(stopped, (error) => error === lost);
  });

  test('stops the work when the caller aborts and renews the lease until the work has stopped', limit, async () => {
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

  test('resolves although the release gets no response, and reports that', limit, async (t) => {
    const proxy = await Proxy.open();
    t.after(() => proxy.close());
    const states: [State, string | undefined][] = [];
    const work = () => {
      proxy.mode = 'refuse';
      return 'done';
    };
    const options = { onState: (state: State, error?: PaddockError) => states.push([state, error?.code]) };
    assert.equal(await guard(createPaddock({ baseUrl: proxy.url }), unique('undelivered'), options, work), 'done');
    assert.equal(states.length, 1);
    assert.equal(states[0]![0], 'released');
    assert.ok(['unavailable', 'unknown_outcome'].includes(states[0]![1]!));
  });

  test('aborts the signal after the work so that background tasks stop', limit, async () => {
    const ended = await guard(direct(), unique('ended'), {}, (lease) => lease);
    assert.equal(ended.signal.aborted, true);
    assert.throws(() => ended.check(), { code: 'lease_released' });
  });
});

test('one signal ends the work of many guards without a warning', limit, async (t) => {
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
  await until('all guards are running', () => held.length === works.length);
  ending.abort();
  assert.ok((await Promise.all(works)).every((stillHeld) => stillHeld));
});

test('the signal of an acquire does not end the lease', limit, async () => {
  const ending = new AbortController();
  const lease = await acquire(direct(), unique('bounded'), { signal: ending.signal });
  ending.abort();
  assert.equal(lease.signal.aborted, false);
  await lease.release();
});

test('await using releases the lease at the end of the block', limit, async () => {
  const name = unique('block');
  {
    await using lease = await acquire(direct(), name);
    assert.ok(lease.held());
  }
  assert.deepEqual(await kinds(direct(), name), ['granted', 'released']);
});
