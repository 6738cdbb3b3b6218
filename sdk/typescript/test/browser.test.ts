import assert from 'node:assert/strict';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, request as forward, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { direct, kinds, serviceUrl, unique } from './service.js';

/** page is what the browser shows: it acquires, sees a renewal, loses the lease to an operator, and reports what it saw. */
const page = (name: string) => `<!doctype html><title>Paddock</title>
<script type="importmap">{"imports": {"openapi-fetch": "/openapi-fetch.js", "@paddock-lock/sdk": "/dist/index.js"}}</script>
<script type="module">
  import { createPaddock, guard } from '@paddock-lock/sdk';
  const told = { states: [] };
  try {
    const paddock = createPaddock({ baseUrl: '' });
    const options = { ttlMs: 3000, onState: (state) => told.states.push(state) };
    await guard(paddock, '${name}', options, async (lease) => {
      told.holder = lease.holder;
      const first = (await paddock.lock(lease.name)).leases[0].expires_at;
      while ((await paddock.lock(lease.name)).leases[0].expires_at === first) {
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      told.renewed = lease.held();
      await paddock.revoke(lease.name, { fencing_token: lease.token, reason: 'the test says so' });
      await new Promise((resolve) => lease.signal.addEventListener('abort', resolve));
      told.early = lease.remainingMs > 0;
      lease.check();
    });
  } catch (error) {
    Object.assign(told, { code: error.code, ended: error.ended, said: String(error) });
  }
  await fetch('/verdict', { method: 'POST', body: JSON.stringify(told) });
</script>`;

/** A Site serves the page and the SDK as it was built, and passes everything else on to the service, as a proxy of the same origin. */
class Site {
  readonly verdict: Promise<Record<string, unknown>>;
  #judge!: (verdict: Record<string, unknown>) => void;
  readonly server = createServer((req, res) => this.#serve(req, res));

  constructor(private readonly name: string) {
    this.verdict = new Promise((resolve) => (this.#judge = resolve));
  }

  get host(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  #serve(req: IncomingMessage, res: ServerResponse): void {
    const url = req.url ?? '/';
    const script = /^\/dist\/([a-z]+\.js)$/.exec(url)?.[1];
    if (url === '/') {
      res.setHeader('Content-Type', 'text/html').end(page(this.name));
    } else if (script) {
      send(res, `../dist/${script}`);
    } else if (url === '/openapi-fetch.js') {
      send(res, '../node_modules/openapi-fetch/dist/index.mjs');
    } else if (url === '/verdict') {
      this.#hear(req, res);
    } else {
      pass(req, res);
    }
  }

  #hear(req: IncomingMessage, res: ServerResponse): void {
    let text = '';
    req.on('data', (part) => (text += String(part)));
    req.on('end', () => {
      res.end();
      this.#judge(JSON.parse(text) as Record<string, unknown>);
    });
  }
}

function send(res: ServerResponse, path: string): void {
  res.setHeader('Content-Type', 'text/javascript').end(readFileSync(new URL(path, import.meta.url)));
}

function pass(req: IncomingMessage, res: ServerResponse): void {
  const { method, headers } = req;
  const onward = forward(serviceUrl + req.url, { method, headers }, (answer) => {
    res.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(res);
  });
  onward.on('error', () => res.destroy()); // the page sees a lost answer, as it would behind any proxy
  req.pipe(onward);
}

/** chromium starts a browser with a profile of its own in the folder. */
function chromium(url: string, folder: string): ChildProcess {
  const found = ['chromium', 'chromium-browser', 'google-chrome'].find((name) => spawnSync(name, ['--version']).status === 0);
  assert.ok(found, 'No Chromium is installed, and this test needs one: apt-get install -y chromium');
  const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--disable-component-update',
    '--disable-background-networking', '--disable-quic', `--user-data-dir=${folder}`];
  return spawn(found, [...flags, url], { stdio: 'ignore', detached: true, env: { ...process.env, TMPDIR: folder } });
}

/** end ends the browser with all its processes, and waits for it. */
async function end(browser: ChildProcess): Promise<void> {
  if (browser.exitCode === null && browser.signalCode === null) {
    const exited = once(browser, 'exit');
    process.kill(-browser.pid!, 'SIGTERM');
    const late = setTimeout(() => process.kill(-browser.pid!, 'SIGKILL'), 10_000);
    await exited;
    clearTimeout(late);
  }
}

test('the same lease in a browser is acquired, renewed, lost, and its work stopped', { timeout: 120_000 }, async (t) => {
  const name = unique('browser');
  const site = new Site(name);
  site.server.listen(0, '127.0.0.1');
  await once(site.server, 'listening');
  const folder = mkdtempSync(join(tmpdir(), 'paddock-browser-'));
  const browser = chromium(`http://${site.host}/`, folder);
  t.after(async () => {
    await end(browser);
    site.server.closeAllConnections();
    site.server.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  const told = await Promise.race([site.verdict, sleep(90_000, { said: 'nothing within 90 s' }, { ref: false })]);
  const { states, said, ...verdict } = told as { states?: string[]; said: string };
  assert.deepEqual(verdict, { holder: `a page of ${site.host}`, renewed: true, early: true, code: 'lease_lost', ended: 'revoked' }, said);
  assert.equal(states?.at(-1), 'lost');
  assert.deepEqual(await kinds(direct(), name), ['granted', 'revoked']);
});
