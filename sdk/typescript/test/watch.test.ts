import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { acquire, createPaddock, streamEvents, watchLock, type PaddockError, type StreamItem } from '../dist/index.js';
import { Proxy } from './proxy.js';
import { Replica } from './replica.js';
import { direct, lockEvents, serviceUrl, unique, until } from './service.js';

const limit = { timeout: 90_000 };

/** collect adds what is yielded to the list until the iteration ends. */
async function collect<T>(items: AsyncIterable<T>, into: T[]): Promise<void> {
  for await (const item of items) {
    into.push(item);
  }
}

/** ids are those of the events among the items. */
function ids(items: StreamItem[]): number[] {
  return items.flatMap((item) => (item.type === 'event' ? [item.event.id] : []));
}

describe('a stream of events', { concurrency: true }, () => {
  test('continues without a loss or a repetition over broken connections and at another address', limit, async (t) => {
    const { replica, baseUrl } = await Replica.start(t);
    const proxy = await Proxy.open(baseUrl);
    t.after(() => proxy.close());
    const name = unique('stream');
    const ending = new AbortController();
    const items: StreamItem[] = [];
    const retried: PaddockError[] = [];
    const paddock = createPaddock({ baseUrl: `${proxy.url},${serviceUrl}` });
    const streaming = collect(streamEvents(paddock, { lock: name, signal: ending.signal, onRetry: (error) => retried.push(error) }), items);
    await until('it is live', () => items.some(({ type }) => type === 'sync'));
    const cycle = async () => (await acquire(direct(), name)).release();
    await cycle();
    await until('the first events are there', () => ids(items).length === 2);
    proxy.mode = 'refuse';
    await cycle();
    proxy.mode = 'pass';
    await cycle();
    replica.kill();
    await cycle();
    await until('all events are there', () => ids(items).length >= 8);
    ending.abort();
    await streaming;
    assert.deepEqual(ids(items), (await lockEvents(direct(), name)).map(({ id }) => id));
    assert.ok(retried.length > 0);
    assert.equal(items[0]!.type, 'sync');
  });

  test('begins after a cursor, and shows a gap', limit, async () => {
    const name = unique('cursor');
    await (await acquire(direct(), name)).release();
    const [granted, released] = await lockEvents(direct(), name);
    const ending = new AbortController();
    const items: StreamItem[] = [];
    const streaming = collect(streamEvents(direct(), { lock: name, cursor: String(granted!.id), signal: ending.signal }), items);
    await until('it is live', () => items.some(({ type }) => type === 'sync'));
    ending.abort();
    await streaming;
    assert.deepEqual(ids(items), [released!.id]);

    const gapped: StreamItem[] = [];
    const text = 'id: 7\nevent: gap\ndata: {"cursor":"7"}\n\n: still here\nid: 8\n\nid: 9\nevent: unreadable\ndata: {"detail":"broken"}\n\n';
    let connections = 0;
    const cursors: (string | null)[] = [];
    const broken = createPaddock({
      baseUrl: 'http://a',
      fetch: (request) => {
        connections++;
        cursors.push(new URL((request as Request).url).searchParams.get('cursor'));
        return Promise.resolve(new Response(text, { headers: { 'Content-Type': 'text/event-stream', 'Paddock-Api': 'v1' } }));
      },
    });
    for await (const item of streamEvents(broken)) {
      gapped.push(item);
      if (gapped.length === 4) {
        break;
      }
    }
    const round = [{ type: 'gap', cursor: '7' }, { type: 'unreadable', cursor: '9', unreadable: { detail: 'broken' } }];
    assert.deepEqual(gapped, [...round, ...round]);
    assert.deepEqual([connections, ...cursors], [2, null, '9']);
  });

  test('throws what a retry cannot fix', limit, async () => {
    await assert.rejects(collect(streamEvents(direct(), { lock: 'not a name' }), []), { code: 'invalid_request' });
  });
});

describe('a watched lock', { concurrency: true }, () => {
  test('is yielded first, and then when it changes, over broken connections', limit, async (t) => {
    const proxy = await Proxy.open();
    t.after(() => proxy.close());
    const name = unique('watched');
    const ending = new AbortController();
    const states: string[] = [];
    const watching = (async () => {
      for await (const { state, leases } of watchLock(createPaddock({ baseUrl: proxy.url }), name, { signal: ending.signal })) {
        states.push(`${state} ${leases[0]?.metadata?.['page'] ?? ''}`.trim());
      }
    })();
    const seen = (state: string) => until(`it is ${state}`, () => states.at(-1) === state);
    await seen('free');
    const lease = await acquire(direct(), name, { metadata: { page: 1 } });
    await seen('held 1');
    await lease.setMetadata({ page: 2 });
    await seen('held 2');
    proxy.mode = 'refuse';
    await lease.release();
    proxy.mode = 'pass';
    await seen('free');
    ending.abort();
    await watching;
    assert.deepEqual(states, ['free', 'held 1', 'held 2', 'free']);
  });

  test('ends the iteration when the loop is left', limit, async () => {
    for await (const { state } of watchLock(direct(), unique('left'))) {
      assert.equal(state, 'free');
      break;
    }
  });
});

test('setMetadata of a lost lease tells the loss', limit, async () => {
  const lease = await acquire(direct(), unique('lost'), { ttlMs: 600_000 });
  await direct().revoke(lease.name, { fencing_token: lease.token, reason: 'maintenance' });
  await assert.rejects(lease.setMetadata({ page: 1 }), { code: 'lease_lost', ended: 'revoked', reason: 'maintenance' });
  await lease.done;
  await assert.rejects(lease.setMetadata({ page: 1 }), { code: 'lease_lost' });
});

test('setMetadata reaches all locks of a lease, also in a session', limit, async () => {
  const names = [unique('a'), unique('b')];
  const lease = await acquire(direct(), names);
  await lease.setMetadata({ page: 7 });
  for (const name of names) {
    assert.deepEqual((await direct().lock(name)).leases[0]!.metadata, { page: 7 });
  }
  await lease.release();
});

test('a batch has a result for each item', limit, async () => {
  const name = unique('batch');
  const { results } = await direct().batch({ items: [
    { op: 'acquire', name, holder: 'w', lease_id: '5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11' },
    { op: 'acquire', name, holder: 'v', lease_id: '5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a12' },
    { op: 'release', name, lease_id: '5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11' },
  ] });
  assert.deepEqual(results.map(({ status, problem }) => [status, problem?.code]), [[201, undefined], [409, 'lock_held'], [204, undefined]]);
});
