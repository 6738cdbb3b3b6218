import { checkOptions, client, expect, streamOptions, text, watchOptions } from './arguments.js';
import type { Paddock } from './client.js';
import { mark, since } from './clock.js';
import { checkName } from './check.js';
import { wasCut } from './error.js';
import { lostResponse, mediaType, notPaddock } from './failures.js';
import { notify } from './notify.js';
import { omitUndefined } from './omit.js';
import type { Options } from './options.js';
import { bodyOf } from './response.js';
import { backoff, isRetryable, sleep } from './retry.js';
import type { components } from './schema.js';
import { maxWaitMs } from './waits.js';

type Schemas = components['schemas'];

/** WatchOptions are options of `watchLock`, `streamEvents` and `observeLeader`. */
export interface WatchOptions extends Pick<Options, 'onRetry'> {
  /** Ends the iteration. */
  signal?: AbortSignal | null | undefined;
}

/** StreamOptions are options of `streamEvents`. */
export interface StreamOptions extends WatchOptions {
  /** Only events of this lock. */
  lock?: string | undefined;
  /** Only events of locks whose names begin with this. */
  prefix?: string | undefined;
  /** Continues after the item with this cursor. By default the stream begins now. */
  cursor?: string | undefined;
}

/**
 * A StreamItem is an item of a stream of events. With its `cursor`, another stream continues after it. `sync`: all past
 * events were sent, and later ones are live. `gap`: events are missing here; read again what you derive from them.
 * `unreadable`: a row of events cannot be read and is left out.
 */
export type StreamItem =
  | { readonly type: 'event'; readonly cursor: string; readonly event: Schemas['Event'] }
  | { readonly type: 'unreadable'; readonly cursor: string; readonly unreadable: Schemas['Unreadable'] }
  | { readonly type: 'gap' | 'sync'; readonly cursor: string };

/** responseMs is how long a response may take beyond its wait. */
const responseMs = 10_000;

/** quietMs is how long a stream may be silent; the service sends a comment every 15 seconds. */
const quietMs = 40_000;

/**
 * Yields events as they happen. After a failure it connects again and continues after the last item, without a loss and
 * without a repetition, also at another of the client's base URLs. It ends when the signal is aborted, and throws a
 * PaddockError that a retry cannot fix.
 */
export async function* streamEvents(paddock: Paddock, options: StreamOptions = {}): AsyncGenerator<StreamItem, void, undefined> {
  expect('paddock', paddock, client('api'));
  checkOptions('streamEvents', options, streamOptions);
  const signal = options.signal ?? undefined;
  let { cursor } = options;
  for (let failures = 0; !signal?.aborted; failures++) {
    try {
      for await (const message of connect(paddock, options, cursor, signal)) {
        failures = -1;
        cursor = message.id ?? cursor;
        const item = itemOf(message, cursor);
        if (item) {
          yield item;
        }
      }
    } catch (error) {
      if (signal?.aborted || !(await pauseAfter(failures, error, options))) {
        return;
      }
    }
  }
}

/** pauseAfter waits before the next attempt and returns false if the signal was aborted. It throws an error that a retry cannot fix. */
async function pauseAfter(failures: number, error: unknown, { onRetry, signal }: WatchOptions): Promise<boolean> {
  if (!isRetryable(error)) {
    throw error;
  }
  notify(onRetry, error);
  return sleep(backoff(Math.max(failures, 0), 100, 5_000, error), signal ?? undefined).then(() => true, () => false);
}

/** A Message is a server-sent event, or the id of a comment. */
interface Message {
  readonly id: string | undefined;
  readonly name: string;
  readonly data: string;
}

function itemOf({ name, data }: Message, cursor: string | undefined): StreamItem | undefined {
  if (cursor === undefined || (data === '' && name === '')) {
    return undefined;
  }
  if (name === 'gap' || name === 'sync') {
    return { type: name, cursor };
  }
  return name === 'unreadable'
    ? { type: name, cursor, unreadable: JSON.parse(data) as Schemas['Unreadable'] }
    : { type: 'event', cursor, event: JSON.parse(data) as Schemas['Event'] };
}

