import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { acquire, createPaddock, guard, openSession, PaddockError, type Lease, type Locks, type Paddock } from '../dist/index.js';
import { Proxy } from './proxy.js';
import { direct, kinds, serviceUrl, unique, until, waiters } from './service.js';

const limit = { timeout: 90_000 };

/** pair returns the names of two locks, in order. */
function pair(name: string): [string, string] {
  const base = unique(name);
  return [`${base}:a`, `${base}:b`];
}

/** states resolves with the states of the locks. */
function states(...names: string[]): Promise<string[]> {
  return Promise.all(names.map(async (name) => (await direct().lock(name)).state));
}

/** hubPath is the path of the calls by which the client hears of revocations, which counted leaves out. */
const hubPath = '/v1/events/wait';

/** counted returns a client and the requests that it sent. */
function counted(): { paddock: Paddock; sent: { path: string; body: Record<string, unknown> }[] } {
  const sent: { path: string; body: Record<string, unknown> }[] = [];
  const send = async (input: RequestInfo | URL) => {
    const request = input as Request;
    const body = JSON.parse(await request.clone().text()) as Record<string, unknown>;
    const path = new URL(request.url).pathname;
    if (path !== hubPath) {
      sent.push({ path, body });
    }
    return fetch(request);
  };
  return { paddock: createPaddock({ baseUrl: serviceUrl, fetch: send }), sent };
}

/** proxied returns a proxy that is closed after the test, and a client behind it. */
async function proxied(t: TestContext): Promise<{ proxy: Proxy; paddock: Paddock }> {
  const proxy = await Proxy.open();
  t.after(() => proxy.close());
  return { proxy, paddock: createPaddock({ baseUrl: proxy.url }) };
}

describe('the calls for several locks', { concurrency: true }, () => {
  test('grant, renew and release all of them', limit, async () => {
    const paddock = direct();
    const [a, b] = pair('calls');
    const request = { holder: 'w', lease_id: randomUUID(), locks: [{ name: b }, { name: a }], ttl_ms: 20_000 };
    const granted = await paddock.acquireSet(request);
    const token = granted.locks[0]!.fencing_token;
    const each = [a, b].map((name) => ({ name, mode: 'exclusive', slot: 0, fencing_token: token }));
    assert.deepEqual(granted.locks, each);
    assert.deepEqual((await paddock.lock(a)).leases[0]!.set, [a, b]);
    assert.deepEqual((await paddock.acquireSet(request)).locks, each);
    const ref = { lease_id: granted.lease_id, names: [b, a] };
    const renewed = await paddock.renewSet({ ...ref, ttl_ms: 60_000 });
    assert.deepEqual([renewed.locks, renewed.ttl_ms], [each, 60_000]);
    await paddock.releaseSet(ref);
    await paddock.releaseSet(ref);
    assert.deepEqual([await kinds(paddock, a), await kinds(paddock, b)], [['granted', 'released'], ['granted', 'released']]);
  });

  test('refuse to renew or release one of them alone', limit, async () => {
    const paddock = direct();
    const [a, b] = pair('alone');
    const { lease_id } = await paddock.acquireSet({ holder: 'w', locks: [{ name: a }, { name: b }] });
    await assert.rejects(paddock.renew(a, { lease_id }), { code: 'lease_in_set', status: 409, set: [a, b] });
    await assert.rejects(paddock.release(b, { lease_id }), { code: 'lease_in_set', set: [a, b] });
    await assert.rejects(paddock.acquire(a, { lease_id, holder: 'w' }), { code: 'lease_id_in_use' });
    assert.deepEqual(await states(a, b), ['held', 'held']);
  });

  test('accept no answer with other locks', limit, async () => {
    const [a, b] = pair('other');
    const other = (text: string) => text.replace(b, 'other');
    const fewer = (text: string) => JSON.stringify({ ...JSON.parse(text), locks: [{ name: a, slot: 0, fencing_token: 41 }] });
    for (const change of [other, fewer]) {
      const send = async (input: RequestInfo | URL) => {
        const response = await fetch(input);
        return new Response(change(await response.text()), { status: response.status, headers: response.headers });
      };
      const paddock = createPaddock({ baseUrl: serviceUrl, fetch: send });
      const request = { holder: 'w', lease_id: randomUUID(), locks: [{ name: a }, { name: b }] };
      await assert.rejects(paddock.acquireSet(request), { code: 'unknown_outcome' });
      await direct().releaseSet({ lease_id: request.lease_id, names: [a, b] });
    }
  });
});

