import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

import { createPaddock, type components, type Paddock } from '../dist/index.js';

/** The address of the service that the tests run against. */
export const serviceUrl = process.env['PADDOCK_URL'] ?? 'http://127.0.0.1:8080';

/** direct returns the service's calls without anything between. */
export function direct(): Paddock {
  return createPaddock({ baseUrl: serviceUrl });
}

/** unique returns the name of a lock that no other test has. */
export function unique(name: string): string {
  return `${name}:${randomBytes(6).toString('hex')}`;
}

/** until resolves with the first result that is not undefined or false, and rejects after the milliseconds. */
export async function until<T>(what: string, ask: () => Promise<T | undefined | false> | T | undefined | false, withinMs = 30_000): Promise<T> {
  const end = performance.now() + withinMs;
  while (performance.now() < end) {
    const got = await ask();
    if (got !== undefined && got !== false) {
      return got;
    }
    await sleep(10);
  }
  throw new Error(`${what}: not within ${withinMs} ms`);
}

/** waiters resolves once so many wait for the lock. */
export async function waiters(paddock: Paddock, name: string, count: number): Promise<void> {
  await until(`${count} wait for ${name}`, async () => (await paddock.queue(name)).waiters.length === count);
}

/** aborted resolves with the wall clock's time at which the signal was aborted. */
export function aborted(signal: AbortSignal): Promise<number> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve(Date.now());
    }
    signal.addEventListener('abort', () => resolve(Date.now()), { once: true });
  });
}

/** story resolves with the events of the lock, oldest first. */
export async function story(paddock: Paddock, name: string): Promise<components['schemas']['Event'][]> {
  return (await paddock.events({ lock: name, limit: 1000 })).events;
}

/** kinds resolves with the kinds of the lock's events, oldest first. */
export async function kinds(paddock: Paddock, name: string): Promise<string[]> {
  return (await story(paddock, name)).map((event) => event.kind);
}
