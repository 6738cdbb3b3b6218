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

/** project creates a folder with the package linked, as npm links it, and the README's job.mjs. */
function project(): string {
  const job = /`job\.mjs`[^]*?```js\n([^]*?)```/.exec(readFileSync(join(home, 'README.md'), 'utf8'))?.[1];
  assert.ok(job, 'the README has no job.mjs');
  const folder = mkdtempSync(join(tmpdir(), 'paddock-readme-'));
  mkdirSync(join(folder, 'node_modules/@paddock-lock'), { recursive: true });
  symlinkSync(home, join(folder, 'node_modules/@paddock-lock/sdk'));
  writeFileSync(join(folder, 'job.mjs'), job);
  return folder;
}

test('the job in the README works', { timeout: 60_000 }, async (t) => {
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

test('the package contains the licence, the README and the types', { timeout: 60_000 }, async () => {
  const { stdout } = await promisify(execFile)('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: home });
  const [tarball] = JSON.parse(stdout) as { files: { path: string }[] }[];
  const paths = tarball!.files.map((file) => file.path);
  for (const path of ['LICENSE', 'README.md', 'package.json', 'dist/index.js', 'dist/index.d.ts']) {
    assert.ok(paths.includes(path), `${path} is missing: ${paths.join(', ')}`);
  }
  const manifest = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')) as { repository?: { url?: string; directory?: string } };
  assert.match(manifest.repository?.url ?? '', /^git\+https:/);
  assert.equal(manifest.repository?.directory, 'sdk/typescript');
  assert.equal(readFileSync(join(home, 'LICENSE'), 'utf8'), readFileSync(join(home, '../../LICENSE'), 'utf8'), 'LICENSE differs from the root');
});
