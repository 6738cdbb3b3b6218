// The cases that the clients for all languages have in common, on a clock that only the test moves.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { afterEach, describe, mock, test } from 'node:test';

import { createPaddock } from '../dist/index.js';

/** A Call is one in client/testdata/waits.json, which says what its members mean. */
interface Call {
  later_ms?: number;
  ready?: string;
  to: string;
  wait_ms: number;
  gets: string;
  after_ms: number;
  beside?: number;
}

const table = new URL('../../../client/testdata/waits.json', import.meta.url);
const { cases } = JSON.parse(readFileSync(table, 'utf8')) as { cases: { name: string; addresses: number; calls: Call[] }[] };

/** A Clock stands still, but for advance. Its timers fire then. */
class Clock {
  #now = 1_000;
  readonly #timers = new Map<object, { at: number; fire: () => void }>();

  constructor() {
    mock.method(performance, 'now', () => this.#now);
    mock.method(Date, 'now', () => this.#now);
    mock.method(globalThis, 'setTimeout', (fire: () => void, ms: number) => {
      const timer = {};
      this.#timers.set(timer, { at: this.#now + ms, fire });
      return timer;
    });
    mock.method(globalThis, 'clearTimeout', (timer: object) => this.#timers.delete(timer));
  }

  advance(ms: number): void {
    this.#now += ms;
    for (const [timer, { at, fire }] of [...this.#timers]) {
      if (at <= this.#now && this.#timers.delete(timer)) {
        fire();
      }
    }
  }
}

/** settled resolves when everything has happened that needs no timer. */
async function settled(): Promise<void> {
  for (let i = 0; i < 10; i++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function outcome({ gets }: Call): Promise<Response> {
  const broken = (syscall: string) => Promise.reject(new TypeError('fetch failed', { cause: Object.assign(new Error(syscall), { syscall }) }));
  const headers = { 'Content-Type': 'application/problem+json', 'Paddock-Api': 'v1' };
  switch (gets) {
    case 'answer': return Promise.resolve(new Response('{"code":"lock_held","detail":"Held."}', { status: 409, headers }));
    case 'broken': return broken('read');
    case 'refused': return broken('connect');
    case '502': case '504': return Promise.resolve(new Response('No.', { status: Number(gets) }));
    default: return Promise.resolve(new Response('{"code":"unavailable","detail":"No."}', { status: Number(gets), headers }));
  }
}

async function run(addresses: number, calls: Call[]): Promise<string[]> {
  const clock = new Clock();
  const left = [...calls];
  const sent: string[] = [];
  const beside: (() => void)[] = [];
  let ready = '';
  let current: Call;
  const paddock = createPaddock({
    baseUrl: ['http://a', 'http://b', 'http://c'].slice(0, addresses).join(','),
    fetch: async (input) => {
      const request = input as Request;
      const { host, pathname } = new URL(request.url);
      if (pathname === '/readyz') {
        return new Response('{}', { status: ready.includes(host) ? 200 : 503, headers: { 'Paddock-Api': 'v1' } });
      }
      if (pathname.includes('beside')) {
        await new Promise<void>((resolve) => beside.push(resolve));
        return outcome(current);
      }
      const { wait_ms } = JSON.parse(await request.text()) as { wait_ms: number };
      sent.push(`${host} waits ${wait_ms} ms`);
      const call = current = left.shift() ?? calls[0]!;
      for (let i = 0; i < (call.beside ?? 0); i++) {
        void wait(`beside-${i}`);
      }
      await settled();
      if (call.gets === 'silent') {
        clock.advance(call.after_ms - 1);
        await settled();
        assert.ok(!request.signal.aborted, 'it counts as silent too soon');
        setImmediate(() => clock.advance(1));
        return new Promise(() => undefined);
      }
      clock.advance(call.after_ms);
      beside.splice(0).forEach((resolve) => resolve());
      return outcome(call);
    },
  });
  const { waits } = (paddock as unknown as { common: { waits: { longest(): number } } }).common;
  const wait = (name: string) => {
    const wait_ms = waits.longest();
    const body = { holder: 'w', lease_id: '5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11', wait_ms };
    return paddock.acquire(name, body, { timeoutMs: wait_ms + 10_000 }).catch(() => undefined); // what it sends counts
  };
  while (left.length > 0) {
    clock.advance(left[0]!.later_ms ?? 0);
    ready = left[0]!.ready ?? ready;
    await wait('jobs');
    await settled();
  }
  return sent;
}

describe('of calls that wait:', () => {
  afterEach(() => mock.restoreAll());

  for (const { name, addresses, calls } of cases) {
    test(name, async () => {
      assert.deepEqual(await run(addresses, calls), calls.map(({ to, wait_ms }) => `${to} waits ${wait_ms} ms`));
    });
  }
});