/** connect yields the messages of one connection. It throws `unavailable` when the connection ends. */
async function* connect(
  paddock: Paddock, { lock, prefix }: StreamOptions, cursor: string | undefined, signal: AbortSignal | undefined,
): AsyncGenerator<Message, void, undefined> {
  const options = { timeoutMs: responseMs, signal: signal ?? null };
  const { data: body, response } = await paddock.api.GET('/v1/events/stream', {
    ...options, parseAs: 'stream', params: { query: omitUndefined({ lock, prefix, cursor }) },
  });
  if (!body || mediaType(response) !== 'text/event-stream') {
    throw notPaddock(false, response);
  }
  const reader = body.getReader();
  const cancel = () => void reader.cancel().catch(() => undefined); // the connection may be broken
  signal?.addEventListener('abort', cancel);
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    const decoder = new TextDecoder();
    let text = '';
    for (;;) {
      clearTimeout(timer);
      timer = setTimeout(cancel, quietMs);
      const { done, value } = await reader.read();
      if (done) {
        throw new Error('the stream has ended');
      }
      text += decoder.decode(value, { stream: true });
      const end = text.lastIndexOf('\n\n') + 2;
      if (end > 1) {
        yield* messages(text.slice(0, end));
        text = text.slice(end);
      }
    }
  } catch (error) {
    throw lostResponse(false, error);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', cancel);
    cancel();
  }
}

/** messages yields the messages of complete blocks. */
function* messages(text: string): Generator<Message> {
  for (const block of text.split('\n\n')) {
    const fields = new Map<string, string>();
    for (const line of block.split('\n')) {
      const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
      fields.set(field!, value!);
    }
    if (fields.has('id') || fields.has('data')) {
      yield { id: fields.get('id'), name: fields.get('event') ?? '', data: fields.get('data') ?? '' };
    }
  }
}

/**
 * Yields the lock, and then again each time that it changes: it was granted or freed, its state changed, a waiter joined or
 * left the queue, or its metadata was replaced. Of several changes in quick succession, it may yield only the last one. After
 * a failure it continues, with the lock as it is then. It ends when the signal is aborted, and throws a PaddockError that a retry cannot fix.
 */
export async function* watchLock(paddock: Paddock, name: string, options: WatchOptions = {}): AsyncGenerator<Schemas['Lock'], void, undefined> {
  expect('paddock', paddock, client('api'));
  expect('name', name, text);
  checkOptions('watchLock', options, watchOptions);
  const signal = options.signal ?? null;
  let etag: string | undefined;
  for (let failures = 0; !signal?.aborted; ) {
    const waitMs = etag === undefined ? 0 : paddock.common?.waits.longest() ?? maxWaitMs;
    const sent = mark();
    let lock: Schemas['Lock'] | undefined;
    try {
      const limits = { signal, timeoutMs: waitMs + responseMs };
      const { data, response } = await paddock.api.GET('/v1/locks/{name}', {
        ...limits,
        params: {
          path: { name: checkName('name', name) },
          ...(etag !== undefined && { query: { wait_ms: waitMs }, header: { 'If-None-Match': etag } }),
        },
      });
      if (response.status !== 304) {
        lock = bodyOf('read', { ...(data && { data }), response }, (body) => body.name === name);
        etag = response.headers.get('ETag') ?? undefined;
      } else if (since(sent) < waitMs / 2) {
        await sleep(backoff(failures++, 100, 5_000), signal ?? undefined);
        continue;
      }
      failures = 0;
    } catch (error) {
      if (!wasCut(error)) {
        if (signal?.aborted || !(await pauseAfter(failures++, error, options))) {
          return;
        }
        etag = undefined;
      }
    }
    if (lock) {
      yield lock;
    }
  }
}
