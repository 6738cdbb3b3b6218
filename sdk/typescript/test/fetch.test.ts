import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { describe, test } from 'node:test';
import { inspect } from 'node:util';

import { acquire, createPaddock, PaddockError, type Paddock, type PaddockOptions } from '../dist/index.js';
import { direct, unique } from './service.js';

const leaseId = '5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11';
const lease = {
  name: 'jobs', lease_id: leaseId, fencing_token: 41, slot: 0, mode: 'exclusive', holder: 'w', ttl_ms: 30_000, grace_ms: 0,
  acquired_at: '2026-01-02T03:04:05Z', expires_at: '2026-01-02T03:04:35Z', expires_in_ms: 29_997,
};

/** clientWith returns a client of a service that sends this response. */
function clientWith(status: number, type: string, body: string | null, headers: Record<string, string> = {}): Paddock {
  const response = () => new Response(body, { status, headers: { 'Content-Type': type, 'Paddock-Api': 'v1', ...headers } });
  return createPaddock({ baseUrl: 'http://paddock.test', fetch: () => Promise.resolve(response()) });
}

/** failed returns the errors of a change and of a read. */
async function failed(paddock: Paddock): Promise<[change: PaddockError, read: PaddockError]> {
  const caught = (error: unknown) => {
    assert.ok(error instanceof PaddockError, String(error));
    return error;
  };
  return [
    await paddock.acquire('jobs', { holder: 'w', lease_id: leaseId }).then(() => assert.fail('it succeeded'), caught),
    await paddock.lock('jobs').then(() => assert.fail('it succeeded'), caught),
  ];
}

test('a problem document becomes an error with all its members', async () => {
  const [error] = await failed(clientWith(409, 'application/problem+json; charset=utf-8', JSON.stringify({
    type: 'about:blank', title: 'Conflict', status: 409, code: 'lease_lost', detail: 'The lease was revoked.', request_id: 'r-1',
    pointer: '/lease_id', holder: 'worker-2', retry_after_ms: 1_500, suspect: true, waiters_ahead: 2, place_kept_ms: 10_000, capacity: 3, fencing_token: 41,
    newest_token: 42, version: 7, ended: 'revoked', ended_at: '2026-01-02T03:04:36Z', reason: 'maintenance',
    revoked_by: 'ops', frozen_by: 'ops-anna', done_at: '2026-01-02T03:04:37Z',
    frozen_until: '2026-01-02T04:00:00Z',
  })));
  assert.deepEqual({ ...error }, {
    name: 'PaddockError', code: 'lease_lost', detail: 'The lease was revoked.', status: 409, requestId: 'r-1',
    field: 'lease_id', holder: 'worker-2', retryAfterMs: 1_500, suspect: true, waitersAhead: 2, placeKeptMs: 10_000, capacity: 3, token: 41, newestToken: 42, version: 7,
    ended: 'revoked', endedAt: new Date('2026-01-02T03:04:36Z'), reason: 'maintenance',
    revokedBy: 'ops', frozenBy: 'ops-anna', doneAt: new Date('2026-01-02T03:04:37Z'),
    frozenUntil: new Date('2026-01-02T04:00:00Z'),
  });
  assert.equal(error.message, 'lease_lost: The lease was revoked.');
});

test('the connection of a response that is not from Paddock is closed, whether the response ends or not', async (t) => {
  const server = createServer((_, response) => response.writeHead(502, { 'Content-Type': 'text/html' }).write('<h1>Bad'));
  t.after(() => server.closeAllConnections());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const connected = once(server, 'connection') as Promise<[Socket]>;
  await assert.rejects(createPaddock({ baseUrl: `http://127.0.0.1:${port}` }).lock('jobs'), { code: 'unavailable' });
  const [connection] = await connected;
  await once(connection, 'close', { signal: AbortSignal.timeout(3_000) }); // garbage collection would close it, much later
  server.close();
});

test('an unknown code is kept', async () => {
  const [error] = await failed(clientWith(409, 'application/problem+json', '{"code":"brand_new","detail":"News."}', { 'Retry-After': '2' }));
  assert.equal(error.code, 'brand_new');
  assert.equal(error.retryAfterMs, 2_000);
});

