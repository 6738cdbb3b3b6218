import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { describe, test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';

import { acquire } from '../dist/index.js';
import { direct, serviceUrl, unique, until } from './service.js';

const limit = { timeout: 90_000 };

/** A Worker is worker.ts in its own process, with its output. */
class Worker {
  readonly lines: string[] = [];
  readonly child: ChildProcess;
  readonly exited: Promise<unknown[]>;

  constructor(t: TestContext, what: string, name: string) {
    const script = fileURLToPath(new URL('worker.js', import.meta.url));
    this.child = spawn(process.execPath, [script, what, serviceUrl, name], { stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(() => this.child.kill('SIGKILL'));
    createInterface({ input: this.child.stdout! }).on('line', (line) => this.lines.push(line));
    this.exited = once(this.child, 'close');
  }

  /** printed resolves with the rest of the first line with this prefix. */
  printed(prefix: string): Promise<string> {
    return until(`the worker prints ${prefix}`, () => this.lines.find((line) => line.startsWith(prefix))?.slice(prefix.length));
  }
}

describe('a process', { concurrency: 3 }, () => {
  for (const action of ['write', 'write in a session', 'write as the leader']) {
    test(`paused past its TTL (${action}) stops before the next write, and the fence rejects its token`, limit, async (t) => {
      const paddock = direct();
      const name = unique('paused');
      const worker = new Worker(t, action, name);
      const token = Number(await worker.printed('token '));
      await worker.printed('wrote 3');
      worker.child.kill('SIGSTOP');
      const other = await acquire(paddock, name, { waitMs: Infinity });
      assert.ok(other.token > token);
      const written = await paddock.writeFenced(name, { lock: name, fencing_token: other.token, value: 'from the other' });
      const before = worker.lines.length;
      worker.child.kill('SIGCONT');
      assert.equal((await worker.exited)[0], 0);
      const after = worker.lines.slice(before);
      assert.ok(after.includes('aborted lease_lost'));
      assert.ok(after.filter((line) => line.startsWith('wrote')).length <= 1, 'it may only report a write from before the pause');
      assert.equal(after.at(-1), 'refused stale_token 412');
      const now = await paddock.readFenced(name);
      assert.deepEqual([now.value, now.version, now.fencing_token], ['from the other', written.version, other.token]);
      await other.release();
    });
  }

  test('with nothing left but a lease exits', limit, async (t) => {
    const worker = new Worker(t, 'abandon', unique('abandoned'));
    assert.equal((await worker.exited)[0], 0);
    assert.deepEqual(worker.lines, ['abandoned']);
    const name = unique('abandoned-session');
    const others = ['abandon while it is watched', 'abandon in several clients'].map((what) => new Worker(t, what, unique('abandoned')));
    for (const { exited } of others) {
      assert.equal((await exited)[0], 0);
    }
    assert.equal((await new Worker(t, 'abandon a session', name).exited)[0], 0);
    assert.ok((await direct().lock(name)).leases[0]?.session);
  });

  const waiting = [
    ['idle', 4_000], ['idle in a session', 6_000], ['await a lease', 4_000], ['await a lease in a session', 6_000],
  ] as const;
  for (const [action, ttlMs] of waiting) {
    test(`whose work waits for the loss (${action}) runs until the loss`, limit, async (t) => {
      const paddock = direct();
      const name = unique('idle');
      const worker = new Worker(t, action, name);
      const token = Number(await worker.printed('token '));
      await until('the lease has been renewed past its TTL', async () => {
        const { as_of, leases } = await paddock.lock(name);
        return Date.parse(as_of) - Date.parse(leases[0]!.acquired_at) > ttlMs + 500;
      });
      await paddock.revoke(name, { fencing_token: token, reason: 'enough' });
      assert.equal((await worker.exited)[0], 0);
      assert.equal(worker.lines.at(-1), 'lost lease_lost');
    });
  }

  test('that awaits the end of a session runs until then', limit, async (t) => {
    const paddock = direct();
    const name = unique('idle');
    const worker = new Worker(t, 'await a session', name);
    await worker.printed('token ');
    const { leases } = await paddock.lock(name);
    await paddock.revokeSession(leases[0]!.session!, { reason: 'enough' });
    assert.equal((await worker.exited)[0], 0);
    assert.equal(worker.lines.at(-1), 'lost session_lost');
  });
});
