import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { acquire } from '../dist/index.js';
import { direct, serviceUrl } from './service.js';

const home = fileURLToPath(new URL('..', import.meta.url));

/** project makes a folder in which the package is linked, as npm links it, and the README's job is a file. */
function project(): string {
  const job = /`job\.mjs`[^]*?```js\n([^]*?)```/.exec(readFileSync(join(home, 'README.md'), 'utf8'))?.[1];
  assert.ok(job, 'the README has no job.mjs');
  const folder = mkdtempSync(join(tmpdir(), 'paddock-readme-'));
  mkdirSync(join(folder, 'node_modules/@paddock-lock'), { recursive: true });
  symlinkSync(home, join(folder, 'node_modules/@paddock-lock/sdk'));
  writeFileSync(join(folder, 'job.mjs'), job);
  return folder;
}

test('the README\'s job does what it says', { timeout: 60_000 }, async (t) => {
  const folder = project();
  t.after(() => rmSync(folder, { recursive: true }));
  const env = { ...process.env, PADDOCK_URL: serviceUrl };
  const job = async () => (await promisify(execFile)(process.execPath, ['job.mjs'], { cwd: folder, env, timeout: 30_000 })).stdout;
  const lines = (await job()).trim().split('\n');
  const { fencing_token: token, state } = await direct().lock('jobs:nightly');
  assert.deepEqual(lines, [1, 2, 3].map((i) => `billed accounts:${i} under token ${token}`));
  assert.equal(state, 'free');
  const lease = await acquire(direct(), 'jobs:nightly', { holder: 'worker-1' });
  assert.equal(await job(), 'worker-1 does it already\n');
  await lease.release();
});
