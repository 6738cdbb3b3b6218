import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';

import { acquire, createPaddock, openSession, type Paddock, type PaddockError } from '../dist/index.js';
import { Replica, temporaryFolder } from './replica.js';
import { direct, kinds, unique, until, waiters } from './service.js';

const limit = { timeout: 90_000 };

/** local resolves with a replica that listens on a socket, and a client of it. */
async function local(t: TestContext): Promise<{ replica: Replica; paddock: Paddock }> {
  const { replica, baseUrl } = await Replica.start(t, `unix:${join(temporaryFolder(t), 'paddock.sock')}`);
  return { replica, paddock: createPaddock({ baseUrl }) };
}

describe('through a socket in the file system', { concurrency: true }, () => {
  test('leases and sessions are renewed and released', limit, async (t) => {
    const { paddock } = await local(t);
    const name = unique('socket');
    const session = await openSession(paddock, { ttlMs: 4_000 });
    const leases = [await acquire(paddock, name, { ttlMs: 3_000 }), await acquire(paddock, `${name}:in-session`, { session })];
    await until('the leases are renewed past their TTLs', async () => {
      const { as_of, leases: [lease] } = await direct().lock(name);
      return Date.parse(as_of) - Date.parse(lease!.acquired_at) > 5_000;
    });
    for (const lease of leases) {
      lease.check();
      await lease.release();
      assert.deepEqual(await kinds(direct(), lease.name), ['granted', 'released']);
    }
    await session.close();
  });

  test('every kind of request reaches the service', limit, async (t) => {
    const { paddock } = await local(t);
    const root = unique('socket-tree');
    assert.equal((await paddock.declareTree(root)).root, root); // PUT without a body
    await paddock.removeTree(root); // DELETE
    assert.deepEqual((await paddock.locks({ prefix: root, limit: 1 })).locks, []); // a query
    await assert.rejects(paddock.readFenced(root), { code: 'not_found', status: 404 });
  });

  test('calls wait', limit, async (t) => {
    const { paddock } = await local(t);
    const name = unique('socket-wait');
    const held = await paddock.acquire(name, { holder: 'w' });
    const { next_cursor: cursor } = await paddock.events({ lock: name });
    const waiting = paddock.acquire(name, { holder: 'next', lease_id: randomUUID(), wait_ms: 30_000 });
    const released = paddock.events({ lock: name, kind: ['released'], cursor: cursor!, wait_ms: 30_000 });
    await waiters(direct(), name, 1);
    await paddock.release(name, { lease_id: held.lease_id });
    assert.equal((await waiting).holder, 'next');
    assert.deepEqual((await released).events.map(({ kind }) => kind), ['released']);
  });

  test('a call and a stream end when they are aborted', limit, async (t) => {
    const { paddock } = await local(t);
    const name = unique('socket-abort');
    const { next_cursor: cursor } = await paddock.events({ lock: name });
    await paddock.acquire(name, { holder: 'w' });
    const [reason, controller] = [new Error('enough'), new AbortController()];
    const waiting = paddock.acquire(name, { holder: 'next', wait_ms: 30_000 }, { signal: controller.signal });
    await waiters(direct(), name, 1);
    const { response } = await paddock.api.GET('/v1/events/stream', {
      params: { query: { lock: name, cursor: cursor! } }, parseAs: 'stream', signal: controller.signal,
    });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!text.includes('granted')) {
      text += (await reader.read()).value!;
    }
    controller.abort(reason);
    await assert.rejects(waiting, reason);
    await assert.rejects(async () => {
      while (!(await reader.read()).done);
    });
    await waiters(direct(), name, 0);
  });

  test('without a service nothing is sent', limit, async (t) => {
    const { replica, paddock } = await local(t);
    const name = unique('socket-gone');
    await paddock.lock(name);
    await replica.stop();
    await assert.rejects(paddock.acquire(name, { holder: 'w' }), { code: 'unavailable' });
  });

  test('other paths and a fetch are rejected', () => {
    const options = [{ baseUrl: 'unix:' }, { baseUrl: 'unix:secret.sock' }, { baseUrl: 'unix:@secret' }, { baseUrl: 'unix:/secret.sock', fetch }];
    for (const option of options) {
      assert.throws(() => createPaddock(option), (error: PaddockError) => {
        assert.deepEqual([error.code, error.field], ['invalid_request', 'fetch' in option ? 'fetch' : 'baseUrl']);
        assert.doesNotMatch(error.message, /secret/);
        return true;
      });
    }
  });
});
