import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { acquire, campaign, createPaddock, currentLeader, observeLeader, type Leader } from '../dist/index.js';
import { Proxy } from './proxy.js';
import { aborted, direct, unique, until, waiters } from './service.js';

const limit = { timeout: 90_000 };

/** observed observes an election, and returns what it has yielded. */
function observed(name: string, baseUrl?: string): { leaders: (string | undefined)[]; end: () => Promise<void>; errors: number[] } {
  const leaders: (string | undefined)[] = [];
  const errors: number[] = [];
  const ending = new AbortController();
  const paddock = baseUrl === undefined ? direct() : createPaddock({ baseUrl });
  const observing = (async () => {
    for await (const leader of observeLeader(paddock, name, { signal: ending.signal, onRetry: () => errors.push(leaders.length) })) {
      leaders.push(leader?.value);
    }
  })();
  return { leaders, errors, end: () => (ending.abort(), observing) };
}

describe('an election', { concurrency: true }, () => {
  test('has one leader after the other, in the order in which they joined, whom observers see', limit, async () => {
    const name = unique('election');
    const { leaders, end } = observed(name);
    const seen = (value: string | undefined) => until(`${value} leads`, () => leaders.length > 0 && leaders.at(-1) === value);
    await seen(undefined);
    assert.equal(await currentLeader(direct(), name), undefined);
    const first = await campaign(direct(), name, 'a:1', { holder: 'anna' });
    await seen('a:1');
    const second = campaign(direct(), name, 'b:1', { holder: 'berta' });
    await waiters(direct(), name, 1);
    const third = campaign(direct(), name, 'c:1', { holder: 'cara' });
    await waiters(direct(), name, 2);
    await first.proclaim('a:2');
    await seen('a:2');
    const leader = await currentLeader(direct(), name) as Leader;
    assert.deepEqual([leader.holder, leader.value, leader.token], ['anna', 'a:2', first.token]);
    assert.ok(Math.abs(leader.since.getTime() - Date.now()) < 60_000);
    await first.resign();
    assert.ok(first.signal.aborted);
    const term = await second;
    await seen('b:1');
    assert.ok(term.token > first.token);
    const ended = aborted(term.signal);
    await direct().revoke(name, { fencing_token: term.token, reason: 'maintenance' });
    await ended;
    assert.equal(term.err?.reason, 'maintenance');
    await seen('c:1');
    await (await third).resign();
    await seen(undefined);
    await end();
    assert.deepEqual(leaders, [undefined, 'a:1', 'a:2', 'b:1', 'c:1', undefined]);
  });

  test('is withdrawn from when the signal is aborted or the wait is over', limit, async () => {
    const name = unique('withdrawn');
    const first = await campaign(direct(), name, 'a');
    const ending = new AbortController();
    const enough = new Error('enough');
    const second = campaign(direct(), name, 'b', { signal: ending.signal });
    await waiters(direct(), name, 1);
    ending.abort(enough);
    await assert.rejects(second, enough);
    await assert.rejects(campaign(direct(), name, 'c', { waitMs: 100 }), { code: 'lock_held' });
    assert.deepEqual((await direct().queue(name)).waiters, []);
    await first.resign();
  });

  test('is observed over an outage, after which the same leader is told again', limit, async (t) => {
    const proxy = await Proxy.open();
    t.after(() => proxy.close());
    const name = unique('outage');
    const term = await campaign(direct(), name, 'a');
    const { leaders, errors, end } = observed(name, proxy.url);
    await until('it is told', () => leaders.length === 1);
    proxy.mode = 'refuse';
    await until('the outage is told', () => errors.length > 0);
    proxy.mode = 'pass';
    await until('it is told again', () => leaders.length === 2);
    await end();
    assert.deepEqual(leaders, ['a', 'a']);
    await term.resign();
  });

  test('has values of at most 4096 bytes, and a holder with other metadata leads with none', limit, async () => {
    const name = unique('value');
    await assert.rejects(campaign(direct(), name, 'x'.repeat(4_090)), { code: 'invalid_request', field: 'value' });
    const lease = await acquire(direct(), name, { metadata: { page: 1 } });
    assert.equal((await currentLeader(direct(), name))?.value, '');
    await lease.release();
    const term = await campaign(direct(), name, 'x'.repeat(4_000));
    await assert.rejects(term.proclaim('x'.repeat(4_090)), { code: 'invalid_request', field: 'value' });
    await term.resign();
  });
});
