import assert from 'node:assert/strict';
import { test } from 'node:test';

import * as sdk from '../dist/index.js';
import { direct, unique } from './service.js';

type Call = (...args: unknown[]) => unknown;
type Untyped = Record<string, Call>;

/** The functions of the SDK as JavaScript calls them. */
const { acquire, campaign, createPaddock, currentLeader, guard, observeLeader, once, openSession, streamEvents, watchLock } = sdk as unknown as Untyped;

const baseUrl = 'http://paddock.test';
const paddock = sdk.createPaddock({ baseUrl, fetch: () => assert.fail('a request was sent') });
const calls = Object.entries(paddock).filter((entry): entry is [string, Call] => typeof entry[1] === 'function');

/** told calls a function and resolves with the message of its TypeError, also if that comes with the first item. */
async function told(call: () => unknown): Promise<string> {
  try {
    const result = await call();
    await (result as AsyncGenerator | undefined)?.next?.();
  } catch (error) {
    assert.ok(error instanceof TypeError, String(error));
    return error.message;
  }
  return assert.fail(`no error: ${call}`);
}

const aboutClient = 'an object such as { baseUrl: \'http://127.0.0.1:8080\' }.';
const aboutUrl = 'a string such as http://127.0.0.1:8080; several URLs have commas between them.';
const aboutName = 'the name of a lock as a string, or an array of names.';
const aboutPaddock = 'the client that createPaddock returns.';
const aboutSession = 'the Session with which openSession resolves.';
const aboutOptions = 'an object with options, or leave it out.';
const aboutHeaders = 'an object whose members are the headers, as strings.';

