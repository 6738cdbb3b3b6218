import type { CallOptions, Paddock, PaddockOptions } from './client.js';
import type { CampaignOptions } from './election.js';
import type { OnceOptions } from './once.js';
import type { Options, SessionOptions } from './options.js';
import type { StreamOptions, WatchOptions } from './watch.js';

/**
 * This file has what JavaScript does not check: the types of all arguments and the names of all options. A wrong type, a
 * missing argument or an unknown option is a TypeError; a wrong value is `invalid_request`.
 */

/** An Expected is what an argument must be. */
export interface Expected {
  /** What to pass. */
  readonly words: string;
  fits(value: unknown): boolean;
}

/** A Table has all options of a call. */
type Table<O> = { readonly [Name in keyof Required<O>]: Expected };

/** expect throws a TypeError unless the argument is what it must be. It does not repeat the value, which may be a secret. */
export function expect(name: string, value: unknown, { words, fits }: Expected): void {
  if (!fits(value)) {
    throw new TypeError(`${name} is ${whatIs(value)}; pass ${words}.`);
  }
}

/** checkOptions throws a TypeError unless the options of the call are an object with options in the table, of their types. */
export function checkOptions<O extends object>(call: string, options: O, table: Table<O>, words = 'an object with options, or leave it out'): void {
  expect('options', options, { words, fits: isObject });
  const known = new Map(Object.entries<Expected>(table));
  for (const [name, value] of Object.entries(options)) {
    const expected = known.get(name);
    if (expected === undefined) {
      throw new TypeError(`${name} is not an option of ${call}; ${instead(name, known)}.`);
    }
    if (value !== undefined) {
      expect(name, value, expected);
    }
  }
}

/** instead says what to pass instead of an unknown option: the option that differs only in its spelling or its unit, or one of all. */
function instead(name: string, known: ReadonlyMap<string, Expected>): string {
  const plain = (option: string) => option.toLowerCase().replace(/[^a-z]/g, '').replace(/(ms|millis|milliseconds|sec|secs|seconds)$/, '');
  for (const [option, { words }] of known) {
    if (plain(option) === plain(name)) {
      return `pass ${option}, ${words}`;
    }
  }
  return `its options are ${[...known.keys()].join(', ')}`;
}

