import assert from 'node:assert/strict';
import { mock, test } from 'node:test';

import { acquire } from '../dist/index.js';
import { Deadline, mark } from '../dist/clock.js';
import { backoff, maySendAgain } from '../dist/retry.js';
import { PaddockError } from '../dist/error.js';
import { direct, unique, until } from './service.js';

const clocks = {
  wall: { of: Date, now: Date.now },
  steady: { of: performance, now: performance.now.bind(performance) },
};

/** shifted runs the work while one of the clocks goes wrong by so many milliseconds. */
async function shifted(clock: keyof typeof clocks, ms: number, work: () => void | Promise<void>): Promise<void> {
  const { of, now } = clocks[clock];
  const wrong = mock.method(of, 'now', () => now() + ms);
  try {
    await work();
  } finally {
    wrong.mock.restore();
  }
}

test('a deadline comes by whichever clock is farther', async () => {
  const cases: [clock: keyof typeof clocks, shift: number, over: boolean][] = [
    ['wall', 60_000, true],
    ['steady', 60_000, true],
    ['wall', -3_600_000, false],
    ['wall', 10_000, false],
  ];
  for (const [clock, shift, over] of cases) {
    const deadline = new Deadline(mark(), 60_000);
    assert.equal(deadline.over(), false);
    await shifted(clock, shift, () => assert.equal(deadline.over(), over, `${clock} ${shift}`));
  }
  assert.equal(new Deadline(mark(), Infinity).over(), false);
});

test('a machine that was suspended past the TTL has lost its leases, asked or not', { timeout: 60_000 }, async () => {
  const asked = await acquire(direct(), unique('asked'), { ttlMs: 600_000 });
  const waiting = await acquire(direct(), unique('not-asked'), { ttlMs: 600_000 });
  await shifted('wall', 600_000, async () => { // a suspension stops the steady clock and the timers, never the wall clock
    assert.equal(asked.held(), false);
    assert.throws(() => asked.check(), { code: 'lease_lost' });
    assert.equal(asked.signal.aborted, true);
    await until('the other is noticed', () => waiting.signal.aborted);
  });
  assert.equal(waiting.state, 'lost');
  await Promise.allSettled([asked.release(), waiting.release()]);
});

test('a pause grows up to its bound, and is no shorter than the service asks', () => {
  for (let failures = 0; failures < 2_000; failures++) {
    const ms = backoff(failures, 100, 5_000);
    const whole = Math.min(100 * 2 ** failures, 5_000);
    assert.ok(ms >= whole / 2 && ms <= whole, `${failures}: ${ms}`);
  }
  assert.ok(backoff(0, 100, 5_000, new PaddockError('unavailable', '', { retryAfterMs: 3_000 })) >= 3_000);
  assert.ok(backoff(0, 100, 5_000, new PaddockError('unavailable', '', { retryAfterMs: 600_000 })) <= 5_000);
});

test('an outage is tried again, a refusal is not', () => {
  const cases: [code: string, status: number | undefined, again: boolean][] = [
    ['unavailable', undefined, true],
    ['unavailable', 503, true],
    ['unavailable', 429, true],
    ['unknown_outcome', 502, true],
    ['unknown_outcome', undefined, true],
    ['too_many_waiters', 429, true],
    ['internal', 500, true],
    ['unavailable', 404, false],
    ['unavailable', 401, false],
    ['unknown_outcome', 302, false],
    ['lock_held', 409, false],
    ['invalid_request', 400, false],
  ];
  for (const [code, status, again] of cases) {
    assert.equal(maySendAgain(new PaddockError(code, '', status === undefined ? {} : { status })), again, `${code} ${status}`);
  }
  assert.equal(maySendAgain(new Error('a bug')), false);
});
