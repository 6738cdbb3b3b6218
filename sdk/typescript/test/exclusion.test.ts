import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { createPaddock, guard, PaddockError, type Lease } from '../dist/index.js';
import { Proxy, type Mode } from './proxy.js';
import { direct, lockEvents, unique, until } from './service.js';

const contenders = 6;
const target = 20; // runs of the work

test('contenders behind failing connections never hold one lock at the same time', { timeout: 120_000 }, async (t) => {
  const name = unique('contended');
  const proxies = await Promise.all(Array.from({ length: contenders }, () => Proxy.open()));
  t.after(() => Promise.all(proxies.map((proxy) => proxy.close())));
  const ended = new AbortController();
  const inside = new Set<Lease>();
  const tokens: number[] = [];

  const work = async (lease: Lease) => {
    assert.deepEqual([...inside].filter((other) => other.held()), [], 'another contender holds the lock');
    inside.add(lease);
    tokens.push(lease.token);
    try {
      await sleep(Math.random() * 200);
    } finally {
      inside.delete(lease);
    }
  };
  const contend = async (proxy: Proxy) => {
    const paddock = createPaddock({ baseUrl: proxy.url });
    while (!ended.signal.aborted) {
      await guard(paddock, name, { ttlMs: 1_500, marginMs: 500, waitMs: 1_000, signal: ended.signal }, work).catch(expected);
    }
  };
  const disturb = async (proxy: Proxy) => {
    const modes: Mode[] = ['pass', 'pass', 'swallow', 'refuse'];
    while (!ended.signal.aborted) {
      proxy.mode = modes[Math.floor(Math.random() * modes.length)]!;
      proxy.cuts = Math.random() < 0.3 ? 1 : 0;
      await sleep(Math.random() * 1_000);
    }
    proxy.mode = 'pass';
  };
  const expected = (error: unknown) => {
    const known = ['lock_held', 'lease_lost', 'unavailable', 'unknown_outcome'];
    assert.ok(error === ended.signal.reason || (error instanceof PaddockError && known.includes(error.code)), String(error));
  };

  const all = Promise.all(proxies.flatMap((proxy) => [contend(proxy), disturb(proxy)]));
  await Promise.race([all, until('the work ran often enough', () => tokens.length >= target, 90_000)]);
  ended.abort(new Error('enough'));
  await all;
  assert.deepEqual(tokens, [...new Set(tokens)].sort((a, b) => a - b), 'tokens increase');
  const granted = (await lockEvents(direct(), name)).filter((event) => event.kind === 'granted').map((event) => event.fencing_token!);
  assert.deepEqual(tokens.filter((token) => !granted.includes(token)), [], 'each token was granted');
  t.diagnostic(`${tokens.length} runs under ${granted.length} grants`);
});
