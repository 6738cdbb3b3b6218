import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { acquire, createPaddock, once, PaddockError, type OnceOptions } from '../dist/index.js';
import { Proxy } from './proxy.js';
import { direct, kinds, lockEvents, serviceUrl, unique, until, waiters } from './service.js';

const limit = { timeout: 60_000 };
const broken = new Error('the work failed');
const hourly: OnceOptions = { atLeastMs: 3_600_000 };

/** ran runs work that does nothing once per hour and resolves with whether this call has run it. */
async function ran(name: string, options: OnceOptions = hourly): Promise<boolean> {
  return (await once(direct(), name, options, () => undefined)).ran;
}

describe('once', { concurrency: true }, () => {
  test('runs the work once per period, and says who has done it and when', limit, async () => {
    const name = unique('period');
    const turn = await once(direct(), name, { ...hourly, holder: 'first' }, (lease) => lease.token);
    assert.ok(turn.ran && turn.result > 0);
    const again = await once(direct(), name, hourly, () => assert.fail('the work ran twice'));
    assert.ok(!again.ran);
    assert.equal(again.doneBy, 'first');
    const [granted, released] = await lockEvents(direct(), name);
    assert.equal(Math.trunc(Date.parse(released!.at)), again.doneAt.getTime());
    const ends = Date.parse(granted!.at) + 3_600_000;
    assert.ok(again.leftMs > 3_500_000 && again.leftMs <= ends - again.doneAt.getTime());
    assert.equal((await direct().lock(name)).closed?.holder, 'first');
  });

  test('runs the work again when the lock opens', limit, async () => {
    const name = unique('opens');
    assert.ok(await ran(name, { atLeastMs: 300 }));
    await until('the lock opens', async () => (await direct().lock(name)).closed === undefined);
    assert.ok(await ran(name, { atLeastMs: 300 }));
  });

  test('counts a period of the calendar in its time zone', limit, async () => {
    for (const [period, zone] of [['day', 'Asia/Kathmandu'], ['month', undefined]] as const) {
      const name = unique('calendar');
      assert.ok(await ran(name, { period, timeZone: zone }));
      const { closed } = await direct().lock(name);
      const local = new Intl.DateTimeFormat('en-GB', { timeZone: zone ?? 'UTC', dateStyle: 'short', timeStyle: 'medium' }).format(new Date(closed!.until));
      assert.match(local, period === 'day' ? /, 00:00:00$/ : /^01\/.*, 00:00:00$/);
    }
  });

  test('closes the lock for the least time where the period ends sooner', limit, async () => {
    const name = unique('least');
    assert.ok(await ran(name, { period: 'minute', ...hourly }));
    const turn = await once(direct(), name, { period: 'minute' }, () => assert.fail('the work ran twice'));
    assert.ok(!turn.ran && turn.leftMs > 3_500_000);
  });

  test('leaves the lock open if the work fails', limit, async () => {
    const name = unique('fails');
    for (const work of [() => Promise.reject(broken), () => { throw broken; }]) {
      await assert.rejects(once(direct(), name, hourly, work), broken);
    }
    assert.ok(await ran(name));
    assert.deepEqual(await kinds(direct(), name), ['granted', 'released', 'granted', 'released', 'granted', 'released']);
  });

  test('leaves the lock open if the lease was lost', limit, async () => {
    const name = unique('lost');
    const turn = once(direct(), name, hourly, async (lease) => {
      await direct().revoke(name, { fencing_token: lease.token, reason: 'maintenance' });
    });
    await assert.rejects(turn, { code: 'lease_lost', reason: 'maintenance' });
    assert.ok(await ran(name));
  });

  test('rejects while another process runs the work, or waits until that is done', limit, async () => {
    const name = unique('waits');
    const lease = await direct().acquire(name, { holder: 'other' });
    await assert.rejects(ran(name), { code: 'lock_held', holder: 'other' });
    const turn = once(direct(), name, { ...hourly, waitMs: Infinity }, () => assert.fail('the work ran twice'));
    await waiters(direct(), name, 1);
    await direct().release(name, { lease_id: lease.lease_id, closed_ms: 3_600_000 });
    const told = await turn;
    assert.ok(!told.ran && told.doneBy === 'other');
  });

  test('takes the turn after a failure of the process that it waits for', limit, async () => {
    const name = unique('takes-turn');
    const lease = await acquire(direct(), name);
    const turn = ran(name, { ...hourly, waitMs: 30_000 });
    await waiters(direct(), name, 1);
    await lease.release();
    assert.ok(await turn);
  });

  test('rejects if the release is not answered, because the work is done again', limit, async () => {
    const proxy = await Proxy.open();
    try {
      const paddock = createPaddock({ baseUrl: proxy.url });
      const turn = once(paddock, unique('unanswered'), hourly, () => { proxy.mode = 'refuse'; });
      await assert.rejects(turn, (error) => error instanceof PaddockError && ['unavailable', 'unknown_outcome'].includes(error.code));
    } finally {
      await proxy.close();
    }
  });

  test('refuses an invalid period before the work', limit, async () => {
    const refused: [OnceOptions, RegExp][] = [
      [{}, /period and atLeastMs are missing; give one/],
      [{ atLeastMs: 0 }, /period and atLeastMs are missing/],
      [{ period: 'year' as 'day' }, /period is invalid; use minute, hour/],
      [{ atLeastMs: -1 }, /atLeastMs is -1; give 0 to 2678400000/],
      [{ atLeastMs: 2_678_400_001 }, /atLeastMs is 2678400001/],
      [{ ...hourly, timeZone: 'Europe/Berlin' }, /timeZone is only valid with period/],
      [{ period: 'day', timeZone: 'Europe/Bonn' }, /timeZone is unknown; give a name of the IANA/],
      [{ period: 'day', timeZone: 'Europe/berlin' }, /timeZone is unknown/],
      [{ period: 'day', timeZone: '+01:00' }, /timeZone is unknown/],
    ];
    for (const [options, detail] of refused) {
      const turn = once(direct(), unique('invalid'), options, () => assert.fail('the work ran'));
      await assert.rejects(turn, (error) => error instanceof PaddockError && error.code === 'invalid_request' && detail.test(error.detail));
    }
  });
});