describe('after a response that is not from Paddock, the outcome of a change is unknown', () => {
  const unknown: Record<string, Paddock> = {
    'a page with status 200': clientWith(200, 'text/html', '<h1>Log in</h1>'),
    'JSON of another service': clientWith(200, 'application/json', '{"ok":true}'),
    'JSON that is not an object': clientWith(200, 'application/json', 'null'),
    'truncated JSON': clientWith(200, 'application/json', JSON.stringify(lease).slice(0, 40)),
    'no body': clientWith(204, '', null),
    'a bad gateway': clientWith(502, 'text/html', 'Bad Gateway'),
    'a server error without a code of Paddock': clientWith(500, 'application/problem+json', '{"code":"oops"}'),
    'an empty problem document': clientWith(503, 'application/problem+json', 'null'),
    'a redirect': clientWith(302, 'text/html', null, { Location: 'http://elsewhere.test/' }),
  };
  for (const [name, paddock] of Object.entries(unknown)) {
    test(name, async () => {
      const [change, read] = await failed(paddock);
      assert.equal(change.code, 'unknown_outcome');
      assert.equal(read.code, 'unavailable');
      assert.doesNotMatch(change.message, /Log in|Gateway/);
    });
  }
});

test('a response without the header of Paddock is not believed', async () => {
  const lock = await direct().lock('jobs');
  const responses: [status: number, type: string, body: string | null][] = [
    [204, '', null], [304, '', null], [200, 'application/json', ''], [201, 'application/json', JSON.stringify(lease)],
    [200, 'application/json', JSON.stringify(lock)], [409, 'application/problem+json', '{"code":"lease_lost","detail":"No."}'],
  ];
  for (const response of responses) {
    const paddock = clientWith(...response, { 'Paddock-Api': '' });
    const changes = [
      paddock.acquire('jobs', { holder: 'w', lease_id: leaseId }), paddock.release('jobs', { lease_id: leaseId }),
      paddock.releaseSet({ names: ['jobs'], lease_id: leaseId }), paddock.closeSession({ session_id: leaseId }), paddock.removeTree('repo'),
      paddock.thaw('billing:'), paddock.removeRule('billing:'),
    ];
    for (const change of changes) {
      await assert.rejects(change, { code: 'unknown_outcome' }, String(response));
    }
    await assert.rejects(paddock.lock('jobs'), { code: 'unavailable' }, String(response));
  }
});

test('a lease other than the requested one is rejected', async () => {
  const cases: object[] = [{ lease_id: leaseId.replace('5', '6') }, { name: 'other' }, { fencing_token: undefined }, { fencing_token: 2 ** 53 },
    { expires_in_ms: null }, { ttl_ms: '30000' }];
  for (const wrong of cases) {
    const paddock = clientWith(201, 'application/json', JSON.stringify({ ...lease, ...wrong }));
    await assert.rejects(paddock.acquire('jobs', { holder: 'w', lease_id: leaseId }), { code: 'unknown_outcome' }, JSON.stringify(wrong));
  }
});

test('a freeze or a rule other than the requested one is rejected', async () => {
  const freeze = { scope: 'billing:', reason: 'why', frozen_at: '2026-01-02T03:04:05Z', leases: 2, as_of: '2026-01-02T03:04:06Z' };
  for (const wrong of [{ ...freeze, scope: 'billing' }, { ...freeze, leases: undefined }, {}]) {
    const paddock = clientWith(200, 'application/json', JSON.stringify(wrong));
    await assert.rejects(paddock.freeze('billing:', { reason: 'why' }), { code: 'unknown_outcome' });
    await assert.rejects(paddock.frozen('billing:'), { code: 'unavailable' });
    await assert.rejects(paddock.freezes(), { code: 'unavailable' });
    await assert.rejects(paddock.setRule('billing:x', { capacity: 1 }), { code: 'unknown_outcome' });
    await assert.rejects(paddock.rules(), { code: 'unavailable' });
    await assert.rejects(paddock.cells(), { code: 'unavailable' });
    await assert.rejects(paddock.service(), { code: 'unavailable' });
  }
  assert.deepEqual(await clientWith(200, 'application/json', JSON.stringify(freeze)).frozen('billing:'), freeze);
});

test('cells are listed', async () => {
  const cells = [{ name: 'spare', position: 1, takes: true, epoch: 2, groups: [{ name: 'billing', moving: false }] }];
  assert.deepEqual(await clientWith(200, 'application/json', JSON.stringify({ cells })).cells(), { cells });
});

test('a request rejected by a proxy changed nothing', async () => {
  for (const status of [401, 403, 404, 405, 413, 415, 429, 431]) {
    const [change] = await failed(clientWith(status, 'text/plain', 'No', { 'Retry-After': '3' }));
    assert.deepEqual([change.code, change.status, change.retryAfterMs], ['unavailable', status, 3_000]);
  }
});