test('a wrong argument is a TypeError that says what to pass, and no request is sent', async () => {
  const cases: [call: () => unknown, message: string][] = [
    [() => createPaddock!(), `options is missing; pass ${aboutClient}`],
    [() => createPaddock!(baseUrl), `options is a string; pass ${aboutClient}`],
    [() => createPaddock!(null), `options is null; pass ${aboutClient}`],
    [() => createPaddock!({}), `baseUrl is missing; pass ${aboutUrl}`],
    [() => createPaddock!({ baseUrl: new URL(baseUrl) }), `baseUrl is an object of the class URL; pass ${aboutUrl}`],
    [() => createPaddock!({ baseUrl: [baseUrl] }), `baseUrl is an array; pass ${aboutUrl}`],
    [() => createPaddock!({ baseUrl, key: 5 }), 'key is a number; pass the API key as a string, or a function that returns it.'],
    [() => createPaddock!({ baseUrl, fetch: 'fetch' }), 'fetch is a string; pass a function like fetch.'],
    [() => createPaddock!({ baseUrl, headers: new Headers() }), `headers is an object of the class Headers; pass ${aboutHeaders}`],
    [() => createPaddock!({ baseUrl, headers: { 'X-Team': 5 } }), `headers is an object; pass ${aboutHeaders}`],
    [() => createPaddock!({ baseURL: baseUrl }), `baseURL is not an option of createPaddock; pass baseUrl, ${aboutUrl}`],
    [() => createPaddock!({ baseUrl, timeout: 5 }), 'timeout is not an option of createPaddock; its options are baseUrl, key, fetch, headers.'],

    [() => once!('jobs'), `paddock is a string; pass ${aboutPaddock}`],
    [() => once!(paddock, ['jobs'], { atLeastMs: 1 }, () => 0), 'name is an array; pass a string.'],
    [() => once!(paddock, 'jobs', () => 0), "options is a function; pass an object such as { period: 'day' }."],
    [() => once!(paddock, 'jobs', { atLeast: 1 }, () => 0), 'atLeast is not an option of once; pass atLeastMs, a number of milliseconds.'],
    [() => once!(paddock, 'jobs', { period: 60 }, () => 0), 'period is a number; pass a string.'],
    [() => once!(paddock, 'jobs', { atLeastMs: 1 }), 'work is missing; pass a function, which gets the lease.'],
    [() => paddock.freeze('billing:', undefined as never), 'request is missing; pass an object with the members of the request.'],

    [() => acquire!('jobs'), `paddock is a string; pass ${aboutPaddock}`],
    [() => acquire!(Promise.resolve(paddock), 'jobs'), `paddock is a Promise that was not awaited; pass ${aboutPaddock}`],
    [() => acquire!(paddock), `name is missing; pass ${aboutName}`],
    [() => acquire!(paddock, { name: 'jobs' }), `name is an object; pass ${aboutName}`],
    [() => acquire!(paddock, ['jobs', 5]), 'name[1] is a number; pass a name as a string, or an object with a name.'],
    [() => acquire!(paddock, ['jobs', { mode: 'shared' }]), 'name[1] is an object; pass a name as a string, or an object with a name.'],
    [() => acquire!(paddock, 'jobs', null), `options is null; pass ${aboutOptions}`],
    [() => acquire!(paddock, 'jobs', 5_000), `options is a number; pass ${aboutOptions}`],
    [() => acquire!(paddock, 'jobs', []), `options is an array; pass ${aboutOptions}`],
    [() => acquire!(paddock, 'jobs', { ttl: 5 }), 'ttl is not an option of acquire; pass ttlMs, a number of milliseconds.'],
    [() => acquire!(paddock, 'jobs', { max_hold_ms: 5 }), 'max_hold_ms is not an option of acquire; pass maxHoldMs, a number of milliseconds.'],
    [() => acquire!(paddock, 'jobs', { waitSeconds: 5 }), 'waitSeconds is not an option of acquire; pass waitMs, a number of milliseconds.'],
    [() => acquire!(paddock, 'jobs', { onstate: () => undefined }), 'onstate is not an option of acquire; pass onState, a function.'],
    [() => acquire!(paddock, 'jobs', { constructor: 5 }), 'constructor is not an option of acquire; its options are holder, ttlMs, graceMs, retryMs, marginMs, signal, onState, ' +
      'onRetry, onRenewed, maxHoldMs, onExpiry, waitMs, session, taskId, onAcquired, mode, capacity, permits, metadata.'],
    [() => acquire!(paddock, 'jobs', { ttlMs: '5000' }), 'ttlMs is a string; pass a number of milliseconds.'],
    [() => acquire!(paddock, 'jobs', { waitMs: null }), 'waitMs is null; pass a number of milliseconds.'],
    [() => acquire!(paddock, 'jobs', { metadata: { n: 1n } }), 'metadata is an object; pass an object that JSON can represent.'],
    [() => acquire!(paddock, 'jobs', { signal: new AbortController() }), 'signal is an object of the class AbortController; pass an AbortSignal.'],
    [() => acquire!(paddock, 'jobs', { onRetry: 'log' }), 'onRetry is a string; pass a function.'],
    [() => acquire!(paddock, 'jobs', { session: 'secret' }), `session is a string; pass ${aboutSession}`],
    [() => acquire!(paddock, 'jobs', { session: Promise.resolve() }), `session is a Promise that was not awaited; pass ${aboutSession}`],
    [() => acquire!(paddock, 'jobs', { session: paddock }), `session is an object; pass ${aboutSession}`],

    [() => guard!(undefined, 'jobs', () => undefined), `paddock is missing; pass ${aboutPaddock}`],
    [() => guard!(paddock, () => undefined), `name is a function; pass ${aboutName}`],
    [() => guard!(paddock, 'jobs'), 'work is missing; pass a function, which gets the lease.'],
    [() => guard!(paddock, 'jobs', { ttlMs: 5_000 }), 'work is missing; pass a function, which gets the lease.'],
    [() => guard!(paddock, 'jobs', {}, Promise.resolve()), 'work is a Promise that was not awaited; pass a function, which gets the lease.'],
    [() => guard!(paddock, 'jobs', () => undefined, {}), `options is a function; pass ${aboutOptions}`],
    [() => guard!(paddock, 'jobs', { wait: 5 }, () => undefined), 'wait is not an option of guard; pass waitMs, a number of milliseconds.'],

    [() => campaign!('leader', 'http://a'), `paddock is a string; pass ${aboutPaddock}`],
    [() => campaign!(paddock, ['leader'], 'http://a'), 'name is an array; pass a string.'],
    [() => campaign!(paddock, 'leader'), 'value is missing; pass a string.'],
    [() => campaign!(paddock, 'leader', { waitMs: 5 }), 'value is an object; pass a string.'],
    [() => campaign!(paddock, 'leader', 'http://a', { mode: 'shared' }), 'mode is not an option of campaign; its options are holder, ttlMs, graceMs, retryMs, marginMs, signal, ' +
      'onState, onRetry, onRenewed, maxHoldMs, onExpiry, waitMs, session, taskId, onAcquired.'],
    [() => currentLeader!('leader'), `paddock is a string; pass ${aboutPaddock}`],
    [() => currentLeader!(paddock), 'name is missing; pass a string.'],
    [() => observeLeader!(undefined, 'leader'), `paddock is missing; pass ${aboutPaddock}`],
    [() => observeLeader!(paddock, undefined), 'name is missing; pass a string.'],
    [() => observeLeader!(paddock, 'leader', { timeoutMs: 5 }), 'timeoutMs is not an option of observeLeader; its options are signal, onRetry.'],
    [() => observeLeader!(paddock, 'leader', null), `options is null; pass ${aboutOptions}`],

    [() => openSession!(), `paddock is missing; pass ${aboutPaddock}`],
    [() => openSession!({ ttlMs: 5_000 }), `paddock is an object; pass ${aboutPaddock}`],
    [() => openSession!(paddock, 'worker-1'), `options is a string; pass ${aboutOptions}`],
    [() => openSession!(paddock, { session_id: 'secret' }), 'session_id is not an option of openSession; pass sessionId, a string.'],

    [() => streamEvents!(), `paddock is missing; pass ${aboutPaddock}`],
    [() => streamEvents!(paddock, 'jobs:'), `options is a string; pass ${aboutOptions}`],
    [() => streamEvents!(paddock, { prefix: 5 }), 'prefix is a number; pass a string.'],
    [() => watchLock!('jobs'), `paddock is a string; pass ${aboutPaddock}`],
    [() => watchLock!(paddock), 'name is missing; pass a string.'],
    [() => watchLock!(paddock, 'jobs', { signal: 5 }), 'signal is a number; pass an AbortSignal.'],
  ];
  for (const [call, message] of cases) {
    assert.equal(await told(call), message);
  }
});