describe('a lease of several locks', { concurrency: true }, () => {
  test('tells the token and the slot of each, in its own mode', limit, async () => {
    const [a, b] = pair('modes');
    const reader = await acquire(direct(), a, { mode: 'shared' });
    const lease = await acquire(direct(), [b, { name: a, mode: 'shared' }], { mode: 'permit', capacity: 3 });
    assert.deepEqual([...lease.tokens.keys()], [a, b]);
    assert.equal(lease.tokens.get(a), reader.token, 'a reader has the token of the readers that it joins');
    assert.ok(lease.tokens.get(b)! > reader.token);
    assert.deepEqual([...lease.slots], [[a, [2]], [b, [1]]]);
    assert.deepEqual([lease.name, lease.token, lease.slot], [a, reader.token, 2]);
    assert.deepEqual((await direct().lock(b)).leases[0]!.mode, 'permit');
    assert.deepEqual([[...reader.tokens], [...reader.slots]], [[[a, reader.token]], [[a, [1]]]]);
    await lease.release();
    await reader.release();
  });

  test('is refused with the locks in the way, and holds nothing', limit, async () => {
    const [a, b] = pair('refused');
    const other = await acquire(direct(), b, { holder: 'worker-1' });
    const error = await acquire(direct(), [a, b]).then(() => assert.fail('it was granted'), (e: unknown) => e as PaddockError);
    assert.deepEqual([error.code, error.holder], ['lock_held', 'worker-1']);
    assert.deepEqual(error.blockers?.map(({ name, holder }) => [name, holder]), [[b, 'worker-1']]);
    assert.ok(error.blockers![0]!.retryAfterMs > 0);
    assert.deepEqual(await states(a, b), ['free', 'held']);
    assert.deepEqual(await kinds(direct(), a), []);
    await other.release();
  });

  test('waits for all, holds nothing meanwhile, and is granted with its full TTL', limit, async () => {
    const [a, b] = pair('waits');
    const first = await acquire(direct(), b);
    const waiting = acquire(direct(), [b, a], { ttlMs: 3_000, waitMs: 60_000 });
    await waiters(direct(), a, 1);
    await sleep(3_500);
    assert.deepEqual(await states(a, b), ['free', 'held']);
    await first.release();
    const lease = await waiting;
    assert.ok(lease.token > first.token);
    assert.ok(lease.remainingMs > 1_000, `${lease.remainingMs} ms are left`);
    await lease.release();
    assert.deepEqual(await kinds(direct(), a), ['queued', 'granted', 'released']);
  });

  test('keeps its places over many calls', limit, async () => {
    const [a, b] = pair('places');
    const first = await acquire(direct(), b);
    const ids = new Set<unknown>();
    let calls = 0;
    const send = async (input: RequestInfo | URL) => { // each call waits 300 ms only, as if that were the maximum
      const request = input as Request;
      const body = JSON.parse(await request.text()) as Record<string, unknown>;
      if (new URL(request.url).pathname === '/v1/acquire' && body['wait_ms'] !== undefined) { // not the first try
        assert.equal(body['keep_place'], true);
        ids.add(body['lease_id']);
        calls++;
        body['wait_ms'] = 300;
      }
      return fetch(request.url, { method: 'POST', headers: request.headers, body: JSON.stringify(body), signal: request.signal });
    };
    const waiting = acquire(createPaddock({ baseUrl: serviceUrl, fetch: send }), [a, b], { waitMs: 60_000 });
    await until('it calls again', () => calls >= 3);
    await first.release();
    await (await waiting).release();
    assert.equal(ids.size, 1);
    assert.deepEqual(await kinds(direct(), a), ['queued', 'granted', 'released']);
  });

  test('gives up all places when the signal is aborted', limit, async () => {
    const [a, b] = pair('aborted');
    const first = await acquire(direct(), b);
    const ending = new AbortController();
    const enough = new Error('enough');
    const waiting = acquire(direct(), [a, b], { waitMs: Infinity, signal: ending.signal });
    await waiters(direct(), a, 1);
    ending.abort(enough);
    await assert.rejects(waiting, enough);
    assert.deepEqual(await kinds(direct(), a), ['queued', 'dequeued']);
    assert.deepEqual((await direct().queue(b)).waiters, []);
    await first.release();
  });

  test('is kept by one renewal for all and released as a whole', limit, async () => {
    const [a, b] = pair('renewed');
    const { paddock, sent } = counted();
    const lease = await acquire(paddock, [b, { name: a }], { ttlMs: 3_000 });
    await sleep(7_000);
    lease.check();
    assert.deepEqual(await states(a, b), ['held', 'held']);
    await lease.release();
    assert.equal(lease.err?.code, 'lease_released');
    const [first, ...others] = sent;
    assert.deepEqual([first!.path, others.pop()!.path], ['/v1/acquire', '/v1/release']);
    assert.deepEqual(new Set(others.map(({ path }) => path)), new Set(['/v1/renew']));
    assert.ok(others.length >= 4 && others.length <= 15, `${others.length} renewals in 2.3 TTLs`);
    assert.deepEqual([await kinds(direct(), a), await kinds(direct(), b)], [['granted', 'released'], ['granted', 'released']]);
  });

  test('is lost with the first lock that is lost', limit, async () => {
    const [a, b] = pair('lost');
    const work = async (lease: Lease) => {
      await direct().revoke(b, { fencing_token: lease.tokens.get(b)!, reason: 'db-3 is being replaced' });
      await lease.done;
      assert.ok(lease.remainingMs > 0, 'it was lost at its deadline only');
      assert.ok(lease.signal.aborted);
    };
    const guarded = guard(direct(), [a, b], { ttlMs: 3_000 }, work);
    await assert.rejects(guarded, { code: 'lease_lost', ended: 'revoked', reason: 'db-3 is being replaced' });
    assert.deepEqual(await states(a, b), ['free', 'free']);
  });

  test('is the same after a lost response, and does not remain after the last attempt', limit, async (t) => {
    const { proxy, paddock } = await proxied(t);
    for (const retryMs of [10_000, 0]) {
      const [a, b] = pair('cut');
      proxy.cuts = 1; // the service grants the locks, and the client does not hear of it
      const acquiring = acquire(paddock, [a, b], { retryMs });
      if (retryMs > 0) {
        const lease = await acquiring;
        assert.equal((await direct().lock(b)).fencing_token, lease.token);
        await lease.release();
      } else {
        await assert.rejects(acquiring, { code: 'unknown_outcome' });
      }
      assert.deepEqual([await kinds(direct(), a), await kinds(direct(), b)], [['granted', 'released'], ['granted', 'released']]);
    }
  });

  test('is one lock if the array has one', limit, async () => {
    const name = unique('one');
    const lease = await acquire(direct(), [name]);
    assert.equal((await direct().lock(name)).leases[0]!.set, undefined);
    assert.deepEqual([...lease.tokens], [[name, lease.token]]);
    await lease.release();
    assert.deepEqual(await kinds(direct(), name), ['granted', 'released']);
  });

  test('is refused for invalid locks', limit, async () => {
    const [a, b] = pair('bad');
    const many = Array.from({ length: 33 }, (_, i) => `${a}:${i}`);
    const bad: [string, Locks][] = [
      ['locks', many],
      ['locks', []],
      ['locks/1/name', [a, a]],
      ['locks/1/name', [a, '..']],
      ['locks/1/capacity', [a, { name: b, mode: 'permit' }]],
      ['name', '..'],
    ];
    for (const [field, locks] of bad) {
      await assert.rejects(acquire(direct(), locks), { code: 'invalid_request', field }, JSON.stringify(locks));
    }
    assert.deepEqual(await kinds(direct(), a), []);
  });
});