describe('a closed lock', { concurrency: true }, () => {
  test('refuses an acquire with the names of the options, or makes it wait until it opens', limit, async () => {
    const name = unique('closed');
    const { lease_id } = await direct().acquire(name, { holder: 'first' });
    await direct().release(name, { lease_id, closed_ms: 2_000 });
    await assert.rejects(acquire(direct(), name), (error) => {
      assert.ok(error instanceof PaddockError);
      assert.deepEqual([error.code, error.holder, error.status], ['already_done', 'first', 409]);
      assert.ok(error.doneAt!.getTime() > 0 && error.retryAfterMs! > 0);
      assert.match(error.detail, /wait with waitMs/);
      return true;
    });
    const { closed } = await direct().lock(name);
    const lease = await acquire(direct(), name, { waitMs: 30_000 });
    await lease.release();
    const [granted] = (await lockEvents(direct(), name)).filter((event) => event.kind === 'granted').slice(1);
    assert.ok(Date.parse(granted!.at) >= Date.parse(closed!.until));
  });
});

describe('a freeze', { concurrency: true }, () => {
  test('is set, read, listed and ended', limit, async () => {
    const scope = `${unique('frozen')}:`;
    const name = `${scope}a`;
    const before = await acquire(direct(), name);
    const frozen = await direct().freeze(scope, { reason: 'maintenance', for_ms: 600_000 });
    assert.deepEqual([frozen.scope, frozen.reason, frozen.leases], [scope, 'maintenance', 1]);
    assert.equal(Date.parse(frozen.until!) - Date.parse(frozen.frozen_at), 600_000);
    await before.release();
    assert.equal((await direct().frozen(scope)).leases, 0);
    assert.equal((await direct().lock(name)).frozen?.scope, scope);
    assert.deepEqual((await direct().freezes()).freezes.filter((freeze) => freeze.scope === scope).map((freeze) => freeze.reason), ['maintenance']);
    assert.equal(await direct().thaw(scope), undefined);
    await direct().thaw(scope);
    await assert.rejects(direct().frozen(scope), { code: 'not_found' });
    assert.ok((await lockEvents(direct(), scope)).length > 0);
  });

  test('refuses an acquire with the names of the options, or makes it wait until it ends', limit, async () => {
    const name = unique('thawed');
    await direct().freeze(name, { reason: 'maintenance' });
    await assert.rejects(acquire(direct(), name), (error) => {
      assert.ok(error instanceof PaddockError);
      assert.deepEqual([error.code, error.reason, error.frozenBy], ['lock_frozen', 'maintenance', undefined]);
      assert.match(error.detail, /wait with waitMs/);
      return true;
    });
    const lease = acquire(direct(), name, { waitMs: 40_000 });
    await waiters(direct(), name, 1);
    await direct().thaw(name);
    await (await lease).release();
  });

  test('outlasts one call of a wait', limit, async () => {
    const name = unique('outlasts');
    await direct().freeze(name, { reason: 'maintenance', for_ms: 12_000 });
    const lease = await acquire(direct(), name, { waitMs: 40_000 });
    await lease.release();
    assert.deepEqual((await kinds(direct(), name)).filter((kind) => kind === 'queued'), ['queued']); // the place was kept
  });

  test('has a valid scope', limit, async () => {
    const paddock = createPaddock({ baseUrl: serviceUrl, fetch: () => assert.fail('a request was sent') });
    for (const scope of ['', ':', '..', 'a/b']) {
      for (const call of [paddock.freeze(scope, { reason: 'r' }), paddock.frozen(scope), paddock.thaw(scope), paddock.setRule(scope, {}), paddock.removeRule(scope)]) {
        await assert.rejects(call, { code: 'invalid_request', field: 'scope' });
      }
    }
  });
});

