import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { acquire, createPaddock, guard, openSession, PaddockError, type Lease } from '../dist/index.js';
import { Proxy } from './proxy.js';
import { direct, kinds, unique, waiters } from './service.js';

const limit = { timeout: 90_000 };

interface Names {
  root: string;
  src: string;
  file: string;
  doc: string;
}

/** names returns the names of four locks: one, two below it, and one that is below `src`. */
function names(name: string): Names {
  const root = unique(name);
  return { root, src: `${root}:src`, file: `${root}:src:a`, doc: `${root}:doc` };
}

/** declared declares a tree and resolves with the names of its locks. */
async function declared(name: string): Promise<Names> {
  const all = names(name);
  await direct().declareTree(all.root);
  return all;
}

/** roots resolves with the roots of all trees. */
async function roots(): Promise<string[]> {
  return (await direct().trees()).trees.map((tree) => tree.root);
}

/** assertBlocked asserts that the lock is refused because of a lease of the lock `blocker`, held by worker-1. */
async function assertBlocked(name: string, blocker: string, mode: 'exclusive' | 'shared' = 'exclusive'): Promise<void> {
  const error = await acquire(direct(), name, { mode }).then(() => assert.fail(`${name} was granted`), (e: unknown) => e as PaddockError);
  assert.deepEqual([error.code, error.holder], ['lock_held', 'worker-1']);
  assert.deepEqual(error.blockers?.map((at) => [at.name, at.holder]), [[blocker, 'worker-1']]);
  assert.ok(error.blockers![0]!.retryAfterMs > 0);
}

/** assertFree asserts that the lock can be acquired now. */
async function assertFree(name: string): Promise<void> {
  await (await acquire(direct(), name)).release();
}

describe('a tree', { concurrency: true }, () => {
  test('is declared, listed and removed', limit, async () => {
    const { root, file } = names('declared');
    const tree = await direct().declareTree(root);
    assert.equal(tree.root, root);
    assert.ok(Date.parse(tree.declared_at) > 0);
    assert.deepEqual(await direct().declareTree(root), tree);
    assert.deepEqual((await direct().trees()).trees.filter((other) => other.root === root), [tree]);
    const all = await roots();
    assert.deepEqual(all, [...all].sort());
    assert.equal(await direct().removeTree(root), undefined);
    await direct().removeTree(root);
    assert.ok(!(await roots()).includes(root));
    const below = await acquire(direct(), file);
    await assertFree(root); // they are independent
    await below.release();
  });

  test('is neither declared nor removed while it is in use', limit, async () => {
    const { root, file } = names('busy');
    const before = await acquire(direct(), file);
    await assert.rejects(direct().declareTree(root), { code: 'tree_busy', status: 409, detail: new RegExp(file) });
    assert.ok(!(await roots()).includes(root));
    await before.release();
    await direct().declareTree(root);
    const lease = await acquire(direct(), file);
    await assert.rejects(direct().removeTree(root), { code: 'tree_busy', status: 409 });
    assert.ok((await roots()).includes(root));
    await lease.release();
    await direct().removeTree(root);
  });

  test('does not overlap another one', limit, async () => {
    const { root, src, file, doc } = names('overlaps');
    await direct().declareTree(src);
    for (const other of [root, file]) {
      await assert.rejects(direct().declareTree(other), { code: 'tree_overlaps', status: 409 });
    }
    await direct().declareTree(doc);
    assert.deepEqual((await roots()).filter((other) => other.startsWith(root)), [doc, src]);
  });

  test('needs a valid root', limit, async () => {
    for (const root of [`${unique('colon')}:`, '', 'a b', '..']) {
      await assert.rejects(direct().declareTree(root), { code: 'invalid_request', field: 'root' }, root);
    }
    await assert.rejects(direct().removeTree('..'), { code: 'invalid_request', field: 'root' });
  });

  test('is declared and removed by a repeated call if the answer is lost', limit, async (t: TestContext) => {
    const proxy = await Proxy.open();
    t.after(() => proxy.close());
    const paddock = createPaddock({ baseUrl: proxy.url });
    const { root } = names('cut');
    for (const change of [() => paddock.declareTree(root), () => paddock.removeTree(root)]) {
      proxy.cuts = 1;
      await assert.rejects(change(), { code: 'unknown_outcome' });
      await change();
    }
    assert.ok(!(await roots()).includes(root));
  });

  test('stays as it is if the signal is aborted before the call', limit, async () => {
    const { root } = names('aborted');
    const enough = new Error('enough');
    const signal = AbortSignal.abort(enough);
    await assert.rejects(direct().declareTree(root, { signal }), enough);
    await assert.rejects(direct().trees({ signal }), enough);
    assert.ok(!(await roots()).includes(root));
  });
});

