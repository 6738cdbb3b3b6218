import assert from 'node:assert/strict';
import { afterEach, describe, mock, test } from 'node:test';

import { createPaddock, type Paddock, type PaddockError } from '../dist/index.js';
import { until } from './service.js';

const leaseId = '5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11';
const lock = { name: 'jobs', state: 'free', leases: [] };
const lease = {
  name: 'jobs', lease_id: leaseId, fencing_token: 41, slot: 0, mode: 'exclusive', holder: 'w', ttl_ms: 30_000, grace_ms: 0,
  acquired_at: '2026-01-02T03:04:05Z', expires_at: '2026-01-02T03:04:35Z', expires_in_ms: 29_997,
};

const answers = {
  lock: () => paddockJson(lock),
  lease: () => paddockJson(lease),
  ready: () => paddockJson({ status: 'ok' }),
  refused: () => Promise.reject(new TypeError('fetch failed', { cause: Object.assign(new Error('connect ECONNREFUSED'), { syscall: 'connect' }) })),
  broken: () => Promise.reject(new TypeError('fetch failed', { cause: Object.assign(new Error('read ECONNRESET'), { syscall: 'read' }) })),
  'bad gateway': () => Promise.resolve(new Response('Bad Gateway', { status: 502 })),
  'gateway timeout': () => Promise.resolve(new Response('Timeout', { status: 504 })),
  unavailable: () => paddockJson({ code: 'unavailable', detail: 'This replica is shutting down.' }, 503),
  silent: () => new Promise<Response>(() => undefined),
};
type Answer = () => Promise<Response>;

function paddockJson(body: object, status = 200): Promise<Response> {
  const type = status < 400 ? 'application/json' : 'application/problem+json';
  return Promise.resolve(new Response(JSON.stringify(body), { status, headers: { 'Content-Type': type, 'Paddock-Api': 'v1' } }));
}

/** deployment returns a client of the hosts a, b and so on, and the requests that it sent, as host and path. */
function deployment(hosts: Record<string, (path: string) => Promise<Response>>): { paddock: Paddock; sent: string[]; bodies: string[] } {
  const sent: string[] = [];
  const bodies: string[] = [];
  const paddock = createPaddock({
    baseUrl: Object.keys(hosts).map((host) => `http://${host}/base`).join(', '),
    fetch: async (input) => {
      const request = input as Request;
      const { host, pathname } = new URL(request.url);
      sent.push(`${host}${pathname.replace('/base', '').replace('/v1/locks/', ' ')}`);
      bodies.push(await request.text());
      return hosts[host]!(pathname);
    },
  });
  return { paddock, sent, bodies };
}

describe('a call goes on at the next address', () => {
  for (const [name, failing] of Object.entries(answers).filter(([name]) => !['lock', 'lease', 'ready', 'silent'].includes(name))) {
    test(`after the first was ${name}, and stays there`, async () => {
      const { paddock, sent, bodies } = deployment({ a: failing, b: answers.lease });
      const got = await paddock.renew('jobs', { lease_id: leaseId });
      assert.equal(got.fencing_token, 41);
      await paddock.renew('jobs', { lease_id: leaseId });
      assert.deepEqual(sent, ['a jobs/renew', 'b jobs/renew', 'b jobs/renew']);
      assert.equal(bodies[0], bodies[1]);
    });
  }

  test('when the first is silent for its share of the timeout', async () => {
    const { paddock, sent } = deployment({ a: answers.silent, b: answers.lock });
    const began = performance.now();
    await paddock.lock('jobs', { timeoutMs: 2_000 });
    const tookMs = performance.now() - began;
    assert.ok(tookMs > 480 && tookMs < 1_500, `${tookMs} ms`); // a quarter of the timeout
    assert.deepEqual(sent, ['a jobs', 'b jobs']);
  });

  test('of several, each once', async () => {
    const { paddock, sent } = deployment({ a: answers.refused, b: answers.refused, c: answers.refused });
    await assert.rejects(paddock.lock('jobs'), { code: 'unavailable', message: /http:\/\/a\/base: The .*http:\/\/b\/base: The .*http:\/\/c\/base: The / });
    assert.deepEqual(sent, ['a jobs', 'b jobs', 'c jobs']);
  });
});