test('each call of a client says what is wrong with its arguments', async () => {
  const right: Record<string, unknown> = { request: { locks: [], names: [], items: [] } };
  for (const [name, call] of calls) {
    const args: unknown[] = [];
    for (;;) { // each argument is missing, then wrong, then right
      const message = await told(() => call(...args, 5));
      const [, what] = /^(\w+) is a number; pass (?:a string|an object with [\w ,]+)\.$/.exec(message) ?? assert.fail(`${name}: ${message}`);
      if (what === 'options') {
        break;
      }
      if (what !== 'query') {
        assert.match(await told(() => call(...args)), new RegExp(`^${what} is missing; pass `), name);
      }
      args.push(right[what!] ?? (what === 'query' ? {} : 'jobs'));
    }
    assert.equal(await told(() => call(...args, { timeout: 5 })), `timeout is not an option of ${name}; pass timeoutMs, a number of milliseconds.`);
    assert.equal(await told(() => call(...args, null)), `options is null; pass ${aboutOptions}`);
  }
  assert.ok(calls.length > 20);
  const lists: [call: string, request: object, message: string][] = [
    ['acquireSet', { names: ['a'] }, 'locks'], ['acquireSet', { locks: [null] }, 'locks'], ['renewSet', { names: 'a' }, 'names'],
    ['releaseSet', {}, 'names'], ['batch', {}, 'items'],
  ];
  for (const [call, request, member] of lists) {
    assert.equal(await told(() => (paddock as unknown as Untyped)[call]!(request)), `request is an object; pass an object with the array ${member}.`);
  }
  const fenced = { lock: 'jobs', fencing_token: 1, value: 1n };
  assert.match(await told(() => paddock.writeFenced('jobs', fenced)), /^request has what JSON cannot represent, such as a BigInt or itself; pass plain data\.$/);
});

test('an option that is undefined is as if it were absent', async () => {
  const options = { ttlMs: undefined, signal: undefined, session: undefined, metadata: undefined };
  const lease = await sdk.acquire(direct(), unique('undefined'), options);
  await assert.rejects((lease as unknown as Untyped)['setMetadata']!('db-3') as Promise<void>, { name: 'TypeError', message: 'metadata is a string; pass an object that JSON can represent.' });
  await assert.rejects((lease as unknown as Untyped)['setMetadata']!({}, { timeout: 5 }) as Promise<void>, { name: 'TypeError', message: /^timeout is not an option of setMetadata; pass timeoutMs/ });
  await lease.release();
  const term = await sdk.campaign(direct(), unique('undefined'), 'http://a', { holder: undefined });
  await assert.rejects((term as unknown as Untyped)['proclaim']!(5) as Promise<void>, { name: 'TypeError', message: 'value is a number; pass a string.' });
  await term.resign();
});

test('a function that returns no key is no key', async () => {
  const unread = sdk.createPaddock({ baseUrl, key: (() => undefined) as unknown as () => string, fetch: () => assert.fail('a request was sent') });
  await assert.rejects(unread.lock('jobs'), { code: 'unavailable', detail: /^The API key cannot be read: key is missing; pass a string\./ });
});
