import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { acquire, guard, PaddockError } from '../dist/index.js';
import { direct, unique, waiters } from './service.js';

const limit = { timeout: 90_000 };

function pair(name: string): [string, string] {
  const base = unique(name);
  return [`${base}:a`, `${base}:b`];
}

describe('guards inside each other', { concurrency: true }, () => {
  test('in opposite orders: one gives way, and the other one goes on', limit, async () => {
    const [a, b] = pair('opposite');
    let ready = 0;
    const transfer = (first: string, second: string) =>
      guard(direct(), first, { holder: first, waitMs: Infinity }, async () => {
        ready++;
        while (ready < 2) {
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
        return guard(direct(), second, { holder: first, waitMs: Infinity }, () => second);
      });
    const ends = await Promise.allSettled([transfer(a, b), transfer(b, a)]);
    const refused = ends.filter((end) => end.status === 'rejected').map((end) => end.reason as PaddockError);
    assert.equal(refused.length, 1);
    assert.equal(refused[0]!.code, 'deadlock');
    assert.deepEqual(refused[0]!.cycle?.map(({ name }) => name).sort(), [a, b]);
    assert.match(refused[0]!.detail, new RegExp(a));
  });

  test('within one process: the circle names the work by default', limit, async () => {
    const [a, b] = pair('named');
    let ready = 0;
    const holders: string[] = [];
    const transfer = (first: string, second: string) =>
      guard(direct(), first, { waitMs: Infinity }, async ({ holder }) => {
        holders.push(holder);
        ready++;
        while (ready < 2) {
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
        return guard(direct(), second, { waitMs: Infinity }, (inner) => assert.equal(inner.holder, holder));
      });
    const ends = await Promise.allSettled([transfer(a, b), transfer(b, a)]);
    const [refused] = ends.filter((end) => end.status === 'rejected').map((end) => end.reason as PaddockError);
    assert.equal(refused?.code, 'deadlock');
    assert.equal(new Set(holders).size, 2);
    assert.deepEqual(refused.cycle?.map(({ holder }) => holder).sort(), holders.sort());
    assert.deepEqual(refused.cycle?.map(({ waitsFor }) => waitsFor).sort(), holders.sort());
    assert.match(holders[0]!, new RegExp(`:${process.pid}:[0-9a-f]{8}$`));
  });

  test('of the same lock: the inner one is refused at once', limit, async () => {
    const [a, b] = pair('nested');
    await guard(direct(), a, {}, async (lease) => {
      const inner = guard(direct(), a, { waitMs: Infinity }, () => assert.fail('it was granted'));
      await assert.rejects(inner, { code: 'deadlock' });
      await assert.rejects(acquire(direct(), a), { code: 'lock_held' });
      const other = await acquire(direct(), b);
      assert.ok(other.taskId?.startsWith(`${lease.taskId}.`), other.taskId);
      await other.release();
    });
    const later = await acquire(direct(), a);
    assert.doesNotMatch(later.taskId!, /\./);
    await later.release();
  });

  test('beside each other under one lease wait for each other', limit, async () => {
    const [a, b] = pair('siblings');
    await guard(direct(), a, {}, async () => {
      const first = await acquire(direct(), b);
      const second = guard(direct(), b, { waitMs: Infinity }, () => 'granted');
      await waiters(direct(), b, 1);
      await first.release();
      assert.equal(await second, 'granted');
    });
  });

});

describe('a process with PADDOCK_TASK', () => {
  test('is a part of that task', limit, async () => {
    const [a] = pair('process');
    process.env['PADDOCK_TASK'] = 'outer';
    try {
      const lease = await acquire(direct(), a);
      assert.match(lease.taskId!, /^outer\.[0-9a-f]{8}$/);
      assert.ok(lease.holder.endsWith(`:${lease.taskId!.slice('outer.'.length)}`), lease.holder);
      await lease.release();
      await assert.rejects(acquire(direct(), a, { taskId: 'a..b' }), { code: 'invalid_request' });
    } finally {
      delete process.env['PADDOCK_TASK'];
    }
  });
});