describe('a lease in a tree', { concurrency: true }, () => {
  test('excludes those above and below it', limit, async () => {
    const { root, src, file, doc } = await declared('excludes');
    const lease = await acquire(direct(), src, { holder: 'worker-1' });
    for (const name of [root, src, file]) {
      await assertBlocked(name, src);
      await assertBlocked(name, src, 'shared');
    }
    await assertFree(doc);
    const [above, below] = [await direct().lock(root), await direct().lock(file)];
    assert.deepEqual([above.state, above.leases, above.above], ['free', [], undefined]);
    assert.deepEqual(above.below?.map((info) => [info.name, info.fencing_token]), [[src, lease.token]]);
    assert.deepEqual(below.above?.map((info) => [info.name, info.holder]), [[src, 'worker-1']]);
    await lease.release();
    assert.equal((await direct().lock(root)).below, undefined);
    const later = await acquire(direct(), root);
    assert.ok(later.token > lease.token);
    await later.release();
  });

  test('is shared at all levels, or exclusive', limit, async () => {
    const { root, src, file } = await declared('shared');
    const above = await acquire(direct(), root, { mode: 'shared', holder: 'worker-1' });
    const below = await acquire(direct(), file, { mode: 'shared' });
    await assertBlocked(src, root);
    await above.release();
    await below.release();
    await assertFree(src);
  });

  test('is no permit', limit, async () => {
    const { file } = await declared('permit');
    await assert.rejects(acquire(direct(), file, { mode: 'permit', capacity: 2 }), { code: 'invalid_request', field: 'mode' });
  });

  test('is not granted before an earlier waiter for the locks around it', limit, async () => {
    const { root, src, file, doc } = await declared('overtaken');
    const first = await acquire(direct(), file);
    const part = acquire(direct(), src, { waitMs: Infinity });
    await waiters(direct(), src, 1);
    assert.deepEqual((await direct().queue(root)).waiters.map((waiter) => waiter.name), [src]);
    await assert.rejects(acquire(direct(), `${src}:b`), { code: 'lock_held' });
    let granted = false;
    const below = acquire(direct(), `${src}:b`, { waitMs: Infinity }).then((lease) => {
      granted = true;
      return lease;
    });
    await waiters(direct(), `${src}:b`, 1);
    await assertFree(doc);
    await first.release();
    const lease = await part;
    assert.ok(lease.token > first.token);
    assert.equal(granted, false);
    await lease.release();
    const later = await below;
    assert.ok(later.token > lease.token);
    await later.release();
  });

  test('is renewed by its guard and released at the end of the work', limit, async () => {
    const { root, file } = await declared('guard');
    const work = async (lease: Lease) => {
      await sleep(8_000); // longer than the TTL
      lease.check();
      await assertBlocked(root, file);
      return [...lease.tokens];
    };
    const tokens = await guard(direct(), file, { ttlMs: 6_000, holder: 'worker-1' }, work);
    assert.deepEqual(tokens.map(([name]) => name), [file]);
    assert.deepEqual(await kinds(direct(), file), ['granted', 'released']);
    await assertFree(root);
  });

  test('may be one of several locks, or of a session', limit, async () => {
    const { root, file, doc } = await declared('several');
    const set = await acquire(direct(), [file, doc]);
    assert.deepEqual([...set.tokens.keys()], [doc, file]);
    await assert.rejects(acquire(direct(), root), { code: 'lock_held' });
    await set.release();
    const session = await openSession(direct());
    await acquire(direct(), file, { session });
    const { leases, locks } = await direct().session(session.ref);
    assert.deepEqual([leases, locks?.map((lock) => lock.name)], [1, [file]]);
    await session.close();
    await assertFree(root);
  });

  test('has a token that is stale once a lease above or below was granted', limit, async () => {
    const { root, file } = await declared('fenced');
    const write = ({ name, fencing_token }: { name: string; fencing_token: number }) =>
      direct().writeFenced(root, { lock: name, fencing_token, value: name });
    const below = await direct().acquire(file, { holder: 'w' });
    await write(below);
    await direct().revoke(file, { fencing_token: below.fencing_token, reason: 'test' });
    const above = await direct().acquire(root, { holder: 'w', wait_ms: 30_000 });
    await write(above);
    await assert.rejects(write(below), { code: 'stale_token' });
    await direct().release(root, { lease_id: above.lease_id });
    const again = await direct().acquire(file, { holder: 'w' });
    await write(again);
    await assert.rejects(write(above), { code: 'stale_token' });
    assert.equal((await direct().readFenced(root)).value, file);
  });
});