describe('a session with several locks together', { concurrency: true }, () => {
  test('keeps them, and ends them with all others', limit, async () => {
    const [a, b] = pair('session');
    const { paddock, sent } = counted();
    const session = await openSession(paddock, { ttlMs: 6_000 });
    const lease = await acquire(paddock, [a, b], { session });
    sent.length = 0;
    await sleep(8_000);
    lease.check();
    assert.deepEqual(new Set(sent.map(({ path }) => path)), new Set(['/v1/sessions/renew']));
    assert.equal((await direct().session(session.ref)).leases, 2);
    const released = await acquire(paddock, pair('released'), { session });
    await released.release();
    assert.deepEqual([released.state, lease.state], ['released', 'held']);
    await session.close();
    assert.throws(() => lease.check(), { code: 'lease_lost' });
    assert.deepEqual([await kinds(direct(), a), await kinds(direct(), b)], [['granted', 'released'], ['granted', 'released']]);
  });

  test('finds that one was revoked, and keeps its other leases', limit, async () => {
    const [a, b] = pair('found');
    const session = await openSession(direct(), { ttlMs: 6_000 });
    const single = await acquire(direct(), unique('single'), { session });
    const kept = await acquire(direct(), pair('kept'), { session });
    const lost = await acquire(direct(), [a, b], { session });
    await direct().revoke(b, { fencing_token: lost.token, reason: 'stuck' });
    await lost.done;
    assert.throws(() => lost.check(), { code: 'lease_lost', reason: 'stuck' });
    await sleep(3_000);
    assert.ok(single.held() && kept.held() && session.held());
    assert.deepEqual(await states(a, b), ['free', 'free']);
    await session.close();
  });
});

test('transfers between two accounts in opposite orders finish and lose nothing', limit, async () => {
  const accounts = pair('accounts');
  const read = async (name: string) => (await direct().readFenced(name)).value as number;
  const write = (lease: Lease, name: string, value: number) =>
    direct().writeFenced(name, { lock: name, fencing_token: lease.tokens.get(name)!, value });
  await guard(direct(), accounts, {}, (lease) => Promise.all(accounts.map((name) => write(lease, name, 100))));
  const transfer = async (client: number) => {
    const [payer, payee] = client % 2 ? accounts : [accounts[1], accounts[0]];
    for (let amount = 0; amount < 5; amount++) {
      await guard(direct(), [payer, payee], { waitMs: 60_000 }, async (lease) => {
        const [from, to] = [await read(payer), await read(payee)];
        await write(lease, payer, from - amount);
        lease.check();
        await write(lease, payee, to + amount);
      });
    }
  };
  await Promise.all(Array.from({ length: 6 }, (_, client) => transfer(client)));
  assert.equal(await read(accounts[0]) + await read(accounts[1]), 200);
  for (const name of accounts) {
    assert.equal((await kinds(direct(), name)).filter((kind) => kind === 'granted').length, 31);
  }
});