describe('a rule', { concurrency: true }, () => {
  test('is set, listed and removed', limit, async () => {
    const scope = `${unique('ruled')}:`;
    const bounds = { max_ttl_ms: 60_000, max_hold_ms: 120_000, min_grace_ms: 100, capacity: 2, max_leases: 9 };
    const { set_at, set_by, ...rule } = await direct().setRule(scope, bounds);
    assert.deepEqual(rule, { scope, ...bounds });
    assert.ok(Date.parse(set_at) > 0 && set_by === undefined);
    assert.deepEqual((await direct().rules()).rules.filter((other) => other.scope === scope), [{ ...rule, set_at }]);
    await assert.rejects(acquire(direct(), `${scope}a`, { ttlMs: 90_000 }), (error) => {
      assert.ok(error instanceof PaddockError && error.code === 'invalid_request');
      assert.match(error.detail, new RegExp(`^ttlMs .*${scope}`));
      return true;
    });
    const permits = await Promise.all([1, 2].map(() => acquire(direct(), `${scope}p`, { mode: 'permit' })));
    await assert.rejects(acquire(direct(), `${scope}p`, { mode: 'permit' }), { code: 'lock_held' });
    await Promise.all(permits.map((permit) => permit.release()));
    assert.equal(await direct().removeRule(scope), undefined);
    await direct().removeRule(scope);
    await (await acquire(direct(), `${scope}a`, { ttlMs: 90_000 })).release();
  });
});

test('a service with one database has no cells', limit, async () => {
  assert.deepEqual(await direct().cells(), { cells: [] });
  assert.deepEqual((await direct().service()).databases.map(({ epoch, problem }) => [epoch?.number, problem]), [[1, undefined]]);
});
