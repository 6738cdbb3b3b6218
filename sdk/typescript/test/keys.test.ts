import assert from 'node:assert/strict';
import { renameSync, unlinkSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';

import { acquire, createPaddock, type State } from '../dist/index.js';
import { idOf, KeyedReplica, temporaryFolder } from './replica.js';
import { direct, kinds, unique, until } from './service.js';

const limit = { timeout: 90_000 };

/** keyFile returns functions that read and replace a file. */
function keyFile(t: TestContext) {
  const path = join(temporaryFolder(t), 'key');
  return {
    path,
    read: async () => (await readFile(path, 'utf8')).trim(),
    replace: (key: string) => {
      writeFileSync(`${path}.next`, `${key}\n`);
      renameSync(`${path}.next`, path);
    },
  };
}

describe('a key from a function', { concurrency: true }, () => {
  test('that is replaced before the old one is revoked keeps the lease', limit, async (t) => {
    const service = await KeyedReplica.start(t);
    const file = keyFile(t);
    const [first, second] = [await service.newKey(), await service.newKey()];
    const name = unique('rotated');
    const states: State[] = [];
    file.replace(first);
    const paddock = createPaddock({ baseUrl: service.baseUrl, key: file.read });
    const lease = await acquire(paddock, name, { ttlMs: 4_000, onState: (state) => states.push(state) });
    file.replace(second);
    await service.revoke(first);
    const later = lease.deadline.getTime() + 4_000; // only with a renewal that is sent after the revocation
    await until('it is renewed', () => !lease.held() || lease.deadline.getTime() >= later);
    lease.check();
    await lease.release();
    assert.deepEqual(await kinds(direct(), name), ['granted', 'released']);
    assert.ok(!states.includes('at_risk'), states.join());
    assert.ok((await service.answered(name, 2)).every(([, status]) => status !== 401));
  });

  test('that is replaced after the old one is revoked keeps the lease', limit, async (t) => {
    const service = await KeyedReplica.start(t);
    const file = keyFile(t);
    const [first, second] = [await service.newKey(), await service.newKey()];
    const name = unique('rotated-late');
    file.replace(first);
    const lease = await acquire(createPaddock({ baseUrl: service.baseUrl, key: file.read }), name, { ttlMs: 8_000 });
    await service.revoke(first);
    await until('it is at risk', () => lease.state === 'at_risk');
    file.replace(second);
    await until('it is held again', () => lease.state === 'held');
    await lease.release();
    assert.deepEqual(await kinds(direct(), name), ['granted', 'released']);
  });

  test('that replaced a refused one is sent with the same request', limit, async (t) => {
    const service = await KeyedReplica.start(t);
    const [revoked, valid] = [await service.newKey(), await service.newKey()];
    await service.revoke(revoked);
    const name = unique('again');
    const keys = [revoked, valid]; // replaced while the request is on its way
    await createPaddock({ baseUrl: service.baseUrl, key: () => keys.shift()! }).acquire(name, { holder: 'w' });
    assert.deepEqual(await kinds(direct(), name), ['granted']);
    assert.deepEqual(await service.answered(name, 2), [[undefined, 401], [idOf(valid), 201]]);
  });

  test('that is refused is not sent twice', limit, async (t) => {
    const service = await KeyedReplica.start(t);
    const [revoked, other] = [await service.newKey(), await service.newKey()];
    await service.revoke(revoked);
    const name = unique('refused');
    await assert.rejects(createPaddock({ baseUrl: service.baseUrl, key: () => revoked }).acquire(name, { holder: 'w' }), { code: 'key_invalid' });
    await createPaddock({ baseUrl: service.baseUrl, key: other }).lock(name);
    assert.deepEqual(await service.answered(name, 2), [[undefined, 401], [idOf(other), 200]]);
  });

  test('that cannot be read again is sent until it is refused', limit, async (t) => {
    const service = await KeyedReplica.start(t);
    const file = keyFile(t);
    const key = await service.newKey();
    const name = unique('unreadable');
    const paddock = createPaddock({ baseUrl: service.baseUrl, key: file.read });
    await assert.rejects(paddock.lock(name), { code: 'unavailable', message: /no such file/ });
    file.replace(key);
    await paddock.lock(name);
    unlinkSync(file.path);
    await paddock.lock(name);
    assert.deepEqual(await service.answered(name, 2), [[idOf(key), 200], [idOf(key), 200]]);
    await service.revoke(key);
    await assert.rejects(paddock.lock(name), { code: 'unavailable', message: /refused.*no such file/ });
  });
});

test('the error of a revoked lease has the name of the key that revoked it', limit, async (t) => {
  const service = await KeyedReplica.start(t);
  const [own, operator] = [await service.newKey(), await service.newKey('admin', 'ops-anna')];
  const lease = await acquire(createPaddock({ baseUrl: service.baseUrl, key: own }), unique('revoked'), { ttlMs: 600_000 });
  await createPaddock({ baseUrl: service.baseUrl, key: operator }).revoke(lease.name, { fencing_token: lease.token, reason: 'maintenance' });
  await lease.done;
  const { code, reason, revokedBy, detail } = lease.err!;
  assert.deepEqual({ code, reason, revokedBy }, { code: 'lease_lost', reason: 'maintenance', revokedBy: 'ops-anna' });
  assert.match(detail, /maintenance/);
});
