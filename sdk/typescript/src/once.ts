import { acquireLease } from './acquire.js';
import { checkOptions, client, expect, onceOptions, text, workOfGuard } from './arguments.js';
import type { Paddock } from './client.js';
import { hasCode, invalid } from './error.js';
import { withCause, type Work } from './guard.js';
import { Lease } from './lease.js';
import { omitUndefined } from './omit.js';
import type { Options } from './options.js';
import type { Closing } from './renewal.js';
import { finish } from './renewed.js';
import type { components } from './schema.js';
import { asTask } from './task.js';

type Period = components['schemas']['Period'];

/** periods are all periods of the calendar. */
const periods: readonly Period[] = ['minute', 'hour', 'day', 'week', 'month'];

/** maxClosedMs is the longest time that work can count as done. */
const maxClosedMs = 31 * 24 * 3_600_000;

/** OnceOptions are options of `once`: `period`, `atLeastMs` or both, and those of `guard` for an exclusive lock. */
export interface OnceOptions extends Omit<Options, 'mode' | 'capacity' | 'permits'> {
  /** The period of the calendar for which the work is done, on the database's clock. A week begins on Monday. */
  period?: Period | undefined;
  /** The time zone of the period: a name of the IANA database such as Europe/Berlin. The default is UTC. */
  timeZone?: string | undefined;
  /**
   * For how long the work is done at least, counted from the grant of its lease; without a period, exactly for so long. With
   * a period, choose more than the clocks of the machines differ, so that a call just before the end of a period and a call just
   * after it are not two turns.
   */
  atLeastMs?: number | undefined;
}

/** A Turn is what `once` has come to: this call has run the work, or it was done before. */
export type Turn<T> =
  | { readonly ran: true; readonly result: T }
  | {
    readonly ran: false;
    /** The holder that has done the work. */
    readonly doneBy: string;
    /** When the work was done, by the database's clock. */
    readonly doneAt: Date;
    /** How long the work still counts as done. */
    readonly leftMs: number;
  };

/**
 * Runs the work if no process has done it in this period, and then closes the lock for the rest of the period. All processes
 * that may do the work call it, such as the same cron job on several machines. The work is that of the period in which its
 * lease was granted. Work that was done before is a result, not an error: `ran` is false.
 *
 * If the work fails, or its process dies, the lock stays open, and the next call runs the work. While another process runs
 * it, `once` rejects with `lock_held`, or waits for `waitMs`: until the work is done, or to run it after a failure.
 *
 * Rejects like `guard`, and also if the release that closes the lock is not answered: then the work is done again.
 */
export async function once<T>(
  paddock: Paddock, name: string, options: OnceOptions, work: Work<T>,
): Promise<Turn<T>> {
  expect('paddock', paddock, client('acquire'));
  expect('name', name, text);
  checkOptions('once', options, onceOptions, "an object such as { period: 'day' }");
  expect('work', work, workOfGuard);
  const { period, timeZone, atLeastMs, ...rest } = options;
  const closing = closingOf(period, timeZone, atLeastMs);
  let lease: Lease;
  try {
    lease = await acquireLease(paddock, name, { ...rest, once: true }, true, Lease);
  } catch (error) {
    if (!hasCode(error, 'already_done')) {
      throw error;
    }
    return { ran: false, doneBy: error.holder!, doneAt: error.doneAt!, leftMs: error.retryAfterMs! };
  }
  let result: T;
  try {
    result = await asTask(lease.taskId, () => work(lease));
  } catch (error) {
    throw withCause(await finish(lease), error);
  }
  await lease.end(closing);
  return { ran: true, result };
}

/** closingOf returns what the release says. It throws `invalid_request` before the work, not after it. */
function closingOf(period: Period | undefined, timeZone: string | undefined, atLeastMs: number | undefined): Closing {
  if (period === undefined && !atLeastMs) {
    throw invalid('period', 'and atLeastMs are missing; give one of them, or both');
  }
  if (period !== undefined && !periods.includes(period)) {
    throw invalid('period', 'is invalid; use minute, hour, day, week or month');
  }
  if (atLeastMs !== undefined && !(atLeastMs >= 0 && atLeastMs <= maxClosedMs)) {
    throw invalid('atLeastMs', `is ${atLeastMs}; give 0 to ${maxClosedMs} (milliseconds)`);
  }
  if (timeZone !== undefined && period === undefined) {
    throw invalid('timeZone', 'is only valid with period; leave it out');
  }
  if (timeZone !== undefined && !isTimeZone(timeZone)) {
    throw invalid('timeZone', 'is unknown; give a name of the IANA database, such as Europe/Berlin, or leave it out for UTC');
  }
  return omitUndefined({ once_per: period, time_zone: timeZone, closed_ms: atLeastMs && Math.ceil(atLeastMs) });
}

/** isTimeZone reports whether the platform knows the name as the IANA database spells it. */
function isTimeZone(name: string): boolean {
  try {
    const known = new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone;
    return /^[A-Z]/.test(name) && (known === name || known.toLowerCase() !== name.toLowerCase());
  } catch {
    return false;
  }
}