test('without a connection nothing was sent, and a broken connection leaves the outcome unknown', async () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED'), { syscall: 'connect', code: 'ECONNREFUSED' });
  const cases: [cause: unknown, change: string][] = [
    [refused, 'unavailable'],
    [new AggregateError([refused, refused]), 'unavailable'],
    [Object.assign(new Error('Connect Timeout Error'), { code: 'UND_ERR_CONNECT_TIMEOUT' }), 'unavailable'],
    [Object.assign(new Error('read ECONNRESET'), { syscall: 'read', code: 'ECONNRESET' }), 'unknown_outcome'],
    [undefined, 'unknown_outcome'],
  ];
  for (const [cause, code] of cases) {
    const thrown = new TypeError('fetch failed', { cause });
    const [change, read] = await failed(createPaddock({ baseUrl: 'http://paddock.test', fetch: () => Promise.reject(thrown) }));
    assert.deepEqual([change.code, read.code], [code, 'unavailable']);
    assert.equal(change.cause, thrown);
  }
});

test('a certificate that is not trusted is named, and nothing was sent', async () => {
  for (const code of ['DEPTH_ZERO_SELF_SIGNED_CERT', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'CERT_HAS_EXPIRED', 'ERR_TLS_CERT_ALTNAME_INVALID']) {
    const thrown = new TypeError('fetch failed', { cause: Object.assign(new Error('no'), { code }) });
    for (const error of await failed(createPaddock({ baseUrl: 'https://paddock.test', fetch: () => Promise.reject(thrown) }))) {
      assert.equal(error.code, 'unavailable');
      assert.ok(error.detail.includes(`is not trusted (${code}), so the request was not sent`), error.detail);
      assert.match(error.detail, /NODE_EXTRA_CA_CERTS=FILE/);
    }
  }
});

test('an aborted call rejects with the reason of the signal', async () => {
  const reason = new Error('enough');
  await assert.rejects(direct().lock(unique('never'), { signal: AbortSignal.abort(reason) }), reason);
});

