import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { acquire, createPaddock, guard, openSession, type Lease, type Paddock, type Session } from '../dist/index.js';
import { aborted, direct, serviceUrl, unique, until } from './service.js';

const limit = { timeout: 90_000 };

/** ttlMs is so long that no renewal falls due in a test. */
const ttlMs = 600_000;

/** Calls counts the calls of a client by their paths, and how many calls of the hub are open at a time. */
class Calls {
  readonly paths: string[] = [];
  readonly at: number[] = []; // when they were sent
  readonly watched: number[] = []; // how many locks each call of the hub watches
  readonly told: string[] = []; // the answers to the calls of the hub
  readonly sent: number[] = []; // when the calls of the hub were sent
  delayMs = 0; // until the client has the response to a call of the hub
  open = 0;
  mostOpen = 0;
  /** Answers a call of the hub instead of the service, if there is one. */
  answer: (() => Response) | undefined;
  readonly paddock: Paddock = createPaddock({ baseUrl: serviceUrl, fetch: (request) => this.#send(request as Request) });

  count(path: string): number {
    return this.paths.filter((other) => other === path).length;
  }

  async #send(request: Request): Promise<Response> {
    const pathname = decodeURIComponent(new URL(request.url).pathname);
    this.paths.push(pathname);
    this.at.push(performance.now());
    if (pathname !== '/v1/events/wait') {
      return fetch(request);
    }
    this.mostOpen = Math.max(this.mostOpen, ++this.open);
    this.sent.push(performance.now());
    try {
      this.watched.push((JSON.parse(await request.clone().text()) as { locks: string[] }).locks.length);
      const response = this.answer ? this.answer() : await fetch(request);
      await sleep(this.delayMs, undefined, { signal: request.signal });
      this.told.push(await response.clone().text());
      return response;
    } finally {
      this.open--;
    }
  }
}

/** watched resolves when the hub's call watches that many locks. */
function watched(calls: Calls, count: number): Promise<unknown> {
  return until(`the hub watches ${count} locks`, () => calls.open > 0 && calls.watched.at(-1) === count);
}

/** revoked revokes the lease as an operator, and resolves with how long it took until its signal was aborted. */
async function revoked(lease: Lease, name = lease.name): Promise<number> {
  const told = aborted(lease.signal);
  const began = Date.now();
  await direct().revoke(name, { fencing_token: lease.tokens.get(name)!, reason: 'maintenance' });
  return (await told) - began;
}

/** heard returns the answer to a call of the hub. */
function heard(answer: object = {}): Response {
  return Response.json({ events: [], next_cursor: '1', ...answer }, { headers: { 'Paddock-Api': 'v1' } });
}

/** leased acquires a lease of the session, and resolves with it and with its lease_id, with which another process may release it. */
async function leased(paddock: Paddock, session: Session): Promise<[lease: Lease, leaseId: string]> {
  let leaseId: string | undefined;
  const listening = { ...paddock, acquire: (...call: Parameters<Paddock['acquire']>) => {
    leaseId = call[1].lease_id;
    return paddock.acquire(...call);
  } };
  return [await acquire(listening, unique('leased'), { session }), leaseId!];
}

describe('a revocation is heard at once, with a TTL of ten minutes,', { concurrency: true }, () => {
  const kinds: Record<string, (paddock: Paddock) => Promise<[lease: Lease, revokes: string]>> = {
    'by a lease': async (paddock) => {
      const lease = await acquire(paddock, unique('heard'), { ttlMs });
      return [lease, lease.name];
    },
    'by a lease of several locks': async (paddock) => {
      const lease = await acquire(paddock, [unique('heard-a'), unique('heard-b')], { ttlMs });
      return [lease, [...lease.tokens.keys()][1]!];
    },
    'by a lease of a session': async (paddock) => {
      const lease = await acquire(paddock, unique('heard'), { session: await openSession(paddock, { ttlMs }) });
      return [lease, lease.name];
    },
  };
  for (const [what, acquireOne] of Object.entries(kinds)) {
    test(what, limit, async (t) => {
      const calls = new Calls();
      const [lease, name] = await acquireOne(calls.paddock);
      await watched(calls, lease.tokens.size);
      const tookMs = await revoked(lease, name);
      t.diagnostic(`heard after ${tookMs} ms`);
      assert.ok(tookMs < 2_000, `heard after ${tookMs} ms`);
      const { code, ended, reason, status } = lease.err!;
      assert.deepEqual({ code, ended, reason, status }, { code: 'lease_lost', ended: 'revoked', reason: 'maintenance', status: 409 });
    });
  }

  test('by a session, with all of its leases', limit, async (t) => {
    const calls = new Calls();
    const session = await openSession(calls.paddock, { ttlMs });
    const lease = await acquire(calls.paddock, unique('heard'), { session });
    await watched(calls, 1);
    const told = aborted(lease.signal);
    const began = Date.now();
    await direct().revokeSession(session.ref, { reason: 'maintenance' });
    const tookMs = (await told) - began;
    t.diagnostic(`heard after ${tookMs} ms`);
    assert.ok(tookMs < 2_000, `heard after ${tookMs} ms`);
    assert.deepEqual([session.err?.code, session.err?.ended, lease.err?.code, lease.err?.reason], ['session_lost', 'revoked', 'lease_lost', 'maintenance']);
  });

  test('also if it happened before the hub began', limit, async () => {
    const calls = new Calls();
    const lease = await acquire(calls.paddock, unique('early'), { ttlMs });
    assert.equal(calls.count('/v1/events/wait'), 0);
    assert.ok((await revoked(lease)) < 2_000);
  });

  test('after a gap', limit, async () => {
    const calls = new Calls();
    const lease = await acquire(calls.paddock, unique('gap'), { ttlMs });
    await watched(calls, 1);
    const renewals = () => calls.count(`/v1/locks/${lease.name}/renew`);
    const before = renewals();
    calls.answer = () => heard({ gap: true });
    const other = await acquire(calls.paddock, unique('gap'), { ttlMs }); // gives up the open call
    await until('it renews', () => renewals() > before);
    calls.answer = undefined;
    await Promise.all([lease.release(), other.release()]);
  });
});

test('the renewal alone decides: a false hint and a failing hub lose nothing', limit, async () => {
  const calls = new Calls();
  const lease = await acquire(calls.paddock, unique('false'), { ttlMs });
  const renewals = () => calls.count(`/v1/locks/${lease.name}/renew`);
  const event = { id: 1, at: new Date().toISOString(), lock: lease.name, slot: 0, revision: 1, kind: 'revoked', fencing_token: lease.token };
  calls.answer = () => heard({ events: [event] });
  await until('hints make it renew', () => renewals() > 3);
  calls.answer = () => new Response('no', { status: 502 });
  const failed = calls.count('/v1/events/wait');
  await until('the hub tries again', () => calls.count('/v1/events/wait') > failed + 1);
  assert.equal(lease.state, 'held');
  calls.answer = undefined;
  await watched(calls, 1);
  await lease.release();
});

describe('the end of a lease of a session that no event tells of is found', { concurrency: true }, () => {
  const refusal = () => new Response('{"code":"invalid_request","detail":"cursor is invalid."}',
    { status: 400, headers: { 'Content-Type': 'application/problem+json', 'Paddock-Api': 'v1' } });
  const answers = {
    'after a gap': (calls: Calls) => (calls.answer = () => heard({ gap: true })),
    'after an unreadable event': (calls: Calls) => (calls.answer = () => heard({ unreadable: [{ id: 1, detail: 'kind is 99' }] })),
    'after a refused cursor': (calls: Calls) => (calls.answer = () => {
      calls.answer = undefined;
      return refusal();
    }),
  };
  for (const [when, answer] of Object.entries(answers)) {
    test(when, limit, async () => {
      const calls = new Calls();
      const session = await openSession(calls.paddock, { ttlMs });
      const [[ended, leaseId], [kept]] = [await leased(calls.paddock, session), await leased(calls.paddock, session)];
      await watched(calls, 2);
      let answered = 0;
      calls.answer = () => {
        answered++;
        return heard();
      };
      const other = await acquire(calls.paddock, unique('other'), { ttlMs }); // gives up the open call
      await until('the service is not asked any more', () => answered > 0);
      await direct().release(ended.name, { lease_id: leaseId });
      assert.equal(ended.state, 'held');
      answer(calls);
      await until('it is lost', () => ended.err !== undefined);
      assert.deepEqual([ended.err?.code, ended.err?.ended, kept.state], ['lease_lost', 'released', 'held']);
      await Promise.all([session.close(), other.release()]);
    });
  }

  test('while it is asked for', limit, async () => {
    const calls = new Calls();
    let batches = 0;
    let goOn = () => {};
    const held = new Promise<void>((resolve) => (goOn = resolve));
    const slow = { ...calls.paddock, batch: async (...call: Parameters<Paddock['batch']>) => {
      const answer = await calls.paddock.batch(...call);
      batches++;
      await held;
      return answer;
    } };
    const session = await openSession(slow, { ttlMs });
    const [[revoked], [ended, leaseId]] = [await leased(slow, session), await leased(slow, session)];
    await watched(calls, 2);
    await direct().revoke(revoked.name, { fencing_token: revoked.token, reason: 'maintenance' });
    await until('it asks for both', () => batches === 1);
    await direct().release(ended.name, { lease_id: leaseId });
    await until('it has the event', () => calls.told.some((answer) => answer.includes('"released"')));
    const before = calls.sent.length;
    await until('it has heard of the release', () => calls.sent.length > before || calls.open > 0);
    goOn();
    await until('both are lost', () => revoked.err !== undefined && ended.err !== undefined);
    assert.deepEqual([revoked.err?.ended, ended.err?.ended], ['revoked', 'released']);
    await session.close();
  });
});

test('after a gap, the leases of a client do not renew all at once', limit, async (t) => {
  const calls = new Calls();
  const leases = await Promise.all(Array.from({ length: 100 }, () => acquire(calls.paddock, unique('many'), { ttlMs })));
  const renewals = () => calls.at.filter((_, i) => calls.paths[i]!.endsWith('/renew'));
  await watched(calls, leases.length);
  await until('the first ones are done', () => renewals().length === leases.length);
  calls.answer = () => {
    calls.answer = () => heard();
    return heard({ gap: true });
  };
  const other = await acquire(calls.paddock, unique('many'), { ttlMs }); // gives up the open call
  const last = await until('all renew once more', () => renewals().length >= 2 * leases.length && renewals().at(-1));
  const tookMs = last - renewals()[leases.length]!;
  t.diagnostic(`they renewed within ${Math.round(tookMs)} ms`);
  assert.ok(tookMs > 1_000, `all renewed within ${tookMs} ms`);
  await Promise.all([other, ...leases].map((lease) => lease.release()));
});

test('on a busy lock there is a pause between two calls', limit, async () => {
  const calls = new Calls();
  const event = { id: 1, at: new Date().toISOString(), slot: 0, revision: 1, kind: 'released', fencing_token: 1_000_000 };
  const lease = await acquire(calls.paddock, unique('busy'), { ttlMs });
  calls.answer = () => heard({ events: [{ ...event, lock: lease.name }] });
  await until('the hub calls', () => calls.sent.length > 4);
  const meanMs = (calls.sent.at(-1)! - calls.sent[0]!) / (calls.sent.length - 1); // a busy machine may note one of them late
  assert.ok(meanMs > 200, `a call each ${meanMs} ms`);
  await lease.release();
});

test('a client hears although answers are slow and leases join all the time', limit, async (t) => {
  const calls = new Calls();
  const lease = await acquire(calls.paddock, unique('slow'), { ttlMs });
  await watched(calls, 1);
  calls.delayMs = 400;
  const joined: Lease[] = [];
  let joining = true;
  const join = async () => {
    for (; joining; await sleep(100)) {
      joined.push(await acquire(calls.paddock, unique('joins'), { ttlMs }));
    }
  };
  const joins = join();
  await until('the first ones are watched', () => calls.watched.at(-1)! > 5);
  try {
    await direct().revoke(lease.name, { fencing_token: lease.token, reason: 'maintenance' });
    const began = performance.now();
    await until('it is heard', () => lease.err !== undefined, 20_000);
    t.diagnostic(`heard after ${Math.round(performance.now() - began)} ms`);
  } finally {
    joining = false;
    await joins;
    await Promise.all(joined.map((other) => other.release()));
  }
  assert.equal(lease.err?.code, 'lease_lost');
});

test('the pause after a refusal goes on when the last lease leaves', limit, async () => {
  const [calls, other] = [new Calls(), new Calls()];
  calls.answer = () => Response.json({ code: 'forbidden', detail: 'No.' }, { status: 403, headers: { 'Paddock-Api': 'v1', 'Content-Type': 'application/problem+json' } });
  const refused = await acquire(calls.paddock, unique('refused'), { ttlMs });
  await until('the service refuses', () => calls.sent.length === 1 && calls.open === 0);
  await refused.release();
  const next = await acquire(calls.paddock, unique('refused'), { ttlMs });
  const later = await acquire(other.paddock, unique('allowed'), { ttlMs });
  await until('the other client calls', () => other.sent.length > 1);
  assert.equal(calls.sent.length, 1);
  await Promise.all([next.release(), later.release()]);
});

test('a short critical section costs no call of the hub, and nothing is watched after the release', limit, async () => {
  const calls = new Calls();
  for (let i = 0; i < 5; i++) {
    await guard(calls.paddock, unique('short'), {}, () => undefined);
  }
  assert.equal(calls.count('/v1/events/wait'), 0);
  const lease = await acquire(calls.paddock, unique('long'), { ttlMs });
  await watched(calls, 1);
  await lease.release();
  await until('the call has ended', () => calls.open === 0);
  assert.equal(lease.err?.code, 'lease_released');
});

test('1,000 guards have one connection for it', { timeout: 170_000 }, async (t) => {
  const calls = new Calls();
  const held: Lease[] = [];
  const ending = new AbortController();
  t.after(() => ending.abort());
  const works: Promise<unknown>[] = [];
  for (let start = 0; start < 1_000; start += 50) {
    works.push(...Array.from({ length: 50 }, (_, i) => guard(calls.paddock, unique(`thousand-${start + i}`), { ttlMs, signal: ending.signal }, (lease) => {
      held.push(lease);
      return new Promise<void>((resolve) => lease.signal.addEventListener('abort', () => resolve()));
    }).catch((error: unknown) => error)));
    await until('they run', () => held.length === start + 50);
  }
  await watched(calls, 1_000);
  assert.equal(calls.mostOpen, 1);
  const tookMs = await revoked(held[500]!);
  t.diagnostic(`one of 1,000 heard after ${tookMs} ms; ${calls.count('/v1/events/wait')} calls of the hub`);
  assert.ok(tookMs < 3_000, `heard after ${tookMs} ms`);
  ending.abort();
  assert.equal((await Promise.all(works)).filter((error) => error !== undefined).length, 1);
  assert.equal(calls.mostOpen, 1);
});
