import assert from 'node:assert/strict';
import { mock, test } from 'node:test';

import { acquire } from '../dist/index.js';
import { Deadline, mark } from '../dist/clock.js';
import { backoff, isRetryable } from '../dist/retry.js';
import { PaddockError } from '../dist/error.js';
import { direct, unique, until } from './service.js';

const clocks = {
  wall: { of: Date, now: Date.now },
  steady: { of: performance, now: performance.now.bind(performance) },
};

/** shifted runs the work while one of the clocks is wrong by the given milliseconds. */
async function shifted(clock: keyof typeof clocks, ms: number, work: () => void | Promise<void>): Promise<void> {
  const { of, now } = clocks[clock];
  const wrong = mock.method(of, 'now', () => now() + ms);
  try {
    await work();
  } finally {
    wrong.mock.restore();
  }
}

test('a deadline passes on the clock that advanced more', async () => {
  const cases: [clock: keyof typeof clocks, shift: number, passed: boolean][] = [
    ['wall', 60_000, true],
    ['steady', 60_000, true],
    ['wall', -3_600_000, false],
    ['wall', 10_000, false],
  ];
  for (const [clock, shift, passed] of cases) {
    const deadline = new Deadline(mark(), 60_000);
    assert.equal(deadline.passed(), false);
    await shifted(clock, shift, () => assert.equal(deadline.passed(), passed, `${clock} ${shift}`));
  }
  assert.equal(new Deadline(mark(), Infinity).passed(), false);
});

test('a suspension longer than the TTL loses the lease, with or without a check', { timeout: 60_000 }, async () => {
  const checked = await acquire(direct(), unique('checked'), { ttlMs: 600_000 });
  const unchecked = await acquire(direct(), unique('unchecked'), { ttlMs: 600_000 });
  await shifted('wall', 600_000, async () => { // a suspension stops the steady clock and the timers, but not the wall clock
    assert.equal(checked.held(), false);
    assert.throws(() => checked.check(), { code: 'lease_lost' });
    assert.equal(checked.signal.aborted, true);
    await until('the other lease is lost', () => unchecked.signal.aborted);
  });
  assert.equal(unchecked.state, 'lost');
  await Promise.allSettled([checked.release(), unchecked.release()]);
});

test('the backoff grows to its maximum and respects Retry-After', () => {
  for (let failures = 0; failures < 2_000; failures++) {
    const ms = backoff(failures, 100, 5_000);
    const whole = Math.min(100 * 2 ** failures, 5_000);
    assert.ok(ms >= whole / 2 && ms <= whole, `${failures}: ${ms}`);
  }
  assert.ok(backoff(0, 100, 5_000, new PaddockError('unavailable', '', { retryAfterMs: 3_000 })) >= 3_000);
  assert.ok(backoff(0, 100, 5_000, new PaddockError('unavailable', '', { retryAfterMs: 600_000 })) <= 5_000);
});

test('an outage is retried and a rejection is not', () => {
  const cases: [code: string, status: number | undefined, retryable: boolean][] = [
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
  for (const [code, status, retryable] of cases) {
    assert.equal(isRetryable(new PaddockError(code, '', status === undefined ? {} : { status })), retryable, `${code} ${status}`);
  }
  assert.equal(isRetryable(new Error('a bug')), false);
});
