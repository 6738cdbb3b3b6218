// Runs all tests in this folder against a private service: PADDOCK_BIN, or a binary built from this clone.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const root = fileURLToPath(new URL('../../..', import.meta.url));

/** binary returns the path of paddock: PADDOCK_BIN, or a binary built into the folder. */
function binary(folder: string): string {
  const { PADDOCK_BIN } = process.env;
  if (PADDOCK_BIN) {
    return PADDOCK_BIN;
  }
  const path = join(folder, 'paddock');
  const { status, error } = spawnSync('go', ['build', '-o', path, './cmd/paddock'], { cwd: root, stdio: 'inherit', timeout: 300_000 });
  if (status !== 0) {
    throw new Error(`The tests need paddock: install Go or set PADDOCK_BIN. go build failed: ${error?.message ?? `status ${status}`}`);
  }
  return path;
}

/** start starts a service and resolves with its address and that of its database. */
async function start(path: string): Promise<{ child: ChildProcess; url: string; database: string }> {
  const child = spawn(path, ['dev', '--ephemeral', '--listen', '127.0.0.1:0', '--log-level', 'error'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const late = setTimeout(() => child.kill(), 60_000);
  let url: string | undefined;
  for await (const line of createInterface({ input: child.stdout! })) {
    url ??= /^Paddock is ready: (\S+)/.exec(line)?.[1];
    const database = /^Database.*: (postgres:\S+)/.exec(line)?.[1];
    if (url && database) {
      clearTimeout(late);
      child.stdout!.resume();
      return { child, url, database };
    }
  }
  clearTimeout(late);
  throw new Error('paddock dev did not become ready; is PostgreSQL installed?');
}

async function stop(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  const late = setTimeout(() => child.kill('SIGKILL'), 30_000);
  await exited;
  clearTimeout(late);
}

/** heavy are the test files that use the processor for long, which would cost the others their leases. */
const heavy = ['failover.test.js', 'hub.test.js'];

/** runAll runs the test files concurrently, since most of them mostly wait, and resolves with true if all passed. */
async function runAll(): Promise<boolean> {
  const only = process.argv.slice(2);
  const files = readdirSync(here).filter((name) => name.endsWith('.test.js') && (only.length === 0 || only.some((o) => name.startsWith(o))));
  const light = files.filter((name) => !heavy.includes(name));
  const passed = await runFiles(light, 4);
  return (await runFiles(files.filter((name) => heavy.includes(name)), 1)) && passed && files.length > 0;
}

/** runFiles runs so many of the test files at a time, and resolves with true if all passed. */
async function runFiles(files: string[], concurrency: number): Promise<boolean> {
  let passed = true;
  if (files.length === 0) {
    return passed;
  }
  const tests = run({ files: files.map((name) => join(here, name)), concurrency, timeout: 180_000 });
  tests.on('test:fail', () => (passed = false));
  const output = tests.pipe(new spec());
  output.pipe(process.stdout, { end: false });
  await once(output, 'end');
  return passed;
}

const folder = mkdtempSync(join(tmpdir(), 'paddock-sdk-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => process.exit(1));
}
const path = binary(folder);
const { child, url, database } = await start(path);
process.on('exit', () => child.kill()); // even if this process fails
Object.assign(process.env, { PADDOCK_BIN: path, PADDOCK_URL: url, PADDOCK_TEST_DATABASE_URL: database });
const passed = await runAll();
await stop(child);
process.exit(passed ? 0 : 1);