test('an invalid list of addresses is rejected, with the number of the address and not its text', () => {
  const cases = {
    'http://a, ftp://secret, http://b': /^invalid_request: baseUrl \(address 2 of 3\) must start with http:/,
    'http://a,http://me:secret@b': /^invalid_request: baseUrl \(address 2 of 2\) must not contain a user name/,
    'http://a,': /^invalid_request: baseUrl \(address 2 of 2\) is not a URL/,
    'http://a,unix:secret': /^invalid_request: baseUrl \(address 2 of 2\) is a socket without an absolute path/,
    'http://a/secret,http://b,HTTP://A:80/secret/': /^invalid_request: baseUrl \(address 3 of 3\) names an address twice; give each replica's address once\.$/,
    'unix:/secret,unix:/secret': /^invalid_request: baseUrl \(address 2 of 2\) names an address twice; give each replica's address once\.$/,
    'ftp://secret': /^invalid_request: baseUrl must start with http:/,
  };
  for (const [baseUrl, message] of Object.entries(cases)) {
    assert.throws(() => createPaddock({ baseUrl }), (error: PaddockError) => {
      assert.match(error.message, message);
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
  }
  createPaddock({ baseUrl: 'unix:/a,unix:/b,http://localhost,http://localhost/base,http://localhost:8080' });
});

test('an answer of the service does not make it leave the address', async () => {
  for (const [status, code] of [[409, 'lock_held'], [400, 'invalid_request'], [401, 'key_invalid'], [429, 'rate_limited'], [500, 'internal']] as const) {
    const { paddock, sent } = deployment({ a: () => paddockJson({ code, detail: 'No.' }, status), b: answers.lock });
    await assert.rejects(paddock.lock('jobs'), { code });
    await assert.rejects(paddock.lock('jobs'), { code });
    assert.deepEqual(sent, ['a jobs', 'a jobs']);
  }
});

test('a lost response leaves the outcome unknown, whatever the next address says', async () => {
  const { paddock } = deployment({ a: answers.broken, b: answers.refused });
  await assert.rejects(paddock.release('jobs', { lease_id: leaseId }), { code: 'unknown_outcome' });
});

test('an acquire without a lease_id is sent again only if it was not received', async () => {
  const lost = deployment({ a: answers.broken, b: answers.lease });
  await assert.rejects(lost.paddock.acquire('jobs', { holder: 'w' }), { code: 'unknown_outcome' });
  await assert.rejects(deployment({ a: answers.broken, b: answers.lease }).paddock.batch({ items: [{ op: 'acquire', name: 'jobs', holder: 'w' }] }), { code: 'unknown_outcome' });
  assert.deepEqual(lost.sent, ['a jobs/acquire']);
  const refused = deployment({ a: answers.refused, b: answers.lease });
  await refused.paddock.acquire('jobs', { holder: 'w' });
  assert.deepEqual(refused.sent, ['a jobs/acquire', 'b jobs/acquire']);
});

describe('a call that would be refused because it took effect is sent again only if it was not received:', () => {
  const write = { lock: 'jobs', fencing_token: 41, value: 1 };
  const calls: Record<string, (paddock: Paddock) => Promise<unknown>> = {
    'the revocation of a lease': (paddock) => paddock.revoke('jobs', { fencing_token: 41, reason: 'stuck' }),
    'a fenced write with if_version': (paddock) => paddock.writeFenced('row', { ...write, if_version: 3 }),
  };
  for (const [what, call] of Object.entries(calls)) {
    test(what, async () => {
      for (const failing of [answers.broken, answers['bad gateway']]) {
        const lost = deployment({ a: failing, b: () => paddockJson({ code: 'version_mismatch', detail: 'No.' }, 409) });
        await assert.rejects(call(lost.paddock), { code: 'unknown_outcome' });
        assert.equal(lost.sent.length, 1);
      }
      for (const failing of [answers.refused, answers.unavailable]) {
        const refused = deployment({ a: failing, b: () => paddockJson({ ...lock, key: 'row' }) });
        await call(refused.paddock);
        assert.equal(refused.sent.length, 2);
      }
    });
  }

  test('others are repeated', async () => {
    const session = { session: 's', holder: 'w', leases: [], places: [] };
    const { paddock, sent } = deployment({ a: answers.broken, b: () => paddockJson({ ...session, key: 'acquire' }) });
    await paddock.writeFenced('acquire', write);
    const once = deployment({ a: answers.broken, b: () => paddockJson({ ...session, key: 'acquire' }) });
    await once.paddock.writeFenced('acquire', { ...write, if_version: 3, operation_id: 'booking:1' });
    const other = deployment({ a: answers.broken, b: () => paddockJson(session) });
    await other.paddock.revokeSession('s', { reason: 'stuck' });
    assert.deepEqual([sent.length, once.sent.length, other.sent.length], [2, 2, 2]);
  });
});

test('a key that cannot be read after it was refused does not make it leave the address', async () => {
  const sent: string[] = [];
  let reads = 0;
  const paddock = createPaddock({
    baseUrl: 'http://a,http://b',
    key: () => {
      if (reads++ % 2 > 0) {
        throw new Error('no such file');
      }
      return 'pdk_old';
    },
    fetch: (input) => {
      sent.push(new URL((input as Request).url).host);
      return paddockJson({ code: 'key_invalid', detail: 'No.' }, 401);
    },
  });
  await assert.rejects(paddock.lock('jobs'), { code: 'unavailable', message: /refused.*no such file/ });
  await assert.rejects(paddock.lock('jobs'), { code: 'unavailable', message: /refused.*no such file/ });
  assert.deepEqual(sent, ['a', 'a']);
});

test('an aborted call goes nowhere else', async () => {
  const { paddock, sent } = deployment({ a: answers.silent, b: answers.lock });
  const ending = new AbortController();
  const read = paddock.lock('jobs', { signal: ending.signal });
  await until('it was sent', () => sent.length > 0);
  const enough = new Error('enough');
  ending.abort(enough);
  await assert.rejects(read, enough);
  assert.deepEqual(sent, ['a jobs']);
});

describe('an earlier address', () => {
  afterEach(() => mock.restoreAll());

  test('is used again when it says that it is ready, and is asked more and more seldom', async () => {
    let a: Answer = answers.refused;
    const { paddock, sent } = deployment({ a: () => a(), b: answers.lock });
    const now = Date.now.bind(Date);
    let ahead = 0;
    mock.method(Date, 'now', () => now() + ahead);
    const asked = () => sent.filter((what) => what === 'a/readyz').length;
    const read = async (afterMs: number) => {
      ahead += afterMs;
      await paddock.lock('jobs');
      await new Promise((resolve) => setTimeout(resolve, 20)); // until the question was answered
    };
    await read(0);
    await read(20_000);
    assert.equal(asked(), 0, 'after 20 s');
    await read(17_000);
    assert.equal(asked(), 1, 'after 37 s');
    await read(37_000);
    assert.equal(asked(), 1, '37 s later: it asks after a minute');
    await read(36_000);
    assert.equal(asked(), 2, '73 s later');
    a = answers.ready;
    await read(150_000);
    assert.equal(asked(), 3);
    a = answers.lock;
    await read(0);
    assert.equal(sent.at(-1), 'a jobs');
  });
});
