import { randomBytes } from 'node:crypto';
import { after } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { createPaddock, type components, type Paddock } from '../dist/index.js';

// A test may await what only a hub will tell, and hubs let a process exit that has nothing else to do.
const alive = setInterval(() => {}, 60_000);
after(() => clearInterval(alive));

/** The address of the service under test. */
export const serviceUrl = process.env['PADDOCK_URL'] ?? 'http://127.0.0.1:8080';

/** direct returns a client without a proxy in between. */
export function direct(): Paddock {
  return createPaddock({ baseUrl: serviceUrl });
}

/** unique returns the name of a lock that no other test uses. */
export function unique(name: string): string {
  return `${name}:${randomBytes(6).toString('hex')}`;
}

/** until polls and resolves with the first result that is not undefined or false; it rejects after the timeout. */
export async function until<T>(condition: string, poll: () => Promise<T | undefined | false> | T | undefined | false, timeoutMs = 30_000): Promise<T> {
  const end = performance.now() + timeoutMs;
  while (performance.now() < end) {
    const got = await poll();
    if (got !== undefined && got !== false) {
      return got;
    }
    await sleep(10);
  }
  throw new Error(`${condition}: not within ${timeoutMs} ms`);
}

/** waiters resolves when the lock has that many waiters. */
export async function waiters(paddock: Paddock, name: string, count: number): Promise<void> {
  await until(`${name} has ${count} waiters`, async () => (await paddock.queue(name)).waiters.length === count);
}

/** aborted resolves with the wall-clock time at which the signal was aborted. */
export function aborted(signal: AbortSignal): Promise<number> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve(Date.now());
    }
    signal.addEventListener('abort', () => resolve(Date.now()), { once: true });
  });
}

/** lockEvents resolves with the events of the lock, oldest first. */
export async function lockEvents(paddock: Paddock, name: string): Promise<components['schemas']['Event'][]> {
  return (await paddock.events({ lock: name, limit: 1000 })).events;
}

/** kinds resolves with the kinds of the lock's events, oldest first. */
export async function kinds(paddock: Paddock, name: string): Promise<string[]> {
  return (await lockEvents(paddock, name)).map((event) => event.kind);
}