function whatIs(value: unknown): string {
  if (value === undefined) {
    return 'missing';
  }
  if (value instanceof Promise) {
    return 'a Promise that was not awaited';
  }
  if (!isObject(value)) {
    return value === null ? 'null' : Array.isArray(value) ? 'an array' : `a ${typeof value}`;
  }
  const kind = value.constructor?.name;
  return kind && kind !== 'Object' ? `an object of the class ${kind}` : 'an object';
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isText(value: unknown): boolean {
  return typeof value === 'string';
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function';
}

/** isJson reports whether JSON can represent the value. */
function isJson(value: unknown): boolean {
  try {
    return JSON.stringify(value) !== undefined;
  } catch {
    return false;
  }
}

export const text: Expected = { words: 'a string', fits: isText };
export const workOfGuard: Expected = { words: 'a function, which gets the lease', fits: isFunction };
export const jsonObject: Expected = { words: 'an object that JSON can represent', fits: (value) => isObject(value) && isJson(value) };
const number: Expected = { words: 'a number', fits: (value) => typeof value === 'number' };
const milliseconds: Expected = { ...number, words: 'a number of milliseconds' };
const callback: Expected = { words: 'a function', fits: isFunction };
const signal: Expected = { words: 'an AbortSignal', fits: (value) => value === null || (isObject(value) && isFunction(value['throwIfAborted'])) };
const session: Expected = {
  words: 'the Session with which openSession resolves',
  fits: (value) => isObject(value) && isFunction(value['join']) && isText(value['ref']),
};

/** The client, which has that member. It may be an implementation of the caller's own. */
export function client(member: keyof Paddock): Expected {
  return { words: 'the client that createPaddock returns', fits: (value) => isObject(value) && value[member] !== undefined };
}

export const callOptions: Table<CallOptions> = { signal, timeoutMs: milliseconds };
export const watchOptions: Table<WatchOptions> = { signal, onRetry: callback };
export const streamOptions: Table<StreamOptions> = { ...watchOptions, lock: text, prefix: text, cursor: text };

const both = {
  holder: text, ttlMs: milliseconds, graceMs: milliseconds, retryMs: milliseconds, marginMs: milliseconds, signal,
  onState: callback, onRetry: callback, onRenewed: callback,
};
export const sessionOptions: Table<SessionOptions> = { ...both, metadata: jsonObject, sessionId: text };
export const campaignOptions: Table<CampaignOptions> = {
  ...both, maxHoldMs: milliseconds, onExpiry: text, waitMs: milliseconds, session, taskId: text, onAcquired: callback,
};
export const onceOptions: Table<OnceOptions> = { ...campaignOptions, metadata: jsonObject, period: text, timeZone: text, atLeastMs: milliseconds };
export const acquireOptions: Table<Options> = { ...campaignOptions, mode: text, capacity: number, permits: number, metadata: jsonObject };

export const paddockOptions: Table<PaddockOptions> = {
  baseUrl: { words: 'a string such as http://127.0.0.1:8080; several URLs have commas between them', fits: isText },
  key: { words: 'the API key as a string, or a function that returns it', fits: (value) => isText(value) || isFunction(value) },
  fetch: { words: 'a function like fetch', fits: isFunction },
  headers: {
    words: 'an object whose members are the headers, as strings',
    fits: (value) => isObject(value) && !(value instanceof Headers) && Object.values(value).every(isText),
  },
};

/** checkLocks throws a TypeError unless the argument names a lock or several. */
export function checkLocks(locks: unknown): void {
  if (!Array.isArray(locks)) {
    expect('name', locks, { words: 'the name of a lock as a string, or an array of names', fits: isText });
    return;
  }
  const member: Expected = { words: 'a name as a string, or an object with a name', fits: (lock) => isText(lock) || (isObject(lock) && isText(lock['name'])) };
  locks.forEach((lock, i) => expect(`name[${i}]`, lock, member));
}

/** A Parameter is an argument before the options. */
type Parameter = readonly [name: string, expected: Expected];

const request: Parameter = ['request', { words: 'an object with the members of the request', fits: isObject }];
const query: Parameter = ['query', { words: 'an object with the parameters of the query', fits: (value) => value === undefined || isObject(value) }];
const named = (name: string): Parameter => [name, text];

/** listing is a request with an array. */
function listing(member: string, isItem = (_item: unknown): boolean => true): Parameter {
  const fits = (value: unknown) => isObject(value) && Array.isArray(value[member]) && value[member].every(isItem);
  return ['request', { words: `an object with the array ${member}`, fits }];
}

/** A CallName is the name of a method of a client. */
type CallName = Exclude<keyof Paddock, 'api' | 'common'>;

/** parameters are those of each call of a client. Its options follow. */
const parameters: Readonly<Record<CallName, readonly Parameter[]>> = {
  acquire: [named('name'), request], renew: [named('name'), request], release: [named('name'), request], revoke: [named('name'), request],
  acquireSet: [listing('locks', isObject)], renewSet: [listing('names')], releaseSet: [listing('names')], batch: [listing('items')],
  openSession: [request], renewSession: [request], closeSession: [request],
  sessions: [query], session: [named('session')], revokeSession: [named('session'), request],
  declareTree: [named('root')], removeTree: [named('root')], trees: [],
  freeze: [named('scope'), request], frozen: [named('scope')], thaw: [named('scope')], freezes: [],
  setRule: [named('scope'), request], removeRule: [named('scope')], rules: [], cells: [], service: [],
  lock: [named('name')], queue: [named('name')], locks: [query], holds: [named('name'), query], events: [query],
  verifyToken: [request], reportStaleToken: [request], writeFenced: [named('key'), request], readFenced: [named('key')],
};

/** checked returns the calls of a client such that they reject with a TypeError if an argument is wrong. */
export function checked<Calls extends Pick<Paddock, CallName>>(calls: Calls): Calls {
  const check = (name: CallName, args: unknown[]) => {
    const before = parameters[name];
    before.forEach(([parameter, expected], i) => expect(parameter, args[i], expected));
    const options = args[before.length] as CallOptions | undefined;
    checkOptions(name, options === undefined ? {} : options, callOptions);
  };
  return Object.fromEntries(Object.entries(calls).map(([name, call]) => [name, async (...args: unknown[]) => {
    check(name as CallName, args);
    return (call as (...args: unknown[]) => Promise<unknown>)(...args);
  }])) as Calls;
}