test('an invalid base URL is rejected and not repeated', () => {
  for (const baseUrl of ['paddock:secret@db-3', '/v1', 'http://me:secret@paddock.test', 'http://paddock.test/?key=secret', 'ftp://secret']) {
    assert.throws(() => createPaddock({ baseUrl }), (error: PaddockError) => {
      assert.equal(error.code, 'invalid_request');
      assert.equal(error.field, 'baseUrl');
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
  }
});

test('headers and the path of the base URL are sent with each call', async () => {
  let sent: Request | undefined;
  const options: PaddockOptions = {
    baseUrl: 'http://paddock.test/locks/',
    headers: { Authorization: 'Bearer a-key' },
    fetch: (request) => {
      sent = request as Request;
      return Promise.resolve(Response.json(lease, { headers: { 'Paddock-Api': 'v1' } }));
    },
  };
  assert.equal((await createPaddock(options).acquire('jobs', { holder: 'w' })).fencing_token, 41);
  assert.equal(sent!.url, 'http://paddock.test/locks/v1/locks/jobs/acquire');
  assert.equal(sent!.headers.get('Authorization'), 'Bearer a-key');
  assert.equal(sent!.redirect, 'manual');
});

test('the key is sent and never shown', async () => {
  const key = 'pk_k3f9a2xyqw_' + 'A'.repeat(43);
  let sent: Request | undefined;
  const refused = () => new Response('{"code":"key_invalid","detail":"Unknown API key."}',
    { status: 401, headers: { 'Content-Type': 'application/problem+json', 'Paddock-Api': 'v1' } });
  const paddock = createPaddock({
    baseUrl: 'http://paddock.test', key, headers: { 'X-Team': 'billing' },
    fetch: (request) => {
      sent = request as Request;
      return Promise.resolve(refused());
    },
  });
  const [error] = await failed(paddock);
  assert.equal(sent!.headers.get('Authorization'), `Bearer ${key}`);
  assert.equal(sent!.headers.get('X-Team'), 'billing');
  assert.deepEqual([error.code, error.status], ['key_invalid', 401]);
  for (const shown of [String(error), error.stack, JSON.stringify(error), inspect(error, { depth: 9 }), JSON.stringify(paddock), inspect(paddock, { depth: 9, showHidden: true })]) {
    assert.ok(!shown?.includes(key.slice(-20)), shown);
  }
});

test('an invalid key is rejected and not repeated', () => {
  for (const options of [{ key: '' }, { key: 'sec ret' }, { key: 'secret\n' }, { key: 'secrét' }, { key: 'secret', headers: { authorization: 'Basic secret' } }]) {
    assert.throws(() => createPaddock({ baseUrl: 'http://paddock.test', ...options }), (error: PaddockError) => {
      assert.equal(error.code, 'invalid_request');
      assert.equal(error.field, 'key');
      assert.doesNotMatch(error.message, /sec/);
      return true;
    });
  }
});

describe('an error about the key', () => {
  const after = (codes: [status: number, code: string][]) => {
    let calls = 0;
    const paddock = createPaddock({
      baseUrl: 'http://paddock.test', key: 'pk_x_y',
      fetch: async (request) => {
        const [status, code] = codes[calls++] ?? [201, ''];
        if (code === '' && (request as Request).url.endsWith('/release')) {
          return new Response(null, { status: 204, headers: { 'Paddock-Api': 'v1' } });
        }
        if (code === '') {
          const { lease_id } = await (request as Request).json() as { lease_id: string };
          return Response.json({ ...lease, lease_id }, { status, headers: { 'Paddock-Api': 'v1' } });
        }
        return new Response(JSON.stringify({ code, detail: 'No.', retry_after_ms: 1 }), { status, headers: { 'Content-Type': 'application/problem+json', 'Paddock-Api': 'v1' } });
      },
    });
    return { paddock, calls: () => calls };
  };
  test('a rate limit is waited out', async () => {
    const { paddock, calls } = after([[429, 'rate_limited'], [429, 'rate_limited']]);
    const held = await acquire(paddock, 'jobs', { holder: 'w' });
    assert.equal(held.token, 41);
    assert.equal(calls(), 3);
    await held.release();
  });
  for (const [status, code] of [[401, 'key_missing'], [401, 'key_invalid'], [401, 'key_expired'], [403, 'role_missing'], [403, 'name_not_allowed']] as const) {
    test(`${code} is final`, async () => {
      const { paddock, calls } = after(Array(9).fill([status, code]));
      await assert.rejects(acquire(paddock, 'jobs', { holder: 'w' }), { code, status });
      assert.ok(calls() <= 2, `sent ${calls()} times`); // the acquire, and the release that gives up the place
    });
  }
});

test('every call reaches the service', async () => {
  const paddock = direct();
  const name = unique('calls');
  const held = await paddock.acquire(name, { holder: 'w' });
  const { lease_id, fencing_token } = held;
  assert.equal((await paddock.renew(name, { lease_id, ttl_ms: 60_000 })).ttl_ms, 60_000);
  assert.equal((await paddock.lock(name)).state, 'held');
  assert.deepEqual((await paddock.locks({ prefix: name })).locks.map((lock) => lock.name), [name]);
  assert.deepEqual((await paddock.queue(name)).waiters, []);
  assert.equal((await paddock.verifyToken({ name, fencing_token })).status, 'current');
  assert.equal((await paddock.writeFenced(name, { lock: name, fencing_token, value: { balance: 100 } })).version, 1);
  const once = { lock: name, fencing_token, value: { balance: 90 }, operation_id: 'booking:1' };
  assert.deepEqual([await paddock.writeFenced(name, once), await paddock.writeFenced(name, once)].map((w) => w.version), [2, 2]);
  assert.deepEqual((await paddock.readFenced(name)).value, { balance: 90 });
  await assert.rejects(paddock.readFenced(unique('nothing')), { code: 'not_found' });
  assert.equal((await paddock.revoke(name, { fencing_token, reason: 'enough' })).state, 'free');
  await assert.rejects(paddock.release(name, { lease_id }), { code: 'lease_lost', ended: 'revoked' });
  const again = await paddock.acquire(name, { holder: 'w' });
  await assert.rejects(paddock.reportStaleToken({ name, fencing_token: again.fencing_token }), { code: 'token_mismatch' });
  assert.deepEqual(await paddock.reportStaleToken({ name, fencing_token, where: 'table accounts' }), { recorded: true });
  await paddock.release(name, { lease_id: again.lease_id });
  const { events } = await paddock.events({ lock: name });
  assert.equal(events.length, 5);
  const refused = events.find((event) => event.kind === 'refused');
  assert.deepEqual([refused?.fencing_token, refused?.newest_token, refused?.reason], [fencing_token, again.fencing_token, 'table accounts']);
  const newest = await paddock.events({ lock: name, order: 'desc', kind: ['revoked', 'released'] });
  assert.deepEqual(newest.events, [events[4], events[1]]);
  assert.equal(newest.next_cursor, undefined);
  const { holds } = await paddock.holds(name, { at: events[0]!.at });
  assert.deepEqual(holds.map((hold) => [hold.fencing_token, hold.end]), [[fencing_token, 'revoked']]);
  const seen = await paddock.api.GET('/v1/locks/{name}', { params: { path: { name } } });
  const same = { 'If-None-Match': seen.response.headers.get('ETag')! };
  assert.equal((await paddock.api.GET('/v1/locks/{name}', { params: { path: { name }, header: same } })).response.status, 304);
});
